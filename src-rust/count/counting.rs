//! The counting loop: cut a batch of pre-tokens, look all of them up, merge those that miss.

use super::batch::{Batch, LONGEST};
use super::bpe;
use super::cuts::{GPT2, GPT4, GPT4O};
use super::engine::Engine;
use super::hash::KEY_BYTES;
use super::look_up::{MIDDLE, Rare, SMALL, Unknown, WHOLE, Window};
use super::memo::{Loan, Memo, Place, SHORTEST};
use super::pretokenize::{Pattern, Progress};
use super::vocab::Vocab;

/// What may end a count early.
pub(crate) trait Watch: Progress {
    /// Whether a count that has come to `position` and found `count` tokens may go on.
    fn allows(&mut self, position: usize, count: usize) -> bool;
    /// The same inside a long pre-token, after another [`bpe::WINDOW`] bytes or so of it were merged.
    fn allows_more(&mut self, count: usize) -> bool;
}

/// The number of tokens of `text`, or `None` if `watch` ended the count.
pub(crate) fn count(
    vocab: &Vocab,
    pattern: Pattern,
    engine: Engine,
    text: &[u8],
    watch: &mut impl Watch,
) -> Option<usize> {
    let mut batch = Batch::new();
    let mut lists = (Rare::new(), Unknown::new());
    let mut loan = Loan::new(vocab.number);
    let mut total = 0;
    while batch.at < text.len() {
        let mut long = None;
        loop {
            match pattern {
                Pattern::Gpt2 => engine.cut::<GPT2>(&mut batch, text),
                Pattern::Gpt4 => engine.cut::<GPT4>(&mut batch, text),
                Pattern::Gpt4o => engine.cut::<GPT4O>(&mut batch, text),
            }
            if batch.is_full() || batch.at == text.len() {
                break;
            }
            let end = pattern.end(text, batch.at, watch);
            if end - batch.at > LONGEST {
                long = Some(end);
                break;
            }
            batch.push(end);
        }
        total += count_batch(vocab, engine, text, &mut batch, &mut lists, &mut loan);
        if !watch.allows(batch.at, total) {
            return None;
        }
        if let Some(end) = long {
            let piece = &text[batch.at..end];
            let mut go_on = |so_far| watch.allows_more(total + so_far);
            total += merge_segments(vocab, piece, loan.memo(), &mut go_on)?;
            batch.at = end;
            if !watch.allows(end, total) {
                return None;
            }
        }
        batch.restart(batch.at);
    }
    Some(total)
}

/// The number of tokens of a batch's pre-tokens.
fn count_batch(
    vocab: &Vocab,
    engine: Engine,
    text: &[u8],
    batch: &mut Batch,
    lists: &mut (Rare, Unknown),
    loan: &mut Loan,
) -> usize {
    batch.close();
    let behind = &text[batch.base..];
    let text = &behind[..batch.at - batch.base];
    match behind.first_chunk::<WHOLE>() {
        Some(window) => count_window(vocab, engine, text, window, batch, lists, loan),
        None if text.len() <= SMALL - KEY_BYTES => {
            count_window::<SMALL>(vocab, engine, text, &copied(text), batch, lists, loan)
        }
        None if text.len() <= MIDDLE - KEY_BYTES => {
            count_window::<MIDDLE>(vocab, engine, text, &copied(text), batch, lists, loan)
        }
        None => count_window::<WHOLE>(vocab, engine, text, &copied(text), batch, lists, loan),
    }
}

/// The text in a window of its own.
#[inline]
fn copied<const N: usize>(text: &[u8]) -> Window<N> {
    let mut window = [0; N];
    window[..text.len()].copy_from_slice(text);
    window
}

/// The same for the text of the batch, which stands in `window`.
#[inline]
fn count_window<const N: usize>(
    vocab: &Vocab,
    engine: Engine,
    text: &[u8],
    window: &Window<N>,
    batch: &Batch,
    (rare, unknown): &mut (Rare, Unknown),
    loan: &mut Loan,
) -> usize {
    engine.look_up(vocab, batch, window, rare);
    let asked = rare.count();
    if asked == 0 {
        return batch.len;
    }
    let memo = loan.memo();
    let mut count = batch.len - asked + engine.recall(memo, batch, window, rare, unknown);
    memo.gave(asked - unknown.numbers().len());
    for &number in unknown.numbers() {
        let [start, end] = batch.starts[usize::from(number)..].first_chunk().copied().unwrap_or_default();
        let piece = &text[usize::from(start)..usize::from(end)];
        let place = Memo::place(piece);
        count += remembered(memo, place, piece, |memo| merge(vocab, piece, memo));
    }
    count
}

