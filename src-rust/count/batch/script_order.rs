//! Groups texts by script and density of letters, from a small sample of each.
//!
//! Texts of a kind use the same table entries. The entries of all kinds together exceed the processor's caches several
//! times, so a batch counted kind by kind has fewer cache misses.

use std::ops::Range;

/// Bytes in the middle of a text that are sampled.
const SEEN: usize = 64;

/// Least average and total bytes for which grouping pays. Shorter texts cost less than the samples; smaller batches fit
/// the caches anyway.
const LEAST_BYTES: usize = 512;
const LEAST_BYTES_OF_ALL: usize = 1 << 20;

/// Classes of ASCII texts by their share of letters, which separates prose from code and code from tables.
const PARTS: usize = 16;

/// Scripts by the first byte of multi-byte characters: each entry begins a range that ends before the next. (Latin and
/// its neighbours, Greek, Cyrillic, Hebrew and Arabic, scripts of India and South-East Asia, symbols, kana, Han,
/// Hangul, the rest.)
const SCRIPTS: [u8; 10] = [0xc2, 0xce, 0xd0, 0xd4, 0xe0, 0xe2, 0xe3, 0xe4, 0xea, 0xee];

/// The number of kinds.
const KINDS: usize = PARTS + 1 + SCRIPTS.len();

/// The indices of a range of texts, stably grouped by kind; `None` if the given order is as good.
///
/// `size_bytes` returns the length of a text, `bytes` its bytes, if any. O(texts).
pub(super) fn group_by_script<'a>(
    range: Range<usize>,
    size_bytes: impl Fn(usize) -> usize,
    bytes: impl Fn(usize) -> Option<&'a [u8]>,
) -> Option<Vec<usize>> {
    let total = range.clone().map(size_bytes).fold(0, usize::saturating_add);
    if total < LEAST_BYTES_OF_ALL || total / LEAST_BYTES < range.len() {
        return None;
    }
    let kind_at = |index| bytes(index).map_or(0, kind_of);
    let mut indices: Vec<Vec<usize>> = vec![Vec::new(); KINDS];
    range.for_each(|index| indices[kind_at(index)].push(index));
    Some(indices.concat())
}

/// The kind of a text, below [`KINDS`].
fn kind_of(text: &[u8]) -> usize {
    let middle = text.len().saturating_sub(SEEN) / 2;
    let mut padded = [0; SEEN];
    let seen = text[middle..].first_chunk().unwrap_or_else(|| {
        padded[..text.len()].copy_from_slice(text);
        &padded
    });
    let firsts = count(seen, |byte| byte >= SCRIPTS[0]);
    if firsts * PARTS <= SEEN {
        return count(seen, |byte| (byte | 0x20).wrapping_sub(b'a') < 26) * PARTS / SEEN;
    }
    let many = |script: usize| {
        let (from, next) = (SCRIPTS[script], SCRIPTS.get(script + 1).copied().unwrap_or(u8::MAX));
        count(seen, |byte| byte.wrapping_sub(from) < next - from)
    };
    PARTS + 1 + (0..SCRIPTS.len()).max_by_key(|&script| many(script)).unwrap_or(0)
}

/// The number of bytes that satisfy `is`. At most [`SEEN`], so that the sum fits a byte.
#[inline(always)]
fn count(seen: &[u8; SEEN], is: impl Fn(u8) -> bool) -> usize {
    seen.iter().map(|&byte| u8::from(is(byte))).sum::<u8>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order_of(texts: &[String], range: Range<usize>) -> Option<Vec<usize>> {
        group_by_script(range, |index| texts[index].len(), |index| Some(texts[index].as_bytes()))
    }

    const SAMPLES: [&str; 8] = [
        "It was a dark and stormy night, and the rain fell in torrents. ",
        "for (int i = 0; i < n; ++i) { a[i] += b[i] * c[i]; } // ok\n",
        "12.50, 13.75, 1999-12-31, 0x7f;\n",
        "Сессия продолжается, и сообщения сохраняются. ",
        "消息一条也没有丢失，会话仍在继续。",
        "セッションはつづきます。メッセージはのこっています。",
        "세션은 계속되고 메시지는 남아 있습니다. ",
        "संदेश सुरक्षित हैं और सत्र जारी है। ",
    ];

    #[test]
    fn texts_of_a_kind_come_one_after_the_other_in_their_order() {
        for repeated in [20, 40, 400] {
            let texts: Vec<String> = (0..4000).map(|i| SAMPLES[i % SAMPLES.len()].repeat(repeated)).collect();
            let order: Vec<usize> = order_of(&texts, 0..texts.len()).unwrap();
            let runs: Vec<&[usize]> = order.chunk_by(|a, b| a % SAMPLES.len() == b % SAMPLES.len()).collect();
            assert_eq!(runs.len(), SAMPLES.len());
            assert!(runs.iter().all(|run| run.len() == 500 && run.is_sorted()));
        }
    }

    #[test]
    fn every_text_is_there_once() {
        let text =
            |i: usize| char::from_u32((i as u32 * 7919) % 0xd800).map(String::from).unwrap_or_default();
        let texts: Vec<String> = (0..3000).map(|i| text(i).repeat(i % 2000)).collect();
        let mut order = order_of(&texts, 10..2990).unwrap();
        order.sort_unstable();
        assert!(order.into_iter().eq(10..2990));
    }

    #[test]
    fn small_batches_and_short_texts_keep_their_order() {
        for texts in [Vec::new(), vec!["a text ".repeat(100); 10], vec!["a text".to_owned(); 1_000_000]] {
            assert_eq!(order_of(&texts, 0..texts.len()), None);
        }
    }

    #[test]
    fn every_length_and_byte_has_a_kind() {
        for byte in 0..=u8::MAX {
            for len in (0..200).chain([1000, 5001]) {
                assert!(kind_of(&vec![byte; len]) < KINDS);
            }
        }
    }
}
