//! Finds many cues in one pass over a sentence.
//!
//! Cues are words and phrases in lower case. They are sought at the start of each word, and at each non-ASCII character.
//! A table of the first bytes of a place names the few cues that may be there, and their first eight bytes are compared at
//! once. So the cost of a sentence does not depend on the number of cues.

use crate::evidence::text::ascii_table;

/// Slots of the table: twelve bits of a place.
const SLOTS: usize = 1 << 12;
/// Letters and digits.
const IS_WORD: [bool; 256] = ascii_table(b"");

/// Cues in groups; a group is a bit.
#[derive(Debug, Default)]
pub(in crate::evidence) struct Matcher {
    /// For each slot one more than the index of its cues, or 0. Empty without cues.
    slots: Vec<u16>,
    cues: Vec<Vec<Cue>>,
}

#[derive(Debug)]
struct Cue {
    text: &'static str,
    group: u32,
    /// The first bytes, and the bits of them that count.
    head: u64,
    mask: u64,
}

impl Matcher {
    /// Adds a group of cues under the bits of `group`.
    pub(in crate::evidence) fn with(mut self, group: u32, cues: &[&'static str]) -> Self {
        self.slots.resize(SLOTS, 0);
        for text in cues {
            let bytes = text.as_bytes();
            let is_word = bytes.first().is_some_and(u8::is_ascii_alphanumeric);
            debug_assert!(bytes.len() > 2 - usize::from(is_word), "a cue of one sign says nothing: {text}");
            let slot = &mut self.slots[slot_of(bytes)];
            if *slot == 0 {
                self.cues.push(Vec::new());
                *slot = self.cues.len() as u16;
            }
            let mask = u64::MAX >> (64 - 8 * bytes.len().clamp(1, 8));
            self.cues[usize::from(*slot) - 1].push(Cue { text, group, head: head_of(bytes), mask });
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
        let mut is_in = false;
        self.each(lower, |_, _, _| {
            is_in = true;
            false
        });
        is_in
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
            let rest = &bytes[at..];
            let is_word = IS_WORD[usize::from(rest[0])];
            // The first byte of a non-ASCII character begins a cue as well.
            if is_word || (rest[0] >= 0xc0 && rest.len() > 2) {
                let slot = self.slots.get(slot_of(rest)).copied().unwrap_or(0);
                if slot != 0 {
                    let head = head_of(rest);
                    for cue in &self.cues[usize::from(slot) - 1] {
                        if head & cue.mask == cue.head
                            && rest.starts_with(cue.text.as_bytes())
                            && !(is_word && rest.get(cue.text.len()).is_some_and(u8::is_ascii_alphanumeric))
                            && !found(at, cue.text.len(), cue.group)
                        {
                            return;
                        }
                    }
                }
            }
            at += match rest[0] {
                _ if is_word => {
                    rest.iter().position(|byte| !IS_WORD[usize::from(*byte)]).unwrap_or(rest.len())
                }
                0xe0.. => 3,
                0xc0.. => 2,
                _ => 1,
            };
        }
    }
}

/// The slot of a text of two bytes or more: by the first three of a word, which may end before the third; else by the two
/// after the first.
fn slot_of(bytes: &[u8]) -> usize {
    let (&a, &b) = (bytes.first().unwrap_or(&0), bytes.get(1).unwrap_or(&0));
    let c = bytes.get(2).copied().unwrap_or(0);
    if !a.is_ascii() {
        return usize::from(b & 63) << 6 | usize::from(c & 63);
    }
    let c = if IS_WORD[usize::from(c)] { c } else { 0 };
    (usize::from(a & 31) << 7) ^ (usize::from(b & 31) << 4) ^ usize::from(c & 31)
}

/// The first eight bytes of a text as a number; a shorter one is filled with zeros.
fn head_of(bytes: &[u8]) -> u64 {
    match bytes.first_chunk() {
        Some(head) => u64::from_le_bytes(*head),
        None => bytes.iter().rev().fold(0, |head, byte| head << 8 | u64::from(*byte)),
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
