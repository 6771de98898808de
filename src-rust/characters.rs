//! A text as its owner keeps it: in UTF-8, or as a number for each character.

#![allow(unsafe_code)]

use std::borrow::Cow;

use crate::node::Unit;

/// The characters of a text. Those that are numbers may be halves of surrogate pairs: two that form a pair are that
/// character, others are read as U+FFFD.
#[derive(Clone, Copy, Debug)]
pub enum Characters<'a> {
    /// In UTF-8, and how many they are.
    Utf8(&'a str, usize),
    /// Below 256 all.
    Bytes(&'a [u8]),
    /// Below 65536 all.
    Units(&'a [u16]),
    /// Code points.
    Points(&'a [u32]),
}

/// Characters that are looked at together: nearly always all of them are ASCII, or hardly any.
const BLOCK: usize = 16;

/// The same where text is ASCII but for a sign now and then, as prose in English is.
const ASCII_RUN: usize = 64;

/// What a processor fetches at once.
const LINE_BYTES: usize = 64;

/// How far ahead of what is read the processor is asked for it: numbers of 32 bits are read faster than it brings them.
const AHEAD_BYTES: usize = 2048;

/// Bytes of the longest character.
const LONGEST: usize = 4;

const SURROGATES: std::ops::Range<u32> = 0xd800..0xe000;
const SECOND_HALVES: std::ops::Range<u32> = 0xdc00..0xe000;

impl<'a> Characters<'a> {
    /// The bytes that they take where they lie.
    #[must_use]
    pub fn stored(&self) -> &'a [u8] {
        match self {
            Characters::Utf8(text, _) => text.as_bytes(),
            Characters::Bytes(bytes) => bytes,
            Characters::Units(units) => bytes_of(units),
            Characters::Points(points) => bytes_of(points),
        }
    }

    /// How long the text is; `None` where it has surrogates. O(1) of ASCII, else O(characters).
    #[inline]
    #[must_use]
    pub fn length(&self, unit: Unit) -> Option<u64> {
        match (self, unit) {
            (Characters::Utf8(text, _), Unit::Bytes) => Some(text.len() as u64),
            (Characters::Utf8(_, points), Unit::Points) => Some(*points as u64),
            (Characters::Utf8(text, points), Unit::Utf16) if *points == text.len() => Some(*points as u64),
            (Characters::Utf8(text, _), Unit::Utf16) => Some(unit.of(text)),
            (Characters::Bytes(bytes), Unit::Bytes) => {
                Some((bytes.len() + sum(bytes, |byte| u16::from(byte >= 0x80))) as u64)
            }
            (Characters::Bytes(bytes), _) => Some(bytes.len() as u64),
            (Characters::Units(units), _) if sum(units, |unit| u16::from(unit >> 11 == 0xd800 >> 11)) > 0 => {
                None
            }
            (Characters::Units(units), Unit::Bytes) => {
                let more = |unit| u16::from(unit >= 0x80) + u16::from(unit >= 0x800);
                Some((units.len() + sum(units, more)) as u64)
            }
            (Characters::Units(units), _) => Some(units.len() as u64),
            (Characters::Points(points), _)
                if sum(points, |point| u16::from(point >> 11 == 0xd800 >> 11)) > 0 =>
            {
                None
            }
            (Characters::Points(points), Unit::Points) => Some(points.len() as u64),
            (Characters::Points(points), Unit::Utf16) => {
                Some((points.len() + sum(points, |point| u16::from(point >= 0x1_0000))) as u64)
            }
            (Characters::Points(points), Unit::Bytes) => {
                let more = |point| {
                    u16::from(point >= 0x80) + u16::from(point >= 0x800) + u16::from(point >= 0x1_0000)
                };
                Some((points.len() + sum(points, more)) as u64)
            }
        }
    }

    /// The text in UTF-8, and whether halves of pairs were replaced. O(characters), and no copy of what is UTF-8.
    #[must_use]
    pub fn text(&self) -> (Cow<'a, str>, bool) {
        if let Characters::Utf8(text, _) = *self {
            return (Cow::Borrowed(text), false);
        }
        // A long text is mostly ASCII or grows now and then: the most that it could take may be four times what it does.
        let mut text = String::with_capacity(self.count() + self.count() / 16);
        let mut left = *self;
        let is_lossy = left.take_text(usize::MAX, &mut text);
        (Cow::Owned(text), is_lossy)
    }

    /// How many there are, each half of a pair for itself.
    #[must_use]
    pub fn count(&self) -> usize {
        match self {
            Characters::Utf8(_, count) => *count,
            Characters::Bytes(bytes) => bytes.len(),
            Characters::Units(units) => units.len(),
            Characters::Points(points) => points.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// Appends about so many characters from the front in UTF-8, or all that are left, and leaves the others; whether halves
    /// of pairs were replaced. O(characters).
    pub fn take_text(&mut self, many: usize, out: &mut String) -> bool {
        match self {
            Characters::Utf8(text, length) => {
                let cut = text.char_indices().nth(many).map_or(text.len(), |(at, _)| at);
                let (taken, left) = text.split_at(cut);
                out.push_str(taken);
                (*text, *length) = (left, length.saturating_sub(many));
                false
            }
            Characters::Bytes(bytes) => encode(bytes, many, out),
            Characters::Units(units) => encode(units, many, out),
            Characters::Points(points) => encode(points, many, out),
        }
    }
}

/// Numbers as the bytes they lie in.
fn bytes_of<T: Plain>(numbers: &[T]) -> &[u8] {
    // SAFETY: whole numbers have no padding, any byte may be read as one, and the length is that of the slice in bytes.
    unsafe { std::slice::from_raw_parts(numbers.as_ptr().cast(), size_of_val(numbers)) }
}

/// Numbers without padding.
trait Plain: Copy {}
impl Plain for u16 {}
impl Plain for u32 {}

/// What `of` says of each number, which is at most 3, added up.
#[inline(always)]
fn sum<T: Copy>(numbers: &[T], of: impl Fn(T) -> u16) -> usize {
    // So few at a time that the sum fits: numbers of 16 bits are added eight at once and more.
    let parts = numbers.chunks(1 << 12);
    parts.map(|part| usize::from(part.iter().map(|&number| of(number)).sum::<u16>())).sum()
}

/// Has the processor fetch what is read soon, where that can be said.
#[inline(always)]
fn fetch<T>(what: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: prefetching reads and writes nothing, and every processor of this architecture can.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(what).cast());
    }
    let _ = what;
}

/// Takes about so many characters from the front and appends them; whether halves of pairs were replaced.
fn encode<T: Copy + Into<u32>>(characters: &mut &[T], many: usize, out: &mut String) -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        if let Some(is_lossy) = x86::encode_avx512(characters, many, out) {
            return is_lossy;
        }
        if let Some(is_lossy) = x86::encode_avx2(characters, many, out) {
            return is_lossy;
        }
    }
    encode_inline(characters, many, out)
}

