//! Invisible characters, and the appearance of the others.

use unicode_normalization::UnicodeNormalization;

/// Format characters (general category Cf) of Unicode 16, except [`WANTED`].
///
/// They are zero-width characters, direction overrides and tags.
const HIDDEN: [(u32, u32); 19] = [
    (0x0600, 0x0605),
    (0x06dd, 0x06dd),
    (0x070f, 0x070f),
    (0x0890, 0x0891),
    (0x08e2, 0x08e2),
    (0x180e, 0x180e),
    (0x200b, 0x200b),
    (0x202a, 0x202e),
    (0x2060, 0x2064),
    (0x2066, 0x206f),
    (0xfeff, 0xfeff),
    (0xfff9, 0xfffb),
    (0x1_10bd, 0x1_10bd),
    (0x1_10cd, 0x1_10cd),
    (0x1_3430, 0x1_343f),
    (0x1_bca0, 0x1_bca3),
    (0x1_d173, 0x1_d17a),
    (0xe_0001, 0xe_0001),
    (0xe_0020, 0xe_007f),
];

/// Joiners and direction marks that some scripts and emoji need; ignored only when markers are searched for.
const WANTED: [char; 6] = ['\u{200c}', '\u{200d}', '\u{200e}', '\u{200f}', '\u{61c}', '\u{ad}'];

/// Whether a character is invisible and not needed by a script.
pub(super) fn is_hidden(sign: char) -> bool {
    let point = u32::from(sign);
    point >= 0x600
        && HIDDEN
            .binary_search_by(|&(first, last)| {
                if last < point {
                    std::cmp::Ordering::Less
                } else if first > point {
                    std::cmp::Ordering::Greater
                } else {
                    std::cmp::Ordering::Equal
                }
            })
            .is_ok()
}

/// The appearance of a character that NFKC does not change. In numeric form, since the characters look similar.
fn look_of(sign: char) -> char {
    match sign {
        '\u{2329}' | '\u{3008}' | '\u{27e8}' | '\u{276e}' | '\u{1438}' | '\u{2c2}' => '<',
        '\u{232a}' | '\u{3009}' | '\u{27e9}' | '\u{276f}' | '\u{1433}' | '\u{2c3}' => '>',
        '\u{2223}' | '\u{2502}' | '\u{1c0}' => '|',
        '\u{2581}' | '\u{2cd}' => '_',
        '\u{2d0}' | '\u{2236}' | '\u{a789}' => ':',
        '\u{2010}'..='\u{2014}' | '\u{2212}' => '-',
        '\u{1c3}' => '!',
        '\u{2028}' | '\u{2029}' | '\u{85}' => '\n',
        other => other,
    }
}

/// Maps characters that some readers treat as line ends.
fn line_end(sign: char) -> char {
    if matches!(sign, '\r' | '\u{b}' | '\u{c}') { '\n' } else { sign }
}

/// The appearance of a text.
pub(super) struct Skeleton {
    /// The normalized text.
    pub text: String,
    /// The origin of each of its bytes; `None` if the positions are equal.
    places: Option<Vec<u32>>,
}

impl Skeleton {
    /// Normalizes a text.
    pub fn of(text: &str) -> Self {
        if text.is_ascii() {
            return Skeleton { text: text.chars().map(line_end).collect(), places: None };
        }
        let mut plain = String::with_capacity(text.len());
        let mut places = Vec::with_capacity(text.len());
        for (place, sign) in text.char_indices() {
            let mut push = |looks: char| {
                plain.push(line_end(looks));
                places.resize(plain.len(), u32::try_from(place).unwrap_or(u32::MAX));
            };
            if sign.is_ascii() {
                push(sign);
            } else if !WANTED.contains(&sign) && !('\u{fe00}'..='\u{fe0f}').contains(&sign) {
                std::iter::once(sign).nfkc().map(look_of).for_each(push);
            }
        }
        Skeleton { text: plain, places: Some(places) }
    }

    /// The position in the original text.
    pub fn place(&self, at: usize) -> usize {
        match &self.places {
            None => at,
            Some(places) => places.get(at).map_or(at, |&place| place as usize),
        }
    }
}

#[cfg(test)]
mod tests {
    use regex_syntax::hir::{Class, HirKind};

    use super::*;

    #[test]
    fn hidden_signs_are_the_format_characters_but_those_that_scripts_need() {
        let parsed = regex_syntax::parse(r"\p{Cf}").unwrap();
        let HirKind::Class(Class::Unicode(class)) = parsed.kind() else { panic!("no class") };
        let ranges: Vec<_> = class.iter().map(|range| range.start()..=range.end()).collect();
        for sign in '\0'..=char::MAX {
            let is_format = ranges.iter().any(|range| range.contains(&sign));
            assert_eq!(is_hidden(sign), is_format && !WANTED.contains(&sign), "{sign:?}");
        }
    }
}
