//! The counting loop: cuts a batch of pre-tokens, looks them up, merges the misses.

use super::batch::{Batch, LONGEST};
use super::lookup::{MissMask, Misses, Window};
use super::miss::{self, Waiting};
use crate::count::memo::thread::MemoGuard;
use crate::count::pretokenize::boundaries::{
    DEEPSEEK, GPT2, GPT4, GPT4O, KIMI, LLAMA3, QWEN2, QWEN35, TEKKEN,
};
use crate::count::pretokenize::{Pattern, Progress};
use crate::count::simd::dispatch::Engine;
use crate::count::tables::vocab::{VOCABS, Vocab};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

/// Decides whether a count continues.
pub(crate) trait Watch: Progress {
    /// Whether the count may continue after `position`, with `count` tokens so far.
    fn allows(&mut self, position: usize, count: usize) -> bool;
    /// The same inside a long pre-token, after about [`super::merge::WINDOW`] further bytes of it are merged.
    fn allows_more(&mut self, count: usize) -> bool;
}

/// Cuts a text into pre-tokens.
pub(crate) trait Cutter: Copy {
    /// Fills a batch by arithmetic on masks, as far as its cuts are certain.
    fn cut(self, engine: Engine, batch: &mut Batch, text: &[u8]);
    /// The end of the pre-token that starts at `start`, which is inside the text.
    fn end(self, text: &[u8], start: usize, progress: &mut impl Progress) -> usize;
}

impl Cutter for Pattern {
    #[inline]
    fn cut(self, engine: Engine, batch: &mut Batch, text: &[u8]) {
        match self {
            Pattern::Gpt2 => engine.cut::<GPT2>(batch, text),
            Pattern::Gpt4 => engine.cut::<GPT4>(batch, text),
            Pattern::Gpt4o => engine.cut::<GPT4O>(batch, text),
            Pattern::Llama3 => engine.cut::<LLAMA3>(batch, text),
            Pattern::Qwen2 => engine.cut::<QWEN2>(batch, text),
            Pattern::Qwen35 => engine.cut::<QWEN35>(batch, text),
            Pattern::Tekken => engine.cut::<TEKKEN>(batch, text),
            Pattern::Deepseek => engine.cut::<DEEPSEEK>(batch, text),
            Pattern::Kimi => engine.cut::<KIMI>(batch, text),
        }
    }

    #[inline]
    fn end(self, text: &[u8], start: usize, progress: &mut impl Progress) -> usize {
        Pattern::end(self, text, start, progress)
    }
}

/// The number of tokens of `text`; `None` if `watch` stops the count.
pub(crate) fn count(
    vocab: &Vocab,
    cutter: impl Cutter,
    engine: Engine,
    text: &[u8],
    watch: &mut impl Watch,
) -> Option<usize> {
    // Kept per thread: allocating one for each text takes a tenth of the time of a short text.
    let mut scratch = SCRATCH.try_with(Cell::take).ok().flatten().unwrap_or_default();
    scratch.note(vocab, text.len());
    let total = count_at(&mut scratch, vocab, cutter, engine, text, watch);
    // Fails only while the thread ends.
    let _ = SCRATCH.try_with(|kept| kept.set(Some(scratch)));
    total
}

thread_local! {
    /// The thread's scratch space. Empty during a count, so that a watch may count another text.
    static SCRATCH: Cell<Option<Box<Scratch>>> = const { Cell::new(None) };
}

/// Scratch space of a count. Its content need not be cleared between texts.
struct Scratch {
    batch: Batch,
    rare: MissMask,
    misses: Misses,
    waiting: Waiting,
    window: Window,
    /// Bytes counted with each vocabulary, up to [`MUCH`].
    counted: [usize; VOCABS],
}

/// Bytes after which a vocabulary's tables are prefetched. A count of this size reads most of their cache lines, and
/// one sequential pass is faster than misses one by one. For less text it is slower.
const MUCH: usize = 128 << 10;

/// Whether the tables of a vocabulary were prefetched in this process. The last-level cache is shared by all cores.
static FETCHED: [AtomicBool; VOCABS] = [const { AtomicBool::new(false) }; VOCABS];

impl Scratch {
    /// Adds to the bytes counted; prefetches the tables at [`MUCH`].
    fn note(&mut self, vocab: &Vocab, bytes: usize) {
        let Some(counted) = self.counted.get_mut(vocab.number).filter(|counted| **counted < MUCH) else {
            return;
        };
        *counted = counted.saturating_add(bytes).min(MUCH);
        if *counted == MUCH {
            let is_first =
                FETCHED.get(vocab.number).is_some_and(|fetched| !fetched.swap(true, Ordering::Relaxed));
            if is_first {
                vocab.tables().iter().for_each(|table| read_all(table));
            }
        }
    }
}

