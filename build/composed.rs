//! The characters that NFC leaves as they are, whatever stands before them.

use std::fmt::Write as _;
use unicode_normalization::char::canonical_combining_class;
use unicode_normalization::{IsNormalized, is_nfc_quick};

/// The code points of the table: those of the first two planes, which is nearly all text.
const END: u32 = 0x2_0000;

/// Rust source of two tables: which code points are stable (a bit each), and which bytes begin one that is not.
pub fn table() -> String {
    let is_stable =
        |c: char| canonical_combining_class(c) == 0 && is_nfc_quick(std::iter::once(c)) == IsNormalized::Yes;
    let mut stable = vec![0u64; END as usize / 64];
    for c in (0..END).filter_map(char::from_u32).filter(|c| is_stable(*c)) {
        stable[c as usize / 64] |= 1 << (c as usize % 64);
    }
    let mut leads = [0u8; 256];
    for c in ('\0'..=char::MAX).filter(|c| !is_stable(*c)) {
        leads[usize::from(c.encode_utf8(&mut [0; 4]).as_bytes()[0])] = 1;
    }
    let mut source = String::new();
    let _ = writeln!(source, "static STABLE: [u64; {}] = {stable:?};", stable.len());
    let _ = writeln!(source, "static UNSTABLE_LEADS: [u8; 256] = {leads:?};");
    source
}
