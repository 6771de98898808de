//! What stands in JSON bytes, value by value: the parser that fills a tape.

use super::MAX_PARSED_DEPTH;
use super::blocks::{OnBlocks, Signs, WIDE, on_blocks};
use super::escapes::decode;
use super::string_end::{StringEnd, Strings};
use super::tape::{Entry, Escapes};
use crate::node::Kind;
use crate::node::names::{UNKNOWN, bit_of, ordinal_in, ordinal_of};

/// Longest number that is read here.
pub(super) const MAX_DIGITS: usize = 64;

/// Bytes between two looks at whether to go on.
pub(super) const LOOK_EVERY: usize = 1 << 20;

/// In the place of a container where there is none: no document has so many values.
const NONE: u32 = u32::MAX;

/// Reads one document. It knows plain JSON alone, and stops at anything else.
pub(super) struct Parser<'a, 'g> {
    bytes: &'a [u8],
    at: usize,
    strings: Strings<'a>,
    pub entries: Vec<Entry>,
    pub escapes: Vec<Escapes>,
    /// The place of the innermost container; [`NONE`] outside of all. Until it is closed, its entry notes what is needed
    /// then: in `link` the container around it, in `is_plain` whether that is plain so far, and in `end` the place of the
    /// key whose value is read.
    around: u32,
    /// Containers that are open.
    depth: usize,
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
        Parser {
            bytes,
            at: 0,
            strings: Strings::new(bytes, 0),
            entries: Vec::with_capacity(bytes.len() / 32 + 8),
            escapes: Vec::new(),
            around: NONE,
            depth: 0,
            deepest: 0,
            next_look: LOOK_EVERY,
            go_on,
            is_stopped: false,
            is_plain: true,
        }
    }

    /// Fills the arrays; `None` where it stopped.
    pub fn document(&mut self) -> Option<()> {
        on_blocks(Document(self))
    }
}

/// A document to be read.
struct Document<'p, 'a, 'g>(&'p mut Parser<'a, 'g>);

impl OnBlocks for Document<'_, '_, '_> {
    type Outcome = Option<()>;

    #[inline(always)]
    fn run(self, signs: impl Fn(&[u8; WIDE]) -> Signs, usual: impl Fn(&[u8; WIDE]) -> u64) -> Option<()> {
        let parser = self.0;
        parser.blanks();
        loop {
            let start = parser.at;
            let more = match parser.byte() {
                b'"' => parser.string(&signs, &usual).map(|_| false)?,
                b'{' => parser.open(Kind::Object, b'}')?,
                b'[' => parser.open(Kind::Array, b']')?,
                _ => parser.scalar(start).map(|()| false)?,
            };
            if !more && !parser.end_value()? {
                return (parser.at == parser.bytes.len()).then_some(());
            }
            if parser.is_in_object() {
                parser.key(&signs, &usual)?;
            }
        }
    }
}

impl Parser<'_, '_> {
    /// The next byte; 0, which begins nothing, behind the last.
    #[inline(always)]
    fn byte(&self) -> u8 {
        self.bytes.get(self.at).copied().unwrap_or(0)
    }

    #[inline(always)]
    fn blanks(&mut self) {
        while matches!(self.byte(), b' ' | b'\n' | b'\r' | b'\t') {
            self.at += 1;
            self.is_plain = false;
        }
    }

    #[inline(always)]
    fn push(&mut self, kind: Kind, start: usize) -> usize {
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
        place
    }

    /// Reads a word or a number.
    fn scalar(&mut self, start: usize) -> Option<()> {
        match self.byte() {
            b'n' => self.word(b"null", Kind::Null),
            b't' => self.word(b"true", Kind::Bool),
            b'f' => self.word(b"false", Kind::Bool),
            _ => {
                self.number()?;
                let is_integer = self.bytes.get(start..self.at)?.iter().all(u8::is_ascii_digit);
                self.is_plain &= is_integer;
                self.push(Kind::Number, start);
                Some(())
            }
        }
    }

