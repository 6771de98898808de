//! The class of each character, frozen at Unicode 15.0.

use std::sync::LazyLock;

/// Code points at which a class begins, and the class: two bytes, lowest first, and one.
const RANGES: &[u8] = include_bytes!("../data/claude.classes");

/// The class of a character. The numbers are those of `scripts/claude_pieces.py`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Class {
    /// A space, tab or line end.
    Space,
    /// `0` to `9`.
    AsciiDigit,
    /// A digit of Arabic, which runs with those of ASCII but has borders.
    ArabicDigit,
    /// Punctuation that runs together.
    Punct,
    /// A letter, or a mark that belongs to one.
    Word,
    /// A mark that opens a word where no letter is before it.
    Stray,
    /// Other punctuation, symbols, formats, and marks that part words.
    HardPunct,
    /// A digit of another script.
    HardNd,
    /// Another number.
    HardNo,
    /// An ideograph, an emoji, and everything else.
    HardLetter,
    /// A variation selector.
    Selector,
}

impl Class {
    const ALL: [Class; 11] = [
        Class::Space,
        Class::AsciiDigit,
        Class::ArabicDigit,
        Class::Punct,
        Class::Word,
        Class::Stray,
        Class::HardPunct,
        Class::HardNd,
        Class::HardNo,
        Class::HardLetter,
        Class::Selector,
    ];

    /// The class of a character.
    #[inline]
    pub(super) fn of(c: char) -> Class {
        // Beyond the Basic Multilingual Plane all is hard.
        TABLE.get(c as usize).copied().unwrap_or(Class::HardLetter)
    }
}

static TABLE: LazyLock<Vec<Class>> = LazyLock::new(|| {
    let starts = RANGES.chunks_exact(3).map(|range| usize::from(u16::from_le_bytes([range[0], range[1]])));
    let ends = starts.clone().skip(1).chain([0x1_0000]);
    let classes = RANGES.chunks_exact(3).map(|range| Class::ALL.get(usize::from(range[2])).copied());
    let mut table = Vec::with_capacity(0x1_0000);
    for ((start, end), class) in starts.zip(ends).zip(classes) {
        table.extend(std::iter::repeat_n(class.unwrap_or(Class::HardLetter), end - start));
    }
    table
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_covers_the_plane() {
        assert_eq!(TABLE.len(), 0x1_0000);
    }

    #[test]
    fn characters_have_the_classes_that_were_measured() {
        for (c, class) in [
            ('é', Class::Word),
            ('ー', Class::Word),
            ('Ⅷ', Class::Word),
            ('\u{301}', Class::HardPunct),
            ('\u{5b4}', Class::Stray),
            ('\u{903}', Class::Word),
            ('字', Class::HardLetter),
            ('々', Class::HardLetter),
            ('。', Class::HardLetter),
            ('，', Class::HardPunct),
            ('（', Class::Punct),
            ('٣', Class::ArabicDigit),
            ('३', Class::HardNd),
            ('²', Class::HardNo),
            ('\u{fe0f}', Class::Selector),
            ('😀', Class::HardLetter),
            ('\u{2060}', Class::HardPunct),
        ] {
            assert_eq!(Class::of(c), class, "{c:?}");
        }
    }
}
