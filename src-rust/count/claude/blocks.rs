//! Classes of 64 bytes of ASCII as bit masks.
//!
//! Eight bytes at a time are compared within a word, in portable code; the loop around it is compiled for the processor.

/// Bytes of a text that are classified at once.
pub(super) const BLOCK_BYTES: usize = 64;

/// The classes of a block of ASCII: bit `i` describes byte `i`; what is in none is punctuation.
pub(super) struct Block {
    pub words: u64,
    pub digits: u64,
    pub spaces: u64,
    /// Spaces proper, among `spaces`.
    pub blanks: u64,
    pub apostrophes: u64,
    /// Bytes up to the first that is not ASCII.
    pub len: u32,
}

impl Block {
    /// The block that begins at `at`.
    #[inline(always)]
    pub fn of(text: &[u8], at: usize) -> Self {
        const EACH: u64 = 0x0101_0101_0101_0101;
        const HIGH: u64 = 0x80 * EACH;
        // Of eight bytes below 128, the high bits of those from `least` on.
        let from = |bytes: u64, least: u8| (bytes + u64::from(128 - least) * EACH) & HIGH;
        // The high bits of eight bytes, side by side.
        let gathered = |high: u64| (high >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        let rest = text.get(at..).unwrap_or_default();
        let mut padded = [0; BLOCK_BYTES];
        let bytes = rest.first_chunk().unwrap_or_else(|| {
            padded[..rest.len()].copy_from_slice(rest);
            &padded
        });
        let (mut words, mut digits, mut spaces) = (0, 0, 0);
        let (mut blanks, mut apostrophes, mut wide) = (0, 0, 0);
        let (chunks, _) = bytes.as_chunks();
        for (i, chunk) in chunks.iter().enumerate() {
            let bytes = u64::from_le_bytes(*chunk);
            let plain = bytes & !HIGH;
            let small = plain | (0x20 * EACH);
            let over_blanks = from(plain, b' ' + 1);
            words |= gathered(from(small, b'a') & !from(small, b'z' + 1)) << (8 * i);
            digits |= gathered(from(plain, b'0') & !from(plain, b'9' + 1)) << (8 * i);
            spaces |= gathered(!over_blanks & HIGH) << (8 * i);
            blanks |= gathered(from(plain, b' ') & !over_blanks) << (8 * i);
            apostrophes |= gathered(from(plain, b'\'') & !from(plain, b'\'' + 1)) << (8 * i);
            wide |= gathered(bytes & HIGH) << (8 * i);
        }
        let len = u64::from(wide.trailing_zeros()).min(rest.len() as u64) as u32;
        Block { words, digits, spaces, blanks, apostrophes, len }
    }

    /// The bits of the bytes in the block.
    #[inline(always)]
    pub fn all(&self) -> u64 {
        u64::MAX >> (BLOCK_BYTES as u32 - self.len)
    }

    /// The bytes after a space, and those before exactly one.
    #[inline(always)]
    pub fn borders(&self, text: &[u8], at: usize) -> (u64, u64) {
        let is_blank = |at: usize| text.get(at) == Some(&b' ');
        let end = at + BLOCK_BYTES;
        let begins = self.blanks << 1 | u64::from(at > 0 && is_blank(at - 1));
        let (next, after) = (u64::from(is_blank(end)), u64::from(is_blank(end + 1)));
        let one = self.blanks >> 1 | next << (BLOCK_BYTES - 1);
        let two = self.blanks >> 2 | next << (BLOCK_BYTES - 2) | after << (BLOCK_BYTES - 1);
        (begins, one & !two)
    }

    /// The spaces that vanish between two markers: one between words, or between punctuation that is no apostrophe.
    #[inline(always)]
    pub fn gaps(&self, text: &[u8], at: usize) -> u64 {
        let is_marked = |at: usize| {
            text.get(at)
                .is_some_and(|&byte| byte.is_ascii_graphic() && !byte.is_ascii_digit() && byte != b'\'')
        };
        let marked = self.all() & !(self.digits | self.spaces | self.apostrophes);
        let before = marked << 1 | u64::from(at > 0 && is_marked(at - 1));
        let after = marked >> 1 | u64::from(is_marked(at + BLOCK_BYTES)) << (BLOCK_BYTES - 1);
        self.blanks & before & after
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count::claude::classes::Class;

    #[test]
    fn a_block_has_the_classes_of_its_characters() {
        let plain: Vec<u8> = (b' '..0x7f).chain(*b"\t\n").collect();
        for at in 0..plain.len() {
            let block = Block::of(&plain, at);
            assert_eq!(block.len as usize, (plain.len() - at).min(BLOCK_BYTES));
            for (i, byte) in plain[at..].iter().take(BLOCK_BYTES).enumerate() {
                let bit = |mask: u64| mask >> i & 1 == 1;
                let class = Class::of(char::from(*byte));
                assert_eq!(bit(block.words), class == Class::Word, "{byte}");
                assert_eq!(bit(block.digits), class == Class::AsciiDigit, "{byte}");
                assert_eq!(bit(block.spaces), class == Class::Space, "{byte}");
                assert_eq!((bit(block.blanks), bit(block.apostrophes)), (*byte == b' ', *byte == b'\''));
            }
        }
        assert_eq!(Block::of("ab字".as_bytes(), 0).len, 2);
    }
}
