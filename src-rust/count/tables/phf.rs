//! Perfect hashing: finds for every bucket a pilot that maps its keys to free slots.
//!
//! Buckets with a key among the first (one in [`HOT`]) are placed first, each with the pilot that gives its first key
//! the lowest slot. Ranks follow frequency, so the most frequent tokens become adjacent in a few dozen kilobytes, and
//! lookups hit the processor's inner caches. The other buckets are placed largest first, each with the smallest pilot
//! that works. With the sizes that [`place`] chooses, a byte of pilot nearly always suffices. A bucket that does not
//! fit moves to the front of the order, and the placement restarts.

use super::hash::{bucket, slot};
use std::cmp::Reverse;

/// One in this many keys is frequent enough to be packed with others into few cache lines.
const HOT: usize = 16;
/// Restarts before the caller must try another seed.
const ROUNDS: usize = 100;

/// A complete placement: `pilots[bucket]`, and for every slot the index of its key.
pub(crate) struct Placement {
    pub(crate) pilots: Vec<u8>,
    pub(crate) slots: Vec<Option<usize>>,
}

/// Places keys with these hashes; `None` if this seed does not work.
pub(crate) fn place(hashes: &[u64]) -> Option<Placement> {
    let slot_count = (hashes.len() * 5 / 4).next_power_of_two().max(4);
    let mut buckets = vec![Vec::new(); slot_count / 4];
    for (index, &hash) in hashes.iter().enumerate() {
        let count = buckets.len();
        buckets[bucket(hash, count)].push(index);
    }
    let hot = hashes.len() / HOT;
    let mut order: Vec<usize> = (0..buckets.len()).collect();
    order.sort_by_key(|&b| {
        let first = buckets[b].first().filter(|&&first| first < hot);
        (first.copied().unwrap_or(usize::MAX), Reverse(buckets[b].len()))
    });
    for _ in 0..ROUNDS {
        match try_place(hashes, &buckets, &order, slot_count, hot) {
            Ok(placement) => return Some(placement),
            Err(place) => order[..=place].rotate_right(1),
        }
    }
    None
}

/// Places buckets in this order. The error is the position of the bucket that did not fit.
fn try_place(
    hashes: &[u64],
    buckets: &[Vec<usize>],
    order: &[usize],
    slot_count: usize,
    hot: usize,
) -> Result<Placement, usize> {
    let wanted = |index: usize, pilot: u8| slot(hashes[index], pilot, 64 - slot_count.trailing_zeros());
    let mut pilots = vec![0; buckets.len()];
    let mut slots = vec![None; slot_count];
    // Pilots are tried in bits: the slots themselves do not fit the inner caches.
    let mut taken = vec![0u64; slot_count.div_ceil(64)];
    for (place, &b) in order.iter().enumerate() {
        let keys = &buckets[b];
        let fits = |pilot: u8| {
            keys.iter().enumerate().all(|(nth, &index)| {
                let slot = wanted(index, pilot);
                taken[slot / 64] & 1 << (slot % 64) == 0
                    && keys[..nth].iter().all(|&other| wanted(other, pilot) != slot)
            })
        };
        let mut all = 0..=u8::MAX;
        let pilot = match keys.first() {
            Some(&first) if first < hot => all.fold(None, |best, pilot| {
                let is_lower = best.is_none_or(|best| wanted(first, pilot) < wanted(first, best));
                if is_lower && fits(pilot) { Some(pilot) } else { best }
            }),
            _ => all.find(|&pilot| fits(pilot)),
        };
        pilots[b] = pilot.ok_or(place)?;
        for &index in keys {
            let slot = wanted(index, pilots[b]);
            slots[slot] = Some(index);
            taken[slot / 64] |= 1 << (slot % 64);
        }
    }
    Ok(Placement { pilots, slots })
}