/// What the memo knows of `piece`, else what `count` says, which it then keeps.
fn remembered(memo: &mut Memo, place: Place, piece: &[u8], count: impl FnOnce(&mut Memo) -> usize) -> usize {
    if let Some(known) = memo.find(&place, piece) {
        memo.gave(1);
        return known;
    }
    let count = count(memo);
    memo.keep(&place, piece, count);
    count
}

/// The number of tokens of a pre-token that is no common token and not in the memo.
#[cold]
fn merge(vocab: &Vocab, piece: &[u8], memo: &mut Memo) -> usize {
    if vocab.rank_at(piece, 0, piece.len()).is_some() {
        return 1;
    }
    // Nothing stops these merges, and no piece is without tokens.
    merge_segments(vocab, piece, memo, &mut |_| true).unwrap_or(0).max(1)
}

/// The number of tokens of a pre-token that is no token, segment by segment.
fn merge_segments(
    vocab: &Vocab,
    piece: &[u8],
    memo: &mut Memo,
    go_on: &mut impl FnMut(usize) -> bool,
) -> Option<usize> {
    let mut total = 0;
    let mut merged = 0;
    for segment in bpe::segments(vocab, piece) {
        total += if segment.len() < SHORTEST {
            remembered(memo, Memo::place_of_segment(segment), segment, |_| {
                bpe::count(vocab, segment, &mut |_| true).unwrap_or(0)
            })
        } else {
            bpe::count(vocab, segment, &mut |so_far| go_on(total + so_far))?
        };
        merged += segment.len();
        if merged >= bpe::WINDOW {
            merged = 0;
            if !go_on(total) {
                return None;
            }
        }
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count::vocab::{CL100K, O200K, P50K, R50K};
    use proptest::prelude::*;

    /// Never stops.
    struct Unwatched;

    impl Progress for Unwatched {
        fn reached(&mut self, _: usize) -> bool {
            true
        }
    }

    impl Watch for Unwatched {
        fn allows(&mut self, _: usize, _: usize) -> bool {
            true
        }

        fn allows_more(&mut self, _: usize) -> bool {
            true
        }
    }

    /// One pre-token after the other, by the scanner.
    fn by_scanner(vocab: &Vocab, pattern: Pattern, text: &[u8]) -> usize {
        let mut start = 0;
        let mut total = 0;
        while start < text.len() {
            let end = pattern.end(text, start, &mut Unwatched);
            let is_token = vocab.rank_at(text, start, end).is_some();
            total +=
                if is_token { 1 } else { bpe::count(vocab, &text[start..end], &mut |_| true).unwrap_or(0) };
            start = end;
        }
        total
    }

    fn check(text: &str) {
        let text = text.as_bytes();
        for (vocab, pattern) in [
            (&O200K, Pattern::Gpt4o),
            (&CL100K, Pattern::Gpt4),
            (&P50K, Pattern::Gpt2),
            (&R50K, Pattern::Gpt2),
        ] {
            let expected = by_scanner(vocab, pattern, text);
            for engine in Engine::all() {
                let found = count(vocab, pattern, engine, text, &mut Unwatched);
                assert_eq!(found, Some(expected), "{engine:?}, {pattern:?}, {:?}", std::str::from_utf8(text));
            }
        }
    }

    /// Pieces at which the patterns branch, put together at random, so that each meets every place in a block.
    const PIECES: &[&str] = &[
        "a",
        "B",
        "the ",
        " Camel",
        "ABC",
        "Ab",
        "1",
        "12345",
        " ",
        "  ",
        "\t",
        "\n",
        "\r\n",
        "\n \n",
        "'s",
        "'",
        "'LL",
        "'ſ",
        "don't",
        "/",
        "//",
        "!\n/",
        "!",
        " (",
        ");\n\n",
        "é",
        "É",
        "中",
        "。",
        "\u{301}",
        "\u{a0}",
        "½",
        "😀",
        "\u{200d}",
        "ǅ",
        "ʰ",
        "   \n  ",
        "                    ",
        "------------------------------",
    ];

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn every_engine_counts_like_the_scanner(pieces in prop::collection::vec(prop::sample::select(PIECES), 0..120)) {
            check(&pieces.concat());
        }
    }

    #[test]
    fn every_piece_at_every_place_in_a_block() {
        for piece in PIECES {
            for other in PIECES {
                for before in (0..70).step_by(3) {
                    check(&format!("{}{piece}{other}", "x".repeat(before)));
                }
            }
        }
        for piece in PIECES {
            check(&piece.repeat(700));
        }
    }
}
