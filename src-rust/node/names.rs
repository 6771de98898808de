//! Which of the names that readers look up a key is: one look into a table, so that looking a key up compares a byte
//! and no text.

use super::Key;

/// What is noted of any other name.
pub const UNKNOWN: u8 = u8::MAX;

/// A quarter of them is taken.
const SLOTS: usize = 512;

/// The first eight bytes of each name; zeros behind a shorter one.
static HEADS: [u64; Key::ALL.len()] = {
    let mut heads = [0; Key::ALL.len()];
    let mut ordinal = 0;
    while ordinal < heads.len() {
        let name = Key::ALL[ordinal].as_bytes();
        let mut i = 0;
        while i < name.len() && i < 8 {
            heads[ordinal] |= (name[i] as u64) << (8 * i);
            i += 1;
        }
        ordinal += 1;
    }
    heads
};

/// In the slot of each name its [`Key::ordinal`], or in the next free one behind it.
static TABLE: [u8; SLOTS] = {
    assert!(Key::ALL.len() < UNKNOWN as usize && Key::ALL.len() < SLOTS / 2);
    let mut table = [UNKNOWN; SLOTS];
    let mut ordinal = 0;
    while ordinal < Key::ALL.len() {
        let mut slot = slot_of(HEADS[ordinal], Key::ALL[ordinal].len());
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
pub fn bit_of(ordinal: u8) -> u32 {
    if ordinal == UNKNOWN { 0 } else { 1 << (ordinal % 32) }
}

/// The [`Key::ordinal`] of the name in `bytes[start..end]`, or [`UNKNOWN`]. What stands behind it is read with it.
#[inline]
pub fn ordinal_in(bytes: &[u8], start: usize, end: usize) -> u8 {
    let Some(name) = bytes.get(start..end) else { return UNKNOWN };
    let head = match bytes.get(start..).and_then(<[u8]>::first_chunk) {
        Some(head) => u64::from_le_bytes(*head),
        None => return ordinal_of(name),
    };
    let head = if name.len() < 8 { head & !(u64::MAX << (8 * name.len())) } else { head };
    find(head, name)
}

/// The [`Key::ordinal`] of a name, or [`UNKNOWN`].
#[inline]
pub fn ordinal_of(name: &[u8]) -> u8 {
    find(head_of(name), name)
}

/// The first eight bytes of a name; zeros behind a shorter one.
#[inline]
fn head_of(name: &[u8]) -> u64 {
    let four = |bytes: &[u8; 4]| u64::from(u32::from_le_bytes(*bytes));
    match (name.first_chunk(), name.first_chunk(), name.last_chunk()) {
        (Some(eight), ..) => u64::from_le_bytes(*eight),
        // The two overlap where it has fewer than eight.
        (None, Some(first), Some(last)) => four(first) | four(last) << (8 * (name.len() - 4)),
        _ => name.iter().rev().fold(0, |head, &byte| head << 8 | u64::from(byte)),
    }
}

#[inline]
fn find(head: u64, name: &[u8]) -> u8 {
    let mut slot = slot_of(head, name.len());
    loop {
        let ordinal = TABLE[slot];
        let Some(known) = Key::ALL.get(usize::from(ordinal)) else { return UNKNOWN };
        // Most have no more than their heads.
        if HEADS[usize::from(ordinal)] == head
            && known.len() == name.len()
            && (name.len() <= 8 || known.as_bytes() == name)
        {
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
                assert_eq!(usize::from(ordinal_in(text.as_bytes(), 2, 2 + name.len())), ordinal, "{text}");
            }
            assert_eq!(usize::from(ordinal_of(name.as_bytes())), ordinal, "{name}");
            for other in [format!("{name}s s"), format!("x{name}"), name[1..].to_owned() + "\0"] {
                assert_eq!(ordinal_in(other.as_bytes(), 0, other.len()), UNKNOWN, "{other}");
                assert_eq!(ordinal_of(other.as_bytes()), UNKNOWN, "{other}");
            }
        }
        assert_eq!(ordinal_in(b"", 0, 0), UNKNOWN);
    }
}
