//! Sanitizes foreign text: removes markers of roles, of tools and of foldline's own label.
//!
//! The first character of a marker is escaped: `<` as `&lt;`, the bracket of `[INST]` as `&#91;`. A line that begins
//! like a turn (`Human:`) is quoted. A picture becomes a link, so that displaying the text fetches nothing. Characters
//! count as what they look like (`confusables`); letters of other alphabets that resemble Latin ones are not
//! recognised. The function is idempotent.

mod confusables;
mod tags;

use std::borrow::Cow;

use self::confusables::{Skeleton, is_hidden};
use self::tags::Escape;
#[cfg(feature = "python")]
pub(crate) use self::tags::is_blank;

/// The text without markers and without invisible characters that no script needs; borrowed if unchanged. O(bytes).
#[must_use]
pub fn sanitize(text: &str) -> Cow<'_, str> {
    let visible: Cow<'_, str> = if text.is_ascii() || !text.chars().any(is_hidden) {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(text.chars().filter(|sign| !is_hidden(*sign)).collect())
    };
    let plain = Skeleton::of(&visible);
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
            Escape::Open => ("&lt;", true),
            Escape::Bracket => ("&#91;", true),
            Escape::Picture => ("", true),
            Escape::Turn => ("> ", false),
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
            assert_eq!(sanitize(text), expected, "{text:?}");
            assert_eq!(sanitize(expected), expected, "again: {text:?}");
        }
    }
}
