//! Finds many cues in one pass over a sentence.
//!
//! Cues are words and phrases in lower case. At the start of a word, only cues with the same first two letters are
//! compared; at a non-ASCII character, only cues with the same first three bytes. So the cost of a sentence does not
//! depend on the number of cues.

use rustc_hash::FxHashMap;

/// Cues in groups; a group is a bit.
#[derive(Debug, Default)]
pub(in crate::evidence) struct Matcher {
    by_start: FxHashMap<[u8; 2], Vec<(&'static str, u32)>>,
    /// Cues that start with a non-ASCII character; they match anywhere.
    by_sign: FxHashMap<[u8; 3], Vec<(&'static str, u32)>>,
}

impl Matcher {
    /// Adds a group of cues under the bits of `group`.
    pub(in crate::evidence) fn with(mut self, group: u32, cues: &[&'static str]) -> Self {
        for cue in cues {
            match cue.as_bytes() {
                [a, b, ..] if a.is_ascii_alphanumeric() => {
                    self.by_start.entry([*a, *b]).or_default().push((cue, group));
                }
                [a, b, c, ..] => self.by_sign.entry([*a, *b, *c]).or_default().push((cue, group)),
                _ => debug_assert!(false, "a cue of one sign says nothing: {cue}"),
            }
        }
        self
    }

    /// The groups with a cue in `lower`: as whole words, in unspaced scripts anywhere.
    pub(in crate::evidence) fn groups_in(&self, lower: &str) -> u32 {
        let mut groups = 0;
        self.each(lower, |_, _, group| {
            groups |= group;
            true
        });
        groups
    }

    /// Whether there is a cue of any group in `lower`.
    pub(in crate::evidence) fn is_in(&self, lower: &str) -> bool {
        self.first_in(lower).is_some()
    }

    /// Where the first cue in `lower` begins and ends, of several at that place the longest.
    pub(in crate::evidence) fn first_in(&self, lower: &str) -> Option<(usize, usize)> {
        let mut first: Option<(usize, usize)> = None;
        self.each(lower, |at, len, _| {
            if first.is_none_or(|(start, end)| start == at && end < at + len) {
                first = Some((at, at + len));
            }
            // Longer cues at the same place are still to come.
            first.is_none_or(|(start, _)| start == at)
        });
        first
    }

    /// Calls `found` with the place, length and groups of each cue in `lower`, from the left, until it says no.
    #[inline]
    fn each(&self, lower: &str, mut found: impl FnMut(usize, usize, u32) -> bool) {
        let bytes = lower.as_bytes();
        let mut at = 0;
        while at + 1 < bytes.len() {
            let first = bytes[at];
            if first.is_ascii_alphanumeric() {
                let rest = &bytes[at..];
                for (cue, group) in self.by_start.get(&[first, bytes[at + 1]]).into_iter().flatten() {
                    let is_there = rest.starts_with(cue.as_bytes());
                    let is_word = !rest.get(cue.len()).is_some_and(u8::is_ascii_alphanumeric);
                    if is_there && is_word && !found(at, cue.len(), *group) {
                        return;
                    }
                }
                at += rest.iter().position(|byte| !byte.is_ascii_alphanumeric()).unwrap_or(rest.len());
                continue;
            }
            // The first byte of a non-ASCII character.
            if first >= 0xc0
                && let Some(next) = bytes.get(at + 2)
                && let Some(cues) = self.by_sign.get(&[first, bytes[at + 1], *next])
            {
                for (cue, group) in cues {
                    if bytes[at..].starts_with(cue.as_bytes()) && !found(at, cue.len(), *group) {
                        return;
                    }
                }
            }
            at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_words_are_found_and_parts_are_not() {
        let matcher = Matcher::default()
            .with(1, &["must", "no more than"])
            .with(2, &["mai"])
            .with(4, &["müssen", "必须"]);
        assert_eq!(matcher.groups_in("you must, now"), 1);
        assert_eq!(matcher.groups_in("mustard is maintained"), 0);
        assert_eq!(matcher.groups_in("no more than mai"), 3);
        assert_eq!(matcher.groups_in("wir müssen 必须"), 4);
        assert_eq!(matcher.groups_in(""), 0);
    }

    #[test]
    fn the_first_and_longest_cue_is_found() {
        let matcher = Matcher::default().with(1, &["no", "no more", "not", "不要", "不要用"]);
        assert_eq!(matcher.first_in("there is no more, not now"), Some((9, 16)));
        assert_eq!(matcher.first_in("notes: not now"), Some((7, 10)));
        assert_eq!(matcher.first_in("请不要用它"), Some((3, 12)));
        assert_eq!(matcher.first_in("nothing"), None);
    }
}