/// [`encode`] for processors that have more than all do; nothing, and nothing taken, where this one does not.
#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::encode_inline;

    #[inline]
    pub(super) fn encode_avx2<T: Copy + Into<u32>>(
        characters: &mut &[T],
        many: usize,
        out: &mut String,
    ) -> Option<bool> {
        // SAFETY: what it is compiled for was found.
        is_x86_feature_detected!("avx2").then(|| unsafe { with_avx2(characters, many, out) })
    }

    #[inline]
    pub(super) fn encode_avx512<T: Copy + Into<u32>>(
        characters: &mut &[T],
        many: usize,
        out: &mut String,
    ) -> Option<bool> {
        let detected = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vl");
        // SAFETY: all that it is compiled for was found.
        detected.then(|| unsafe { with_avx512(characters, many, out) })
    }

    #[target_feature(enable = "avx2")]
    fn with_avx2<T: Copy + Into<u32>>(characters: &mut &[T], many: usize, out: &mut String) -> bool {
        encode_inline(characters, many, out)
    }

    #[target_feature(enable = "avx2,avx512f,avx512bw,avx512vl")]
    fn with_avx512<T: Copy + Into<u32>>(characters: &mut &[T], many: usize, out: &mut String) -> bool {
        encode_inline(characters, many, out)
    }
}

/// [`encode`], compiled for the features of who calls it.
#[inline(always)]
fn encode_inline<T: Copy + Into<u32>>(characters: &mut &[T], many: usize, out: &mut String) -> bool {
    // SAFETY: only whole characters are appended, as `write` makes them.
    let out = unsafe { out.as_mut_vec() };
    let (mut left, mut is_lossy) = (*characters, false);
    let behind = left.len().saturating_sub(many);
    while left.len() > behind {
        while left.len() > behind
            && let Some(more) = encode_ascii::<_, ASCII_RUN>(left, out)
        {
            let a_line = LINE_BYTES / size_of::<T>();
            (0..ASCII_RUN / a_line).for_each(|line| {
                left.get(AHEAD_BYTES / size_of::<T>() + line * a_line).inspect(|character| fetch(*character));
            });
            left = more;
        }
        for _ in 0..ASCII_RUN / BLOCK {
            left = encode_ascii::<_, BLOCK>(left, out)
                // A pair may begin with the last of the block.
                .unwrap_or_else(|| encode_some(left, out, &mut is_lossy));
        }
    }
    *characters = left;
    is_lossy
}

