//! Where a string of a JSON text ends, for who knows where it begins: it is looked at from there, 64 bytes at a time,
//! and nothing else is. [`super::strings`] finds all strings of a text, one after the other.

use super::blocks::{Signs, WIDE};
use super::strings::escaped_in;

/// A string whose end was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Where it begins in the text, behind its quote.
    pub start: usize,
    /// Where it ends, before its quote.
    pub end: usize,
    /// How many letters of it stand escaped: all of them such as stand so whenever they are written.
    pub letters: u32,
    /// Whether it is written in ASCII.
    pub is_ascii: bool,
}

/// The string that begins at `start`, behind its quote. `None` where it has no end or is not JSON, and where letters of
/// it stand escaped that [`Held::letters`] does not count. O(its bytes).
#[inline(always)]
pub(super) fn held(text: &[u8], start: usize, signs: &impl Fn(&[u8; WIDE]) -> Signs) -> Option<Held> {
    let (mut at, mut is_first_escaped, mut letters, mut high) = (start, 0, 0, 0);
    loop {
        let rest = text.get(at..)?;
        let here = match rest.first_chunk() {
            Some(block) => signs(block),
            None => {
                let mut padded = [b' '; WIDE];
                padded[..rest.len()].copy_from_slice(rest);
                signs(&padded)
            }
        };
        let mut quotes = here.quotes;
        if here.backslashes | is_first_escaped == 0 {
            let inside = before(quotes);
            if here.controls & inside != 0 {
                return None;
            }
            high |= here.high & inside;
        } else {
            let escaped;
            (escaped, is_first_escaped) = escaped_in(here.backslashes, is_first_escaped);
            quotes &= !escaped;
            let inside = before(quotes);
            let usual = escaped & (here.quotes | here.backslashes | here.usual);
            if (here.controls | (escaped ^ usual)) & inside != 0 {
                return None;
            }
            letters += (usual & inside).count_ones();
            high |= here.high & inside;
        }
        if quotes != 0 {
            let end = at + quotes.trailing_zeros() as usize;
            return Some(Held { start, end, letters, is_ascii: high == 0 });
        }
        at += WIDE;
    }
}

/// The bits below the lowest of some; all where there is none.
#[inline(always)]
fn before(bits: u64) -> u64 {
    !bits & bits.wrapping_sub(1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::blocks::{OnBlocks, on_blocks, portable};
    use super::*;

    struct Asked<'a>(&'a [u8], usize);

    impl OnBlocks for Asked<'_> {
        type Outcome = Option<Held>;

        fn run(self, signs: impl Fn(&[u8; WIDE]) -> Signs) -> Self::Outcome {
            held(self.0, self.1, &signs)
        }
    }

    /// The same byte by byte.
    fn slowly(text: &[u8], start: usize) -> Option<Held> {
        let (mut at, mut letters) = (start, 0);
        loop {
            match *text.get(at)? {
                b'"' => return Some(Held { start, end: at, letters, is_ascii: text[start..at].is_ascii() }),
                0..0x20 => return None,
                b'\\' => {
                    if !matches!(text.get(at + 1)?, b'"' | b'\\' | b'n' | b't') {
                        return None;
                    }
                    letters += 1;
                    at += 2;
                }
                _ => at += 1,
            }
        }
    }

    fn check(text: &[u8], start: usize) {
        let expected = slowly(text, start);
        for found in [on_blocks(Asked(text, start)), Asked(text, start).run(portable::signs_in)] {
            assert_eq!(found, expected, "from {start}: {:?}", String::from_utf8_lossy(text));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn it_is_found_as_it_is_byte_by_byte(
            pieces in prop::collection::vec(
                prop::sample::select(vec![
                    "\\\\", "\\\"", "\\n", "\\t", "x", "é", "\u{7f}", "twelve bytes", "\\\\", "\\\"\\\\",
                    "more than a whole block of text without any sign, that is of 64 bytes",
                ]),
                0..24,
            ),
            odd in prop::sample::select(vec!["", "", "", "\\r", "\\/", "\\u0041", "\n", "\u{1f}", "\\", "\0"]),
            end in prop::sample::select(vec!["\"", "\"\\\"é\n\"", "\",\"more than a block of text behind it\"}]", "", "\\"]),
            start in 0_usize..70,
        ) {
            let text = "é".repeat(start / 2) + &" \""[start % 2..] + &pieces.concat() + odd + end;
            let start = start / 2 * 2 + 2 - start % 2;
            check(text.as_bytes(), start);
        }
    }

    #[test]
    fn a_string_may_end_at_any_place() {
        for long in 0..200 {
            for last in ["", "\\\"", "\\\\", "\\\\\\\"", "é"] {
                let text = format!("{}{last}\"", "x".repeat(long));
                for start in [0, long / 2, long] {
                    check(text.as_bytes(), start);
                    check(&text.as_bytes()[..text.len() - 1], start);
                }
            }
        }
    }
}
