//! The runs of a text, and the markers that are written into them.
//!
//! A run is a longest sequence of characters of one class; hard runs are parted by kind. Words are written between two
//! markers, their case before the first. Punctuation, other symbols and digits of other scripts have a marker at an edge
//! that borders a space. A space between two markers vanishes.

use std::ops::Range;

use super::Generation;
use super::classes::Class;
use super::tiles::{BEGIN, CAPS, END, SHIFT};

/// Endings that an apostrophe binds to the word before it.
pub(super) const CONTRACTIONS: [&str; 7] = ["s", "t", "d", "m", "ll", "re", "ve"];

/// A run of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub kind: Kind,
    pub start: u32,
    pub end: u32,
    /// The classes of its first and last character.
    first: Class,
    last: Class,
    /// Its numbers are of one class, and nothing else is in it.
    is_uniform: bool,
}

/// The kind of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Space,
    Digit,
    Punct,
    Word,
    /// Marks without a letter before them.
    Stray,
    /// Hard: punctuation and symbols, numbers, or letters.
    HardPunct,
    HardNumber,
    HardLetter,
}

/// The runs of a text, used again from text to text.
#[derive(Default)]
pub(super) struct Runs(Vec<Run>);

impl Runs {
    /// Parts a range of a normalized text. O(bytes).
    pub(super) fn part(&mut self, text: &str, range: Range<usize>) {
        self.0.clear();
        let mut at = range.start;
        for c in text.get(range).unwrap_or_default().chars() {
            self.push(Class::of(c), at, at + c.len_utf8());
            at += c.len_utf8();
        }
    }

    /// Adds a character.
    #[inline]
    fn push(&mut self, class: Class, start: usize, end: usize) {
        let before = self.0.last().map(|run| run.kind);
        let kind = match class {
            Class::Space => Kind::Space,
            Class::AsciiDigit | Class::ArabicDigit => Kind::Digit,
            Class::Punct => Kind::Punct,
            Class::Word => Kind::Word,
            // A mark belongs to the word before it.
            Class::Stray if before == Some(Kind::Word) => Kind::Word,
            Class::Stray => Kind::Stray,
            Class::HardPunct => Kind::HardPunct,
            Class::HardNd | Class::HardNo => Kind::HardNumber,
            Class::HardLetter => Kind::HardLetter,
            // A selector belongs to the hard character before it.
            Class::Selector => before.filter(|kind| kind.is_hard()).unwrap_or(Kind::HardLetter),
        };
        match self.0.last_mut().filter(|run| run.kind == kind) {
            Some(run) => {
                run.end = place(end);
                run.is_uniform &= class == run.first || kind == Kind::Digit;
                run.last = class;
            }
            None => self.0.push(Run {
                kind,
                start: place(start),
                end: place(end),
                first: class,
                last: class,
                is_uniform: true,
            }),
        }
    }
}

fn place(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

impl Kind {
    fn is_hard(self) -> bool {
        matches!(self, Kind::HardPunct | Kind::HardNumber | Kind::HardLetter)
    }
}

impl Run {
    /// Its text.
    #[inline]
    pub(super) fn of<'t>(&self, text: &'t str) -> &'t str {
        text.get(self.start as usize..self.end as usize).unwrap_or("")
    }

    /// Whether its edge takes a marker because of its character there.
    fn has_hard_edge(&self, edge: Class) -> bool {
        self.kind.is_hard() && matches!(edge, Class::Selector | Class::HardPunct)
    }

    /// Whether it is a run of digits whose edge takes a marker: one of another script.
    fn has_digit_edge(&self, edge: Class) -> bool {
        let is_number = matches!(self.kind, Kind::Digit | Kind::HardNumber) && self.is_uniform;
        is_number && matches!(edge, Class::ArabicDigit | Class::HardNd | Class::HardNo)
    }

    /// Whether it writes a marker at its right edge before a space, other than a word.
    fn takes_right_border(&self) -> bool {
        self.kind == Kind::Punct || self.has_hard_edge(self.last) || self.has_digit_edge(self.last)
    }
}

/// The runs of a text with their markers.
pub(super) struct Marker<'t> {
    pub(super) text: &'t str,
    runs: &'t [Run],
    pub(super) generation: Generation,
}

impl<'t> Marker<'t> {
    pub(super) fn new(text: &'t str, runs: &'t Runs, generation: Generation) -> Self {
        Marker { text, runs: &runs.0, generation }
    }

    #[inline]
    pub(super) fn run(&self, i: usize) -> Option<Run> {
        self.runs.get(i).copied()
    }

    /// The number of runs.
    pub(super) fn len(&self) -> usize {
        self.runs.len()
    }

    /// Whether a piece may span the run and the next one: from a hard run into punctuation, and from an apostrophe into
    /// a contraction.
    pub(super) fn is_covered_with_next(&self, i: usize, run: &Run) -> bool {
        match self.runs.get(i + 1).map(|next| next.kind) {
            Some(Kind::Punct) => matches!(run.kind, Kind::HardPunct | Kind::HardNumber),
            Some(Kind::Word) => run.kind == Kind::Punct && self.is_contraction(i + 1),
            _ => false,
        }
    }