/// Reads every cache line once to load it. Prefetch instructions do not help: the processor drops those that exceed its
/// queue.
fn read_all(lines: &[[u8; 64]]) {
    std::hint::black_box(lines.iter().fold(0, |all, line| all ^ line[0]));
}

impl Default for Scratch {
    fn default() -> Self {
        Scratch {
            batch: Batch::new(),
            rare: MissMask::new(),
            misses: Misses::new(),
            waiting: Waiting::new(),
            window: [0; _],
            counted: [0; _],
        }
    }
}

fn count_at(
    scratch: &mut Scratch,
    vocab: &Vocab,
    cutter: impl Cutter,
    engine: Engine,
    text: &[u8],
    watch: &mut impl Watch,
) -> Option<usize> {
    scratch.batch.restart(0);
    scratch.waiting.clear();
    let mut memo_guard = MemoGuard::new(vocab.number);
    let mut total = 0;
    while scratch.batch.at < text.len() {
        let batch = &mut scratch.batch;
        let mut long = None;
        loop {
            cutter.cut(engine, batch, text);
            if batch.is_full() || batch.at == text.len() {
                break;
            }
            let end = cutter.end(text, batch.at, watch);
            if end - batch.at > LONGEST {
                long = Some(end);
                break;
            }
            batch.push(end);
        }
        let at = batch.at;
        total += count_batch(vocab, engine, text, scratch, &mut memo_guard);
        if !watch.allows(at, total) {
            return None;
        }
        let mut next = at;
        if let Some(end) = long {
            let piece = &text[at..end];
            let mut check = |so_far| watch.allows_more(total + so_far);
            total += miss::segments(vocab, engine, piece, memo_guard.memo(), &mut check)?;
            next = end;
            if !watch.allows(end, total) {
                return None;
            }
        }
        scratch.batch.restart(next);
    }
    let late = miss::finish((vocab, engine), &mut scratch.waiting, &mut memo_guard);
    (late == 0 || watch.allows(text.len(), total + late)).then_some(total + late)
}

/// The number of tokens of the batch.
fn count_batch(
    vocab: &Vocab,
    engine: Engine,
    text: &[u8],
    scratch: &mut Scratch,
    memo_guard: &mut MemoGuard,
) -> usize {
    let Scratch { batch, rare, misses, waiting, window, .. } = scratch;
    batch.close();
    let behind = &text[batch.base..];
    let text = &behind[..batch.at - batch.base];
    let window = match behind.first_chunk() {
        Some(whole) => whole,
        None => {
            window[..text.len()].copy_from_slice(text);
            &*window
        }
    };
    count_window(vocab, engine, text, window, batch, (rare, misses, waiting), memo_guard)
}

