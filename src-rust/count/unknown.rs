//! Pre-tokens that are no common tokens and that the memo did not know at a glance: tokens that are rare, and what has to
//! be merged.
//!
//! What is known of them lies far apart in tables of megabytes, and a text that is new asks for thousands. So each step is
//! taken for several before the next: the memory of the first comes while the others are asked for.

use super::batch::Batch;
use super::bpe;
use super::engine::Engine;
use super::memo::{Memo, Place};
use super::vocab::Vocab;
use super::words::{LANES, Word};

/// How many are looked for at a time.
const AHEAD: usize = 16;

/// The number of tokens of the pre-tokens of a batch that have these numbers. `text` is that of the batch.
pub(crate) fn count(
    vocab: &Vocab,
    engine: Engine,
    text: &[u8],
    batch: &Batch,
    numbers: &[u16],
    memo: &mut Memo,
) -> usize {
    let mut total = 0;
    let mut merging = Merging::new(vocab, engine);
    let mut asked: [(&[u8], Place); AHEAD] = [(&[], Place::Nowhere); AHEAD];
    for numbers in numbers.chunks(AHEAD) {
        let asked = &mut asked[..numbers.len()];
        for (&number, asked) in numbers.iter().zip(&mut *asked) {
            let [start, end] = batch.starts[usize::from(number)..].first_chunk().copied().unwrap_or_default();
            let piece = &text[usize::from(start)..usize::from(end)];
            let place = Memo::place(piece);
            match place {
                Place::Short(_, key) => engine.fetch(vocab.slot(vocab.hash(key))),
                _ => _ = memo.line_of(&place).inspect(|line| engine.fetch(*line)),
            }
            *asked = (piece, place);
        }
        for (_, place) in &*asked {
            if let Place::Short(_, key) = *place {
                _ = vocab.key(vocab.candidate(vocab.hash(key))).inspect(|key| engine.fetch(*key));
            }
        }
        for &(piece, place) in &*asked {
            if let Some(known) = memo.find(&place, piece) {
                memo.gave(1);
                total += known;
            } else if vocab.rank_at(piece, 0, piece.len()).is_some() {
                memo.keep(&place, piece, 1);
                total += 1;
            } else {
                total += merging.count(piece, place, memo);
            }
        }
    }
    total + merging.finish(memo)
}

/// Merges what is no token; words wait until there are some.
struct Merging<'a> {
    vocab: &'a Vocab,
    engine: Engine,
    words: [Word; LANES],
    places: [Place; LANES],
    waiting: usize,
}

impl<'a> Merging<'a> {
    fn new(vocab: &'a Vocab, engine: Engine) -> Merging<'a> {
        let (words, places) = ([Word::EMPTY; LANES], [Place::Nowhere; LANES]);
        Merging { vocab, engine, words, places, waiting: 0 }
    }

    /// The tokens of a piece, or of words that waited, or none so far.
    fn count(&mut self, piece: &[u8], place: Place, memo: &mut Memo) -> usize {
        let is_whole =
            || bpe::segments(self.vocab, piece).next().is_some_and(|first| first.len() == piece.len());
        let Some(word) = Word::new(piece).filter(|_| is_whole()) else {
            // Nothing stops these merges, and no piece is without tokens.
            let count = segments(self.vocab, self.engine, piece, memo, &mut |_| true).unwrap_or(0).max(1);
            memo.keep(&place, piece, count);
            return count;
        };
        piece.windows(2).for_each(|pair| self.engine.fetch(self.vocab.pair(pair[0], pair[1])));
        (self.words[self.waiting], self.places[self.waiting]) = (word, place);
        self.waiting += 1;
        if self.waiting < LANES { 0 } else { self.finish(memo) }
    }

    /// The tokens of the words that wait.
    fn finish(&mut self, memo: &mut Memo) -> usize {
        let waiting = std::mem::take(&mut self.waiting);
        let counts = match waiting {
            0 => return 0,
            1 => self.merge::<1>(),
            2..=4 => self.merge::<4>(),
            _ => self.merge::<LANES>(),
        };
        let mut total = 0;
        for ((word, place), count) in self.words.iter().zip(&self.places).zip(counts).take(waiting) {
            let count = exact(self.vocab, self.engine, word.text(), count);
            total += count;
            // It may have waited twice.
            if memo.find(place, word.text()).is_none() {
                memo.keep(place, word.text(), count);
            }
        }
        self.words = [Word::EMPTY; LANES];
        total
    }

    /// What the first words become.
    fn merge<const N: usize>(&self) -> [u32; LANES] {
        let mut counts = [0; LANES];
        if let (Some(counts), Some(words)) = (counts.first_chunk_mut(), self.words.first_chunk::<N>()) {
            *counts = self.engine.merge_words(self.vocab, words);
        }
        counts
    }
}

/// The number of tokens of a piece for which [`Engine::merge_words`] says `count`.
fn exact(vocab: &Vocab, engine: Engine, piece: &[u8], count: u32) -> usize {
    if count == 0 { bpe::count(vocab, engine, piece, &mut |_| true).unwrap_or(0) } else { count as usize }
}

/// The number of tokens of a pre-token that is no token, segment by segment.
pub(crate) fn segments(
    vocab: &Vocab,
    engine: Engine,
    piece: &[u8],
    memo: &mut Memo,
    go_on: &mut impl FnMut(usize) -> bool,
) -> Option<usize> {
    let mut total = 0;
    let mut merged = 0;
    for segment in bpe::segments(vocab, piece) {
        total += match Word::new(segment) {
            Some(word) => segment_of(vocab, engine, word, memo),
            None => bpe::count(vocab, engine, segment, &mut |so_far| go_on(total + so_far))?,
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

/// The number of tokens of a short segment.
fn segment_of(vocab: &Vocab, engine: Engine, segment: Word, memo: &mut Memo) -> usize {
    let text = segment.text();
    let place = Memo::place_of_segment(text);
    if let Some(known) = memo.find(&place, text) {
        memo.gave(1);
        return known;
    }
    let [count] = engine.merge_words(vocab, &[segment]);
    let count = exact(vocab, engine, text, count);
    memo.keep(&place, text, count);
    count
}
