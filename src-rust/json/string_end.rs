//! Where a JSON string ends, and what its escapes take away from its length: 64 bytes at a time, a bit for each.

use super::blocks::{Signs, WIDE};
use super::escapes::Escape;
use super::tape::Escapes;

/// Where a string ends and what escapes it has.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct StringEnd {
    /// The place of its last quote.
    pub end: usize,
    /// Escapes of a letter that stands escaped whenever it is written.
    pub letters: u32,
    /// Escaped solidi.
    pub solidi: u32,
    /// What its `\uXXXX` stand for.
    pub units: Escapes,
    pub has_units: bool,
}

/// Finds where the strings of a text end, one after the other: each block of it is looked at once.
pub(super) struct Strings<'a> {
    bytes: &'a [u8],
    /// The first byte behind the block; nothing is known of one before the first step.
    behind: usize,
    /// What means something in the block.
    here: Signs,
    /// Which of its bytes are escaped.
    escaped: u64,
    /// Whether the byte behind it is, as 1 or 0.
    carry: u64,
}

impl<'a> Strings<'a> {
    /// Before the first byte from `at` on, which lies in no string.
    pub fn new(bytes: &'a [u8], at: usize) -> Self {
        Strings { bytes, behind: at, here: Signs::default(), escaped: 0, carry: 0 }
    }

    /// Where the string ends that begins at `at`, behind its quote and behind all strings asked about before; `None` where
    /// it has no end, or something in it is not plainly JSON.
    #[inline(always)]
    pub fn end_of(
        &mut self,
        at: usize,
        signs: &impl Fn(&[u8; WIDE]) -> Signs,
        usual: &impl Fn(&[u8; WIDE]) -> u64,
    ) -> Option<StringEnd> {
        let mut found = StringEnd::default();
        let mut behind_unit = 0;
        let mut from = at;
        loop {
            while from >= self.behind {
                self.step(signs)?;
            }
            let base = self.behind - WIDE;
            let rest = u64::MAX << (from - base);
            let ends = self.here.quotes & !self.escaped & rest;
            let within = rest & !ends & ends.wrapping_sub(1);
            if self.here.controls & within != 0 {
                return None;
            }
            let escaped = self.escaped & within;
            if escaped != 0 {
                let usual = with_block(self.bytes, base, usual)?;
                let letters = escaped & (self.here.quotes | self.here.backslashes | usual);
                found.letters += letters.count_ones();
                let mut others = escaped & !letters;
                while others != 0 {
                    let place = base + others.trailing_zeros() as usize;
                    others &= others - 1;
                    if place >= behind_unit {
                        behind_unit = found.pass(self.bytes, place)?;
                    }
                }
            }
            if ends != 0 {
                found.end = base + ends.trailing_zeros() as usize;
                return Some(found);
            }
            from = self.behind;
        }
    }

    /// Goes on to the next block.
    #[inline(always)]
    fn step(&mut self, signs: &impl Fn(&[u8; WIDE]) -> Signs) -> Option<()> {
        self.here = with_block(self.bytes, self.behind, signs)?;
        (self.escaped, self.carry) = escaped_in(self.here.backslashes, self.carry);
        self.behind += WIDE;
        Some(())
    }
}

/// What `read` makes of the block at `at`, with zeros behind the end of the text.
#[inline(always)]
fn with_block<R>(bytes: &[u8], at: usize, read: impl Fn(&[u8; WIDE]) -> R) -> Option<R> {
    let rest = bytes.get(at..)?;
    Some(match rest.first_chunk() {
        Some(block) => read(block),
        None => {
            let mut padded = [0; WIDE];
            padded[..rest.len()].copy_from_slice(rest);
            read(&padded)
        }
    })
}

