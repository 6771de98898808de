//! The estimator `auto`: the cost of a text by the classes of its characters.
//!
//! Every character adds a weight from a table: the mean number of `o200k_base` tokens that begin at a character of its
//! class after such characters. `benches/fit/auto.py` measures the weights and states the model and its errors. Hex,
//! base64, CJK, numbers, code and prose thus get different prices, where a length alone is off by a factor of two or
//! three.
//!
//! One pass, no allocation, O(bytes). Weights are not negative and depend only on the preceding text, so appending to a
//! text never makes it cheaper. Two joined texts cost the sum of their costs, except for a few characters at the seam.

use self::weights::{
    ACCENTED, ACCENTED_CLASS, ASCII, ASCII_CLASSES, ASCII_WEIGHTS, RANGE_CLASSES, RANGE_ENDS, WIDE,
    WIDE_WEIGHTS, WIDES,
};
use crate::count::counter::{CountKind, Counter, Interrupt};
use crate::count::framing::{Accuracy, FramingCost};
use crate::error::{Error, Result};
use crate::transcript::Framing;

pub use self::weights::ERROR_BOUND;

mod weights {
    include!(concat!(env!("OUT_DIR"), "/auto.rs"));
}

/// Estimates `o200k_base` tokens by character classes; messages get the framing of exact counts.
///
/// [`ERROR_BOUND`] is the 90th percentile of the relative error of a text, over kinds of texts from prose to base64.
///
/// ```
/// use foldline::count::estimate::auto::AutoCounter;
/// use foldline::count::counter::Counter;
///
/// let count = |text: &str| AutoCounter.count(text, &mut || true).unwrap();
/// assert_eq!(count(""), 0);
/// assert!((8..=12).contains(&count("The quick brown fox jumps over the lazy dog."))); // exactly 10
/// assert!(count("9f86d081884c7d659a2feaa0c55ad015") > 16);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct AutoCounter;

/// [`ERROR_BOUND`] in thousandths.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
const ERROR_PERMILLE: u16 = (ERROR_BOUND * 1000.0 + 0.5) as u16;

/// Bytes between two calls of `check`.
const LOOK_EVERY: usize = 1 << 20;

/// Weights are in tokens / 256.
const UNIT_BITS: u32 = 8;

/// ASCII characters priced together; the compiler vectorizes the loops over them.
const BLOCK: usize = 256;

/// The same for shorter texts.
const SHORT_BLOCK: usize = 64;

/// Characters examined for changes, including the current one.
const WINDOW: usize = 16;

/// Changes within the window from which a text is mixed.
const MIXED_FROM: u8 = 3;

/// Characters after an accented Latin letter that are priced as a foreign language.
const FOREIGN_AFTER: usize = 31;

const GROUP_STEP: u16 = (ASCII * ASCII) as u16;
const REGIME_STEP: u16 = 4 * GROUP_STEP;

/// The properties of a character, packed into 14 bits.
///
/// Class (6), group (2), kind (3: digit, lower, upper case), and the kinds that make a change if they come next (3):
/// from letter to digit or back, from lower to upper case.
type Seen = u16;

const fn seen(class: usize, group: u16, kind: u16) -> Seen {
    let changes_with = match kind {
        1 => 2 | 4,
        2 => 1 | 4,
        4 => 1,
        _ => 0,
    };
    class as u16 | group << 6 | kind << 8 | changes_with << 11
}

/// The state before the first character.
const BEGINNING: Seen = seen(0, 0, 0);
const AFTER_ACCENTED: Seen = seen(ACCENTED, 3, 0);
const AFTER_WIDE: Seen = seen(WIDE, 3, 0);

/// Pads a block; this byte does not occur in UTF-8.
const FILLER: u8 = 0xff;

/// The properties of each byte.
static BYTES: [Seen; 256] = {
    let mut bytes = [BEGINNING; 256];
    let mut at = 0;
    while at < ASCII_CLASSES.len() {
        let entry = ASCII_CLASSES[at];
        bytes[at] = seen((entry & 0xff) as usize, (entry >> 8 & 0xff) as u16, (entry >> 16) as u16);
        at += 1;
    }
    bytes
};

