//! Classes of 64 bytes as bit masks: bit `i` describes byte `i`.
//!
//! Only ASCII bytes are classified here. `wide` marks the others and `lead` those of them that start a character, which
//! [`super::boundaries`] looks up one by one. [`crate::count::simd::avx2`] and [`crate::count::simd::avx512`] do the
//! same with a few vector instructions and are tested against the portable version.

/// 64 bytes of text.
pub(crate) type Block = [u8; 64];

/// Class masks of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Masks {
    pub(crate) upper: u64,
    pub(crate) lower: u64,
    /// Letters without case; none in ASCII.
    pub(crate) caseless: u64,
    pub(crate) number: u64,
    /// White space except newlines.
    pub(crate) blank: u64,
    /// Blanks that are a space (U+0020).
    pub(crate) space: u64,
    pub(crate) newline: u64,
    pub(crate) quote: u64,
    pub(crate) slash: u64,
    /// Symbols, including quotes and slashes.
    pub(crate) symbol: u64,
    pub(crate) wide: u64,
    pub(crate) lead: u64,
}

/// Characters classified without a table, by their lead bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Leads {
    /// Leads of `U+5000..U+A000` and `U+B000..U+D000`: Han and Hangul, letters without case.
    pub(crate) caseless_3: u64,
    /// Leads of `U+0430..U+0460`, small Cyrillic letters, and of small letters from `U+00E0` to `U+00FF`.
    pub(crate) lower_2: u64,
}

/// [`Leads`] of a block, byte by byte.
pub(crate) fn portable_leads(block: &Block) -> Leads {
    let mut leads = Leads::default();
    for (i, &byte) in block.iter().enumerate() {
        let next = block.get(i + 1).copied().unwrap_or(0);
        match (byte, next) {
            (0xe5..=0xe9 | 0xeb..=0xec, _) => leads.caseless_3 |= 1 << i,
            (0xd0, 0xb0..) | (0xd1, 0x80..0xa0) => leads.lower_2 |= 1 << i,
            (0xc3, 0xa0..) if next != 0xb7 => leads.lower_2 |= 1 << i,
            _ => {}
        }
    }
    leads
}

impl Masks {
    /// Clears all bits except these.
    #[inline(always)]
    pub(crate) fn keep(&mut self, bits: u64) {
        for mask in [
            &mut self.upper,
            &mut self.lower,
            &mut self.caseless,
            &mut self.number,
            &mut self.blank,
            &mut self.space,
            &mut self.newline,
            &mut self.quote,
            &mut self.slash,
            &mut self.symbol,
            &mut self.wide,
            &mut self.lead,
        ] {
            *mask &= bits;
        }
    }
}

/// Classifies byte by byte.
pub(crate) fn portable(block: &Block) -> Masks {
    let mut masks = Masks::default();
    for (i, &byte) in block.iter().enumerate() {
        let bit = 1 << i;
        match byte {
            b'A'..=b'Z' => masks.upper |= bit,
            b'a'..=b'z' => masks.lower |= bit,
            b'0'..=b'9' => masks.number |= bit,
            b' ' => {
                masks.blank |= bit;
                masks.space |= bit;
            }
            b'\t' | 0x0b | 0x0c => masks.blank |= bit,
            b'\r' | b'\n' => masks.newline |= bit,
            0x80..=0xbf => masks.wide |= bit,
            0xc0.. => {
                masks.wide |= bit;
                masks.lead |= bit;
            }
            _ => {
                masks.symbol |= bit;
                if byte == b'\'' {
                    masks.quote |= bit;
                } else if byte == b'/' {
                    masks.slash |= bit;
                }
            }
        }
    }
    masks
}

/// Blocks with all byte values and random bytes, for tests of the vectorized versions.
#[cfg(test)]
pub(crate) fn samples() -> impl Iterator<Item = Block> {
    let mut state = 1u64;
    (0..3000).map(move |round| {
        std::array::from_fn(|i| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            match round {
                0..4 => (round * 64 + i) as u8,
                4..1000 => (state >> 57) as u8,
                _ => (state >> 56) as u8,
            }
        })
    })
}
