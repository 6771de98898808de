//! What stands in JSON bytes, value by value: the parser that fills a tape.

use super::MAX_PARSED_DEPTH;
use super::blocks::{BLOCK, backslashes_in, is_special, specials_in};
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
    /// Whether all that was read of the innermost container is plain, see [`Entry::is_plain`].
    is_plain: bool,
}

impl<'a, 'g> Parser<'a, 'g> {
    /// Before the first of at most 2^32 bytes.
    pub fn new(bytes: &'a [u8], go_on: &'g mut dyn FnMut() -> bool) -> Self {
        let entries = Vec::with_capacity(bytes.len() / 64 + 8);
        let (escapes, next_look) = (Vec::new(), LOOK_EVERY);
        Parser {
            bytes,
            at: 0,
            entries,
            escapes,
            deepest: 0,
            next_look,
            go_on,
            is_stopped: false,
            is_plain: true,
        }
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
            self.is_plain = false;
        }
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.byte() == byte).then(|| self.at += 1)
    }

    fn push(&mut self, kind: Kind, start: usize) -> Option<usize> {
        let place = self.entries.len();
        // The length of the document fits, and so does its number of values.
        let (start, end) = (start as u32, self.at as u32);
        self.entries.push(Entry { start, end, link: 0, kind, has_escapes: false, is_plain: true });
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
                let is_integer = self.bytes.get(start..self.at)?.iter().all(u8::is_ascii_digit);
                self.is_plain &= is_integer;
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
    fn open(&mut self, kind: Kind, close: u8, depth: usize) -> Option<(Opened, bool)> {
        if depth >= MAX_PARSED_DEPTH {
            return None;
        }
        self.deepest = self.deepest.max(depth + 1);
        let opened = Opened { place: self.push(kind, self.at)?, is_around_plain: self.is_plain };
        self.is_plain = true;
        self.at += 1;
        self.blanks();
        Some((opened, self.byte() != close))
    }

    /// Ends a container.
    fn close(&mut self, opened: Opened, close: u8) -> Option<()> {
        self.expect(close)?;
        let (end, link) = (self.at as u32, self.entries.len() as u32);
        let entry = self.entries.get_mut(opened.place)?;
        (entry.end, entry.link, entry.is_plain) = (end, link, self.is_plain);
        self.is_plain &= opened.is_around_plain;
        Some(())
    }

    fn array(&mut self, depth: usize) -> Option<()> {
        let (opened, mut more) = self.open(Kind::Array, b']', depth)?;
        while more {
            self.value(depth + 1)?;
            self.blanks();
            more = self.byte() == b',';
            if more {
                self.at += 1;
                self.blanks();
            }
        }
        self.close(opened, b']')
    }

    fn object(&mut self, depth: usize) -> Option<()> {
        let (opened, mut more) = self.open(Kind::Object, b'}', depth)?;
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
        self.close(opened, b'}')
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
            escapes.are_letters = found.solidi == 0 && !found.has_units;
            let entry = self.entries.get_mut(place)?;
            (entry.link, entry.has_escapes) = (self.escapes.len() as u32, true);
            entry.is_plain = escapes.are_letters;
            self.is_plain &= escapes.are_letters;
            self.escapes.push(escapes);
        }
        Some(())
    }
}

/// A container that was begun.
struct Opened {
    /// The place of its entry.
    place: usize,
    /// Whether what is around it is plain so far.
    is_around_plain: bool,
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
    // Escapes come in swarms: all of a block are dealt with before the next is looked at.
    while let Some(block) = bytes.get(at..).and_then(<[u8]>::first_chunk::<BLOCK>) {
        let mut specials = specials_in(block);
        let mut next = at + BLOCK;
        while specials != 0 {
            let place = at + specials.trailing_zeros() as usize;
            let behind = found.pass(bytes, place)?;
            if behind == place {
                return Some(found);
            }
            // What an escape takes begins nothing.
            specials &= u32::MAX.checked_shl((behind - at) as u32).unwrap_or(0);
            next = next.max(behind);
        }
        at = next;
    }
    loop {
        at += bytes.get(at..)?.iter().position(|&byte| is_special(byte))?;
        let behind = found.pass(bytes, at)?;
        if behind == at {
            return Some(found);
        }
        at = behind;
    }
}

