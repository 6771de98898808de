//! Numbers that are cut apart before the split pattern sees the text: `Digits` of the package `tokenizers`.

use super::unicode::{NUMBER, class_at};

/// What is cut apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Digits {
    /// Nothing.
    Joined,
    /// Each number: Command R, StarCoder, SmolLM.
    Each,
    /// Each run of numbers.
    Runs,
}

impl Digits {
    /// Calls `each` for the parts of a text in order. Stops if it returns `None`.
    pub(crate) fn split(self, text: &str, mut each: impl FnMut(&str) -> Option<()>) -> Option<()> {
        if self == Digits::Joined {
            return each(text);
        }
        let (mut start, mut was_number) = (0, false);
        for (at, _) in text.char_indices() {
            let is_number = class_at(text.as_bytes(), at).0 == NUMBER;
            let is_cut = is_number != was_number || is_number && self == Digits::Each;
            if is_cut && start < at {
                each(&text[start..at])?;
                start = at;
            }
            was_number = is_number;
        }
        each(&text[start..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(digits: Digits, text: &str) -> Vec<&str> {
        let mut ends = Vec::new();
        digits.split(text, |part| {
            ends.push(part.len());
            Some(())
        });
        let mut rest = text;
        let mut take = |len: usize| {
            let (part, after) = rest.split_at(len);
            rest = after;
            part
        };
        ends.into_iter().map(&mut take).collect()
    }

    #[test]
    fn numbers_are_parts_of_their_own() {
        assert_eq!(parts(Digits::Joined, "a 12b"), ["a 12b"]);
        assert_eq!(parts(Digits::Each, "12a  3½b"), ["1", "2", "a  ", "3", "½", "b"]);
        assert_eq!(parts(Digits::Runs, "12a  3½b"), ["12", "a  ", "3½", "b"]);
    }
}