/// The same, with the text of the batch at the start of `window`.
#[inline]
fn count_window(
    vocab: &Vocab,
    engine: Engine,
    text: &[u8],
    window: &Window,
    batch: &Batch,
    (rare, misses, waiting): (&mut MissMask, &mut Misses, &mut Waiting),
    memo_guard: &mut MemoGuard,
) -> usize {
    engine.look_up(vocab, batch, window, rare);
    let asked = rare.count();
    if asked == 0 {
        return batch.len;
    }
    let memo = memo_guard.memo();
    let count = batch.len - asked + engine.recall(memo, batch, window, rare, misses);
    memo.gave(asked - misses.numbers().len());
    if misses.numbers().is_empty() {
        return count;
    }
    count + miss::count((vocab, engine), text, batch, misses.numbers(), waiting, memo)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count::bpe::merge;
    use crate::count::pretokenize::Unwatched;
    use crate::count::tables::vocab::{CL100K, O200K, P50K, R50K};
    use proptest::prelude::*;

    impl Watch for Unwatched {
        fn allows(&mut self, _: usize, _: usize) -> bool {
            true
        }

        fn allows_more(&mut self, _: usize) -> bool {
            true
        }
    }

    /// Counts pre-token by pre-token with the scanner.
    fn by_scanner(vocab: &Vocab, pattern: Pattern, text: &[u8]) -> usize {
        let mut start = 0;
        let mut total = 0;
        while start < text.len() {
            let end = pattern.end(text, start, &mut Unwatched);
            let is_token = vocab.rank_at(text, start, end).is_some();
            total += if is_token {
                1
            } else {
                merge::count(vocab, Engine::Portable, &text[start..end], &mut |_| true).unwrap_or(0)
            };
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
            (&CL100K, Pattern::Llama3),
            (&CL100K, Pattern::Qwen2),
            (&O200K, Pattern::Qwen35),
            (&O200K, Pattern::Tekken),
            (&CL100K, Pattern::Deepseek),
            (&O200K, Pattern::Kimi),
        ] {
            let expected = by_scanner(vocab, pattern, text);
            for engine in Engine::all() {
                let found = count(vocab, pattern, engine, text, &mut Unwatched);
                assert_eq!(found, Some(expected), "{engine:?}, {pattern:?}, {:?}", std::str::from_utf8(text));
            }
        }
    }

    /// Pieces at which the patterns branch. Random concatenations put each at every position of a block.
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
        "\u{1}",
        "\u{7f}",
        "\u{feff}",
        "・",
        "龥",
        "龦",
        "々",
        "〇",
        "⺀",
        "\u{20000}",
        "\u{16ff0}",
        "ガ",
        "한",
        "ï",
        "(na",
        "ﬀ",
    ];

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn every_engine_counts_like_the_scanner(pieces in prop::collection::vec(prop::sample::select(PIECES), 0..120)) {
            check(&pieces.concat());
        }
    }

    /// Counts another text in every callback.
    struct Counting(usize);

    impl Progress for Counting {
        fn reached(&mut self, _: usize) -> bool {
            true
        }
    }

    impl Watch for Counting {
        fn allows(&mut self, _: usize, _: usize) -> bool {
            let engine = Engine::fastest();
            self.0 += count(&CL100K, Pattern::Gpt4, engine, b"other words, and a few more", &mut Unwatched)
                .unwrap();
            true
        }

        fn allows_more(&mut self, count: usize) -> bool {
            self.allows(0, count)
        }
    }

    #[test]
    fn a_watch_may_count_too() {
        let text = "Some words of a text that takes several batches. ".repeat(500);
        let mut watch = Counting(0);
        let plain = count(&O200K, Pattern::Gpt4o, Engine::fastest(), text.as_bytes(), &mut Unwatched);
        let watched = count(&O200K, Pattern::Gpt4o, Engine::fastest(), text.as_bytes(), &mut watch);
        assert_eq!(watched, plain);
        assert!(watch.0 > 0 && watch.0.is_multiple_of(7), "{}", watch.0);
    }

    /// Stops at a limit and records the last position.
    struct Limited(usize, usize);

    impl Progress for Limited {
        fn reached(&mut self, _: usize) -> bool {
            true
        }
    }

    impl Watch for Limited {
        fn allows(&mut self, position: usize, count: usize) -> bool {
            self.1 = position;
            count <= self.0
        }

        fn allows_more(&mut self, count: usize) -> bool {
            count <= self.0
        }
    }

    /// Words that wait for their merge are not in the count yet, but the delay must be bounded.
    #[test]
    fn words_that_come_again_and_again_reach_a_limit_soon() {
        std::thread::spawn(|| {
            for word in ["qzxjkvw ", "Zqxwvkjqzx\n", "qzx jkv wqq zxj kvq wzj xqk vjz qqx\n"] {
                let text = word.repeat(20_000);
                let mut watch = Limited(40, 0);
                let counted = count(&O200K, Pattern::Gpt4o, Engine::fastest(), text.as_bytes(), &mut watch);
                assert_eq!(counted, None);
                assert!(watch.1 < 8 * 4096, "{word:?} {}", watch.1);
            }
        })
        .join()
        .unwrap();
    }

    #[test]
    fn tables_are_read_once_enough_is_counted() {
        let mut scratch = Scratch::default();
        let mut noted = |bytes| {
            scratch.note(&P50K, bytes);
            scratch.counted[P50K.number]
        };
        assert_eq!([noted(10), noted(100), noted(MUCH)], [10, 110, MUCH]);
    }

    #[test]
    fn what_was_counted_before_does_not_matter() {
        let texts = ["x".repeat(5000), "word ".repeat(300), "é".repeat(40), String::from("a"), String::new()];
        for before in &texts {
            for text in &texts {
                for engine in Engine::all() {
                    count(&O200K, Pattern::Gpt4o, engine, before.as_bytes(), &mut Unwatched);
                    let found = count(&O200K, Pattern::Gpt4o, engine, text.as_bytes(), &mut Unwatched);
                    assert_eq!(found, Some(by_scanner(&O200K, Pattern::Gpt4o, text.as_bytes())));
                }
            }
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
