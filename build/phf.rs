//! Perfect hashing: finds for every bucket a pilot that sends its keys to free slots.
//!
//! Buckets are placed largest first, each with the smallest pilot that works. At about three keys
//! a bucket and three quarters full, a byte of pilot is enough; if not, the caller tries another seed.

use crate::hash::{bucket, slot};

/// A finished placement: `pilots[bucket]`, and for every slot the index of its key.
pub struct Placement {
    pub pilots: Vec<u8>,
    pub slots: Vec<Option<usize>>,
}

/// Places keys with these hashes, or says that this seed does not work.
pub fn place(hashes: &[u64]) -> Option<Placement> {
    let slot_count = (hashes.len() * 5 / 4).next_power_of_two().max(4);
    let bucket_count = slot_count / 4;
    let shift = 64 - slot_count.trailing_zeros();

    let mut buckets = vec![Vec::new(); bucket_count];
    for (index, &hash) in hashes.iter().enumerate() {
        buckets[bucket(hash, bucket_count)].push(index);
    }
    let mut order: Vec<usize> = (0..bucket_count).collect();
    order.sort_by_key(|&b| std::cmp::Reverse(buckets[b].len()));

    let mut pilots = vec![0; bucket_count];
    let mut slots = vec![None; slot_count];
    for b in order {
        let keys = &buckets[b];
        let pilot = (0..=u8::MAX).find(|&pilot| {
            let wanted = |index: usize| slot(hashes[index], pilot, shift);
            keys.iter().enumerate().all(|(nth, &index)| {
                slots[wanted(index)].is_none()
                    && keys[..nth].iter().all(|&other| wanted(other) != wanted(index))
            })
        })?;
        pilots[b] = pilot;
        for &index in keys {
            slots[slot(hashes[index], pilot, shift)] = Some(index);
        }
    }
    Some(Placement { pilots, slots })
}