impl StringEnd {
    /// What the quote or the escape at `place` is; the place behind it, which for a quote is its own.
    #[inline]
    fn pass(&mut self, bytes: &[u8], place: usize) -> Option<usize> {
        match bytes.get(place)? {
            b'"' => {
                self.end = place;
                return Some(place);
            }
            b'\\' => {}
            _ => return None,
        }
        match bytes.get(place + 1)? {
            b'"' | b'\\' | b'b' | b'f' | b'n' | b'r' | b't' => self.letters += 1,
            b'/' => self.solidi += 1,
            b'u' => {
                let escape = Escape::read(bytes, place)?;
                self.units.add(&escape);
                self.has_units = true;
                return Some(place + escape.written);
            }
            _ => return None,
        }
        Some(place + 2)
    }
}

/// The first backslash from `at` on; the end where there is none.
#[inline]
fn next_backslash(bytes: &[u8], mut at: usize) -> usize {
    // Most stand close; where none does, whole pages are looked through.
    for _ in 0..NEAR_BLOCKS {
        let Some(block) = bytes.get(at..).and_then(<[u8]>::first_chunk::<BLOCK>) else { break };
        match backslashes_in(block) {
            0 => at += BLOCK,
            found => return at + found.trailing_zeros() as usize,
        }
    }
    bytes.get(at..).and_then(|rest| memchr::memchr(b'\\', rest)).map_or(bytes.len(), |found| at + found)
}

/// Blocks without a backslash before a search of the rest.
const NEAR_BLOCKS: usize = 6;

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
    let is_lossy = decode_into(raw, &mut out);
    (out, is_lossy)
}

/// Appends what a string with escapes stands for; says whether lone surrogates were replaced.
pub(super) fn decode_into(raw: &str, out: &mut String) -> bool {
    let bytes = raw.as_bytes();
    let mut is_lossy = false;
    let mut from = 0;
    out.reserve(raw.len());
    loop {
        let at = next_backslash(bytes, from);
        out.push_str(raw.get(from..at).unwrap_or(""));
        let Some(escape) = Escape::read(bytes, at) else { return is_lossy };
        out.push(escape.text());
        is_lossy |= escape.stands_for.is_none();
        from = at + escape.written;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_ends_at_its_first_quote_that_is_not_escaped() {
        let escapes = ["", "\\\"", "\\\\", "\\n\\t", "\\/", "\\u0041", "\\ud83d\\ude00", "\\\\\\\""];
        for long in 0..70 {
            for escape in escapes {
                let text = "é".repeat(long / 2) + &"x~ !#[]\u{7f}"[..long % 7] + escape + "yz";
                let line = text.clone() + "\",\"more than a block of text behind it\"";
                for line in [&line[..=text.len()], &line] {
                    assert_eq!(
                        string_end(line.as_bytes(), 0).map(|found| found.end),
                        Some(text.len()),
                        "{line}"
                    );
                }
                assert!(string_end(text.as_bytes(), 0).is_none(), "{text}");
                for wrong in ["\u{1f}", "\n", "\\x", "\\u12", "\\"] {
                    let line = text.clone() + wrong;
                    assert!(string_end(line.as_bytes(), 0).is_none(), "{line:?}");
                    let line = line + "\" and more than a block of text behind it";
                    let is_escaped_quote = wrong == "\\";
                    assert!(is_escaped_quote || string_end(line.as_bytes(), 0).is_none(), "{line:?}");
                }
            }
        }
    }

    #[test]
    fn a_string_is_decoded_as_json_has_it() {
        for long in 0..140 {
            let text =
                "é".repeat(long / 3) + &"xyz"[..long % 3] + "\n\"\\\u{8}\u{c}\r\t\u{1}😀" + &"y".repeat(long);
            let raw = serde_json::to_string(&text).unwrap_or_default();
            let raw = &raw[1..raw.len() - 1];
            assert_eq!(decode(raw), (text.clone(), false));
            let mut out = String::from("before");
            assert!(decode_into(&(raw.to_owned() + "\\ud83d\\/"), &mut out));
            assert_eq!(out, format!("before{text}\u{fffd}/"));
        }
    }
}
