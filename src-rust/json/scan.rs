//! What stands in JSON bytes, value by value: the parser that fills a tape.

use super::MAX_PARSED_DEPTH;
use super::escapes::decode;
use super::string_end::string_end;
use super::tape::{Entry, Escapes};
use crate::node::Kind;
use crate::node::names::{UNKNOWN, bit_of, ordinal_in, ordinal_of};

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
        self.entries.push(Entry {
            start,
            end,
            link: 0,
            kind,
            has_escapes: false,
            is_plain: true,
            key: UNKNOWN,
            names: 0,
        });
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
            b'"' => self.string().map(|_| ()),
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
    fn close(&mut self, opened: Opened, close: u8, names: u32) -> Option<()> {
        self.expect(close)?;
        let (end, link) = (self.at as u32, self.entries.len() as u32);
        let entry = self.entries.get_mut(opened.place)?;
        (entry.end, entry.link, entry.is_plain) = (end, link, self.is_plain);
        entry.names = names;
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
        self.close(opened, b']', 0)
    }

    fn object(&mut self, depth: usize) -> Option<()> {
        let (opened, mut more) = self.open(Kind::Object, b'}', depth)?;
        let mut names = 0;
        while more {
            if self.byte() != b'"' {
                return None;
            }
            let key = self.key()?;
            self.blanks();
            self.expect(b':')?;
            self.blanks();
            self.value(depth + 1)?;
            let link = self.entries.len() as u32;
            let key = self.entries.get_mut(key)?;
            key.link = link;
            names |= bit_of(key.key);
            self.blanks();
            more = self.byte() == b',';
            if more {
                self.at += 1;
                self.blanks();
            }
        }
        self.close(opened, b'}', names)
    }

    /// The place of its entry.
    fn key(&mut self) -> Option<usize> {
        let place = self.string()?;
        let entry = self.entries.get_mut(place)?;
        let (start, end) = (entry.start as usize, entry.end as usize);
        entry.key = if entry.has_escapes {
            let (name, _) = decode(std::str::from_utf8(self.bytes.get(start..end)?).ok()?);
            ordinal_of(name.as_bytes())
        } else {
            ordinal_in(self.bytes, start, end)
        };
        Some(place)
    }

    /// The place of its entry.
    fn string(&mut self) -> Option<usize> {
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
        Some(place)
    }
}

/// A container that was begun.
struct Opened {
    /// The place of its entry.
    place: usize,
    /// Whether what is around it is plain so far.
    is_around_plain: bool,
}
