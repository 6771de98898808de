//! Finds the strings of a JSON text and measures their escapes, in blocks of [`BLOCK_BYTES`] bytes.
//!
//! The scan runs ahead of the parser. It combines the masks of a block with carries for escapes, open strings and
//! letters, as in simdjson.

use super::entry::Escapes;
use super::escapes::Escape;
use super::simd::{BLOCK_BYTES, ByteMasks};

/// A quote that begins or ends a string. Low half: its position. High half: the number of simple escapes before it,
/// modulo 2^32.
///
/// Simple escapes are those of characters that are always escaped. One word, or the compiler gathers the halves of
/// several quotes in vectors, one by one.
#[derive(Clone, Copy, Debug, Default)]
struct Quote(u64);

impl Quote {
    #[inline(always)]
    fn new(at: u32, letters: u32) -> Self {
        Quote(u64::from(letters) << 32 | u64::from(at))
    }

    /// The quote after this many bytes and simple escapes.
    #[inline(always)]
    fn plus(self, bytes: u32, letters: u32) -> Self {
        Quote(self.0.wrapping_add(Quote::new(bytes, letters).0))
    }

    #[inline(always)]
    fn at(self) -> usize {
        self.0 as u32 as usize
    }

    #[inline(always)]
    fn letters(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// The escapes of a string.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Escaped {
    /// Simple escapes: of characters that are always escaped.
    pub letters: u32,
    /// Escaped solidi.
    pub solidi: u32,
    /// Effect of its `\uXXXX` escapes.
    pub units: Escapes,
    pub has_units: bool,
}

/// Quotes consumed between two checks of the supply: those of a key and a value.
const TAKEN: usize = 4;

/// Least number of bytes scanned at a time.
const AHEAD: usize = 8 * BLOCK_BYTES;

/// Room for quotes: the remaining ones, one for each byte scanned, and the slack written after the last.
const ROOM: usize = AHEAD + 2 * TAKEN;

/// Finds the strings of a text in order. Each block is scanned once.
pub(super) struct Strings<'a> {
    bytes: &'a [u8],
    ahead: Cursor,
    /// The quotes found; those from `next` to [`Cursor::filled`] remain.
    quotes: [Quote; ROOM],
    next: usize,
    /// Positions of the letters of other escapes; those before `next_other` were consumed.
    others: Vec<u32>,
    next_other: usize,
}

/// The state of the scan.
#[derive(Clone, Copy)]
struct Cursor {
    /// The first byte not scanned.
    behind: usize,
    /// Whether that byte is escaped, as 1 or 0.
    carry: u64,
    /// Whether that byte is inside a string, as all ones or zero.
    inside: u64,
    /// Simple escapes before it.
    letters: u32,
    /// Quotes stored.
    filled: usize,
    /// Accumulated bits of non-ASCII bytes.
    high: u64,
}

