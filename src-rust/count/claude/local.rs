//! Local runs: those whose markers follow from the bytes beside them.
//!
//! They are runs of ASCII, and of other characters that are letters or run together with ASCII punctuation. A window of
//! text is cut into them by arithmetic on masks, 64 bytes at a time, and their pieces are looked up by their bytes and
//! the spaces around them, without being marked. Any other character is *remote*: it ends the window.
//!
//! A window ends where a run begins whose markers do not depend on the runs before it, nor theirs on it: no space, which
//! may vanish, and no apostrophe, which may open a word. So the text on both sides can be counted apart.

use std::ops::Range;

use super::Generation;
use super::classes::Class;
use super::memo::{Memo, key_of_local};
use super::runs::{CONTRACTIONS, is_symbol_letter, write_word};
use super::tiles::{BEGIN, END};
use crate::count::memo::cache_lines::{CacheLine, HomeLines};
use crate::count::pretokenize::classify::{Block, Masks};
use crate::count::simd::dispatch::BlockKernel;
use crate::count::tables::hash::{KEY_BYTES, Key};

/// Bytes of a block.
const BLOCK: usize = 64;
/// Bytes of a window.
const WINDOW: usize = 4096;
/// Runs after which a window ends, and room for those of one more block.
const FULL: usize = 512;
const MOST: usize = FULL + BLOCK;

/// The local runs of a stretch of text.
pub(super) struct Window {
    base: usize,
    /// Starts and ends of the runs, relative to `base`. A space that vanishes is in none.
    starts: [u16; MOST],
    ends: [u16; MOST],
    /// Bits of the first bytes of runs of punctuation with a marker before them, and of the last bytes of those with a
    /// marker after them.
    begins: [u64; WINDOW / BLOCK],
    closes: [u64; WINDOW / BLOCK],
    /// The number of runs.
    len: usize,
    /// The text, padded so that keys are read without bounds checks. The padding may hold anything.
    bytes: [u8; WINDOW + KEY_BYTES],
    /// The runs that the memo lacks.
    misses: [u16; MOST],
    missed: usize,
}

impl Default for Window {
    fn default() -> Self {
        Window {
            base: 0,
            starts: [0; _],
            ends: [0; _],
            begins: [0; _],
            closes: [0; _],
            len: 0,
            bytes: [0; _],
            misses: [0; _],
            missed: 0,
        }
    }
}

impl Window {
    /// The ends of a run relative to `base`, and bits of the markers around it, if it is punctuation.
    #[inline(always)]
    fn run(&self, i: usize) -> (usize, usize, u8) {
        let (start, end) = (usize::from(self.starts[i % MOST]), usize::from(self.ends[i % MOST]));
        let bit = |bits: &[u64; WINDOW / BLOCK], at: usize| {
            (bits[at / BLOCK % bits.len()] >> (at % BLOCK)) as u8 & 1
        };
        (start, end, bit(&self.begins, start) << 1 | bit(&self.closes, end.wrapping_sub(1)))
    }

    /// The runs that the memo lacks: their places in the text, and bits of the markers around them.
    pub fn misses(&self) -> impl Iterator<Item = (Range<usize>, u8)> {
        self.misses.iter().take(self.missed).map(|i| {
            let (start, end, around) = self.run(usize::from(*i));
            (self.base + start..self.base + end, around)
        })
    }

    /// The number of runs that the memo has.
    pub fn hits(&self) -> usize {
        self.len - self.missed
    }

    /// The sum of the pieces that the memo knows. Collects the other runs.
    #[inline(always)]
    fn look_up(&mut self, text: &[u8], memo: HomeLines<'_>, find: impl Fn(&CacheLine, Key) -> usize) -> u64 {
        let text = text.get(self.base..).unwrap_or_default();
        let last = self.len.checked_sub(1).map_or(0, |last| usize::from(self.ends[last % MOST]));
        let used = text.len().min(last.min(WINDOW) + KEY_BYTES);
        self.bytes[..used].copy_from_slice(&text[..used]);
        let (mut total, mut missed) = (0, 0);
        for i in 0..self.len.min(MOST) {
            let (start, end, around) = self.run(i);
            let Some(block) = self.bytes[start % WINDOW..].first_chunk() else { continue };
            let found = match key_of_local(block, end - start, around) {
                Some(key) => memo.line(key).map_or(0, |line| find(line, key)),
                None => 0,
            };
            total += found as u64;
            self.misses[missed % MOST] = i as u16;
            missed += usize::from(found == 0);
        }
        self.missed = missed;
        total
    }
}

