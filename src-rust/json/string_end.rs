//! Where a JSON string ends, and what its escapes take away from its length: 64 bytes at a time, a bit for each.

use super::blocks::{BLOCK, Signs, WIDE, specials_in, with_signs};
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

/// Looks for the end of the string that begins at `at`, behind its quote; `None` where it has none, or something in it
/// is not plainly JSON.
#[inline]
pub(super) fn string_end(bytes: &[u8], at: usize) -> Option<StringEnd> {
    // Most are names and words.
    if let Some(short) = bytes.get(at..).and_then(<[u8]>::first_chunk::<BLOCK>) {
        let end = at + specials_in(short).trailing_zeros() as usize;
        if end < at + BLOCK && bytes.get(end) == Some(&b'"') {
            return Some(StringEnd { end, ..StringEnd::default() });
        }
    }
    with_signs(Search { bytes, at })
}

/// A search for the end of a string.
#[derive(Clone, Copy)]
pub(super) struct Search<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Search<'_> {
    /// Looks for it, with what tells the signs of a block, and where an `n` or a `t` stands in it.
    #[inline(always)]
    pub fn run(
        self,
        signs: impl Fn(&[u8; WIDE]) -> Signs,
        usual: impl Fn(&[u8; WIDE]) -> u64,
    ) -> Option<StringEnd> {
        let Search { bytes, mut at } = self;
        let mut found = StringEnd::default();
        let (mut is_first_escaped, mut behind_unit) = (0, 0);
        loop {
            let rest = bytes.get(at..)?;
            let mut padded = [0; WIDE];
            let block = match rest.first_chunk() {
                Some(block) => block,
                None => {
                    padded[..rest.len()].copy_from_slice(rest);
                    &padded
                }
            };
            let here = signs(block);
            let (escaped, carry) = escaped_in(here.backslashes, is_first_escaped);
            is_first_escaped = carry;
            let ends = here.quotes & !escaped;
            let within = !ends & ends.wrapping_sub(1);
            if here.controls & within != 0 {
                return None;
            }
            let escaped = escaped & within;
            if escaped != 0 {
                let letters = escaped & (here.quotes | here.backslashes | usual(block));
                found.letters += letters.count_ones();
                let mut others = escaped & !letters;
                while others != 0 {
                    let place = at + others.trailing_zeros() as usize;
                    others &= others - 1;
                    if place >= behind_unit {
                        behind_unit = found.pass(bytes, place)?;
                    }
                }
            }
            if ends != 0 {
                found.end = at + ends.trailing_zeros() as usize;
                return Some(found);
            }
            at += WIDE;
        }
    }
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

    use super::super::blocks::portable;
    use super::*;

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
            assert_eq!(Search { bytes, at }.run(portable::signs_in, portable::usual_in), expected);
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
