//! What stands in JSON bytes, value by value: the parser that fills a tape.

use super::MAX_PARSED_DEPTH;
use super::tape::{Entry, Escapes};
use crate::node::{Kind, quoting_of};

/// Longest number that is read here.
pub(super) const MAX_DIGITS: usize = 64;

/// Bytes between two looks at whether to go on.
pub(super) const LOOK_EVERY: usize = 1 << 20;

/// Reads one document. It knows plain JSON alone, and stops at anything else.
pub(super) struct Parser<'a, 'g> {
    bytes: &'a [u8],
    at: usize,
    pub entries: Vec<Entry>,
    pub escapes: Vec<Escapes>,
    next_look: usize,
    go_on: &'g mut dyn FnMut() -> bool,
    /// Whether `go_on` ended it.
    pub is_stopped: bool,
}

impl<'a, 'g> Parser<'a, 'g> {
    /// Before the first of at most 2^32 bytes.
    pub fn new(bytes: &'a [u8], go_on: &'g mut dyn FnMut() -> bool) -> Self {
        let entries = Vec::with_capacity(bytes.len() / 64 + 8);
        let (escapes, next_look) = (Vec::new(), LOOK_EVERY);
        Parser { bytes, at: 0, entries, escapes, next_look, go_on, is_stopped: false }
    }
}

impl Parser<'_, '_> {
    /// Fills the arrays; `None` where it stopped.
    pub fn document(&mut self) -> Option<()> {
        self.blanks();
        self.value(0)?;
        self.blanks();
        (self.at == self.bytes.len()).then_some(())
    }

    /// The next byte; 0, which begins nothing, behind the last.
    fn byte(&self) -> u8 {
        self.bytes.get(self.at).copied().unwrap_or(0)
    }