/// The weights, padded so that an index `% PADDED` needs no bounds check.
static PADDED_WEIGHTS: [u8; PADDED] = {
    let mut weights = [0; PADDED];
    let mut at = 0;
    while at < ASCII_WEIGHTS.len() {
        // Padding has the class of the beginning and costs nothing.
        if !at.is_multiple_of(ASCII) {
            weights[at] = ASCII_WEIGHTS[at];
        }
        at += 1;
    }
    weights
};
const PADDED: usize = ASCII_WEIGHTS.len().next_power_of_two();

/// A range of code points of one class.
#[derive(Clone, Copy)]
struct Range {
    start: u32,
    end: u32,
    class: usize,
}

impl Range {
    fn of(point: u32) -> Self {
        let at = RANGE_ENDS.partition_point(|&end| end <= point);
        let start = at.checked_sub(1).and_then(|at| RANGE_ENDS.get(at)).map_or(0x80, |&end| end);
        let end = RANGE_ENDS.get(at).map_or(u32::MAX, |&end| end);
        Range { start, end, class: RANGE_CLASSES.get(at).map_or(0, |&class| usize::from(class)) }
    }
}

/// The estimate of a text that arrives in pieces.
struct AutoState {
    /// In tokens / 256.
    total: u64,
    /// The last characters.
    last: [Seen; WINDOW],
    /// The number of further characters priced as foreign.
    foreign: usize,
    /// A bit for each of the last characters: set if not ASCII.
    wide: u32,
    /// The previous character, as seen by non-ASCII ones: 1 a space, from 2 on a class, 0 anything else.
    before_wide: usize,
}

impl AutoState {
    fn new() -> Self {
        AutoState { total: 0, last: [BEGINNING; WINDOW], foreign: 0, wide: 0, before_wide: 0 }
    }

    /// Appends a text. O(bytes).
    fn push(&mut self, mut text: &str) {
        while !text.is_empty() {
            let ascii = self.push_ascii(text.as_bytes());
            text = text.get(ascii..).unwrap_or("");
            let wide = self.push_wide(text);
            text = text.get(wide..).unwrap_or("");
        }
    }

    /// Appends the leading ASCII characters of a text and returns their number.
    fn push_ascii(&mut self, text: &[u8]) -> usize {
        let mut length = 0;
        let mut ended = false;
        while !ended {
            let rest = text.get(length..).unwrap_or(&[]);
            let most = if self.foreign > 0 { self.foreign.min(BLOCK) } else { BLOCK };
            let mut block = rest.get(..most).unwrap_or(rest);
            ended = block.len() == rest.len();
            if !block.is_ascii() {
                let ascii = block.iter().position(|byte| !byte.is_ascii()).unwrap_or(0);
                block = block.get(..ascii).unwrap_or(&[]);
                ended = true;
            }
            if block.is_empty() {
                break;
            }
            match block.len() {
                length if length <= WINDOW => self.push_block::<WINDOW, { WINDOW + WINDOW }>(block),
                length if length <= SHORT_BLOCK => {
                    self.push_block::<SHORT_BLOCK, { WINDOW + SHORT_BLOCK }>(block)
                }
                _ => self.push_block::<BLOCK, { WINDOW + BLOCK }>(block),
            }
            length += block.len();
        }
        if let Some(last) = text.get(..length).and_then(<[u8]>::last) {
            self.before_wide = usize::from(*last == b' ');
            self.wide = if length < 32 { self.wide << length } else { 0 };
        }
        length
    }

