//! Hashes of messages and lists, by which a change of a list is noticed.

use std::hash::Hasher;

use twox_hash::XxHash3_64;

use super::{Binding, Transcript};

impl Transcript {
    /// A hash of everything that counting, rules and planning read.
    ///
    /// Stable across platforms and versions of the hash. A plan refuses messages with another fingerprint than those it
    /// was made for. O(bytes of text).
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        (0..self.len()).fold(0, |chain, i| chained(chain, self.message_hash(i)))
    }

    /// The hash of one message, independent of its neighbours. O(bytes of its text).
    #[must_use]
    pub fn message_hash(&self, i: usize) -> u64 {
        let message = &self.messages[i];
        let flags = [message.is_bash_execution, message.is_estimated, message.has_lone_surrogates];
        let mut hash = chained(message.role as u64 | (message.binding as u64) << 8, packed(flags));
        for at in self.part_range(i) {
            let part = &self.parts[at];
            let flags = [
                part.is_unchecked,
                part.is_error,
                part.slot.is_some(),
                part.key.is_some(),
                part.name.is_some(),
            ];
            hash = chained(hash, part.kind as u64 | packed(flags) << 8 | u64::from(part.images) << 32);
            hash = part.key.map_or(hash, |key| text_hash(hash, self.key_text(key)));
            hash = part.name.as_ref().map_or(hash, |name| text_hash(hash, self.str(name)));
            for piece in self.pieces_of(part) {
                hash = chained(text_hash(hash, self.str(&piece.span)), piece.kind as u64);
            }
            if part.images > 0 {
                for medium in self.media_of(at) {
                    hash = medium.fingerprint().into_iter().fold(hash, chained);
                }
            }
        }
        if message.binding == Binding::Closed {
            let flags = [message.is_pinned, message.is_labelled_summary];
            hash = chained(hash, packed(flags) | u64::from(message.further) << 8);
        }
        hash
    }
}

/// A hash of the text of several messages.
#[derive(Default)]
pub struct TextHash(XxHash3_64);

impl TextHash {
    /// Adds the text of message `i`. O(bytes).
    pub fn add(&mut self, transcript: &Transcript, i: usize) {
        for part in transcript.parts_of(i) {
            for piece in transcript.pieces_of(part) {
                self.0.write(&(piece.span.end - piece.span.start).to_le_bytes());
                self.0.write(transcript.str(&piece.span).as_bytes());
            }
        }
    }

    /// The hash of all text added.
    #[must_use]
    pub fn finish(&self) -> u64 {
        self.0.finish()
    }
}

/// Extends the hash of a list (0 if empty) by the hash of one more message.
#[must_use]
pub fn chained(chain: u64, hash: u64) -> u64 {
    // A bijection in either argument that spreads every bit: the finalizer of SplitMix64 on a sum.
    let mut mixed = (chain.rotate_left(29) ^ hash).wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Extends a hash by a text, including its length.
fn text_hash(before: u64, text: &str) -> u64 {
    chained(before, XxHash3_64::oneshot_with_seed(before, text.as_bytes()))
}

/// Flags as bits.
fn packed<const N: usize>(flags: [bool; N]) -> u64 {
    flags.iter().fold(0, |bits, &flag| bits << 1 | u64::from(flag))
}
