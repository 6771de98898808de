//! The cut of every keep with a lower bound, found by binary search in O(log messages).

use super::keep::{Keep, Unit};
use super::prefix_sums::PrefixSums;
use crate::rules::Structure;

/// The cut for a keep; `None` if no legal cut satisfies it, and for [`Keep::Fit`].
pub(super) fn find_cut(structure: &Structure, sums: &PrefixSums, keep: Keep) -> Option<usize> {
    structure.legal_at_or_before(wanted_cut(structure, sums, keep)?)
}

/// The latest boundary, legal or not, that leaves what a keep requires.
pub(super) fn wanted_cut(structure: &Structure, sums: &PrefixSums, keep: Keep) -> Option<usize> {
    match keep {
        Keep::Tokens(n) => wanted_for_tokens(structure, sums, n),
        Keep::Fraction(fraction, Unit::Tokens) => {
            sums.latest_leaving_tokens(share(fraction, sums.counting_tokens()))
        }
        Keep::Fraction(fraction, Unit::Messages) => {
            sums.latest_leaving_messages(share(fraction, sums.counting_messages()))
        }
        Keep::Messages(n) => sums.latest_leaving_messages(n),
        Keep::Iterations(n) => sums.latest_leaving_groups(n),
        Keep::Turns(0) => Some(structure.len()),
        Keep::Turns(n) => sums.newest_turn(n),
        Keep::Fit(_) => None,
    }
}

/// A fraction of `all`, rounded up.
fn share(fraction: f64, all: u64) -> u64 {
    (fraction * all as f64).ceil() as u64
}

/// The start of the turn with the n-th newest token; that token's message if the turn exceeds `n` tokens alone.
fn wanted_for_tokens(structure: &Structure, sums: &PrefixSums, n: u64) -> Option<usize> {
    let at = sums.latest_leaving_tokens(n)?;
    if at == structure.len() {
        return Some(at);
    }
    let (start, end) = structure.turn_of(at);
    Some(if sums.tokens_in(start, end) > n { at } else { start })
}
