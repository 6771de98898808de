//! What all messages of a form have in common: found out of one of them, whose reader is watched.

use crate::count::estimate::Estimate;
use crate::count::heuristics::Heuristic;
use crate::formats::{Format, Said, read_message, sniff};
use crate::json::{Form, Held, Item, TapeNode, Watch, Watched};
use crate::node::Unit;
use crate::transcript::Role;

/// What is known of the messages of a form.
#[derive(Debug)]
pub(super) struct Told {
    /// `None` where it cannot be judged.
    pub said: Option<Said>,
    /// See [`sniff::tells_messages`].
    pub tells_messages: bool,
    pub role: Role,
    /// What the pieces add up to whose lengths do not differ.
    sum: u64,
    /// What the other pieces are made of, in their order.
    parts: Vec<Part>,
}

/// A string in a piece of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    /// Which of the strings that differ it is.
    string: usize,
    /// Whether it is measured as a JSON string.
    is_quoted: bool,
    /// The length of what stands beside it in the piece and does not differ.
    beside: u64,
    /// Whether it is the last of its piece.
    is_last: bool,
}

impl Told {
    /// The form of a message, and what is known of all that have it.
    pub fn by(heuristic: Heuristic, dialect: Format, message: &TapeNode<'_>) -> Option<(Form, Self)> {
        let watch = Watch::default();
        let (role, sum) = read_under(&watch, heuristic, dialect, message)?;
        let watched = Watched::new(*message, &watch);
        let said = Said::by(&watched).ok();
        let tells_messages = sniff::tells_messages(&watched);
        let (form, strings) = Form::of(message, |string| !watch.was_read(string))?;
        let (parts, lengths) = parts_of(watch, &strings)?;
        let mut told = Told { said, tells_messages, role, sum: 0, parts };
        told.sum = sum.checked_sub(told.sum(heuristic, lengths.into_iter()))?;
        // Tried before it is believed.
        for stretch in STRETCHES {
            let watch = Watch::stretching(&strings, stretch);
            let (same_role, sum) = read_under(&watch, heuristic, dialect, message)?;
            let (same_parts, lengths) = parts_of(watch, &strings)?;
            if (same_role, &same_parts) != (role, &told.parts)
                || sum != told.sum(heuristic, lengths.into_iter())
            {
                return None;
            }
        }
        Some((form, told))
    }

    /// What the pieces of a message of the form add up to.
    #[inline(always)]
    pub fn sum_of(&self, heuristic: Heuristic, item: &Item<'_>) -> u64 {
        let unit = heuristic.unit();
        self.sum(heuristic, self.parts.iter().map(|part| part.length(unit, item)))
    }

    /// What the pieces of a message add up to, by the lengths of the parts.
    #[inline(always)]
    fn sum(&self, heuristic: Heuristic, lengths: impl Iterator<Item = u64>) -> u64 {
        let (mut sum, mut piece) = (self.sum, 0);
        for (part, length) in self.parts.iter().zip(lengths) {
            piece += part.beside + length;
            if part.is_last {
                sum += heuristic.of_piece(piece);
                piece = 0;
            }
        }
        sum
    }
}

impl Part {
    /// Its length.
    #[inline(always)]
    fn length(&self, unit: Unit, item: &Item<'_>) -> u64 {
        let Held { start, end, letters, is_ascii } = item.held.get(self.string).copied().unwrap_or_default();
        let written = if is_ascii || unit == Unit::Bytes {
            (end - start) as u64
        } else {
            unit.of_utf8(item.text.get(start..end).unwrap_or_default())
        };
        // As a JSON string it has the same escapes.
        if self.is_quoted { written + 2 } else { written - u64::from(letters) }
    }
}

/// By how much strings seem to be longer when a form is tried.
const STRETCHES: [u64; 2] = [1, 6];

/// Reads a message under watch: who speaks, and what its pieces add up to.
fn read_under(
    watch: &Watch,
    heuristic: Heuristic,
    dialect: Format,
    message: &TapeNode<'_>,
) -> Option<(Role, u64)> {
    let mut estimate = Estimate::new(heuristic);
    read_message(&Watched::new(*message, watch), dialect, &mut estimate).ok()?;
    (estimate.messages() == 1).then_some(())?;
    Some((estimate.first_role()?, estimate.last_sum()))
}

/// The parts of what was measured, of the strings that differ, and their lengths.
fn parts_of(watch: Watch, strings: &[TapeNode<'_>]) -> Option<(Vec<Part>, Vec<u64>)> {
    let (mut parts, mut lengths) = (Vec::new(), Vec::new());
    for piece in watch.into_pieces() {
        let (first, mut beside) = (parts.len(), piece.length);
        for measured in &piece.strings {
            if let Some(string) = strings.iter().position(|string| measured.is_of(string)) {
                parts.push(Part { string, is_quoted: measured.is_quoted, beside: 0, is_last: false });
                lengths.push(measured.length);
                beside = beside.checked_sub(measured.length)?;
            }
        }
        if parts.len() > first
            && let Some(last) = parts.last_mut()
        {
            (last.beside, last.is_last) = (beside, true);
        }
    }
    Some((parts, lengths))
}