/// Counts the known local runs of a window that begins at `at`.
pub(super) struct CountWindow<'a> {
    pub window: &'a mut Window,
    pub memo: &'a Memo,
    pub text: &'a str,
    pub at: usize,
    pub generation: Generation,
}

impl BlockKernel for CountWindow<'_> {
    /// The pieces of the known runs, and where the window ended.
    type Outcome = (u64, Cut);

    #[inline(always)]
    fn run(
        self,
        classify: impl Fn(&Block) -> Masks,
        spread: impl Fn(u64, u16, &mut [u16; BLOCK]),
        find: impl Fn(&CacheLine, Key) -> usize,
    ) -> (u64, Cut) {
        let CountWindow { window, memo, text, at, generation } = self;
        let cut = window.cut(text, at, generation, classify, spread);
        (window.look_up(text.as_bytes(), memo.homes(), find), cut)
    }
}

/// Where and why a window ended.
pub(super) struct Cut {
    /// The end of its runs, and of a space after them that vanishes.
    pub end: usize,
    /// A place up to which there is no end of a window after this one: that of a remote character, or the end of what was
    /// looked at if it has no end of a window. Otherwise the next window begins at the end of this one.
    pub remote: Option<usize>,
}

/// The class of the character at a place.
fn class_at(text: &str, at: usize) -> Option<Class> {
    text.get(at..)?.chars().next().map(Class::of)
}

/// Whether an apostrophe before this place opens a word.
fn is_word_at(text: &str, at: usize) -> bool {
    matches!(class_at(text, at), Some(Class::Word | Class::Stray))
}

/// Whether the character at this place has a marker after a space.
fn is_marked_at(text: &str, at: usize) -> bool {
    let is_apostrophe = text.as_bytes().get(at) == Some(&b'\'');
    matches!(class_at(text, at), Some(Class::Word | Class::Punct))
        && !(is_apostrophe && is_word_at(text, at + 1))
}

/// The bits below one.
fn below(bit: u32) -> u64 {
    1u64.checked_shl(bit).map_or(u64::MAX, |bit| bit - 1)
}

