//! Ranks by bytes from a list of merges.
//!
//! The engine merges the pair whose *joined bytes* have the lowest rank. A list of merges ranks *pairs*: it merges the
//! pair that stands first in the list, and several pairs may give one token. Both are the same if
//!
//! 1. the merges of a token are adjacent, and after those of its two parts, so that merges happen in the order of the
//!    list, and
//! 2. every token is *reachable*: merging its bytes gives the token.
//!
//! Proof: let T be a reachable token, and look at the moment when all merges before those of T are done. Wherever the
//! bytes of T stand between two boundaries, they went through the same states as alone. So they are the two parts that
//! T is merged from, always the same two, and of several merges of T only this one ever applies. A pair of other parts
//! with the same bytes does not occur, so "joined bytes" and "this pair" say the same.
//!
//! Tokens that are not reachable are never merged. They are found by walking back through the merges at the boundary
//! between the two parts: if a merge across it comes before the ones that use its sides, T is not reachable by this
//! pair. Real files satisfy the first condition; one that does not is refused.

use rustc_hash::FxHashMap;

use super::problem::unsupported;
use crate::error::{Error, Result};

/// The id of a token in its file.
pub(crate) type Id = u32;

/// A token that merges make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Merged {
    pub(crate) id: Id,
    /// Whether merging its bytes gives this token.
    pub(crate) is_reachable: bool,
}

/// What the walk knows of a token.
#[derive(Clone, Copy)]
struct Origin {
    /// Its place in the order of merges, from 1; 0 for a base token.
    order: u32,
    /// The two tokens that it is merged from, once it is known to be reachable.
    parts: Option<(Id, Id)>,
}

/// The merged tokens in the order of the list.
///
/// `merges` are the pairs with the token that they give, `ids` the number of ids.
///
/// # Errors
/// `unsupported_tokenizer` if the list is in no order that ranks by bytes can express.
pub(crate) fn order(merges: &[(Id, Id, Id)], ids: usize) -> Result<Vec<Merged>> {
    let base = Origin { order: 0, parts: None };
    let mut origins = vec![base; ids];
    let mut pairs: FxHashMap<(Id, Id), u32> = FxHashMap::default();
    pairs.reserve(merges.len());
    let mut order = 0;
    let mut last = None;
    for &(left, right, token) in merges {
        let origin = |id: Id| origins.get(id as usize).map(|origin| origin.order);
        let (Some(of_left), Some(of_right), Some(known)) = (origin(left), origin(right), origin(token))
        else {
            return Err(out_of_order());
        };
        if last != Some(token) {
            if known != 0 {
                return Err(out_of_order());
            }
            order += 1;
            last = Some(token);
        }
        if token == left || token == right || of_left >= order || of_right >= order {
            return Err(out_of_order());
        }
        if let Some(origin) = origins.get_mut(token as usize) {
            origin.order = order;
        }
        pairs.entry((left, right)).or_insert(order);
    }
    // A token that is used before its own merges has order 0 at that time, as a base token has.
    for &(left, right, token) in merges {
        let of = |id: Id| origins.get(id as usize).map_or(0, |origin| origin.order);
        if of(left) >= of(token) || of(right) >= of(token) {
            return Err(out_of_order());
        }
    }
    let mut merged: Vec<Merged> = Vec::with_capacity(order as usize);
    for &(left, right, token) in merges {
        if merged.last().is_none_or(|last| last.id != token) {
            merged.push(Merged { id: token, is_reachable: false });
        }
        let Some(last) = merged.last_mut().filter(|last| !last.is_reachable) else { continue };
        let of = |id: Id| origins.get(id as usize).copied().unwrap_or(base);
        let is_made = |id: Id| of(id).order == 0 || of(id).parts.is_some();
        if is_made(left) && is_made(right) && is_state(&pairs, &origins, (left, right), of(token).order) {
            last.is_reachable = true;
            if let Some(origin) = origins.get_mut(token as usize) {
                origin.parts = Some((left, right));
            }
        }
    }
    Ok(merged)
}

