//! The character class of every code point, from the crate that tiktoken's regex engine uses.
//!
//! A two-stage table: `INDEX[code_point / 128]` is a block, `BLOCKS[block * 128 + code_point % 128]` the class, one bit
//! (see `src-rust/count/pretokenize/unicode.rs`). Equal blocks are stored once. The bit numbers of the classes up to
//! U+FFFF are also stored flat, for texts in which most characters take several bytes.

use regex_syntax::hir::{Class, HirKind};
use std::fmt::Write as _;

const CLASSES: [(&str, u8); 7] = [
    (r"[\p{Lu}\p{Lt}]", 1),
    (r"\p{Ll}", 2),
    (r"[\p{Lm}\p{Lo}]", 4),
    (r"\p{M}", 8),
    (r"\p{N}", 16),
    (r"[\s&&[^\r\n]]", 32),
    (r"[\r\n]", 64),
];
const SYMBOL: u8 = 128;
const BLOCK: usize = 128;
/// All punctuation and symbols are below this code point.
const SIGNS_END: usize = 0x2_0000;

/// Rust source of the tables.
pub fn tables() -> String {
    let mut classes = vec![SYMBOL; 0x11_0000];
    for (pattern, bit) in CLASSES {
        for (first, last) in ranges(pattern) {
            for code_point in first..=last {
                let class = &mut classes[code_point as usize];
                assert_eq!(*class, SYMBOL, "classes overlap at U+{code_point:04X}");
                *class = bit;
            }
        }
    }

    let mut blocks: Vec<&[u8]> = Vec::new();
    let index: Vec<usize> = classes
        .chunks(BLOCK)
        .map(|block| {
            blocks.iter().position(|known| *known == block).unwrap_or_else(|| {
                blocks.push(block);
                blocks.len() - 1
            })
        })
        .collect();
    assert!(blocks.len() <= 256, "block numbers no longer fit a byte");

    let plane: Vec<u32> = classes[..0x1_0000].iter().map(|class| class.trailing_zeros()).collect();
    let mut source = String::new();
    let _ = writeln!(source, "pub(crate) static BASIC_PLANE: [u8; 0x1_0000] = {plane:?};");
    let _ = writeln!(source, "pub(crate) static INDEX: [u8; {}] = {index:?};", index.len());
    let mut flat = blocks.concat();
    flat.resize(256 * BLOCK, SYMBOL);
    let _ = writeln!(source, "pub(crate) static BLOCKS: [u8; {}] = {flat:?};", flat.len());
    let mut other = vec![0u64; SIGNS_END / 64];
    for (first, last) in ranges(r"[^\s\p{L}\p{N}\p{M}\p{P}\p{S}]") {
        for code_point in (first..=last).map(|code_point| code_point as usize).filter(|&c| c < SIGNS_END) {
            other[code_point / 64] |= 1 << (code_point % 64);
        }
    }
    assert!(ranges(r"[\p{P}\p{S}]").iter().all(|(_, last)| (*last as usize) < SIGNS_END));
    let _ = writeln!(source, "pub(crate) static OTHER: [u64; {}] = {other:?};", other.len());
    source
}

fn ranges(pattern: &str) -> Vec<(u32, u32)> {
    let hir = regex_syntax::parse(pattern).expect("a valid class");
    let HirKind::Class(Class::Unicode(class)) = hir.kind() else {
        panic!("{pattern} is no class of code points");
    };
    class.ranges().iter().map(|r| (r.start() as u32, r.end() as u32)).collect()
}