impl Window {
    /// Cuts the text from `base` on into local runs.
    #[inline(always)]
    fn cut(
        &mut self,
        text: &str,
        base: usize,
        generation: Generation,
        classify: impl Fn(&Block) -> Masks,
        spread: impl Fn(u64, u16, &mut [u16; BLOCK]),
    ) -> Cut {
        let window = self;
        let bytes = text.as_bytes();
        (window.base, window.len) = (base, 0);
        let (mut started, mut ended) = (0, 0);
        // The last place where the window may end, and the runs before it.
        let (mut cut, mut cut_len) = (0, 0);
        // What is known of the byte before a block: bits of its classes.
        let (mut words_in, mut digits_in, mut spaces_in, mut puncts_in) = (0, 0, 0, 0);
        let (mut kept_in, mut opening_in) = (0, 0);
        let mut blank_in = u64::from(match base.checked_sub(1) {
            // The frame of a message ends in a marker, which stands for a space.
            None => generation.begins_within_boundary(),
            Some(before) => bytes.get(before) == Some(&b' '),
        });
        // Bytes of the next block that belong to a character of this one.
        let (mut words_over, mut puncts_over) = (0, 0);
        for nth in 0..WINDOW / BLOCK {
            let at = base + nth * BLOCK;
            let rest = bytes.get(at..).unwrap_or_default();
            let mut padded = [0; BLOCK];
            let block = rest.first_chunk().unwrap_or_else(|| {
                padded[..rest.len()].copy_from_slice(rest);
                &padded
            });
            let known = rest.len().min(BLOCK) as u32;
            let masks = classify(block);
            let mut words = masks.upper | masks.lower | words_over;
            let mut puncts = masks.symbol | puncts_over;
            (words_over, puncts_over) = (0, 0);
            let mut len = known;
            let mut leads = masks.lead;
            while leads != 0 {
                let lead = leads.trailing_zeros();
                leads &= leads - 1;
                let c = text.get(at + lead as usize..).and_then(|text| text.chars().next()).unwrap_or('\0');
                let bits = u128::from(below(c.len_utf8() as u32)) << lead;
                match Class::of(c) {
                    Class::Word if !is_symbol_letter(c) => {
                        words |= bits as u64;
                        words_over = (bits >> BLOCK) as u64;
                    }
                    Class::Punct => {
                        puncts |= bits as u64;
                        puncts_over = (bits >> BLOCK) as u64;
                    }
                    _ => {
                        len = lead;
                        break;
                    }
                }
            }
            let all = below(len);
            words &= all;
            puncts &= all;
            let digits = masks.number & all;
            let spaces = (masks.blank | masks.newline) & all;
            let blanks = masks.space & all;
            let apostrophes = masks.quote & all;
            let last = at + BLOCK;
            // Lone apostrophes before a word. They are cut together with it.
            let mut opening = apostrophes & !(puncts << 1 | puncts_in) & words >> 1;
            if apostrophes & !(puncts << 1 | puncts_in) & 1 << 63 != 0 && is_word_at(text, last) {
                opening |= 1 << 63;
            }
            // Spaces between two markers, which vanish.
            let marked = words | puncts;
            let mut marked_after = (marked & !opening) >> 1;
            if blanks >> 63 != 0 && is_marked_at(text, last) {
                marked_after |= 1 << 63;
            }
            let gaps = blanks & (marked << 1 | words_in | puncts_in) & marked_after;
            let kept = all & !gaps;
            let changes = |mask: u64, before: u64| mask ^ (mask << 1 | before);
            let bounds = (changes(words, words_in)
                | changes(digits, digits_in)
                | changes(spaces, spaces_in)
                | changes(puncts, puncts_in))
                & !(opening << 1 | opening_in);
            let starts = bounds & kept;
            let ends = bounds & (kept << 1 | kept_in);
            // Markers of punctuation at a space: at exactly one, behind it.
            let is_blank = |at: usize| u64::from(bytes.get(at) == Some(&b' '));
            let one = blanks >> 1 | is_blank(last) << 63;
            let two = blanks >> 2 | is_blank(last) << 62 | is_blank(last + 1) << 63;
            window.begins[nth] = puncts & !opening & (blanks << 1 | blank_in);
            window.closes[nth] = puncts & one & !two;
            let offset = (nth * BLOCK) as u16;
            if let Some(room) = window.starts[started..].first_chunk_mut() {
                spread(starts, offset, room);
            }
            if let Some(room) = window.ends[ended..].first_chunk_mut() {
                spread(ends, offset, room);
            }
            let may_end = starts & !(spaces | apostrophes);
            if may_end != 0 {
                let bit = may_end.ilog2();
                cut = nth * BLOCK + bit as usize;
                cut_len = started + (starts & below(bit)).count_ones() as usize;
            }
            started += starts.count_ones() as usize;
            ended += ends.count_ones() as usize;
            if len < known {
                window.len = cut_len;
                return Cut { end: base + cut, remote: Some(at + len as usize) };
            }
            if at + known as usize == bytes.len() {
                if ended < started {
                    window.ends[ended] = (bytes.len() - base) as u16;
                }
                window.len = started;
                return Cut { end: bytes.len(), remote: None };
            }
            if started >= FULL {
                break;
            }
            let last_bit = |mask: u64| mask >> 63;
            (words_in, digits_in) = (last_bit(words), last_bit(digits));
            (spaces_in, puncts_in) = (last_bit(spaces), last_bit(puncts));
            (kept_in, opening_in, blank_in) = (last_bit(kept), last_bit(opening), last_bit(blanks));
        }
        window.len = cut_len;
        Cut { end: base + cut, remote: (cut == 0).then_some(base + BLOCK) }
    }
}

/// The pieces of a local run, by covering it. `long` gives those of a marked run, `cover` or what is known of it.
pub(super) fn pieces_of_local(
    run: &str,
    around: u8,
    generation: Generation,
    marked: &mut Vec<u8>,
    mut cover: impl FnMut(&[u8]) -> u64,
) -> u64 {
    let mut chars = run.chars();
    let Some(first) = chars.next() else { return 0 };
    marked.clear();
    let mut count = 0;
    let word = chars.as_str();
    match Class::of(first) {
        Class::AsciiDigit => return (run.len() as u64).div_ceil(3),
        Class::Word => {
            write_word(run, true, false, generation.min_capitals(), marked);
            marked.push(END);
        }
        Class::Punct if first == '\'' && is_word_at(word, 0) => {
            if CONTRACTIONS.contains(&word) {
                marked.extend_from_slice(run.as_bytes());
            } else {
                count = cover(b"'");
                write_word(word, true, false, generation.min_capitals(), marked);
            }
            marked.push(END);
        }
        _ => {
            if around & 2 != 0 {
                marked.push(BEGIN);
            }
            marked.extend_from_slice(run.as_bytes());
            if around & 1 != 0 {
                marked.push(END);
            }
        }
    }
    count += cover(marked);
    marked.clear();
    count
}
