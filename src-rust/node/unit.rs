//! Units of text length.

/// A unit of text length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes of UTF-8.
    Bytes,
    /// Code points.
    Points,
    /// UTF-16 code units.
    Utf16,
}

impl Unit {
    /// The length of a text. O(bytes), vectorized.
    #[must_use]
    pub fn of(self, text: &str) -> u64 {
        let text = text.as_bytes();
        match self {
            Unit::Bytes => text.len() as u64,
            // Counts bytes that do not continue a code point.
            Unit::Points => sum_of(text, |byte| u8::from((byte as i8) >= -0x40), begins),
            // The same plus one for each code point of four bytes.
            Unit::Utf16 => sum_of(
                text,
                |byte| u8::from((byte as i8) >= -0x40) + u8::from(byte >= 0xf0),
                |word| begins(word) + is_four_bytes(word),
            ),
        }
    }
}

/// The number of bytes in a word that begin a code point: all except `10xxxxxx`.
fn begins(word: u64) -> u32 {
    8 - (word & !(word << 1) & HIGH).count_ones()
}

/// The number of bytes in a word that begin a code point of four bytes: `1111xxxx`.
fn is_four_bytes(word: u64) -> u32 {
    (word & word << 1 & word << 2 & word << 3 & HIGH).count_ones()
}

/// The highest bit of each of eight bytes.
const HIGH: u64 = 0x8080_8080_8080_8080;

/// Sums values of at most 2 for every byte: in blocks whose sum fits a byte, and the rest by words.
fn sum_of(text: &[u8], each: impl Fn(u8) -> u8, of_word: impl Fn(u64) -> u32) -> u64 {
    let (blocks, rest) = text.as_chunks::<64>();
    let of_block = |block: &[u8; 64]| u64::from(block.iter().map(|&byte| each(byte)).sum::<u8>());
    let (words, rest) = rest.as_chunks::<8>();
    let of_words: u32 = words.iter().map(|word| of_word(u64::from_le_bytes(*word))).sum();
    let of_rest = match text.last_chunk() {
        _ if rest.is_empty() => 0,
        // The bytes already counted are shifted out; each zero that replaces them counts as one.
        Some(last) => {
            let zeros = 8 - rest.len();
            of_word(u64::from_le_bytes(*last) >> (8 * zeros)) - zeros as u32
        }
        None => rest.iter().map(|&byte| u32::from(each(byte))).sum(),
    };
    blocks.iter().map(of_block).sum::<u64>() + u64::from(of_words + of_rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_those_of_the_standard_library() {
        let mixed = "aé日😀\u{fffd}\u{10ffff}~\u{7f}\u{80}".repeat(20);
        let of_any_length = (0..mixed.len()).filter_map(|end| mixed.get(end % 20..end));
        for text in
            ["", "abc", "héllo", "日本語", "a😀b", "\u{fffd}\u{10ffff}"].into_iter().chain(of_any_length)
        {
            assert_eq!(Unit::Bytes.of(text), text.len() as u64);
            assert_eq!(Unit::Points.of(text), text.chars().count() as u64);
            assert_eq!(Unit::Utf16.of(text), text.encode_utf16().count() as u64);
        }
    }
}