impl<'a> Strings<'a> {
    /// Starts outside of strings, at the first of at most 2^32 bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Strings {
            bytes,
            ahead: Cursor { behind: 0, carry: 0, inside: 0, letters: 0, filled: 0, high: 0 },
            quotes: [Quote(0); ROOM],
            next: 0,
            others: Vec::new(),
            next_other: 0,
        }
    }

    /// Whether all bytes scanned so far are ASCII.
    pub fn is_ascii(&self) -> bool {
        self.ahead.high == 0
    }

    /// Scans ahead far enough for a key and a value; call it before each such pair. `None` if a string contains a
    /// control character.
    #[inline(always)]
    pub fn look_ahead(&mut self, signs: &impl Fn(&[u8; BLOCK_BYTES]) -> ByteMasks) -> Option<()> {
        if self.ahead.filled - self.next < TAKEN && self.ahead.behind < self.bytes.len() {
            self.advance(signs)?;
        }
        Some(())
    }

    #[inline(always)]
    fn advance(&mut self, signs: &impl Fn(&[u8; BLOCK_BYTES]) -> ByteMasks) -> Option<()> {
        for i in 0..TAKEN {
            self.quotes[i] = self.quotes.get(self.next + i).copied().unwrap_or_default();
        }
        // A local copy, so that it is not written back for each block.
        let mut ahead = self.ahead;
        ahead.filled -= self.next;
        self.next = 0;
        if self.next_other == self.others.len() {
            self.others.clear();
            self.next_other = 0;
        }
        let enough = ahead.behind + AHEAD;
        let (blocks, rest) = self.bytes.get(ahead.behind..)?.as_chunks::<BLOCK_BYTES>();
        for block in blocks {
            ahead.pass(&signs(block), self.quotes.get_mut(ahead.filled..)?, &mut self.others)?;
            if ahead.behind >= enough && ahead.filled >= TAKEN {
                self.ahead = ahead;
                return Some(());
            }
        }
        if !rest.is_empty() {
            let mut padded = [0; BLOCK_BYTES];
            padded[..rest.len()].copy_from_slice(rest);
            ahead.pass(&signs(&padded), self.quotes.get_mut(ahead.filled..)?, &mut self.others)?;
        }
        self.ahead = ahead;
        Some(())
    }

    /// The end of the next string, and the number of its simple escapes.
    ///
    /// The string begins at `at`, after its quote. [`Strings::escaped`] adds its other escapes. `None` if it does not
    /// end.
    #[inline(always)]
    pub fn end_of(&mut self, at: usize) -> Option<(usize, u32)> {
        let [open, close] = *self.quotes.get(self.next..self.ahead.filled)?.first_chunk()?;
        if open.at() + 1 != at {
            return None;
        }
        self.next += 2;
        Some((close.at(), close.letters().wrapping_sub(open.letters())))
    }

    /// Whether [`Strings::escaped`] must be called.
    #[inline(always)]
    pub fn has_others(&self) -> bool {
        self.next_other < self.others.len()
    }

    /// All escapes of the string that [`Strings::end_of`] returned; `None` if one is not valid.
    #[cold]
    pub fn escaped(&mut self, (end, letters): (usize, u32)) -> Option<Escaped> {
        let mut found = Escaped { letters, ..Escaped::default() };
        let mut behind_unit = 0;
        while let Some(&place) = self.others.get(self.next_other) {
            let place = place as usize;
            if place >= end {
                break;
            }
            self.next_other += 1;
            if place >= behind_unit {
                behind_unit = found.pass(self.bytes, place)?;
            }
        }
        Some(found)
    }
}

impl Cursor {
    /// Scans the next block. `room` has at least as many entries as the block has bytes.
    #[inline(always)]
    fn pass(&mut self, here: &ByteMasks, room: &mut [Quote], others: &mut Vec<u32>) -> Option<()> {
        let (mut quotes, mut letters) = (here.quotes, 0);
        if here.backslashes | self.carry != 0 {
            let escaped;
            (escaped, self.carry) = escaped_in(here.backslashes, self.carry);
            quotes &= !escaped;
            letters = escaped & (here.quotes | here.backslashes | here.usual);
            let mut left = escaped & !letters;
            while left != 0 {
                others.push((self.behind + left.trailing_zeros() as usize) as u32);
                left &= left - 1;
            }
        }
        if here.controls != 0 && here.controls & (inside_of(quotes) ^ self.inside) != 0 {
            return None;
        }
        self.note(quotes, letters, room);
        self.high |= here.high;
        self.behind += BLOCK_BYTES;
        Some(())
    }

    /// Stores the quotes of a block in pairs; the slack after the last is overwritten.
    #[inline(always)]
    fn note(&mut self, quotes: u64, letters: u64, room: &mut [Quote]) {
        let before = Quote::new(self.behind as u32, self.letters);
        let (mut left, mut room) = (quotes, room.as_chunks_mut::<2>().0.iter_mut());
        while left != 0
            && let Some(two) = room.next()
        {
            for quote in two {
                let passed = letters & (left ^ left.wrapping_sub(1));
                *quote = before.plus(left.trailing_zeros(), passed.count_ones());
                left &= left.wrapping_sub(1);
            }
        }
        let count = quotes.count_ones();
        self.filled += count as usize;
        self.inside ^= 0_u64.wrapping_sub(u64::from(count & 1));
        self.letters = self.letters.wrapping_add(letters.count_ones());
    }
}

