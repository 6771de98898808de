//! The table of programs: what each checks, in which language.

use std::sync::LazyLock;

use rustc_hash::FxHashMap;

/// The table of programs.
pub(super) const TABLE: &str = include_str!("../data/programs.tsv");

/// Classes of checks, one bit each.
pub(super) const COMPILE: u8 = 1;
pub(super) const LINT: u8 = 1 << 1;
pub(super) const FORMAT: u8 = 1 << 2;
pub(super) const TEST: u8 = 1 << 3;
pub(super) const BUNDLE: u8 = 1 << 4;

/// The language, the classes, and the first class.
pub(super) type Kind = (&'static str, u8, u8);

/// Language, classes and first class, by program and subcommand.
pub(super) fn kinds() -> &'static FxHashMap<(&'static str, &'static str), Kind> {
    static KINDS: LazyLock<FxHashMap<(&str, &str), Kind>> = LazyLock::new(|| {
        let row = |line: &'static str| {
            let mut cells = line.split('\t');
            let (program, verb) = (cells.next()?, cells.next()?);
            let (language, classes) = (cells.next()?, cells.next()?);
            let bits: Vec<u8> = classes.split(' ').map(class).collect();
            Some(((program, verb), (language, bits.iter().fold(0, |sum, bit| sum | bit), *bits.first()?)))
        };
        TABLE.lines().filter(|line| !line.starts_with('#')).filter_map(row).collect()
    });
    &KINDS
}

pub(super) fn class(name: &str) -> u8 {
    match name {
        "compile" => COMPILE,
        "lint" => LINT,
        "format" => FORMAT,
        "test" => TEST,
        "bundle" => BUNDLE,
        _ => 0,
    }
}

/// Whether a program is a check of any kind.
pub(super) fn is_check_program(program: &str) -> bool {
    static PROGRAMS: LazyLock<rustc_hash::FxHashSet<&str>> =
        LazyLock::new(|| kinds().keys().map(|(program, _)| *program).collect());
    PROGRAMS.contains(program)
}