    fn body(&self, i: usize) -> &'t str {
        self.runs.get(i).map_or("", |run| run.of(self.text))
    }

    /// Whether a run is an apostrophe that opens the word after it.
    fn opens_word(&self, i: usize) -> bool {
        self.runs.get(i).is_some_and(|run| run.kind == Kind::Punct && run.end - run.start == 1)
            && self.body(i) == "'"
            && self.runs.get(i + 1).is_some_and(|next| matches!(next.kind, Kind::Word | Kind::Stray))
    }

    /// Whether the word is a contraction, whose apostrophe is its opening marker.
    fn is_contraction(&self, i: usize) -> bool {
        let Some(run) = self.runs.get(i).filter(|run| run.kind == Kind::Word && run.end - run.start <= 2)
        else {
            return false;
        };
        i > 0
            && self.runs[i - 1].kind == Kind::Punct
            && self.body(i - 1) == "'"
            && CONTRACTIONS.contains(&run.of(self.text))
            && !(i > 1 && (self.runs[i - 2].takes_right_border() || self.ends_in_symbol(i - 2)))
    }

    /// Whether a word ends in a circled letter, which has the border of a symbol.
    fn ends_in_symbol(&self, i: usize) -> bool {
        self.body(i).ends_with(is_symbol_letter)
    }

    /// Whether the left edge of a run borders a space.
    fn follows_space(&self, run: &Run) -> bool {
        match (run.start as usize).checked_sub(1) {
            // The frame of a message ends in a marker, which stands for a space.
            None => self.generation.begins_within_boundary(),
            Some(before) => self.text.as_bytes().get(before) == Some(&b' '),
        }
    }

    /// Whether the right edge of a run borders exactly one space.
    fn precedes_space(&self, run: &Run) -> bool {
        let after = self.text.as_bytes().get(run.end as usize..).unwrap_or_default();
        after.first() == Some(&b' ') && after.get(1) != Some(&b' ')
    }

    /// What the frame of a message writes before the first run: a marker that the run does not bring itself.
    pub(super) fn pays_for_frame(&self) -> bool {
        let Some(first) = self.runs.first() else { return self.generation.begins_within_boundary() };
        let has_own = !self.opens_word(0)
            && (matches!(first.kind, Kind::Word | Kind::Punct | Kind::Stray)
                || first.has_hard_edge(first.first)
                || first.has_digit_edge(first.first)
                || (first.kind == Kind::Space && self.text.starts_with(' ')));
        self.generation.begins_within_boundary() && !has_own
    }

    /// Whether the run has a marker at its left edge.
    fn has_begin(&self, i: usize, run: &Run) -> bool {
        match run.kind {
            Kind::Space => false,
            Kind::Word => {
                let is_fused = i > 0 && self.runs[i - 1].kind == Kind::Stray;
                !is_fused && !self.is_contraction(i)
            }
            Kind::Stray => true,
            _ => {
                let takes = (run.kind == Kind::Punct && !self.opens_word(i))
                    || run.has_hard_edge(run.first)
                    || (run.has_digit_edge(run.first) && !run.has_hard_edge(run.last));
                takes && self.follows_space(run)
            }
        }
    }

    /// Whether the run has a marker at its right edge.
    fn has_end(&self, i: usize, run: &Run) -> bool {
        match run.kind {
            Kind::Space => false,
            Kind::Word => true,
            Kind::Stray => !self.runs.get(i + 1).is_some_and(|next| next.kind == Kind::Word),
            _ => run.takes_right_border() && self.precedes_space(run),
        }
    }

    /// Whether the run is the one space between two markers, which vanishes.
    #[inline]
    pub(super) fn vanishes(&self, i: usize, run: &Run) -> bool {
        run.kind == Kind::Space
            && run.end - run.start == 1
            && i > 0
            && self.text.as_bytes().get(run.start as usize) == Some(&b' ')
            && self.has_end(i - 1, &self.runs[i - 1])
            && self.runs.get(i + 1).is_some_and(|next| self.has_begin(i + 1, next))
    }

    /// Writes a run with its markers to the end of `out`.
    pub(super) fn write(&self, i: usize, run: &Run, out: &mut Vec<u8>) {
        let body = run.of(self.text);
        let begins = self.has_begin(i, run);
        if run.kind == Kind::Word {
            let has_stray_head = i > 0 && self.runs[i - 1].kind == Kind::Stray;
            write_word(body, begins, has_stray_head, self.generation.min_capitals(), out);
        } else {
            if begins {
                out.push(BEGIN);
            }
            out.extend_from_slice(body.as_bytes());
        }
        if self.has_end(i, run) {
            out.push(END);
        }
    }
}

/// Whether a letter has the border of a symbol: circled ones, and a few others.
pub(super) fn is_symbol_letter(c: char) -> bool {
    matches!(c, '\u{24b6}'..='\u{24e9}' | '\u{1c89}' | '\u{1c8a}' | '\u{a7cb}')
}

/// The case of a word.
enum Case {
    /// As it is written.
    AsIs,
    /// A capital first, and no other.
    Title,
    /// Capitals only.
    Capitals,
}

