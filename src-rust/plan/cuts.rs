//! The cut of every keep that asks for at least something.

use super::keep::{Keep, Unit};
use crate::rules::Structure;

/// Sums over the end of a transcript: what counts at or after each index.
pub(super) struct Suffixes {
    /// Tokens of counting messages at or after k.
    pub tokens: Vec<u64>,
    /// Counting messages at or after k.
    messages: Vec<u64>,
    /// Counting groups that begin at or after k.
    groups: Vec<u64>,
}

impl Suffixes {
    pub fn new(structure: &Structure, tokens: &[u32]) -> Self {
        let count = structure.len();
        let mut suffixes =
            Suffixes { tokens: vec![0; count + 1], messages: vec![0; count + 1], groups: vec![0; count + 1] };
        for i in (0..count).rev() {
            let counts = structure.counts(i);
            let begins_group = counts && structure.groups[structure.group_of[i] as usize].first == i;
            suffixes.tokens[i] = suffixes.tokens[i + 1] + if counts { u64::from(tokens[i]) } else { 0 };
            suffixes.messages[i] = suffixes.messages[i + 1] + u64::from(counts);
            suffixes.groups[i] = suffixes.groups[i + 1] + u64::from(begins_group);
        }
        suffixes
    }
}

/// The cut that a keep asks for; `None` where no legal cut meets it. Not for [`Keep::Fit`].
pub(super) fn find_cut(structure: &Structure, suffixes: &Suffixes, keep: Keep) -> Option<usize> {
    match keep {
        Keep::Tokens(n) => cut_for_tokens(structure, &suffixes.tokens, n),
        Keep::Fraction(fraction, unit) => {
            let left = match unit {
                Unit::Tokens => &suffixes.tokens,
                Unit::Messages => &suffixes.messages,
            };
            let wanted = (fraction * left[0] as f64).ceil() as u64;
            latest_leaving(structure, left, wanted)
        }
        Keep::Messages(n) => latest_leaving(structure, &suffixes.messages, n),
        Keep::Iterations(n) => latest_leaving(structure, &suffixes.groups, n),
        Keep::Turns(n) => cut_for_turns(structure, &suffixes.messages, n),
        Keep::Fit(_) => None,
    }
}

/// The latest legal cut with at least `wanted` left behind it.
fn latest_leaving(structure: &Structure, left: &[u64], wanted: u64) -> Option<usize> {
    (0..=structure.len()).rev().find(|&k| left[k] >= wanted && structure.is_legal[k])
}

fn latest_legal_before(structure: &Structure, end: usize) -> Option<usize> {
    (0..end).rev().find(|&k| structure.is_legal[k])
}

fn legal_or_before(structure: &Structure, at: usize) -> Option<usize> {
    if structure.is_legal[at] { Some(at) } else { latest_legal_before(structure, at) }
}

/// A cut on the turn that holds the n-th newest token, or inside that turn where the turn alone is larger.
fn cut_for_tokens(structure: &Structure, left: &[u64], n: u64) -> Option<usize> {
    // Suffix sums fall with the index, so the indices that reach n are a prefix.
    let reaching = left.partition_point(|&tokens| tokens >= n);
    let at = reaching.checked_sub(1)?;
    if at == structure.len() {
        return legal_or_before(structure, at);
    }
    let (start, end) = structure.turn_of(at);
    if left[start] - left[end] > n
        && let Some(split) = (start + 1..=at).rev().find(|&k| structure.is_legal[k])
    {
        return Some(split);
    }
    legal_or_before(structure, start)
}

/// The start of the n-th newest turn that holds a counting message, or the latest legal cut before it.
fn cut_for_turns(structure: &Structure, left: &[u64], n: u64) -> Option<usize> {
    let mut end = structure.len();
    let mut turns = 0;
    if n == 0 {
        return legal_or_before(structure, end);
    }
    for &start in structure.turn_starts.iter().rev() {
        turns += u64::from(left[start] > left[end]);
        if turns == n {
            return legal_or_before(structure, start);
        }
        end = start;
    }
    None
}