/// Whether two reachable tokens next to each other are the state of their bytes before the merges of this order.
///
/// Walks back in time along the tokens on both sides of the boundary. `left_until` and `right_until` are the orders of
/// the merges that use them. Of equal merges the left one comes first: one across the boundary is left of the one that
/// uses the right side, and right of the one that uses the left side.
fn is_state(pairs: &FxHashMap<(Id, Id), u32>, origins: &[Origin], pair: (Id, Id), before: u32) -> bool {
    let (mut left, mut right) = pair;
    let (mut left_until, mut right_until) = (before, before - 1);
    let origin = |id: Id| origins.get(id as usize).copied().unwrap_or(Origin { order: 0, parts: None });
    loop {
        if pairs.get(&(left, right)).is_some_and(|&across| across < left_until && across <= right_until) {
            return false;
        }
        let (of_left, of_right) = (origin(left), origin(right));
        // Of equal tokens the left one was merged first.
        match (of_left.parts, of_right.parts) {
            (None, None) => return true,
            (Some((_, last)), _) if of_left.order > of_right.order => {
                left_until = of_left.order;
                left = last;
            }
            (_, Some((first, _))) => {
                right_until = of_right.order;
                right = first;
            }
            (Some((_, last)), None) => {
                left_until = of_left.order;
                left = last;
            }
        }
    }
}

fn out_of_order() -> Error {
    unsupported("a list of merges out of order")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Merges by the definition: the first pair of the list, the leftmost of equals.
    fn by_definition(merges: &[(Id, Id, Id)], ids: &[Id]) -> Vec<Id> {
        let mut parts = ids.to_vec();
        loop {
            let place = |pair: &[Id]| merges.iter().position(|m| (m.0, m.1) == (pair[0], pair[1]));
            let found = parts.windows(2).enumerate().filter_map(|(at, pair)| Some((place(pair)?, at))).min();
            let Some((merge, at)) = found else { return parts };
            parts.splice(at..at + 2, [merges[merge].2]);
        }
    }

    /// Merges by ranks of joined texts.
    fn by_text(ranks: &FxHashMap<Vec<Id>, usize>, ids: &[Id]) -> Vec<Vec<Id>> {
        let mut parts: Vec<Vec<Id>> = ids.iter().map(|&id| vec![id]).collect();
        loop {
            let rank = |pair: &[Vec<Id>]| ranks.get(&pair.concat()).copied();
            let found = parts.windows(2).enumerate().filter_map(|(at, pair)| Some((rank(pair)?, at))).min();
            let Some((_, at)) = found else { return parts };
            let joined = parts[at..at + 2].concat();
            parts.splice(at..at + 2, [joined]);
        }
    }

    /// Merges of three base tokens that are in order: each joins two known tokens; tokens are unique by their text.
    fn lists() -> impl Strategy<Value = (Vec<(Id, Id, Id)>, Vec<Vec<Id>>, Vec<Id>)> {
        let choices = prop::collection::vec(
            (any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<bool>()),
            0..14,
        );
        (choices, prop::collection::vec(0..3_u32, 0..24)).prop_map(|(choices, text)| {
            let mut tokens: Vec<Vec<Id>> = (0..3).map(|id| vec![id]).collect();
            let mut merges = Vec::new();
            for (a, b, all) in choices {
                let known = tokens.len();
                let (a, b) = (a.index(known), b.index(known));
                let joined = [&*tokens[a], &*tokens[b]].concat();
                if tokens.contains(&joined) {
                    continue;
                }
                let id = known as Id;
                merges.push((a as Id, b as Id, id));
                if all {
                    // Further merges of the same token.
                    for other in (0..known).flat_map(|x| (0..known).map(move |y| (x, y))) {
                        if other != (a, b) && [&*tokens[other.0], &*tokens[other.1]].concat() == joined {
                            merges.push((other.0 as Id, other.1 as Id, id));
                        }
                    }
                }
                tokens.push(joined);
            }
            (merges, tokens, text)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn ranks_of_reachable_tokens_merge_like_the_list((merges, tokens, text) in lists()) {
            let merged = order(&merges, tokens.len()).unwrap();
            let mut ranks = FxHashMap::default();
            for (rank, token) in merged.iter().enumerate() {
                let bytes = &tokens[token.id as usize];
                prop_assert_eq!(by_definition(&merges, bytes) == [token.id], token.is_reachable);
                if token.is_reachable {
                    ranks.insert(bytes.clone(), rank);
                }
            }
            let expected: Vec<Vec<Id>> =
                by_definition(&merges, &text).iter().map(|&id| tokens[id as usize].clone()).collect();
            prop_assert_eq!(by_text(&ranks, &text), expected);
        }
    }

    #[test]
    fn lists_out_of_order_are_refused() {
        // A part after its use, a token in two places, a token of itself, an unknown id.
        let lists: [&[(Id, Id, Id)]; 4] =
            [&[(2, 1, 3), (0, 1, 2)], &[(0, 1, 2), (0, 0, 3), (1, 0, 2)], &[(2, 1, 2)], &[(0, 9, 2)]];
        for merges in lists {
            assert_eq!(order(merges, 4).unwrap_err().code, "unsupported_tokenizer");
        }
    }
}