/// Writes a word with the markers of its case and its beginning.
pub(super) fn write_word(
    body: &str,
    begins: bool,
    has_stray_head: bool,
    min_capitals: Option<usize>,
    out: &mut Vec<u8>,
) {
    let case = if has_stray_head { Case::AsIs } else { case_of(body, min_capitals) };
    match case {
        Case::AsIs => {}
        Case::Title => out.push(SHIFT),
        Case::Capitals => out.push(CAPS),
    }
    if begins {
        out.push(BEGIN);
    }
    if matches!(case, Case::AsIs) {
        return out.extend_from_slice(body.as_bytes());
    }
    if body.is_ascii() {
        return out.extend(body.bytes().map(|byte| byte.to_ascii_lowercase()));
    }
    let mut bytes = [0; 4];
    for c in body.chars() {
        for lower in lowered(c) {
            out.extend_from_slice(lower.encode_utf8(&mut bytes).as_bytes());
        }
    }
}

fn case_of(body: &str, min_capitals: Option<usize>) -> Case {
    if body.is_ascii() {
        let bytes = body.as_bytes();
        if !bytes.first().is_some_and(u8::is_ascii_uppercase) {
            return Case::AsIs;
        }
        if !bytes[1..].iter().any(u8::is_ascii_uppercase) {
            return Case::Title;
        }
        let is_long = min_capitals.is_some_and(|least| bytes.len() >= least);
        return if is_long && bytes.iter().all(u8::is_ascii_uppercase) { Case::Capitals } else { Case::AsIs };
    }
    // `ẞ` blocks the markers of case, and `İ` that of capitals, and both where it comes first.
    if body.contains('ẞ') || body.starts_with('İ') {
        return Case::AsIs;
    }
    let Some(first) = body.chars().next() else { return Case::AsIs };
    let others = || body.chars().skip(1).filter(|c| *c != 'İ');
    if is_capital(first) && !others().any(is_capital) {
        let is_long = min_capitals.is_some_and(|least| body.chars().count() >= least);
        // A single capital among uncased signs may still be one of capitals.
        return if is_long && !body.contains('İ') && is_of_capitals(body) {
            Case::Capitals
        } else {
            Case::Title
        };
    }
    let is_long = min_capitals.is_some_and(|least| body.chars().count() >= least);
    if is_long && !body.contains('İ') && is_of_capitals(body) { Case::Capitals } else { Case::AsIs }
}

/// Whether each letter and mark is a capital, and something is.
fn is_of_capitals(body: &str) -> bool {
    body.chars().any(is_capital) && body.chars().all(|c| is_capital(c) || is_symbol_without_case(c))
}

/// Symbols that are words and have no case, or a small form that is no letter.
fn is_symbol_without_case(c: char) -> bool {
    let is_symbol = matches!(c, '\u{16ee}'..='\u{16f0}' | '\u{2160}'..='\u{2188}' | '\u{24b6}'..='\u{24e9}' | '\u{a6e6}'..='\u{a6ef}');
    is_symbol && !c.is_lowercase()
}

/// Whether a character is a capital with a small form.
fn is_capital(c: char) -> bool {
    c != 'ϴ' && c.is_uppercase() && !c.to_lowercase().eq([c])
}

/// The small form of a character of a word whose case is marked.
fn lowered(c: char) -> impl Iterator<Item = char> {
    let keeps = matches!(c, 'ϴ' | 'İ');
    let lower = c.to_lowercase().filter(move |_| !keeps);
    lower.chain(std::iter::once(c).filter(move |_| keeps))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(text: &str, generation: Generation) -> String {
        let mut runs = Runs::default();
        runs.part(text, 0..text.len());
        let marker = Marker::new(text, &runs, generation);
        let mut out = Vec::new();
        for i in 0..runs.0.len() {
            let run = marker.run(i).expect("a run");
            if !marker.vanishes(i, &run) {
                marker.write(i, &run, &mut out);
            }
        }
        let text = String::from_utf8(out).expect("UTF-8");
        [("\u{1}", "<"), ("\u{2}", ">"), ("\u{3}", "^"), ("\u{4}", "!!")]
            .iter()
            .fold(text, |text, (marker, sign)| text.replace(marker, sign))
    }

    #[test]
    fn words_stand_between_markers_and_their_case_before_them() {
        for (text, expected) in [
            ("the cat", "<the><cat>"),
            ("The CAT", "^<the><CAT>"),
            ("BUTTER WiFi", "!!<butter><WiFi>"),
            ("a  b", "<a>  <b>"),
            ("it's x'S", "<it>'s><x>'^<s>"),
            ("a 'b", "<a> '<b>"),
            ("a! b!c", "<a>!><b>!<c>"),
            ("x 12 y", "<x> 12 <y>"),
            ("字 a", "字 <a>"),
            ("文，字", "文，字"),
            ("1 ३ 1", "1 <३> 1"),
        ] {
            assert_eq!(marked(text, Generation::V3), expected, "{text}");
        }
        assert_eq!(marked("BUTTER The", Generation::V47), "<BUTTER>^<the>");
    }
}
