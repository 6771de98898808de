//! The cut of every keep that asks for at least something. Each is found by halving: O(log messages).

use super::keep::{Keep, Unit};
use super::prefix_sums::Ledger;
use crate::rules::Structure;

/// The cut that a keep asks for; `None` where no legal cut meets it. Not for [`Keep::Fit`].
pub(super) fn find_cut(structure: &Structure, ledger: &Ledger, keep: Keep) -> Option<usize> {
    let latest = match keep {
        Keep::Tokens(n) => return cut_for_tokens(structure, ledger, n),
        Keep::Fraction(fraction, Unit::Tokens) => {
            ledger.latest_leaving_tokens(share(fraction, ledger.counting_tokens()))
        }
        Keep::Fraction(fraction, Unit::Messages) => {
            ledger.latest_leaving_messages(share(fraction, ledger.counting_messages()))
        }
        Keep::Messages(n) => ledger.latest_leaving_messages(n),
        Keep::Iterations(n) => ledger.latest_leaving_groups(n),
        Keep::Turns(0) => Some(structure.len()),
        Keep::Turns(n) => ledger.newest_turn(n),
        Keep::Fit(_) => None,
    };
    structure.legal_at_or_before(latest?)
}

/// A fraction of what there is, rounded up.
fn share(fraction: f64, all: u64) -> u64 {
    (fraction * all as f64).ceil() as u64
}

/// A cut on the turn that holds the n-th newest token, or inside that turn where the turn alone is larger.
fn cut_for_tokens(structure: &Structure, ledger: &Ledger, n: u64) -> Option<usize> {
    let at = ledger.latest_leaving_tokens(n)?;
    let latest = structure.legal_at_or_before(at);
    if at == structure.len() {
        return latest;
    }
    let (start, end) = structure.turn_of(at);
    if ledger.tokens_in(start, end) > n { latest } else { structure.legal_at_or_before(start) }
}
