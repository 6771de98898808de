//! The cost of a message with cleared or shortened tool results.

use super::model::Edit;
use crate::count::counter::{Counter, Interrupt, MessageView};
use crate::error::{Error, Result};
use crate::rules::Structure;
use crate::transcript::{MessageSource, Part, Transcript};

pub use crate::count::counter::PLACEHOLDER;

/// The text between the head and the tail of a shortened result.
pub const SHORTEN_MARKER: &str = "\n[... shortened ...]\n";

/// The head and the tail of a text around the marker, by numbers of code points.
#[must_use]
pub fn shortened_text(text: &str, head_chars: usize, tail_chars: usize) -> String {
    let head_end = text.char_indices().nth(head_chars).map_or(text.len(), |(at, _)| at);
    let tail_start = match tail_chars.checked_sub(1) {
        None => text.len(),
        Some(back) => text.char_indices().nth_back(back).map_or(0, |(at, _)| at),
    };
    [&text[..head_end], SHORTEN_MARKER, &text[tail_start.max(head_end)..]].concat()
}

/// The changed results of one message, as indices of parts with their new text.
///
/// # Errors
/// `plan_mismatch` if an edit names a part that does not exist.
pub fn replacements(transcript: &Transcript, message: usize, edits: &[Edit]) -> Result<Vec<(usize, String)>> {
    if message >= transcript.len() {
        return Err(plan_mismatch());
    }
    let range = transcript.part_range(message);
    edits
        .iter()
        .map(|edit| {
            let part = range.start + edit.part;
            if part >= range.end {
                return Err(plan_mismatch());
            }
            let content = match edit.kept_chars {
                None => PLACEHOLDER.to_owned(),
                Some((head, tail)) => {
                    shortened_text(&transcript.result_text(&transcript.parts[part]), head, tail)
                }
            };
            Ok((part, content))
        })
        .collect()
}

/// The error for an edit whose part does not exist.
pub(crate) fn plan_mismatch() -> Error {
    Error::message("plan_mismatch", "", "the plan names a result that does not exist")
}

/// Prices messages with changed results.
pub(super) struct Shortener<'a> {
    pub source: &'a dyn MessageSource,
    pub structure: &'a Structure,
    pub counter: &'a dyn Counter,
}

/// A message with changed results.
pub(super) struct Shrunk {
    pub message: usize,
    pub tokens: u32,
    pub edits: Vec<Edit>,
}