/// The bytes inside strings, by prefix xor of the quotes. Includes opening quotes; the block begins outside.
#[inline(always)]
fn inside_of(quotes: u64) -> u64 {
    let mut inside = quotes;
    for by in [1, 2, 4, 8, 16, 32] {
        inside ^= inside << by;
    }
    inside
}

impl Escaped {
    /// Adds the escape with this letter. Returns the earliest position of the next one.
    #[inline]
    fn pass(&mut self, bytes: &[u8], place: usize) -> Option<usize> {
        match bytes.get(place)? {
            b'b' | b'f' | b'r' => self.letters += 1,
            b'/' => self.solidi += 1,
            b'u' => {
                let escape = Escape::read(bytes, place - 1)?;
                self.units.add(&escape);
                self.has_units = true;
                return Some(place - 1 + escape.written);
            }
            _ => return None,
        }
        Some(place)
    }
}

/// The bytes escaped by a backslash, and the carry: whether the next block begins escaped, as 1 or 0.
///
/// The second argument is the carry of the previous block. A run of backslashes escapes every second byte, starting
/// with the second. Adding a run's first bit to the run carries to the bit after it; doing so only for runs that begin
/// at odd positions distinguishes both parities without a loop.
#[inline(always)]
fn escaped_in(backslashes: u64, is_first_escaped: u64) -> (u64, u64) {
    const EVEN: u64 = 0x5555_5555_5555_5555;
    let backslashes = backslashes & !is_first_escaped;
    let behind = backslashes << 1 | is_first_escaped;
    let (carried, overflows) = (backslashes & !EVEN & !behind).overflowing_add(backslashes);
    ((EVEN ^ carried << 1) & behind, u64::from(overflows))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::json::simd::{OnBlocks, on_blocks, portable};

    /// End of a string, and its escapes.
    type Told = (usize, Escaped);

    /// Scans the strings that begin at these positions, up to the first failure.
    struct Telling<'a>(&'a [u8], &'a [usize]);

    impl OnBlocks for Telling<'_> {
        type Outcome = Vec<Told>;

        fn run(self, signs: impl Fn(&[u8; BLOCK_BYTES]) -> ByteMasks) -> Self::Outcome {
            let mut strings = Strings::new(self.0);
            let mut tell = |at: &usize| {
                strings.look_ahead(&signs)?;
                let found = strings.end_of(*at)?;
                let letters = Escaped { letters: found.1, ..Escaped::default() };
                Some((found.0, if strings.has_others() { strings.escaped(found)? } else { letters }))
            };
            self.1.iter().map_while(&mut tell).collect()
        }
    }

    /// Reads one string byte by byte.
    fn slowly(bytes: &[u8], mut at: usize) -> Option<Told> {
        let mut found = Escaped::default();
        loop {
            match *bytes.get(at)? {
                b'"' => return Some((at, found)),
                0..0x20 => return None,
                b'\\' => match bytes.get(at + 1)? {
                    b'"' | b'\\' | b'b' | b'f' | b'n' | b'r' | b't' => {
                        found.letters += 1;
                        at += 2;
                    }
                    b'/' => {
                        found.solidi += 1;
                        at += 2;
                    }
                    _ => {
                        let escape = Escape::read(bytes, at)?;
                        found.units.add(&escape);
                        found.has_units = true;
                        at += escape.written;
                    }
                },
                _ => at += 1,
            }
        }
    }

    /// Starts and contents of the strings of a text, byte by byte.
    ///
    /// Stops at a backslash outside of strings or at an invalid string; the flag says whether the end of the text was
    /// reached.
    fn all_slowly(bytes: &[u8]) -> (Vec<usize>, Vec<Told>, bool) {
        let (mut starts, mut all, mut at) = (Vec::new(), Vec::new(), 0);
        while let Some(next) = bytes[at..].iter().position(|byte| matches!(byte, b'"' | b'\\')) {
            if bytes[at + next] == b'\\' {
                return (starts, all, false);
            }
            starts.push(at + next + 1);
            let Some(told) = slowly(bytes, at + next + 1) else { return (starts, all, false) };
            at = told.0 + 1;
            all.push(told);
        }
        (starts, all, true)
    }

    fn check(bytes: &[u8]) {
        let (starts, expected, is_whole) = all_slowly(bytes);
        for told in [on_blocks(Telling(bytes, &starts)), Telling(bytes, &starts).run(portable::signs_in)] {
            // The scan may find an error before its string is requested.
            let known = if is_whole { expected.len() } else { told.len().min(expected.len()) };
            assert_eq!(told, expected[..known], "{:?}", String::from_utf8_lossy(bytes));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn blocks_find_what_is_found_byte_by_byte(
            pieces in prop::collection::vec(
                prop::sample::select(vec![
                    "\\", "\\", "\\", "\"", "n", "t", "r", "/", "u00e9", "\\ud83d\\ude00", "\\ud83d", "\\ude00", "\\n", "x", "é",
                    "twelve bytes", "\\\\", "\\\"", "more than a whole block of text without any sign, that is of 64 bytes",
                ]),
                0..40,
            ),
            begin in prop::sample::select(vec!["\"", "[\"\", \"", "\n\""]),
            end in prop::sample::select(vec!["\"", "\"\":1}", "", "\n\"", "\\"]),
        ) {
            check((begin.to_owned() + &pieces.concat() + end).as_bytes());
        }
    }

    const STRINGS: [&str; 9] = [
        "",
        "a",
        "\\\\",
        "\\\"",
        "é\\n",
        "\\r\\/",
        "twelve bytes",
        "\\u00e9\\b",
        "\\ud83d\\ude00 and a text of many more bytes than a block of 64 has, \\\\",
    ];

    #[test]
    fn strings_end_one_after_the_other() {
        for first in 0..200 {
            let mut text = String::new();
            for i in 0..first + 20 {
                text.push_str(&"[ \n".repeat((i * first) % 40));
                text.push('"');
                text.push_str(STRINGS[(i * 5 + first) % STRINGS.len()]);
                text.push('"');
            }
            check(text.as_bytes());
            assert_eq!(all_slowly(text.as_bytes()).1.len(), first + 20);
        }
    }

    #[test]
    fn strings_may_be_longer_than_what_is_looked_at_together() {
        for long in [AHEAD - 70, AHEAD - 1, AHEAD, 3 * AHEAD + 5] {
            for string in STRINGS {
                let longer = "x".repeat(long) + string + &"\\t\\u0009".repeat(long / 8) + string;
                check(format!("{{\"{string}\":\"{longer}\",\"{longer}\" : \"{string}\"}}").as_bytes());
            }
        }
    }

    #[test]
    fn a_string_ends_at_its_first_quote_that_is_not_escaped() {
        let escapes = ["", "\\\"", "\\\\", "\\n\\t", "\\/", "\\u0041", "\\ud83d\\ude00", "\\\\\\\""];
        let end_of = |text: &str| on_blocks(Telling(text.as_bytes(), &[1])).pop().map(|found| found.0);
        for long in 0..70 {
            for escape in escapes {
                let text =
                    "\"".to_owned() + &"é".repeat(long / 2) + &"x~ !#[]\u{7f}"[..long % 7] + escape + "yz";
                let line = text.clone() + "\",\"more than a block of text behind it\"";
                for line in [&line[..=text.len()], &line] {
                    assert_eq!(end_of(line), Some(text.len()), "{line}");
                }
                assert_eq!(end_of(&text), None, "{text}");
                for wrong in ["\u{1f}", "\n", "\\x", "\\u12", "\\"] {
                    let line = text.clone() + wrong;
                    assert_eq!(end_of(&line), None, "{line:?}");
                    let line = line + "\" and more than a block of text behind it";
                    let is_escaped_quote = wrong == "\\";
                    assert!(is_escaped_quote || end_of(&line).is_none(), "{line:?}");
                }
            }
        }
    }
}