impl StringEnd {
    /// Notes what the escape with this letter stands for; where the next may begin.
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

/// Which bytes a backslash stands before that is not escaped itself; and whether the byte behind the block is one, as 1
/// or 0, which is given for the first byte of this one.
///
/// A run of backslashes escapes every second byte from its second on. Adding a run's first bit to the run carries to the
/// bit behind it; done for runs that begin at odd places alone, this tells both sorts apart without a loop.
#[inline(always)]
fn escaped_in(backslashes: u64, is_first_escaped: u64) -> (u64, u64) {
    const EVEN: u64 = 0x5555_5555_5555_5555;
    if backslashes == 0 {
        return (is_first_escaped, 0);
    }
    let backslashes = backslashes & !is_first_escaped;
    let behind = backslashes << 1 | is_first_escaped;
    let (carried, overflows) = (backslashes & !EVEN & !behind).overflowing_add(backslashes);
    ((EVEN ^ carried << 1) & behind, u64::from(overflows))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::blocks::{OnBlocks, on_blocks, portable};
    use super::*;

    /// Where strings end that begin at these places, each behind the one before.
    struct Ends<'a>(&'a [u8], &'a [usize]);

    impl OnBlocks for Ends<'_> {
        type Outcome = Vec<Option<StringEnd>>;

        fn run(
            self,
            signs: impl Fn(&[u8; WIDE]) -> Signs,
            usual: impl Fn(&[u8; WIDE]) -> u64,
        ) -> Self::Outcome {
            let mut strings = Strings::new(self.0, self.1.first().copied().unwrap_or(0));
            self.1.iter().map(|&at| strings.end_of(at, &signs, &usual)).collect()
        }
    }

    fn string_end(bytes: &[u8], at: usize) -> Option<StringEnd> {
        on_blocks(Ends(bytes, &[at])).pop().flatten()
    }

    /// Byte by byte.
    fn slowly(bytes: &[u8], mut at: usize) -> Option<StringEnd> {
        let mut found = StringEnd::default();
        loop {
            match *bytes.get(at)? {
                b'"' => {
                    found.end = at;
                    return Some(found);
                }
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

    fn check(bytes: &[u8]) {
        for at in 0..bytes.len().min(3) {
            let expected = slowly(bytes, at);
            assert_eq!(string_end(bytes, at), expected, "{:?} from {at}", String::from_utf8_lossy(bytes));
            let portable = Ends(bytes, &[at]).run(portable::signs_in, portable::usual_in);
            assert_eq!(portable, [expected]);
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
            end in prop::sample::select(vec!["\"", "\"\":1}", "", "\n\"", "\\"]),
        ) {
            check((pieces.concat() + end).as_bytes());
        }
    }

    #[test]
    fn strings_end_one_after_the_other() {
        let strings = [
            "",
            "a",
            "\\\\",
            "\\\"",
            "é\\n",
            "twelve bytes",
            "\\ud83d\\ude00 and a text of many more bytes than a block of 64 has, \\\\",
        ];
        for first in 0..200 {
            let (mut text, mut starts) = (String::new(), Vec::new());
            for i in 0..first + 20 {
                text.push_str(&"[ ".repeat((i * first) % 40));
                text.push('"');
                starts.push(text.len());
                text.push_str(strings[(i * 5 + first) % strings.len()]);
                text.push('"');
            }
            let expected: Vec<_> = starts.iter().map(|&at| slowly(text.as_bytes(), at)).collect();
            assert_eq!(on_blocks(Ends(text.as_bytes(), &starts)), expected);
            let portable = Ends(text.as_bytes(), &starts).run(portable::signs_in, portable::usual_in);
            assert_eq!(portable, expected);
        }
    }

    #[test]
    fn a_string_ends_at_its_first_quote_that_is_not_escaped() {
        let escapes = ["", "\\\"", "\\\\", "\\n\\t", "\\/", "\\u0041", "\\ud83d\\ude00", "\\\\\\\""];
        for long in 0..70 {
            for escape in escapes {
                let text = "é".repeat(long / 2) + &"x~ !#[]\u{7f}"[..long % 7] + escape + "yz";
                let line = text.clone() + "\",\"more than a block of text behind it\"";
                for line in [&line[..=text.len()], &line] {
                    assert_eq!(
                        string_end(line.as_bytes(), 0).map(|found| found.end),
                        Some(text.len()),
                        "{line}"
                    );
                }
                assert!(string_end(text.as_bytes(), 0).is_none(), "{text}");
                for wrong in ["\u{1f}", "\n", "\\x", "\\u12", "\\"] {
                    let line = text.clone() + wrong;
                    assert!(string_end(line.as_bytes(), 0).is_none(), "{line:?}");
                    let line = line + "\" and more than a block of text behind it";
                    let is_escaped_quote = wrong == "\\";
                    assert!(is_escaped_quote || string_end(line.as_bytes(), 0).is_none(), "{line:?}");
                }
            }
        }
    }
}