    fn blanks(&mut self) {
        while matches!(self.byte(), b' ' | b'\n' | b'\r' | b'\t') {
            self.at += 1;
        }
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.byte() == byte).then(|| self.at += 1)
    }

    fn push(&mut self, kind: Kind, start: usize) -> Option<usize> {
        let place = self.entries.len();
        // The length of the document fits, and so does its number of values.
        let (start, end) = (start as u32, self.at as u32);
        self.entries.push(Entry { start, end, link: 0, kind, has_escapes: false });
        Some(place)
    }

    fn value(&mut self, depth: usize) -> Option<()> {
        if self.at >= self.next_look {
            self.next_look = self.at + LOOK_EVERY;
            if !(self.go_on)() {
                self.is_stopped = true;
                return None;
            }
        }
        let start = self.at;
        match self.byte() {
            b'"' => self.string(),
            b'{' => self.object(depth),
            b'[' => self.array(depth),
            b'n' => self.word(b"null", Kind::Null),
            b't' => self.word(b"true", Kind::Bool),
            b'f' => self.word(b"false", Kind::Bool),
            _ => {
                self.number()?;
                self.push(Kind::Number, start).map(|_| ())
            }
        }
    }

    fn word(&mut self, word: &[u8], kind: Kind) -> Option<()> {
        let start = self.at;
        if !self.bytes.get(start..)?.starts_with(word) {
            return None;
        }
        self.at += word.len();
        self.push(kind, start).map(|_| ())
    }

    fn digits(&mut self) -> Option<()> {
        let start = self.at;
        while self.byte().is_ascii_digit() {
            self.at += 1;
        }
        (self.at > start).then_some(())
    }

    fn number(&mut self) -> Option<()> {
        let start = self.at;
        if self.byte() == b'-' {
            self.at += 1;
        }
        if self.byte() == b'0' {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.byte() == b'.' {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.byte(), b'e' | b'E') {
            self.at += 1;
            if matches!(self.byte(), b'+' | b'-') {
                self.at += 1;
            }
            self.digits()?;
        }
        (self.at - start <= MAX_DIGITS).then_some(())
    }

    /// Begins a container: its first entry, and whether it has anything in it.
    fn open(&mut self, kind: Kind, close: u8, depth: usize) -> Option<(usize, bool)> {
        if depth >= MAX_PARSED_DEPTH {
            return None;
        }
        let place = self.push(kind, self.at)?;
        self.at += 1;
        self.blanks();
        Some((place, self.byte() != close))
    }

    /// Ends a container.
    fn close(&mut self, place: usize, close: u8) -> Option<()> {
        self.expect(close)?;
        let (end, link) = (self.at as u32, self.entries.len() as u32);
        let entry = self.entries.get_mut(place)?;
        (entry.end, entry.link) = (end, link);
        Some(())
    }

    fn array(&mut self, depth: usize) -> Option<()> {
        let (place, mut more) = self.open(Kind::Array, b']', depth)?;
        while more {
            self.value(depth + 1)?;
            self.blanks();
            more = self.byte() == b',';
            if more {
                self.at += 1;
                self.blanks();
            }
        }
        self.close(place, b']')
    }

    fn object(&mut self, depth: usize) -> Option<()> {
        let (place, mut more) = self.open(Kind::Object, b'}', depth)?;
        while more {
            if self.byte() != b'"' {
                return None;
            }
            self.string()?;
            self.blanks();
            self.expect(b':')?;
            self.blanks();
            self.value(depth + 1)?;
            self.blanks();
            more = self.byte() == b',';
            if more {
                self.at += 1;
                self.blanks();
            }
        }
        self.close(place, b'}')
    }

    fn string(&mut self) -> Option<()> {
        let start = self.at + 1;
        let found = string_end(self.bytes, start)?;
        self.at = found.end;
        let place = self.push(Kind::String, start)?;
        self.at += 1;
        let (simple, mut escapes) = (found.letters + found.solidi, found.units);
        if simple > 0 || found.has_units {
            escapes.bytes += simple;
            escapes.points += simple;
            escapes.utf16 += simple;
            escapes.quoting += found.letters;
            let entry = self.entries.get_mut(place)?;
            (entry.link, entry.has_escapes) = (self.escapes.len() as u32, true);
            self.escapes.push(escapes);
        }
        Some(())
    }
}

/// Where a string ends and what escapes it has.
#[derive(Default)]
struct StringEnd {
    /// The place of its last quote.
    end: usize,
    /// Escapes of a letter that stands escaped whenever it is written.
    letters: u32,
    /// Escaped solidi.
    solidi: u32,
    /// What `\\uXXXX` stand for.
    units: Escapes,
    has_units: bool,
}

/// Looks for the end of the string that begins at `at`, behind its quote.
#[inline]
fn string_end(bytes: &[u8], at: usize) -> Option<StringEnd> {
    let at = plain_until(bytes, at);
    match bytes.get(at)? {
        b'"' => Some(StringEnd { end: at, ..StringEnd::default() }),
        b'\\' => escaped_string_end(bytes, at),
        _ => None,
    }
}

/// The same from the first backslash on. Escapes come in swarms, so blocks of them are read by arithmetic on masks:
/// to stop at each would cost a mispredicted branch an escape.
fn escaped_string_end(bytes: &[u8], mut at: usize) -> Option<StringEnd> {
    let mut found = StringEnd::default();
    while let Some((block, _)) = bytes.get(at..)?.split_first_chunk::<64>() {
        let Masks { quotes, backslashes, controls } = Masks::of(block);
        let (escaped, escapes_next) = escaped(backslashes);
        let ends = quotes & !escaped;
        // The bits before the end; all where it is not here.
        let before = if ends == 0 { !0 } else { (ends & ends.wrapping_neg()) - 1 };
        if controls & before != 0 {
            return None;
        }
        let mut classes = Classes::default();
        let mut rest = escaped & before;
        while rest != 0 {
            classes.add(block[rest.trailing_zeros() as usize % 64]);
            rest &= rest - 1;
        }
        let escapes_next = escapes_next && ends == 0;
        if escapes_next {
            classes.add(*bytes.get(at + 64)?);
        }
        if classes.has_units() {
            // Rare enough to be read one after the other, from here to the end.
            break;
        }
        found.letters += classes.letters();
        found.solidi += classes.solidi();
        if classes.has_others() {
            return None;
        }
        if ends != 0 {
            found.end = at + ends.trailing_zeros() as usize;
            return Some(found);
        }
        at += 64 + usize::from(escapes_next);
        if quotes | backslashes == 0 {
            at = plain_until(bytes, at);
        }
    }
    rest_of_string(bytes, at, found)
}

