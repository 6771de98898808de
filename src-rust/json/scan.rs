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
    /// Most containers that lie in each other.
    pub deepest: usize,
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
        Parser { bytes, at: 0, entries, escapes, deepest: 0, next_look, go_on, is_stopped: false }
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
        self.deepest = self.deepest.max(depth + 1);
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
fn string_end(bytes: &[u8], mut at: usize) -> Option<StringEnd> {
    let mut found = StringEnd::default();
    loop {
        at = plain_until(bytes, at);
        match bytes.get(at)? {
            b'"' => {
                found.end = at;
                return Some(found);
            }
            b'\\' => match bytes.get(at + 1)? {
                b'"' | b'\\' | b'b' | b'f' | b'n' | b'r' | b't' => {
                    found.letters += 1;
                    at += 2;
                }
                b'/' => {
                    found.solidi += 1;
                    at += 2;
                }
                b'u' => {
                    let escape = Escape::read(bytes, at)?;
                    found.units.add(&escape);
                    found.has_units = true;
                    at += escape.written;
                }
                _ => return None,
            },
            _ => return None,
        }
    }
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
        let first = escaped_unit(bytes, at)?;
        if (0xd800..0xdc00).contains(&first)
            && let Some(second @ 0xdc00..=0xdfff) = escaped_unit(bytes, at + 6)
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
pub(super) fn escaped_unit(bytes: &[u8], at: usize) -> Option<u32> {
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
    let mut from = 0;
    for at in memchr::memchr_iter(b'\\', raw.as_bytes()) {
        // The second half of an escape that was read, a backslash or a surrogate.
        if at < from {
            continue;
        }
        let Some(escape) = Escape::read(raw.as_bytes(), at) else { break };
        out.push_str(raw.get(from..at).unwrap_or(""));
        out.push(escape.text());
        is_lossy |= escape.stands_for.is_none();
        from = at + escape.written;
    }
    out.push_str(raw.get(from..).unwrap_or(""));
    (out, is_lossy)
}

#[cfg(test)]
mod tests {
    use super::*;

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
