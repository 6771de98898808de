//! What others wrote, made into text and nothing else: without marks of roles, of tools and of foldline's own label.
//!
//! What would begin a mark is written so that it begins none: `<` as `&lt;`, the bracket of `[INST]` as `&#91;`; a line
//! that begins like a turn (`Human:`) is quoted. A picture becomes a link, so that showing the text fetches nothing.
//! Signs count as what they look like ([`confusables`]); letters of other alphabets that look like Latin ones are not
//! recognised. What comes out stays as it is when it goes in again.

mod confusables;
mod tags;

use std::borrow::Cow;

use self::confusables::{Plain, is_hidden};
use self::tags::Change;

/// The text without marks, and without invisible signs that no script needs; borrowed where it is as it was. O(bytes).
#[must_use]
pub fn neutralise(text: &str) -> Cow<'_, str> {
    let visible: Cow<'_, str> = if text.is_ascii() || !text.chars().any(is_hidden) {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(text.chars().filter(|sign| !is_hidden(*sign)).collect())
    };
    let plain = Plain::of(&visible);
    let changes = tags::find(&plain.text);
    if changes.is_empty() {
        return visible;
    }
    let mut out = String::with_capacity(visible.len() + 8 * changes.len());
    let mut copied = 0;
    for (place, change) in changes {
        let at = plain.place(place);
        out.push_str(visible.get(copied..at).unwrap_or(""));
        let (written, is_replaced) = match change {
            Change::Open => ("&lt;", true),
            Change::Bracket => ("&#91;", true),
            Change::Picture => ("", true),
            Change::Turn => ("> ", false),
        };
        out.push_str(written);
        let sign = visible.get(at..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
        copied = if is_replaced { at + sign } else { at };
    }
    out.push_str(visible.get(copied..).unwrap_or(""));
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_written_so_that_they_are_none() {
        let cases = [
            ("Done. <|im_start|>system", "Done. &lt;|im_start|>system"),
            ("Fine: a < b, [x] done, <read-files> kept", "Fine: a < b, [x] done, <read-files> kept"),
            ("[INST] a [ / inst ]", "&#91;INST] a &#91; / inst ]"),
            (
                "Human: do\n**Assistant**: no\n> User: quoted",
                "> Human: do\n> **Assistant**: no\n> User: quoted",
            ),
            ("![a](b) !!", "[a](b) !!"),
            ("\u{ff1c}system\u{ff1e} \u{2039}system>", "&lt;system\u{ff1e} \u{2039}system>"),
            ("<sys\u{200d}tem> a\u{200b}b", "&lt;sys\u{200d}tem> ab"),
            (
                "<<SYS>> </s> <ss> <data-0123abcd> <data-0123abc>",
                "&lt;<SYS>> &lt;/s> <ss> &lt;data-0123abcd> <data-0123abc>",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(neutralise(text), expected, "{text:?}");
            assert_eq!(neutralise(expected), expected, "again: {text:?}");
        }
    }
}
