//! Ranks by bytes from a list of merges.
//!
//! The engine merges the pair whose *joined bytes* have the lowest rank. A list of merges ranks *pairs*: it merges the
//! pair that stands first in the list, and several pairs may give one token. Both are the same if every token has the
//! rank of its *last merge*, the one that completes it when its bytes are merged alone, and tokens that merging their
//! bytes does not give are left out.
//!
//! Proof: consider a text and a pair of neighbours in it, at any time, whose joined bytes are those of a token T. No
//! merge has crossed the two boundaries around them, so the bytes between went through the same states as alone: that
//! is a fixed sequence, each state with one part less, and its only state of two parts is the one before the last
//! merge. So wherever the bytes of T are two parts, they are the same two parts, and "these bytes" and "this pair" say
//! the same. If T is not reached, that pair is not in the list. Equal pairs have equal ranks, so both merge the
//! leftmost first.

use rustc_hash::FxHashMap;

use super::problem::unsupported;
use crate::error::Result;

/// The id of a token in its file.
pub(crate) type Id = u32;

/// Most steps of merging all tokens, a second of work; real vocabularies take a tenth.
const MOST_STEPS: usize = 1 << 28;

/// The tokens that merging reaches, in the order of their last merges.
///
/// `merges` are the pairs with the token that they give, in order; `tokens` the tokens with the ids of their
/// characters.
///
/// # Errors
/// `unsupported_tokenizer` if merging all tokens would take too long.
pub(crate) fn reachable(
    merges: &[(Id, Id, Id)],
    tokens: impl Iterator<Item = (Id, Vec<Id>)>,
) -> Result<Vec<Id>> {
    let mut list = List { pairs: FxHashMap::default(), joined: Vec::new() };
    list.pairs.reserve(merges.len());
    for (place, &(left, right, token)) in (0..).zip(merges) {
        list.pairs.insert(key(left, right), (place, token));
    }
    let mut steps = 0;
    let mut reached: Vec<(u32, Id)> = Vec::with_capacity(merges.len());
    for (id, mut parts) in tokens {
        steps += parts.len() * parts.len();
        if steps > MOST_STEPS {
            return Err(unsupported("a vocabulary of such long tokens"));
        }
        if let Some((last, token)) = list.merge(&mut parts)
            && token == id
        {
            reached.push((last, id));
        }
    }
    reached.sort_unstable();
    Ok(reached.into_iter().map(|(_, id)| id).collect())
}

/// A pair as a key.
fn key(left: Id, right: Id) -> u64 {
    u64::from(left) << 32 | u64::from(right)
}

/// The list of merges.
struct List {
    /// The place of a pair in the list and the token that it gives.
    pairs: FxHashMap<u64, (u32, Id)>,
    /// The merge of each part with the next, in a merge under way.
    joined: Vec<(u32, Id)>,
}

impl List {
    const NONE: (u32, Id) = (u32::MAX, 0);

    fn get(&self, left: Id, right: Id) -> (u32, Id) {
        self.pairs.get(&key(left, right)).copied().unwrap_or(Self::NONE)
    }

    /// Merges by the definition. The place of the last merge and its token, if one part is left.
    fn merge(&mut self, parts: &mut Vec<Id>) -> Option<(u32, Id)> {
        let mut joined = std::mem::take(&mut self.joined);
        joined.clear();
        joined.extend(parts.windows(2).map(|pair| match pair {
            &[left, right] => self.get(left, right),
            _ => Self::NONE,
        }));
        let last = loop {
            let Some((at, &merge)) = joined.iter().enumerate().min_by_key(|(_, (place, _))| *place) else {
                break None;
            };
            if merge == Self::NONE {
                break None;
            }
            if parts.len() == 2 {
                break Some(merge);
            }
            parts[at] = merge.1;
            parts.remove(at + 1);
            joined.remove(at);
            if let Some(next) = parts.get(at + 1) {
                joined[at] = self.get(parts[at], *next);
            }
            if at > 0 {
                joined[at - 1] = self.get(parts[at - 1], parts[at]);
            }
        };
        self.joined = joined;
        last
    }
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

    /// Merges, the tokens' texts, and a text.
    type Lists = (Vec<(Id, Id, Id)>, Vec<Vec<Id>>, Vec<Id>);

    /// Merges over three characters in any order, some tokens with several merges.
    fn lists() -> impl Strategy<Value = Lists> {
        let index = || any::<prop::sample::Index>();
        let choices = prop::collection::vec((index(), index(), any::<bool>()), 0..14);
        (choices, prop::collection::vec(0..3_u32, 0..24), any::<u64>()).prop_map(
            |(choices, text, mut seed)| {
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
                    for other in (0..known).flat_map(|x| (0..known).map(move |y| (x, y))).filter(|_| all) {
                        if other != (a, b) && [&*tokens[other.0], &*tokens[other.1]].concat() == joined {
                            merges.push((other.0 as Id, other.1 as Id, id));
                        }
                    }
                    tokens.push(joined);
                }
                // Half of the lists stay in order.
                let shuffled = if seed & 1 != 0 { merges.len() } else { 0 };
                for at in (1..shuffled).rev() {
                    seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1) | 1;
                    merges.swap(at, (seed >> 33) as usize % (at + 1));
                }
                (merges, tokens, text)
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn ranks_of_reachable_tokens_merge_like_the_list((merges, tokens, text) in lists()) {
            let reached = reachable(&merges, (3..).zip(tokens.iter().skip(3).cloned())).unwrap();
            let ranks: FxHashMap<Vec<Id>, usize> =
                reached.iter().enumerate().map(|(rank, &id)| (tokens[id as usize].clone(), rank)).collect();
            for (id, token) in (0..).zip(&tokens).skip(3) {
                prop_assert_eq!(by_definition(&merges, token) == [id], reached.contains(&id));
            }
            let expected: Vec<Vec<Id>> =
                by_definition(&merges, &text).iter().map(|&id| tokens[id as usize].clone()).collect();
            prop_assert_eq!(by_text(&ranks, &text), expected);
        }
    }

    #[test]
    fn work_is_bounded() {
        let tokens = (0..1 << 20).map(|id| (id, vec![0; 1 << 10]));
        assert_eq!(reachable(&[], tokens).unwrap_err().code, "unsupported_tokenizer");
    }
}
