//! Exact counts of a text that comes part by part, of which no more is kept than is counted at a time.
//!
//! A letter that is followed by what is neither letter nor mark nor apostrophe ends a pre-token in every pattern: what goes
//! on behind a letter is letters and marks, or a contraction. No pattern looks back, and none looks from before the letter
//! to behind it, so the text may be cut there: its tokens are those of the two sides. (See [`super::pretokenize`].)

use super::counter::{GoOn, More};
use super::encoding::{CHECK_EVERY, Encoding};
use super::unicode::{LETTER, MARK, class_at};
use crate::error::{Error, Result};

/// Tokens of the text that `more` tells, where they are at most `limit`.
///
/// # Errors
/// `interrupted`.
pub(super) fn count_upto(
    encoding: &Encoding,
    more: More<'_>,
    limit: usize,
    go_on: GoOn<'_>,
) -> Result<Option<usize>> {
    let mut text = String::new();
    let (mut total, mut unasked) = (0, 0);
    loop {
        let known = text.len();
        let is_end = !more.more(&mut text);
        let cut = if is_end { Some(text.len()) } else { last_cut(text.as_bytes(), known) };
        unasked += text.len() - known;
        if unasked >= CHECK_EVERY {
            unasked = 0;
            if !go_on() {
                return Err(Error::interrupted());
            }
        }
        let Some(cut) = cut else { continue };
        let mut is_stopped = false;
        let counted = encoding.count_part(&text[..cut], more.to_come(), limit - total, &mut || {
            is_stopped |= !go_on();
            !is_stopped
        });
        match counted {
            _ if is_stopped => return Err(Error::interrupted()),
            None => return Ok(None),
            Some(tokens) => total += tokens,
        }
        if is_end {
            return Ok(Some(total));
        }
        text.drain(..cut);
    }
}

/// The last place from `from` on where the text may be cut.
fn last_cut(text: &[u8], from: usize) -> Option<usize> {
    let is_start = |at: &usize| text[*at] & 0xc0 != 0x80;
    let mut behind = 0;
    let mut end = text.len();
    while end >= from.max(1) {
        let start = (0..end).rev().find(is_start)?;
        let (class, _) = class_at(text, start);
        let goes_on = behind == 0 || behind & (LETTER | MARK) != 0 || text.get(end) == Some(&b'\'');
        if class & LETTER != 0 && !goes_on {
            return Some(end);
        }
        (behind, end) = (class, start);
    }
    // The character before was told earlier, and not what follows it.
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Pieces at which patterns branch, and at which texts are cut or are not.
    const PIECES: &[&str] = &[
        "a",
        "B",
        "the ",
        " Camel",
        "ABC",
        "Ab",
        "1",
        "123",
        " ",
        "  ",
        "\n",
        "\r\n",
        "\n \n",
        "'s",
        "'",
        "'LL",
        "'ſ",
        "don't",
        "/",
        "//",
        "!\n/",
        ");\n\n",
        "é",
        "É",
        "中",
        "。",
        "\u{301}",
        "\u{a0}",
        "½",
        "😀",
        "\u{200d}",
        "ǅ",
        "ʰ",
        "x y",
        "ß ",
        "word, and another",
    ];

    fn told(encoding: &Encoding, text: &str, width: usize, limit: usize) -> Option<usize> {
        let mut left = text.chars();
        let mut more = |out: &mut String| {
            let before = out.len();
            out.extend(left.by_ref().take(width));
            out.len() > before
        };
        count_upto(encoding, &mut more, limit, &mut || true).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn in_parts_of_any_width_it_is_the_count_of_the_whole(
            pieces in prop::collection::vec(prop::sample::select(PIECES), 0..40),
            width in 1..12_usize,
        ) {
            let text = pieces.concat();
            for name in Encoding::names() {
                let encoding = Encoding::get(name).unwrap();
                let whole = encoding.count(&text);
                prop_assert_eq!(told(encoding, &text, width, usize::MAX), Some(whole));
                prop_assert_eq!(told(encoding, &text, width, whole), Some(whole));
                if whole > 0 {
                    prop_assert_eq!(told(encoding, &text, width, whole - 1), None);
                }
            }
        }
    }

    /// Every two pieces around a cut: whatever stands on the two sides of it.
    #[test]
    fn a_cut_between_any_two_pieces_changes_nothing() {
        let mut cuts = 0;
        for before in PIECES {
            for behind in PIECES {
                let text = format!("x {before}{behind} y");
                let Some(cut) = last_cut(&text.as_bytes()[..2 + before.len() + behind.len()], 2) else {
                    continue;
                };
                cuts += 1;
                for name in Encoding::names() {
                    let encoding = Encoding::get(name).unwrap();
                    let sides = encoding.count(&text[..cut]) + encoding.count(&text[cut..]);
                    assert_eq!(sides, encoding.count(&text), "{text:?} {cut}");
                }
            }
        }
        assert!(cuts > 200, "{cuts}");
    }

    #[test]
    fn cuts_are_where_a_letter_ends() {
        let cut = |text: &str, from| last_cut(text.as_bytes(), from);
        assert_eq!(cut("one two th", 0), Some(7));
        assert_eq!(cut("one two th", 8), None);
        // The letter was told earlier, what follows it was not.
        assert_eq!(cut("one two", 3), Some(3));
        assert_eq!(cut("don't", 0), None);
        assert_eq!(cut("e\u{301}e", 0), None);
        assert_eq!(cut("中文，中", 0), Some(6));
        assert_eq!(cut("    1234", 0), None);
        assert_eq!(cut("", 0), None);
    }

    #[test]
    fn a_long_text_asks_and_stops() {
        let encoding = Encoding::get("o200k_base").unwrap();
        for unit in ["word ", "x"] {
            let part = unit.repeat(1000);
            let mut told = 0;
            let mut asked = 0;
            let mut more = |out: &mut String| {
                out.push_str(&part);
                told += part.len();
                told < 100 * CHECK_EVERY
            };
            let stopped = count_upto(encoding, &mut more, usize::MAX, &mut || {
                asked += 1;
                asked < 3
            });
            assert_eq!(stopped.unwrap_err().code, "interrupted");
            assert_eq!(asked, 3);
            assert!(told < 5 * CHECK_EVERY);
        }
    }
}
