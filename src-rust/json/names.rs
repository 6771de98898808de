//! Which of the names that readers look up a key is: one look into a table when it is parsed, so that looking a key up
//! compares a byte and no text.

use crate::node::Key;

/// What is noted of any other name.
pub(super) const UNKNOWN: u8 = u8::MAX;

/// A quarter of them is taken.
const SLOTS: usize = 512;

/// In the slot of each name its [`Key::ordinal`], or in the next free one behind it.
static TABLE: [u8; SLOTS] = {
    assert!(Key::ALL.len() < UNKNOWN as usize && Key::ALL.len() < SLOTS / 2);
    let mut table = [UNKNOWN; SLOTS];
    let mut ordinal = 0;
    while ordinal < Key::ALL.len() {
        let name = Key::ALL[ordinal].as_bytes();
        let mut head = [0; 8];
        let mut i = 0;
        while i < name.len() && i < head.len() {
            head[i] = name[i];
            i += 1;
        }
        let mut slot = slot_of(u64::from_le_bytes(head), name.len());
        while table[slot] != UNKNOWN {
            slot = (slot + 1) % SLOTS;
        }
        table[slot] = ordinal as u8;
        ordinal += 1;
    }
    table
};

/// Where a name is looked for, by its first eight bytes and its length.
const fn slot_of(head: u64, len: usize) -> usize {
    let mixed = (head ^ len as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> (u64::BITS - SLOTS.trailing_zeros())) as usize
}

/// A bit that a name shares with few others; none of a name that nobody looks up.
#[inline]
pub(super) fn bit_of(ordinal: u8) -> u32 {
    if ordinal == UNKNOWN { 0 } else { 1 << (ordinal % 32) }
}

/// The [`Key::ordinal`] of the name in `bytes[start..end]`, or [`UNKNOWN`].
#[inline]
pub(super) fn ordinal_of(bytes: &[u8], start: usize, end: usize) -> u8 {
    let Some(name) = bytes.get(start..end) else { return UNKNOWN };
    let head = match bytes.get(start..).and_then(<[u8]>::first_chunk) {
        Some(head) => u64::from_le_bytes(*head),
        None => name.iter().rev().fold(0, |head, &byte| head << 8 | u64::from(byte)),
    };
    let head = if name.len() < 8 { head & !(u64::MAX << (8 * name.len())) } else { head };
    let mut slot = slot_of(head, name.len());
    loop {
        let ordinal = TABLE[slot];
        let is_it = Key::ALL.get(usize::from(ordinal)).is_none_or(|known| known.as_bytes() == name);
        if is_it {
            return ordinal;
        }
        slot = (slot + 1) % SLOTS;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_wherever_they_stand() {
        for (ordinal, name) in Key::ALL.iter().enumerate() {
            for behind in ["", "\"", "\":1}", "\": more than eight bytes"] {
                let text = format!("{{\"{name}{behind}");
                assert_eq!(usize::from(ordinal_of(text.as_bytes(), 2, 2 + name.len())), ordinal, "{text}");
            }
            for other in [format!("{name}s s"), format!("x{name}"), name[1..].to_owned() + "\0"] {
                assert_eq!(ordinal_of(other.as_bytes(), 0, other.len()), UNKNOWN, "{other}");
            }
        }
        assert_eq!(ordinal_of(b"", 0, 0), UNKNOWN);
    }
}
