//! Pre-token starts in blocks of 64 bytes, by bit-parallel arithmetic on class masks.
//!
//! The cuts equal those of the scanner in [`crate::count::pretokenize`]. A block begins at the start of a pre-token, so
//! the text before it does not matter. The text after it may, so only starts that no continuation can change are
//! trusted, and the next block begins at the last of them. Unusual characters (see [`widen`]) end the block early. If
//! not even one pre-token is certain, the caller takes one from the scanner and continues after it.
//!
//! All bytes of a character have its bits, so "the previous character has class C" is `C << 1`. Adding the starts of
//! runs to a mask carries to the ends of those runs.
//!
//! How the patterns become algebra:
//!
//! - The last blank of a run starts a pre-token, whatever precedes it. So letters directly after a blank (in GPT-2: a
//!   space) go with it, and so do symbols after a space.
//! - A symbol joins the letters after it if it starts a pre-token and is alone (not in GPT-2).
//! - Newlines (in GPT-4o slashes too) directly after symbols belong to them: they are `taken`.
//! - In other white space a cut is at the start of the run, after its last newline, and before its last character
//!   unless that is a newline. GPT-2 does not distinguish newlines from white space.

use super::classify::{Leads, Masks};
use super::contraction;
use super::unicode::{
    BLANK, CASELESS, LOWER, MARK, NEWLINE, NUMBER, SYMBOL, UPPER, is_east_asian, is_han, is_other_at,
    wide_run,
};

/// [`super::Pattern`] as a constant.
pub(crate) const GPT2: u8 = 2;
pub(crate) const GPT4: u8 = 4;
pub(crate) const GPT4O: u8 = 5;
pub(crate) const LLAMA3: u8 = 6;
pub(crate) const QWEN2: u8 = 7;
pub(crate) const QWEN35: u8 = 8;
pub(crate) const TEKKEN: u8 = 9;
pub(crate) const DEEPSEEK: u8 = 10;
pub(crate) const KIMI: u8 = 11;

/// Whether words are capitals, then small letters.
const fn is_cased(p: u8) -> bool {
    matches!(p, GPT4O | TEKKEN | KIMI)
}

/// Whether slashes after symbols belong to them.
const fn takes_slashes(p: u8) -> bool {
    matches!(p, GPT4O | TEKKEN)
}

/// Whether a contraction belongs to the word before it.
const fn ends_in_contraction(p: u8) -> bool {
    matches!(p, GPT4O | KIMI)
}

/// Whether runs of East Asian characters are pre-tokens of their own.
const fn cuts_east_asian(p: u8) -> bool {
    matches!(p, DEEPSEEK | KIMI)
}

/// Whether marks are letters, at least after letters.
const fn joins_marks(p: u8) -> bool {
    matches!(p, GPT4O | TEKKEN | QWEN35 | DEEPSEEK | KIMI)
}

/// Whether every number is a pre-token.
const fn cuts_digits(p: u8) -> bool {
    matches!(p, QWEN2 | QWEN35 | TEKKEN)
}

/// Whether white space at the end of the text is one pre-token.
const fn keeps_last_blanks(p: u8) -> bool {
    matches!(p, GPT2 | GPT4)
}

/// Starts of pre-tokens in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cuts {
    /// Bit `i`: a pre-token starts at byte `i`. No bits from `trusted` on.
    pub(crate) starts: u64,
    /// Length of the prefix of the block that whole pre-tokens cover; zero if none is certain.
    pub(crate) trusted: usize,
}

/// The lowest `n` bits.
#[inline(always)]
pub(crate) fn lowest(n: usize) -> u64 {
    if n >= 64 { u64::MAX } else { (1 << n) - 1 }
}