    fn word(&mut self, word: &[u8], kind: Kind) -> Option<()> {
        let start = self.at;
        if !self.bytes.get(start..)?.starts_with(word) {
            return None;
        }
        self.at += word.len();
        self.push(kind, start);
        Some(())
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

    /// Begins a container; says whether it has anything in it.
    #[inline(always)]
    fn open(&mut self, kind: Kind, close: u8) -> Option<bool> {
        if self.depth >= MAX_PARSED_DEPTH {
            return None;
        }
        let place = self.push(kind, self.at);
        let entry = self.entries.get_mut(place)?;
        (entry.link, entry.is_plain) = (self.around, self.is_plain);
        (self.around, self.is_plain) = (place as u32, true);
        self.depth += 1;
        self.deepest = self.deepest.max(self.depth);
        self.at += 1;
        self.blanks();
        if self.byte() != close {
            return Some(true);
        }
        self.close();
        Some(false)
    }

    /// Ends the innermost container, at its last byte.
    #[inline(always)]
    fn close(&mut self) {
        self.at += 1;
        let (end, link) = (self.at as u32, self.entries.len() as u32);
        let Some(entry) = self.entries.get_mut(self.around as usize) else { return };
        (self.around, self.depth) = (entry.link, self.depth - 1);
        let is_around_plain = entry.is_plain;
        (entry.end, entry.link, entry.is_plain) = (end, link, self.is_plain);
        self.is_plain &= is_around_plain;
    }

    /// Goes on behind a value that was read: says whether another comes, in the container that is innermost then.
    #[inline(always)]
    fn end_value(&mut self) -> Option<bool> {
        self.may_go_on()?;
        loop {
            self.blanks();
            let link = self.entries.len() as u32;
            let Some(&Entry { kind, end, .. }) = self.entries.get(self.around as usize) else {
                return Some(false);
            };
            let close = if kind == Kind::Object {
                let key = self.entries.get_mut(end as usize)?;
                key.link = link;
                let bit = bit_of(key.key);
                self.entries.get_mut(self.around as usize)?.names |= bit;
                b'}'
            } else {
                b']'
            };
            match self.byte() {
                b',' => {
                    self.at += 1;
                    self.blanks();
                    return Some(true);
                }
                byte if byte == close => self.close(),
                _ => return None,
            }
        }
    }

    /// Looks now and then whether to go on.
    #[inline(always)]
    fn may_go_on(&mut self) -> Option<()> {
        if self.at >= self.next_look {
            self.next_look = self.at + LOOK_EVERY;
            if !(self.go_on)() {
                self.is_stopped = true;
                return None;
            }
        }
        Some(())
    }

    /// Whether what comes next stands in an object.
    #[inline(always)]
    fn is_in_object(&self) -> bool {
        self.entries.get(self.around as usize).is_some_and(|around| around.kind == Kind::Object)
    }

    /// Reads a key, and what stands between it and its value.
    #[inline(always)]
    fn key(
        &mut self,
        signs: &impl Fn(&[u8; WIDE]) -> Signs,
        usual: &impl Fn(&[u8; WIDE]) -> u64,
    ) -> Option<()> {
        if self.byte() != b'"' {
            return None;
        }
        let place = self.string(signs, usual)?;
        let entry = self.entries.get_mut(place)?;
        let (start, end) = (entry.start as usize, entry.end as usize);
        entry.key = if entry.has_escapes {
            ordinal_of_escaped(self.bytes.get(start..end)?)?
        } else {
            ordinal_in(self.bytes, start, end)
        };
        self.entries.get_mut(self.around as usize)?.end = place as u32;
        self.blanks();
        if self.byte() != b':' {
            return None;
        }
        self.at += 1;
        self.blanks();
        Some(())
    }

    /// The place of its entry.
    #[inline(always)]
    fn string(
        &mut self,
        signs: &impl Fn(&[u8; WIDE]) -> Signs,
        usual: &impl Fn(&[u8; WIDE]) -> u64,
    ) -> Option<usize> {
        let start = self.at + 1;
        let found = self.strings.end_of(start, signs, usual)?;
        self.at = found.end;
        let place = self.push(Kind::String, start);
        self.at += 1;
        if found.letters + found.solidi > 0 || found.has_units {
            self.note_escapes(place, &found);
        }
        Some(place)
    }

    fn note_escapes(&mut self, place: usize, found: &StringEnd) {
        let (simple, mut escapes) = (found.letters + found.solidi, found.units);
        escapes.bytes += simple;
        escapes.points += simple;
        escapes.utf16 += simple;
        escapes.quoting += found.letters;
        escapes.are_letters = found.solidi == 0 && !found.has_units;
        self.is_plain &= escapes.are_letters;
        if let Some(entry) = self.entries.get_mut(place) {
            (entry.link, entry.has_escapes) = (self.escapes.len() as u32, true);
            entry.is_plain = escapes.are_letters;
        }
        self.escapes.push(escapes);
    }
}

/// The ordinal of a key with escapes.
#[cold]
fn ordinal_of_escaped(raw: &[u8]) -> Option<u8> {
    let (name, _) = decode(std::str::from_utf8(raw).ok()?);
    Some(ordinal_of(name.as_bytes()))
}
