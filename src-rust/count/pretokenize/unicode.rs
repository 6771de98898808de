//! Character classes, as in the regex engine of tiktoken.
//!
//! Every code point has exactly one class, so a set of classes is a bit mask and membership is one `and`. The build
//! script derives the tables from the crate (and Unicode version) of the reference's regex engine; newer Unicode data
//! would change token counts.

mod tables {
    include!(concat!(env!("OUT_DIR"), "/unicode.rs"));
}

/// `\p{Lu}` and `\p{Lt}`.
pub(crate) const UPPER: u8 = 1;
/// `\p{Ll}`.
pub(crate) const LOWER: u8 = 2;
/// `\p{Lm}` and `\p{Lo}`: letters without case.
pub(crate) const CASELESS: u8 = 4;
/// `\p{M}`: marks that combine with the letter before.
pub(crate) const MARK: u8 = 8;
/// `\p{N}`.
pub(crate) const NUMBER: u8 = 16;
/// `\s` except the two newline characters.
pub(crate) const BLANK: u8 = 32;
/// Carriage return and line feed.
pub(crate) const NEWLINE: u8 = 64;
/// Everything else: punctuation, symbols, controls, unassigned code points.
pub(crate) const SYMBOL: u8 = 128;

/// `\p{L}`.
pub(crate) const LETTER: u8 = UPPER | LOWER | CASELESS;
/// `\s`.
pub(crate) const SPACE: u8 = BLANK | NEWLINE;

/// The class of a code point.
#[inline(always)]
pub(crate) fn class(code_point: u32) -> u8 {
    let block = tables::INDEX.get(code_point as usize / 128).copied().unwrap_or(0);
    // There is a block for every `u8`, so that indexing needs no bounds check.
    tables::BLOCKS[usize::from(block) * 128 + code_point as usize % 128]
}

/// Class and length in bytes of the character that starts at `at`; `(0, 0)` at the end of the text.
///
/// The bytes are valid UTF-8, so the lead byte determines the length.
#[inline(always)]
pub(crate) fn class_at(text: &[u8], at: usize) -> (u8, usize) {
    let Some(&lead) = text.get(at) else { return (0, 0) };
    if lead < 0x80 {
        return (tables::BLOCKS[usize::from(lead)], 1);
    }
    let bytes = match text.get(at..).and_then(|rest| rest.first_chunk()) {
        Some(bytes) => *bytes,
        None => std::array::from_fn(|n| text.get(at + n).copied().unwrap_or(0)),
    };
    wide_class(bytes)
}

/// Class and length in bytes of a multi-byte character; the bytes after it are ignored.
#[inline(always)]
pub(crate) fn wide_class(bytes: [u8; 4]) -> (u8, usize) {
    let word = u32::from_be_bytes(bytes);
    match bytes[0] {
        0..0xe0 => (class(word >> 18 & 0x7c0 | word >> 16 & 0x3f), 2),
        0xe0..0xf0 => (class(word >> 12 & 0xf000 | word >> 10 & 0xfc0 | word >> 8 & 0x3f), 3),
        _ => (class(word >> 6 & 0x1c_0000 | word >> 4 & 0x3_f000 | word >> 2 & 0xfc0 | word & 0x3f), 4),
    }
}

/// Whether DeepSeek's second pattern, `[一-龥\u3040-ヿ]`, matches the character at `at`. All its characters have three
/// bytes; U+9FA5 is the last of its ideographs.
#[inline(always)]
pub(crate) fn is_east_asian(text: &[u8], at: usize) -> bool {
    let Some(&[first, second, third]) = text.get(at..).and_then(|rest| rest.first_chunk()) else {
        return false;
    };
    match (first, second, third) {
        (0xe3, 0x81..=0x83, _) | (0xe4, 0xb8.., _) | (0xe5..=0xe8, _, _) => true,
        (0xe9, 0xbe, last) => last <= 0xa5,
        (0xe9, second, _) => second < 0xbe,
        _ => false,
    }
}

/// The characters of `\p{Han}`, as ranges of code points.
const HAN: [(u32, u32); 22] = [
    (0x2e80, 0x2e99),
    (0x2e9b, 0x2ef3),
    (0x2f00, 0x2fd5),
    (0x3005, 0x3005),
    (0x3007, 0x3007),
    (0x3021, 0x3029),
    (0x3038, 0x303b),
    (0x3400, 0x4dbf),
    (0x4e00, 0x9fff),
    (0xf900, 0xfa6d),
    (0xfa70, 0xfad9),
    (0x1_6fe2, 0x1_6fe3),
    (0x1_6ff0, 0x1_6ff1),
    (0x2_0000, 0x2_a6df),
    (0x2_a700, 0x2_b739),
    (0x2_b740, 0x2_b81d),
    (0x2_b820, 0x2_cea1),
    (0x2_ceb0, 0x2_ebe0),
    (0x2_ebf0, 0x2_ee5d),
    (0x2_f800, 0x2_fa1d),
    (0x3_0000, 0x3_134a),
    (0x3_1350, 0x3_23af),
];