/// Appends so many characters where they are ASCII; what is left.
#[inline(always)]
fn encode_ascii<'a, T: Copy + Into<u32>, const N: usize>(
    characters: &'a [T],
    out: &mut Vec<u8>,
) -> Option<&'a [T]> {
    let (block, behind) = characters.split_first_chunk::<N>()?;
    if block.iter().fold(0, |all, &character| all | character.into()) >= 0x80 {
        return None;
    }
    out.extend(block.iter().map(|&character| character.into() as u8));
    Some(behind)
}

/// Appends the characters of a block, and one more where the last is the first half of a pair; what is left.
fn encode_some<'a, T: Copy + Into<u32>>(
    characters: &'a [T],
    out: &mut Vec<u8>,
    is_lossy: &mut bool,
) -> &'a [T] {
    let many = characters.len().min(BLOCK);
    let mut written = [0; BLOCK * LONGEST];
    let (mut at, mut next) = (0, 0);
    while next < many {
        let mut point = characters[next].into();
        next += 1;
        if SURROGATES.contains(&point) {
            let second = characters.get(next).map_or(0, |&second| second.into());
            if point < SECOND_HALVES.start && SECOND_HALVES.contains(&second) {
                point = 0x1_0000 + ((point - SURROGATES.start) << 10) + (second - SECOND_HALVES.start);
                next += 1;
            } else {
                point = char::REPLACEMENT_CHARACTER.into();
                *is_lossy = true;
            }
        }
        let (bytes, len) = write(point);
        let Some(room) = written.get_mut(at..).and_then(<[u8]>::first_chunk_mut) else { break };
        *room = bytes;
        at += len;
    }
    out.extend_from_slice(&written[..at]);
    &characters[next..]
}