/// Fills in the classes of non-ASCII characters. Returns the usable bytes of the block: fewer than `len` at a character
/// that is cut off or that the algebra does not cover.
#[inline(always)]
pub(crate) fn widen<const P: u8>(
    masks: &mut Masks,
    known: Leads,
    text: &[u8],
    at: usize,
    len: usize,
) -> usize {
    // A character that begins in the block but ends after it.
    let tail = masks.lead >> 61 & 0b111;
    let last = if tail == 0 || len < 64 { 0 } else { cut_off(text, at, tail) };
    let mut hard = last;
    let complete = lowest(len) & !last;
    // Most characters of three bytes may be in such a run.
    let caseless_3 = if cuts_east_asian(P) { 0 } else { known.caseless_3 & complete };
    let lower_2 = known.lower_2 & complete;
    masks.caseless |= caseless_3 | caseless_3 << 1 | caseless_3 << 2;
    masks.lower |= lower_2 | lower_2 << 1;
    let mut leads = masks.lead & complete & !(caseless_3 | lower_2);
    // The class is unpredictable, so nothing branches on it: each class has its mask.
    let mut of_class = [0u64; 8];
    let mut east_asian = 0;
    let rest = text.get(at..).unwrap_or_default();
    let mut padded;
    let window = match rest.first_chunk() {
        Some(window) => window,
        None => {
            padded = [0; 64 + 4];
            for (to, from) in padded.iter_mut().zip(rest) {
                *to = *from;
            }
            &padded
        }
    };
    while leads != 0 {
        let i = leads.trailing_zeros() as usize % 64;
        leads &= leads - 1;
        let bytes = [window[i], window[i + 1], window[i + 2], window[i + 3]];
        let (class, run) = wide_run(bytes);
        // The digits, signs and marks of Han are left to the scanner.
        let is_letter = class == CASELESS.trailing_zeros() as usize;
        if P == DEEPSEEK && is_east_asian(&bytes, 0) || P == KIMI && is_letter && is_han(&bytes, 0) {
            east_asian |= run << i;
        } else {
            if P == KIMI && !is_letter && is_han(&bytes, 0) {
                hard |= 1 << i;
            }
            of_class[class] |= run << i;
            if P == DEEPSEEK && class == SYMBOL.trailing_zeros() as usize && is_other_at(&bytes, 0) {
                hard |= 1 << i;
            }
        }
    }
    if cuts_east_asian(P) {
        // These patterns have no slash of their own: its place has the East Asian characters.
        masks.slash = east_asian;
    }
    let of = |class: u8| of_class[class.trailing_zeros() as usize % 8];
    masks.upper |= of(UPPER);
    masks.lower |= of(LOWER);
    masks.caseless |= of(CASELESS);
    masks.symbol |= of(SYMBOL);
    hard |= of(NUMBER) | of(BLANK) | of(NEWLINE);
    let mark = of(MARK);
    if !joins_marks(P) {
        masks.symbol |= mark;
    } else {
        masks.caseless |= mark;
    }
    if is_cased(P) {
        // Marks are letters after letters, but symbols after symbols.
        hard |= mark & masks.lead & !((masks.upper | masks.lower | masks.caseless) << 1);
    }
    if hard == 0 { len } else { len.min(hard.trailing_zeros() as usize) }
}

/// The lead of a character that begins in the block at `at` and ends after it, if any. `leads` are the leads among the
/// last three bytes.
#[inline(always)]
fn cut_off(text: &[u8], at: usize, leads: u64) -> u64 {
    let place = 63 - (leads.leading_zeros() - 61) as usize;
    let bytes = match text.get(at + place) {
        Some(0..0xe0) | None => 2,
        Some(0xe0..0xf0) => 3,
        Some(_) => 4,
    };
    if place + bytes > 64 { 1 << place } else { 0 }
}

/// The position of the first control that is not white space.
#[inline(always)]
fn first_control(block: &[u8]) -> Option<usize> {
    let is_control = |byte: u8| (byte < 0x20) & !(0x09..=0x0d).contains(&byte) | (byte == 0x7f);
    let any = block.iter().fold(false, |any, &byte| any | is_control(byte));
    if any { block.iter().position(|&byte| is_control(byte)) } else { None }
}

