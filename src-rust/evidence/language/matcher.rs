//! Finds many cues in one pass over a sentence.
//!
//! Cues are words and phrases in lower case. At the start of a word, only cues with the same first two letters are
//! compared; at a non-ASCII character, only cues with the same first three bytes. So the cost of a sentence does not
//! depend on the number of cues.

use rustc_hash::FxHashMap;

/// Cues in groups; a group is a bit.
#[derive(Debug, Default)]
pub(super) struct Matcher {
    by_start: FxHashMap<[u8; 2], Vec<(&'static str, u32)>>,
    /// Cues that start with a non-ASCII character; they match anywhere.
    by_sign: FxHashMap<[u8; 3], Vec<(&'static str, u32)>>,
}

impl Matcher {
    /// Adds a group of cues under the bits of `group`.
    pub(super) fn with(mut self, group: u32, cues: &[&'static str]) -> Self {
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
    pub(super) fn groups_in(&self, lower: &str) -> u32 {
        let bytes = lower.as_bytes();
        let (mut groups, mut at) = (0, 0);
        while at + 1 < bytes.len() {
            let first = bytes[at];
            if first.is_ascii_alphanumeric() {
                for (cue, group) in self.by_start.get(&[first, bytes[at + 1]]).into_iter().flatten() {
                    let rest = &bytes[at..];
                    let is_there = rest.starts_with(cue.as_bytes());
                    if is_there && !rest.get(cue.len()).is_some_and(u8::is_ascii_alphanumeric) {
                        groups |= group;
                    }
                }
                let rest = &bytes[at..];
                at += rest.iter().position(|byte| !byte.is_ascii_alphanumeric()).unwrap_or(rest.len());
                continue;
            }
            // The first byte of a non-ASCII character.
            if first >= 0xc0
                && let Some(next) = bytes.get(at + 2)
                && let Some(cues) = self.by_sign.get(&[first, bytes[at + 1], *next])
            {
                let found = cues.iter().filter(|(cue, _)| bytes[at..].starts_with(cue.as_bytes()));
                groups |= found.fold(0, |sum, (_, group)| sum | group);
            }
            at += 1;
        }
        groups
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
}