/// Whether the character at `at` is of the script Han.
#[inline]
pub(crate) fn is_han(text: &[u8], at: usize) -> bool {
    let Some(&[first, second, third]) = text.get(at..).and_then(|rest| rest.first_chunk()) else {
        return false;
    };
    let low = |byte: u8| u32::from(byte & 0x3f);
    let code_point = match first {
        // Nearly all of a text.
        0xe5..=0xe9 => return true,
        0xe0..0xf0 => u32::from(first & 0xf) << 12 | low(second) << 6 | low(third),
        0xf0.. => {
            let fourth = text.get(at + 3).copied().unwrap_or(0);
            u32::from(first & 7) << 18 | low(second) << 12 | low(third) << 6 | low(fourth)
        }
        _ => return false,
    };
    HAN.iter().any(|(from, to)| (*from..=*to).contains(&code_point))
}

/// Whether the character at `at`, of the class [`SYMBOL`], is neither punctuation nor a symbol: a control, a format
/// character, or unassigned.
#[inline]
pub(crate) fn is_other_at(text: &[u8], at: usize) -> bool {
    let Some(&lead) = text.get(at) else { return false };
    let byte = |n: usize| text.get(at + n).map_or(0, |byte| usize::from(byte & 0x3f));
    let code_point = match lead {
        0..0x80 => usize::from(lead),
        0x80..0xe0 => usize::from(lead & 0x1f) << 6 | byte(1),
        0xe0..0xf0 => usize::from(lead & 0xf) << 12 | byte(1) << 6 | byte(2),
        _ => usize::from(lead & 7) << 18 | byte(1) << 12 | byte(2) << 6 | byte(3),
    };
    // Beyond the table there is neither punctuation nor a symbol.
    let bits = tables::OTHER.get(code_point / 64).copied().unwrap_or(u64::MAX);
    bits >> (code_point % 64) & 1 != 0 && class_at(text, at).0 == SYMBOL
}

/// The bit number of the class of a multi-byte character, and a bit for each of its bytes. The bytes after it are
/// ignored.
#[inline(always)]
pub(crate) fn wide_run(bytes: [u8; 4]) -> (usize, u64) {
    let word = u32::from_be_bytes(bytes);
    let (place, run) = match bytes[0] {
        0..0xe0 => (word >> 18 & 0x7c0 | word >> 16 & 0x3f, 0b11),
        0xe0..0xf0 => (word >> 12 & 0xf000 | word >> 10 & 0xfc0 | word >> 8 & 0x3f, 0b111),
        _ => return (wide_class(bytes).0.trailing_zeros() as usize % 8, 0b1111),
    };
    (usize::from(tables::BASIC_PLANE[place as usize % 0x1_0000]) % 8, run)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_has_the_class_the_regex_engine_gives_it() {
        let classes = [
            (r"[\p{Lu}\p{Lt}]", UPPER),
            (r"\p{Ll}", LOWER),
            (r"[\p{Lm}\p{Lo}]", CASELESS),
            (r"\p{L}", LETTER),
            (r"\p{M}", MARK),
            (r"\p{N}", NUMBER),
            (r"\s", SPACE),
            (r"[\r\n]", NEWLINE),
            (r"[^\s\p{L}\p{N}\p{M}]", SYMBOL),
        ];
        let mut utf8 = [0; 4];
        for (pattern, set) in classes {
            let regex = regex::Regex::new(pattern).unwrap();
            for c in '\0'..=char::MAX {
                let text = &*c.encode_utf8(&mut utf8);
                let (class, len) = class_at(text.as_bytes(), 0);
                assert_eq!(len, text.len());
                if len > 1 {
                    let mut bytes = [0x7f; 4];
                    bytes[..len].copy_from_slice(text.as_bytes());
                    assert_eq!(wide_run(bytes), (class.trailing_zeros() as usize, (1 << len) - 1));
                }
                assert_eq!(class & set != 0, regex.is_match(text), "{pattern} on U+{:04X}", c as u32);
            }
        }
    }

    #[test]
    fn scripts_and_others_are_those_of_the_regex_engine() {
        let han = regex::Regex::new(r"\p{Han}").unwrap();
        let others = regex::Regex::new(r"[^\s\p{L}\p{N}\p{M}\p{P}\p{S}]").unwrap();
        let east_asian = regex::Regex::new(r"[一-龥\x{3040}-\x{309f}\x{30a0}-\x{30ff}]").unwrap();
        let mut utf8 = [0; 4];
        for c in '\0'..=char::MAX {
            let text = &*c.encode_utf8(&mut utf8);
            assert_eq!(is_other_at(text.as_bytes(), 0), others.is_match(text), "U+{:04X}", c as u32);
            assert_eq!(is_han(text.as_bytes(), 0), han.is_match(text), "U+{:04X}", c as u32);
            assert_eq!(is_east_asian(text.as_bytes(), 0), east_asian.is_match(text), "U+{:04X}", c as u32);
        }
    }

    #[test]
    fn what_lead_bytes_tell_is_true() {
        use crate::count::pretokenize::classify::portable_leads;
        for c in ('\u{80}'..=char::MAX).filter(|c| c.len_utf8() < 4) {
            let mut block = [0; 64];
            c.encode_utf8(&mut block);
            let (leads, class) = (portable_leads(&block), class(c as u32));
            assert!(leads.caseless_3 == 0 || class == CASELESS && c.len_utf8() == 3, "{c:?}");
            assert!(leads.lower_2 == 0 || class == LOWER && c.len_utf8() == 2, "{c:?}");
        }
    }

    #[test]
    fn the_end_of_the_text_has_no_class() {
        assert_eq!(class_at(b"a", 1), (0, 0));
    }
}