/// The bytes of a code point that is no surrogate, and how many they are. (What is beyond all characters cannot be: who
/// keeps texts keeps none such. It would be read as U+FFFD.)
#[inline(always)]
fn write(point: u32) -> ([u8; LONGEST], usize) {
    let part = |shift: u32| (0x80 | (point >> shift & 0x3f)) as u8;
    match point {
        0..0x80 => ([point as u8, 0, 0, 0], 1),
        0x80..0x800 => ([0xc0 | (point >> 6) as u8, part(0), 0, 0], 2),
        0x800..0x1_0000 => ([0xe0 | (point >> 12) as u8, part(6), part(0), 0], 3),
        0x1_0000..=0x10_ffff => ([0xf0 | (point >> 18) as u8, part(12), part(6), part(0)], 4),
        _ => ([0xef, 0xbf, 0xbd, 0], 3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What the units of UTF-16 say, one by one; whether there are halves of pairs, and whether any is alone.
    fn slowly(points: &[u32]) -> (String, bool, bool) {
        let units = points.iter().flat_map(|&point| match char::from_u32(point) {
            Some(character) => character.encode_utf16(&mut [0; 2]).to_vec(),
            None => vec![point as u16],
        });
        let read: Vec<_> = char::decode_utf16(units).collect();
        let text =
            read.iter().map(|unit| unit.as_ref().map_or(char::REPLACEMENT_CHARACTER, |c| *c)).collect();
        let is_lossy = read.iter().any(Result::is_err);
        (text, points.iter().any(|point| SURROGATES.contains(point)), is_lossy)
    }

    fn check(characters: &Characters<'_>, points: &[u32]) {
        let (text, has_surrogates, is_lossy) = slowly(points);
        assert_eq!(characters.text(), (Cow::Borrowed(&*text), is_lossy));
        for unit in [Unit::Bytes, Unit::Points, Unit::Utf16] {
            assert_eq!(characters.length(unit), (!has_surrogates).then(|| unit.of(&text)), "{unit:?}");
        }
    }

    /// In every form that holds them.
    fn check_all(points: &[u32]) {
        check(&Characters::Points(points), points);
        let (text, has_surrogates, _) = slowly(points);
        if !has_surrogates {
            check(&Characters::Utf8(&text, points.len()), points);
        }
        if let Ok(units) = points.iter().map(|&point| u16::try_from(point)).collect::<Result<Vec<_>, _>>() {
            check(&Characters::Units(&units), points);
        }
        if let Ok(bytes) = points.iter().map(|&point| u8::try_from(point)).collect::<Result<Vec<_>, _>>() {
            check(&Characters::Bytes(&bytes), points);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_characters_are_read_as_they_are_one_by_one(
            points in prop::collection::vec(
                prop_oneof![
                    8 => 0x20..0x7f_u32,
                    1 => 0..0x100_u32,
                    1 => 0..0x1_0000_u32,
                    1 => 0xd700..0xe100_u32,
                    1 => prop::sample::select(vec![0x7f, 0x80, 0x7ff, 0x800, 0xd800, 0xdbff, 0xdc00, 0xdfff, 0xffff]),
                    1 => 0x1_0000..=0x10_ffff_u32,
                ],
                0..300,
            ),
        ) {
            check_all(&points);
            for most in [0xff, 0xffff] {
                check_all(&points.iter().copied().filter(|&point| point <= most).collect::<Vec<_>>());
            }
        }
    }

    /// Taken part by part they are the text, whatever stands at the edges.
    #[test]
    fn parts_are_the_whole() {
        let points: Vec<u32> =
            (0..3000).map(|i| [0x61, 0x62, 0xe9, 0xd83d, 0xde00, 0x4e2d, 0xdc00][i % 97 % 7]).collect();
        let units: Vec<u16> = points.iter().map(|&point| point as u16).collect();
        let (whole, is_lossy) = Characters::Units(&units).text();
        for many in [1, 2, 3, 15, 16, 17, 63, 64, 65, 1000, 5000] {
            for mut left in [
                Characters::Units(&units),
                Characters::Points(&points),
                Characters::Utf8(&whole, whole.chars().count()),
            ] {
                let is_utf8 = matches!(left, Characters::Utf8(..));
                let (mut text, mut was_lossy) = (String::new(), false);
                while !left.is_empty() {
                    let before = text.chars().count();
                    was_lossy |= left.take_text(many, &mut text);
                    // A pair and a block more, at most.
                    assert!(text.chars().count() - before <= many + ASCII_RUN + 1);
                }
                assert_eq!((&*text, was_lossy), (&*whole, is_lossy && !is_utf8));
            }
        }
    }

    fn check_ways<T: Copy + Into<u32>>(characters: &[T], many: usize) {
        let (mut left, mut expected) = (characters, String::new());
        let is_lossy = encode_inline(&mut left, many, &mut expected);
        assert!(left.len() <= characters.len().saturating_sub(many) && !expected.is_empty());
        #[cfg(target_arch = "x86_64")]
        for encode in [x86::encode_avx2, x86::encode_avx512] {
            let (mut rest, mut out) = (characters, String::new());
            if let Some(found) = encode(&mut rest, many, &mut out) {
                assert_eq!((found, rest.len(), &*out), (is_lossy, left.len(), &*expected));
            }
        }
    }

    #[test]
    fn every_processor_encodes_alike() {
        let points: Vec<u32> = (0..5000)
            .map(|i| {
                if i % 113 == 0 {
                    [0xe9, 0x4e2d, 0xd83d, 0xde00, 0x1_f600][i % 5]
                } else {
                    0x20 + i as u32 % 0x5f
                }
            })
            .collect();
        let units: Vec<u16> = points.iter().map(|&point| point as u16).collect();
        for many in [1, 63, 64, 65, 1000, 4999, 9000] {
            check_ways(&points, many);
            check_ways(&units, many);
        }
    }

    #[test]
    fn every_code_point_is_written_as_it_is_elsewhere() {
        for point in 0..=0x10_ffff {
            if let Some(character) = char::from_u32(point) {
                let (bytes, len) = write(point);
                assert_eq!(&bytes[..len], character.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
        let (bytes, len) = write(0x11_0000);
        assert_eq!(&bytes[..len], "\u{fffd}".as_bytes());
    }

    #[test]
    fn long_texts_are_added_up_without_loss() {
        for point in [0x7f, 0xff, 0x7ff, 0xffff, 0x1_f600] {
            check_all(&vec![point; 100_003]);
        }
    }

    #[test]
    fn what_is_stored_is_what_lies_there() {
        assert_eq!(Characters::Utf8("é", 1).stored(), [0xc3, 0xa9]);
        assert_eq!(Characters::Bytes(&[0xe9]).stored(), [0xe9]);
        assert_eq!(Characters::Units(&[0x4e2d, 1]).stored().len(), 4);
        assert_eq!(Characters::Points(&[0x1_f600]).stored(), 0x1_f600_u32.to_ne_bytes());
    }
}