/// The same, escape by escape.
fn rest_of_string(bytes: &[u8], mut at: usize, mut found: StringEnd) -> Option<StringEnd> {
    loop {
        at = plain_until(bytes, at);
        match (bytes.get(at)?, bytes.get(at + 1)) {
            (b'"', _) => {
                found.end = at;
                return Some(found);
            }
            (b'\\', Some(b'u')) => {
                let escape = Escape::read(bytes, at)?;
                found.units.add(&escape);
                found.has_units = true;
                at += escape.written;
            }
            (b'\\', Some(letter)) => {
                let mut class = Classes::default();
                class.add(*letter);
                if class.has_others() {
                    return None;
                }
                found.letters += class.letters();
                found.solidi += class.solidi();
                at += 2;
            }
            _ => return None,
        }
    }
}

/// How many escapes of each class: letters, solidi, units and others, a byte each.
#[derive(Clone, Copy, Default)]
struct Classes(u32);

impl Classes {
    const OF: [u32; 256] = {
        let mut of = [1 << 24; 256];
        let letters = b"\"\\bfnrt";
        let mut i = 0;
        while i < letters.len() {
            of[letters[i] as usize] = 1;
            i += 1;
        }
        of[b'/' as usize] = 1 << 8;
        of[b'u' as usize] = 1 << 16;
        of
    };

    fn add(&mut self, letter: u8) {
        self.0 += Self::OF[usize::from(letter)];
    }

    fn letters(self) -> u32 {
        self.0 & 0xff
    }

    fn solidi(self) -> u32 {
        self.0 >> 8 & 0xff
    }

    fn has_units(self) -> bool {
        self.0 >> 16 & 0xff != 0
    }

    fn has_others(self) -> bool {
        self.0 >> 24 != 0
    }
}

/// Which of 64 bytes are quotes, backslashes and control signs; the first is the lowest bit.
struct Masks {
    quotes: u64,
    backslashes: u64,
    controls: u64,
}