/// The cuts of a block whose first `len` bytes are known. `ends`: the text ends after them.
#[inline(always)]
pub(crate) fn cuts<const P: u8>(masks: &Masks, text: &[u8], at: usize, len: usize, ends: bool) -> Cuts {
    let mut masks = *masks;
    let (mut len, mut ends) = (len, ends);
    if P == DEEPSEEK {
        // Controls are no symbols there; they are left to the scanner.
        let block = text.get(at..at + len).unwrap_or_default();
        if let Some(control) = first_control(block) {
            (len, ends) = (control, false);
        }
    }
    if len < 64 {
        masks.keep(lowest(len));
    }
    let Masks { upper, lower, caseless, number, blank, space, newline, quote, slash, symbol, wide, lead } =
        masks;
    let first = !(wide & !lead);
    let letter = upper | lower | caseless;

    // Newlines, and slashes between them, that belong to symbols.
    let mut taken = 0;
    if P != GPT2 {
        let behind = newline & symbol << 1;
        taken = newline & !newline.wrapping_add(behind);
    }
    if takes_slashes(P) {
        let mut more = slash & taken << 1;
        while more != 0 {
            taken |= more;
            more = (slash | newline) & taken << 1 & !taken;
        }
    }
    let symbol = symbol & !taken;
    let newline = newline & !taken;
    let white = blank | newline;

    // The parts that DeepSeek's first two patterns take end the text for the third.
    let east_asian = if cuts_east_asian(P) { slash & wide } else { 0 };
    let end_of_inner = if P == DEEPSEEK { number | east_asian } else { 0 };
    let leader = if P == GPT2 { space } else { blank };
    let symbol_start = symbol & !(symbol << 1) & !(space << 1);
    let white_start = white & !(white << 1);
    let before_other = if P == GPT2 { white } else { blank } & !(white >> 1) & !(end_of_inner >> 1);
    let mut letter_start = letter & !(letter << 1) & !(leader << 1);
    let mut number_start = number & !(number << 1);
    let mut word_cuts = east_asian & !(east_asian << 1);
    if P == GPT2 {
        number_start &= !(space << 1);
    } else if P == DEEPSEEK {
        // An ASCII symbol joins the ASCII letters after it alone; the word ends at other letters.
        let ascii = letter & !wide;
        let joined = (symbol_start & !wide) << 1 & ascii;
        letter_start &= !joined;
        word_cuts |= ascii.wrapping_add(joined) & !ascii & letter;
    } else {
        // The end of a character that starts a run of symbols; letters there belong to it.
        let inner = symbol & !first;
        let second = symbol_start << 1;
        letter_start &= !(second & !inner | inner.wrapping_add(second & inner) & !inner);
    }
    let mut starts = 1 | symbol_start | number_start | white_start | before_other | letter_start | word_cuts;

    if P != GPT2 {
        // After the last newline of a run of white space.
        let after_newline = blank & newline << 1;
        starts |= after_newline;
        let mut not_last = blank.wrapping_add(after_newline) & !blank & newline;
        while not_last != 0 {
            // Blanks between newlines: no cut at their start.
            let end = not_last & not_last.wrapping_neg();
            let run = after_newline & (end - 1);
            starts &= !(1 << (63 - (run | 1).leading_zeros()));
            not_last ^= end;
        }

        // Numbers are cut into groups of three.
        if cuts_digits(P) {
            starts |= number;
        } else {
            let fourth = number & number << 1 & number << 2 & number << 3;
            let mut next = number_start << 3 & fourth;
            while next != 0 {
                starts |= next;
                next = next << 3 & fourth;
            }
        }
    }

    let mut end = len;
    if is_cased(P) {
        starts |= upper & first & lower << 1;
        // A capital after a caseless letter: the following text decides.
        let undecided = upper & caseless << 1;
        if undecided != 0 {
            end = undecided.trailing_zeros() as usize;
        }
    }

    let mut quotes = match P {
        TEKKEN | DEEPSEEK => 0,
        GPT4O | KIMI => quote & letter << 1,
        _ => quote & starts,
    };
    // End of the last contraction: another cannot follow directly.
    let mut free = 0;
    while quotes != 0 {
        let i = quotes.trailing_zeros() as usize;
        quotes &= quotes - 1;
        if ends_in_contraction(P) && i == free && i != 0 {
            continue;
        }
        if let Some(behind) = contraction(text, at + i, P != GPT2) {
            free = behind - at;
            let bytes = free - i;
            // In GPT-4o the quote continues a word; in most others it starts a pre-token.
            starts &= !(lowest(bytes) << i) | if ends_in_contraction(P) { 0 } else { 1 << i };
            starts |= letter & (1 << i) << bytes;
        }
    }

    // White space at the end of the known bytes may continue, which changes its cuts.
    let ends = ends && end == len;
    if !ends || keeps_last_blanks(P) {
        let run = if end == 0 { 0 } else { (!(white << (64 - end))).leading_zeros() as usize };
        if run != 0 {
            starts &= lowest(end - run + 1);
        }
    } else if len != 0 {
        // The last blank is not followed by another character to go with.
        let alone = white_start | blank & newline << 1;
        starts &= !(before_other & !alone & 1 << (len - 1));
    }
    starts &= lowest(end);
    let trusted = if ends { len } else { 63 - (starts | 1).leading_zeros() as usize };
    Cuts { starts: starts & lowest(trusted), trusted }
}