    /// Appends at most `N` ASCII characters, all of them foreign or none; `M` is `WINDOW + N`.
    fn push_block<const N: usize, const M: usize>(&mut self, block: &[u8]) {
        let mut bytes = [FILLER; N];
        for (byte, &from) in bytes.iter_mut().zip(block) {
            *byte = from;
        }
        let mut seen = [BEGINNING; M];
        seen[..WINDOW].copy_from_slice(&self.last);
        for (seen, &byte) in seen[WINDOW..].iter_mut().zip(&bytes) {
            *seen = BYTES[usize::from(byte)];
        }
        // Whether each changed from the previous one; then the number of changes among the last 2, 4, 8 and 16.
        let (mut kinds, mut changes) = ([0_u8; M], [0_u8; M]);
        for (kind, seen) in kinds.iter_mut().zip(&seen) {
            *kind = (seen >> 8) as u8;
        }
        for at in 1..M {
            changes[at] = u8::from(kinds[at - 1] >> 3 & kinds[at] & 7 != 0);
        }
        for step in [1, 2, 4, 8] {
            let shorter = changes;
            for at in step..M {
                changes[at] += shorter[at - step];
            }
        }
        let mut cells = [0_u16; N];
        for (i, cell) in cells.iter_mut().enumerate() {
            let at = WINDOW + i;
            let regime = if self.foreign > 0 { 2 } else { u16::from(changes[at] >= MIXED_FROM) };
            *cell = regime * REGIME_STEP
                + (seen[at - 2] >> 6 & 3) * GROUP_STEP
                + (seen[at - 1] & 63) * ASCII as u16
                + (seen[at] & 63);
        }
        let weight = |&cell: &u16| u32::from(PADDED_WEIGHTS[usize::from(cell) % PADDED]);
        self.total += u64::from(cells.iter().map(weight).sum::<u32>());
        if let Some(last) = seen.get(block.len()..block.len() + WINDOW) {
            self.last.copy_from_slice(last);
        }
        self.foreign = self.foreign.saturating_sub(block.len());
    }

    /// Appends the leading non-ASCII characters of a text and returns their bytes.
    fn push_wide(&mut self, text: &str) -> usize {
        const BEFORE_WIDE: usize = 2 + WIDES;
        let mut range = Range { start: 0, end: 0, class: 0 };
        let (mut length, mut accents, mut chars) = (0, 0_u16, 0);
        for c in text.chars().take_while(|c| !c.is_ascii()) {
            let point = u32::from(c);
            if !(range.start..range.end).contains(&point) {
                range = Range::of(point);
            }
            let two_before = (self.wide >> 1 & 1) as usize;
            let cell = (two_before * BEFORE_WIDE + self.before_wide) * WIDES + range.class;
            self.total += u64::from(WIDE_WEIGHTS.get(cell).copied().unwrap_or(0));
            let accented = range.class == ACCENTED_CLASS;
            self.foreign = if accented { FOREIGN_AFTER } else { self.foreign.saturating_sub(1) };
            self.before_wide = 2 + range.class;
            self.wide = self.wide << 1 | 1;
            accents = accents << 1 | u16::from(accented);
            chars += 1;
            length += c.len_utf8();
        }
        let chars = chars.min(WINDOW);
        self.last.rotate_left(chars);
        for (at, last) in self.last.iter_mut().rev().take(chars).enumerate() {
            *last = if accents >> at & 1 == 1 { AFTER_ACCENTED } else { AFTER_WIDE };
        }
        length
    }

    /// The nearest number of tokens, at least 1.
    fn tokens(&self) -> u64 {
        ((self.total + (1 << UNIT_BITS >> 1)) >> UNIT_BITS).max(1)
    }
}