impl Masks {
    #[inline]
    fn of(block: &[u8; 64]) -> Self {
        const ONES: u64 = u64::from_le_bytes([1; 8]);
        const HIGH: u64 = ONES << 7;
        let (mut quotes, mut backslashes, mut controls) = (0, 0, 0);
        for (i, word) in block.as_chunks::<8>().0.iter().enumerate() {
            let word = u64::from_le_bytes(*word);
            // The high bit of each byte that is below `n`: no byte borrows from another.
            let below = |word: u64, n: u64| !(((word & !HIGH) + ONES * (0x80 - n)) | word) & HIGH;
            // The high bits of eight bytes as eight bits.
            let bits = |high: u64| ((high >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) << (8 * i);
            quotes |= bits(below(word ^ (ONES * 0x22), 1));
            backslashes |= bits(below(word ^ (ONES * 0x5c), 1));
            controls |= bits(below(word, 0x20));
        }
        Masks { quotes, backslashes, controls }
    }
}

/// Which of 64 bytes stand behind a backslash that escapes them, and whether the byte behind them does. The first is
/// not escaped. In a run of backslashes every other one escapes: a run that begins at an odd bit and one that begins
/// at an even bit are told apart by where the carry of an addition comes out.
fn escaped(backslashes: u64) -> (u64, bool) {
    const EVEN: u64 = 0x5555_5555_5555_5555;
    let behind = backslashes << 1;
    let odd_starts = backslashes & !EVEN & !behind;
    let even_sequences = odd_starts.wrapping_add(backslashes);
    let escaped = (EVEN ^ (even_sequences << 1)) & behind;
    // The last one escapes the byte behind the block, unless it is escaped itself.
    (escaped, backslashes >> 63 == 1 && escaped >> 63 == 0)
}

/// Bytes that are looked at together: the compiler turns the steps over them into SIMD.
const BLOCK: usize = 32;

/// Words without a special byte after which whole blocks are looked at: escapes come in swarms.
const PLAIN_WORDS: usize = 3;

/// The first byte from `at` on that is a quote, a backslash or a control sign; the end where there is none.
#[inline]
fn plain_until(bytes: &[u8], mut at: usize) -> usize {
    let special = |byte: u8| (byte < 0x20) | (byte == b'"') | (byte == b'\\');
    let mut rest = bytes.get(at..).unwrap_or_default();
    let mut words = 0;
    while let Some((word, behind)) = rest.split_first_chunk::<8>() {
        match first_special(*word) {
            8 => {}
            found => return at + found,
        }
        at += 8;
        rest = behind;
        words += 1;
        if words == PLAIN_WORDS {
            while let Some((block, behind)) = rest.split_first_chunk::<BLOCK>() {
                if block.iter().fold(false, |any, &byte| any | special(byte)) {
                    break;
                }
                at += BLOCK;
                rest = behind;
            }
        }
    }
    at + rest.iter().position(|&byte| special(byte)).unwrap_or(rest.len())
}

/// The place of the first such byte among eight; 8 where there is none.
#[inline]
fn first_special(word: [u8; 8]) -> usize {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const HIGH: u64 = u64::from_le_bytes([0x80; 8]);
    let word = u64::from_le_bytes(word);
    // The high bit of each byte that is below `n`. Above a byte that is, others may be taken for one; the first is
    // right, and only the first is asked for.
    let below = |word: u64, n: u64| word.wrapping_sub(ONES * n) & !word & HIGH;
    let (quote, backslash) = (word ^ (ONES * 0x22), word ^ (ONES * 0x5c));
    let special = below(word, 0x20) | below(quote, 1) | below(backslash, 1);
    (special.trailing_zeros() / 8) as usize
}

/// An escape sequence.
struct Escape {
    /// Bytes of it, of both halves of a pair.
    written: usize,
    /// What it stands for; `None` for a lone surrogate.
    stands_for: Option<char>,
}

impl Escape {
    /// The escape whose backslash stands at `at`.
    fn read(bytes: &[u8], at: usize) -> Option<Self> {
        let stands_for = match bytes.get(at + 1)? {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return Self::read_units(bytes, at),
            _ => return None,
        };
        Some(Escape { written: 2, stands_for: Some(stands_for) })
    }

    fn read_units(bytes: &[u8], at: usize) -> Option<Self> {
        let first = unit_at(bytes, at)?;
        if (0xd800..0xdc00).contains(&first)
            && let Some(second @ 0xdc00..=0xdfff) = unit_at(bytes, at + 6)
        {
            let point = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
            return Some(Escape { written: 12, stands_for: char::from_u32(point) });
        }
        Some(Escape { written: 6, stands_for: char::from_u32(first) })
    }