impl Shortener<'_> {
    /// The results of a message that may be changed, by their indices in its transcript. Results no longer than the
    /// placeholder are left out.
    fn parts(&self, message: usize) -> Vec<usize> {
        let (transcript, index) = self.source.at(message);
        let range = transcript.part_range(index);
        // The structure numbers the parts of all messages; the transcript numbers only its own.
        let first = self.structure.first_parts[message] as usize;
        let may_change = |&part: &usize| {
            let number = first + part - range.start;
            self.structure.is_clearable(&transcript.parts[part], number)
                && outgrows_placeholder(transcript, &transcript.parts[part])
        };
        range.clone().filter(may_change).collect()
    }

    /// Tokens of a message with changed results.
    pub fn price(&self, message: usize, replaced: &[(usize, String)], check: Interrupt<'_>) -> Result<u32> {
        self.price_of(message, replaced, false, check)
    }

    /// As [`Shortener::price`], with or without the message's thinking.
    pub fn price_of(
        &self,
        message: usize,
        replaced: &[(usize, String)],
        is_stripped: bool,
        check: Interrupt<'_>,
    ) -> Result<u32> {
        let (transcript, index) = self.source.at(message);
        let view = MessageView { transcript, index, replaced, is_stripped };
        self.counter.count_message(&view, check).map_err(|error| error.at(message))
    }

    fn edit(&self, message: usize, part: usize, kept_chars: Option<(usize, usize)>) -> Edit {
        let (transcript, index) = self.source.at(message);
        Edit { message, part: part - transcript.part_range(index).start, kept_chars }
    }

    /// The message with all its results replaced by the placeholder; `None` without results or if it would not shrink.
    pub fn cleared(&self, message: usize, tokens: u32, check: Interrupt<'_>) -> Result<Option<Shrunk>> {
        let parts = self.parts(message);
        if parts.is_empty() {
            return Ok(None);
        }
        let cleared = self.price(message, &placeholders(&parts), check)?;
        let edits = parts.iter().map(|&part| self.edit(message, part, None)).collect();
        Ok((cleared < tokens).then_some(Shrunk { message, tokens: cleared, edits }))
    }

    /// The message with its results shortened one after the other, longest first, until it costs at most `room`. The
    /// last one keeps as much of its text as fits. Returns `cleared` unchanged if even that does not fit.
    pub fn shortened(&self, cleared: &Shrunk, room: u32, check: Interrupt<'_>) -> Result<Shrunk> {
        let message = cleared.message;
        let mut parts = self.parts(message);
        parts.sort_by_key(|&part| (std::cmp::Reverse(self.length(message, part)), part));
        let enough = self.fewest_placeholders(message, &parts, room, check)?;
        let Some((&last, gone)) = parts[..enough].split_last() else {
            return Ok(Shrunk { message, tokens: cleared.tokens, edits: cleared.edits.clone() });
        };
        let mut replaced = placeholders(&parts[..enough]);
        let mut tokens = self.price(message, &replaced, check)?;
        let mut edits: Vec<Edit> = gone.iter().map(|&part| self.edit(message, part, None)).collect();
        let longest = self.longest_that_fits(message, last, &mut replaced, room, check)?;
        edits.push(self.edit(message, last, longest.map(|(kept, _)| kept)));
        if let Some((_, price)) = longest {
            tokens = price;
        }
        edits.sort_by_key(|edit| edit.part);
        Ok(Shrunk { message, tokens, edits })
    }

    /// Code points of a result's text.
    fn length(&self, message: usize, part: usize) -> usize {
        self.text(message, part).chars().count()
    }

    fn text(&self, message: usize, part: usize) -> String {
        let (transcript, _) = self.source.at(message);
        transcript.result_text(&transcript.parts[part])
    }

    /// The number of first `parts` that must become the placeholder for the message to cost at most `room`; 0 if all of
    /// them are not enough. Many parts are searched by bisection: each placeholder lowers the cost as long as it is
    /// shorter than the text.
    fn fewest_placeholders(
        &self,
        message: usize,
        parts: &[usize],
        room: u32,
        check: Interrupt<'_>,
    ) -> Result<usize> {
        const FEW: usize = 32;
        let mut fits = |count: usize| -> Result<bool> {
            Ok(self.price(message, &placeholders(&parts[..count]), check)? <= room)
        };
        if parts.len() <= FEW {
            for count in 1..=parts.len() {
                if fits(count)? {
                    return Ok(count);
                }
            }
            return Ok(0);
        }
        let (mut too_few, mut enough) = (0, parts.len());
        if !fits(enough)? {
            return Ok(0);
        }
        while too_few + 1 < enough {
            let middle = too_few + (enough - too_few) / 2;
            if fits(middle)? { enough = middle } else { too_few = middle }
        }
        Ok(enough)
    }

    /// Finds the most text that the part `last` of `replaced` may keep; leaves the placeholder if none fits.
    ///
    /// Bisects, since more text costs more. An exact tokenizer is not quite monotone (one more character may merge two
    /// tokens), so that a little more may fit again: lengths after that are tried one by one, see [`MERGED_TOKENS`].
    fn longest_that_fits(
        &self,
        message: usize,
        last: usize,
        replaced: &mut [(usize, String)],
        room: u32,
        check: Interrupt<'_>,
    ) -> Result<Option<((usize, usize), u32)>> {
        let Ok(place) = replaced.binary_search_by_key(&last, |(part, _)| *part) else { return Ok(None) };
        let text = self.text(message, last);
        let (mut fits, mut too_long) = (0, text.chars().count());
        let mut best = None;
        while fits + 1 < too_long {
            let middle = fits + (too_long - fits) / 2;
            let kept = (middle.div_ceil(2), middle / 2);
            replaced[place].1 = shortened_text(&text, kept.0, kept.1);
            let price = self.price(message, replaced, check)?;
            if price <= room {
                (fits, best) = (middle, Some((kept, price)));
            } else {
                too_long = middle;
            }
        }
        let (all, bytes) = (text.chars().count(), text.len().max(1));
        let tries = (TRIED_BYTES / bytes).min(MAX_TRIES);
        for more in (too_long + 1..all).take(tries) {
            let kept = (more.div_ceil(2), more / 2);
            replaced[place].1 = shortened_text(&text, kept.0, kept.1);
            let price = self.price(message, replaced, check)?;
            if price <= room {
                best = Some((kept, price));
            } else if price > room.saturating_add(MERGED_TOKENS) {
                break;
            }
        }
        Ok(best)
    }
}

/// Tokens that a longer text may have less: where a cut moves, few tokens before and after it merge in another way.
const MERGED_TOKENS: u32 = 4;

/// Lengths that are tried after the bisection, and the bytes that this may count.
const MAX_TRIES: usize = 64;
const TRIED_BYTES: usize = 1 << 20;

/// Whether a result is larger than the placeholder: a longer text, or a picture. O(1) on long texts.
fn outgrows_placeholder(transcript: &Transcript, part: &Part) -> bool {
    let pieces = transcript.pieces_of(part);
    let texts = pieces.iter().map(|piece| transcript.str(&piece.span));
    // Pieces are joined by newlines.
    let newlines = pieces.len().saturating_sub(1);
    let longer =
        texts.flat_map(str::chars).take(PLACEHOLDER.len() + 1).count() + newlines > PLACEHOLDER.len();
    part.images > 0 || longer
}

/// The parts, ascending, each with the placeholder.
fn placeholders(parts: &[usize]) -> Vec<(usize, String)> {
    let mut parts = parts.to_vec();
    parts.sort_unstable();
    parts.into_iter().map(|part| (part, PLACEHOLDER.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn head_and_tail_stay() {
        assert_eq!(shortened_text("abcdef", 2, 1), format!("ab{SHORTEN_MARKER}f"));
        assert_eq!(shortened_text("äöü", 1, 0), format!("ä{SHORTEN_MARKER}"));
        assert_eq!(shortened_text("ab", 5, 5), format!("ab{SHORTEN_MARKER}"));
    }
}