/// Splits a text after at most `most` bytes, at a character boundary.
fn split(text: &str, most: usize) -> (&str, &str) {
    let end = (0..=most.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    text.split_at_checked(end).unwrap_or((text, ""))
}

impl Counter for AutoCounter {
    fn count(&self, text: &str, check: Interrupt<'_>) -> Result<u64> {
        Ok(self.count_up_to(text, u64::MAX, check)?.unwrap_or(u64::MAX))
    }

    fn count_up_to(&self, text: &str, limit: u64, check: Interrupt<'_>) -> Result<Option<u64>> {
        if text.is_empty() {
            return Ok(Some(0));
        }
        let mut estimate = AutoState::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (piece, after) = split(rest, LOOK_EVERY);
            estimate.push(piece);
            rest = after;
            if estimate.tokens() > limit {
                return Ok(None);
            }
            if !rest.is_empty() && !check() {
                return Err(Error::interrupted());
            }
        }
        Ok(Some(estimate.tokens()))
    }

    fn framing(&self, framing: Framing) -> FramingCost {
        FramingCost::of(framing)
    }

    fn kind(&self) -> CountKind {
        CountKind::Estimated
    }

    fn accuracy(&self) -> Accuracy {
        Accuracy { kind: CountKind::Estimated, error_permille: Some(ERROR_PERMILLE) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn count(text: &str) -> u64 {
        AutoCounter.count(text, &mut || true).unwrap()
    }

    fn units(pieces: &[&str]) -> u64 {
        let mut estimate = AutoState::new();
        pieces.iter().for_each(|piece| estimate.push(piece));
        estimate.total
    }

    #[test]
    fn the_tables_have_the_sizes_that_the_steps_reach() {
        assert_eq!(ASCII_WEIGHTS.len(), 3 * usize::from(REGIME_STEP));
        assert_eq!(WIDE_WEIGHTS.len(), 2 * (2 + WIDES) * WIDES);
        assert!(BYTES.iter().all(|seen| usize::from(seen & 63) < ACCENTED));
        assert!(RANGE_CLASSES.iter().all(|&class| usize::from(class) < WIDES));
        assert!(RANGE_ENDS.is_sorted_by(|one, next| one < next));
        assert_eq!((RANGE_ENDS.last(), RANGE_ENDS.len()), (Some(&0x0011_0000), RANGE_CLASSES.len()));
    }

    #[test]
    fn nothing_costs_nothing_and_anything_at_least_one() {
        assert_eq!(count(""), 0);
        for c in '\0'..=char::MAX {
            assert!(count(c.encode_utf8(&mut [0; 4])) >= 1, "U+{:04X}", u32::from(c));
        }
    }

    #[test]
    fn long_texts_look_whether_to_go_on_and_stop_at_a_limit() {
        let text = "wörd ".repeat(LOOK_EVERY);
        let mut looks = 0;
        let mut check = || {
            looks += 1;
            looks < 3
        };
        assert!(AutoCounter.count(&text, &mut check).is_err());
        assert_eq!(looks, 3);
        assert_eq!(AutoCounter.count_up_to(&text, 9, &mut || false).unwrap(), None);
        let all = count(&text);
        assert_eq!(AutoCounter.count_up_to(&text, all, &mut || true).unwrap(), Some(all));
        assert_eq!(AutoCounter.count_up_to(&text, all - 1, &mut || true).unwrap(), None);
    }

    #[test]
    fn pieces_end_at_characters() {
        for most in 0..8 {
            let (head, tail) = split("aé日😀", most);
            assert!(head.len() <= most && head.len() + tail.len() == "aé日😀".len());
        }
    }

    /// Runs of characters of one kind, which produce every regime and every seam.
    fn texts() -> impl Strategy<Value = String> {
        let run = prop_oneof![
            "[a-z ]{0,40}",
            "[0-9a-f]{0,40}",
            "[A-Za-z0-9+/]{0,40}",
            "[ \n\t{}:,\"]{0,20}",
            "[à-ž]{0,6}",
            "[一-龥ぁ-んア-ン가-힣]{0,20}",
            "[😀-🙏]{0,4}",
            "\\PC{0,20}",
        ];
        prop::collection::vec(run, 0..6).prop_map(|runs| runs.concat())
    }

    proptest! {
        #[test]
        fn pieces_cost_what_the_whole_costs(text in texts(), at in any::<prop::sample::Index>()) {
            let (head, tail) = split(&text, at.index(text.len() + 1));
            prop_assert_eq!(units(&[head, tail]), units(&[&text]));
        }

        #[test]
        fn what_is_appended_never_makes_it_cheaper(head in texts(), tail in texts()) {
            prop_assert!(count(&(head.clone() + &tail)) >= count(&head));
        }

        #[test]
        fn a_seam_costs_no_more_than_the_characters_that_look_across_it(head in texts(), tail in texts()) {
            // 31 characters depend on an accented letter before the seam, and the first two on everything there.
            let most = 29 + 2 * 4;
            let (apart, joined) = (units(&[&head]) + units(&[&tail]), units(&[&(head.clone() + &tail)]));
            prop_assert!(apart.abs_diff(joined) <= most << UNIT_BITS);
        }
    }
}