    fn text(&self) -> char {
        self.stands_for.unwrap_or(char::REPLACEMENT_CHARACTER)
    }
}

/// The UTF-16 unit of a `\uXXXX` escape at `at`.
fn unit_at(bytes: &[u8], at: usize) -> Option<u32> {
    let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
    digits.iter().try_fold(0, |unit, &digit| Some(unit << 4 | char::from(digit).to_digit(16)?))
}

impl Escapes {
    fn add(&mut self, escape: &Escape) {
        let text = escape.text();
        let written = escape.written as u32;
        self.bytes += written - text.len_utf8() as u32;
        self.points += written - 1;
        self.utf16 += written - text.len_utf16() as u32;
        self.quoting += quoting_of(text);
    }
}

/// What a string with escapes stands for, and whether lone surrogates were replaced.
pub(super) fn decode(raw: &str) -> (String, bool) {
    let mut out = String::with_capacity(raw.len());
    let mut is_lossy = false;
    let mut rest = raw;
    while let Some(at) = rest.find('\\') {
        let Some(escape) = Escape::read(rest.as_bytes(), at) else { break };
        out.push_str(rest.get(..at).unwrap_or(""));
        out.push(escape.text());
        is_lossy |= escape.stands_for.is_none();
        rest = rest.get(at + escape.written..).unwrap_or("");
    }
    out.push_str(rest);
    (out, is_lossy)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Backslashes one after the other: which bytes they escape.
    fn escaped_one_by_one(backslashes: u64) -> (u64, bool) {
        let (mut escaped, mut escapes_next) = (0, false);
        for bit in 0..64 {
            escaped |= u64::from(escapes_next) << bit;
            escapes_next = !escapes_next && backslashes >> bit & 1 == 1;
        }
        (escaped, escapes_next)
    }

    proptest! {
        #[test]
        fn masks_tell_what_is_escaped(some: u64, others: u64, more: u64) {
            for backslashes in [some, some & others, some | others, some | others | more, !(some & others & more)] {
                prop_assert_eq!(escaped(backslashes), escaped_one_by_one(backslashes));
            }
        }

        #[test]
        fn masks_tell_bytes(block in prop::collection::vec(any::<u8>(), 64)) {
            let mut block: [u8; 64] = block.try_into().unwrap_or([0; 64]);
            block[..8].copy_from_slice(b"\"\\\x1f\x20\x00\xa2\xdc!");
            let masks = Masks::of(&block);
            for (i, byte) in block.into_iter().enumerate() {
                prop_assert_eq!(masks.quotes >> i & 1 == 1, byte == b'"');
                prop_assert_eq!(masks.backslashes >> i & 1 == 1, byte == b'\\');
                prop_assert_eq!(masks.controls >> i & 1 == 1, byte < 0x20);
            }
        }

        /// Blocks and single steps find the same end and the same escapes.
        #[test]
        fn ends_are_those_that_single_steps_find(
            pieces in prop::collection::vec(prop::sample::select(
                &["\\", "\\\\", "\\\"", "\\n", "\\/", "\\u00e9", "\\x", "a", "some words and ", "é", "\n", "\""][..]
            ), 0..60),
            plain in 0_usize..70,
        ) {
            let text = "\\n".to_owned() + &"x".repeat(plain) + &pieces.concat() + "\"";
            let told = |end: Option<StringEnd>| end.map(|end| (
                end.end, end.letters, end.solidi, end.has_units, end.units.bytes, end.units.quoting,
            ));
            let by_steps = rest_of_string(text.as_bytes(), 0, StringEnd::default());
            prop_assert_eq!(told(escaped_string_end(text.as_bytes(), 0)), told(by_steps), "{}", text);
        }
    }

    #[test]
    fn specials_are_found_wherever_they_stand() {
        for long in 0..90 {
            for special in [&b"\""[..], b"\\", b"\x00", b"\x1f", b""] {
                let mut text = "é".repeat(long / 2).into_bytes();
                text.extend_from_slice(&b"x~ !#[]\x7f"[..long % 7]);
                let at = text.len();
                text.extend_from_slice(special);
                text.extend_from_slice(&b"abc\"\\"[..if special.is_empty() { 3 } else { 5 }]);
                assert_eq!(plain_until(&text, 0), if special.is_empty() { text.len() } else { at });
            }
        }
    }
}
