//! The parser that fills a tape, value by value.

use super::document::MAX_PARSED_DEPTH;
use super::entry::{Entry, Escapes};
use super::escapes::decode;
use super::simd::{BLOCK_BYTES, ByteMasks, OnBlocks, on_blocks};
use super::strings::Strings;
use crate::node::Kind;
use crate::node::keys::{UNKNOWN, bit_of, ordinal_in, ordinal_of};

/// Longest number that the tape accepts.
pub(super) const MAX_DIGITS: usize = 64;

/// Bytes between two calls of `check`.
pub(super) const LOOK_EVERY: usize = 1 << 20;

/// Stands for "no container"; a document has fewer values.
const NONE: u32 = u32::MAX;

/// Reads one document. Accepts only plain JSON and stops at anything else.
pub(super) struct Parser<'a, 'g> {
    bytes: &'a [u8],
    at: usize,
    strings: Strings<'a>,
    pub entries: Vec<Entry>,
    pub escapes: Vec<Escapes>,
    /// The entry of the innermost container, or [`NONE`]. While a container is open, its entry saves the state of the
    /// enclosing one: its entry in `link`, and the next four fields.
    around: u32,
    /// Whether the innermost container is an object.
    is_object: bool,
    /// The key whose value is being read, in an object; saved in `end`.
    key: u32,
    /// The [`Entry::names`] so far, in an object; saved in `names`.
    names: u32,
    /// Whether the innermost container is plain so far, see [`Entry::is_plain`]; saved in `is_plain`.
    is_plain: bool,
    /// Open containers.
    depth: usize,
    /// Maximum of `depth`.
    pub deepest: usize,
    next_look: usize,
    check: &'g mut dyn FnMut() -> bool,
    /// Whether `check` stopped it.
    pub is_stopped: bool,
}

impl<'a, 'g> Parser<'a, 'g> {
    /// Starts at the first of at most 2^32 bytes.
    pub fn new(bytes: &'a [u8], check: &'g mut dyn FnMut() -> bool) -> Self {
        Parser {
            bytes,
            at: 0,
            strings: Strings::new(bytes),
            entries: Vec::with_capacity(bytes.len() / 32 + 8),
            escapes: Vec::new(),
            around: NONE,
            is_object: false,
            key: NONE,
            names: 0,
            is_plain: true,
            depth: 0,
            deepest: 0,
            next_look: LOOK_EVERY,
            check,
            is_stopped: false,
        }
    }

    /// Whether a completely read document is ASCII.
    pub fn is_ascii(&self) -> bool {
        self.strings.is_ascii()
    }

    /// Reads the document into the arrays; `None` if it stopped.
    pub fn document(&mut self) -> Option<()> {
        on_blocks(Document(self))
    }
}

/// The main loop as a kernel.
struct Document<'p, 'a, 'g>(&'p mut Parser<'a, 'g>);

impl OnBlocks for Document<'_, '_, '_> {
    type Outcome = Option<()>;

    #[inline(always)]
    fn run(self, signs: impl Fn(&[u8; BLOCK_BYTES]) -> ByteMasks) -> Option<()> {
        let parser = self.0;
        let mut sign = parser.sign();
        loop {
            parser.strings.look_ahead(&signs)?;
            let more = match sign {
                b'"' => {
                    let entry = parser.string()?;
                    parser.entries.push(entry);
                    false
                }
                b'{' => parser.open(Kind::Object, b'}')?,
                b'[' => parser.open(Kind::Array, b']')?,
                _ => parser.scalar(sign).map(|()| false)?,
            };
            if !more && !parser.end_value()? {
                return (parser.at == parser.bytes.len()).then_some(());
            }
            sign = parser.sign();
            if parser.is_object {
                sign = parser.key(sign)?;
            }
        }
    }
}

impl Parser<'_, '_> {
    /// The next byte; 0, which begins no token, at the end.
    #[inline(always)]
    fn byte(&self) -> u8 {
        self.bytes.get(self.at).copied().unwrap_or(0)
    }

    /// Skips blanks and returns the next byte.
    #[inline(always)]
    fn sign(&mut self) -> u8 {
        match self.byte() {
            b' ' | b'\n' | b'\r' | b'\t' => self.sign_behind_blanks(),
            sign => sign,
        }
    }

    fn sign_behind_blanks(&mut self) -> u8 {
        self.is_plain = false;
        loop {
            match self.byte() {
                b' ' | b'\n' | b'\r' | b'\t' => self.at += 1,
                sign => return sign,
            }
        }
    }

    /// The entry of a scalar that begins at `start` and ends here.
    fn plain(&self, kind: Kind, start: usize) -> Entry {
        // The length of the document fits, and so does its number of values.
        let (start, end) = (start as u32, self.at as u32);
        Entry { start, end, link: 0, kind, has_escapes: false, is_plain: true, key: UNKNOWN, names: 0 }
    }

    /// Reads a word or a number that begins with this byte.
    fn scalar(&mut self, sign: u8) -> Option<()> {
        match sign {
            b'n' => self.word(b"null", Kind::Null),
            b't' => self.word(b"true", Kind::Bool),
            b'f' => self.word(b"false", Kind::Bool),
            _ => {
                let start = self.at;
                self.number()?;
                let is_integer = self.bytes.get(start..self.at)?.iter().all(u8::is_ascii_digit);
                self.is_plain &= is_integer;
                self.entries.push(self.plain(Kind::Number, start));
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
        self.entries.push(self.plain(kind, start));
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

    /// Begins a container. Returns whether it has content.
    #[inline(always)]
    fn open(&mut self, kind: Kind, close: u8) -> Option<bool> {
        if self.depth >= MAX_PARSED_DEPTH {
            return None;
        }
        let place = self.entries.len() as u32;
        self.entries.push(Entry {
            start: self.at as u32,
            end: self.key,
            link: self.around,
            kind,
            has_escapes: false,
            is_plain: self.is_plain,
            key: UNKNOWN,
            names: self.names,
        });
        (self.around, self.is_object, self.names) = (place, kind == Kind::Object, 0);
        self.is_plain = true;
        self.depth += 1;
        self.deepest = self.deepest.max(self.depth);
        self.at += 1;
        if self.sign() != close {
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
        let Entry { end: key, link: around, names, is_plain, .. } = *entry;
        (entry.end, entry.link, entry.names, entry.is_plain) = (end, link, self.names, self.is_plain);
        (self.key, self.around, self.names) = (key, around, names);
        self.is_plain &= is_plain;
        self.depth -= 1;
        self.is_object = self.entries.get(around as usize).is_some_and(|around| around.kind == Kind::Object);
        if self.is_object
            && let Some(key) = self.entries.get_mut(key as usize)
        {
            key.link = link;
        }
    }

    /// Continues after a value. Returns whether another follows in the then innermost container.
    #[inline(always)]
    fn end_value(&mut self) -> Option<bool> {
        self.check()?;
        loop {
            let sign = self.sign();
            if self.around == NONE {
                return Some(false);
            }
            let close = if self.is_object { b'}' } else { b']' };
            match sign {
                b',' => {
                    self.at += 1;
                    return Some(true);
                }
                sign if sign == close => self.close(),
                _ => return None,
            }
        }
    }

    /// Calls `check` when due.
    #[inline(always)]
    fn check(&mut self) -> Option<()> {
        if self.at >= self.next_look {
            self.next_look = self.at + LOOK_EVERY;
            if !(self.check)() {
                self.is_stopped = true;
                return None;
            }
        }
        Some(())
    }

    /// Reads a key, which begins with this byte, and the colon. Returns the first byte of the value.
    #[inline(always)]
    fn key(&mut self, sign: u8) -> Option<u8> {
        if sign != b'"' {
            return None;
        }
        let entry = self.string()?;
        let (start, end) = (entry.start as usize, entry.end as usize);
        let key = if entry.has_escapes {
            ordinal_of_escaped(self.bytes.get(start..end)?)?
        } else {
            ordinal_in(self.bytes, start, end)
        };
        self.names |= bit_of(key);
        self.key = self.entries.len() as u32;
        // Right for a scalar, which has one entry; `close` corrects it for a container.
        self.entries.push(Entry { key, link: self.key + 2, ..entry });
        if self.sign() != b':' {
            return None;
        }
        self.at += 1;
        Some(self.sign())
    }

    /// Reads a string and returns its entry.
    #[inline(always)]
    fn string(&mut self) -> Option<Entry> {
        let start = self.at + 1;
        let (end, letters) = self.strings.end_of(start)?;
        self.at = end + 1;
        let escapes = if self.strings.has_others() {
            self.note_others((end, letters))?
        } else {
            Noted { link: letters, has_escapes: letters != 0, is_plain: true }
        };
        let Noted { link, has_escapes, is_plain } = escapes;
        let (start, end) = (start as u32, end as u32);
        let (kind, key) = (Kind::String, UNKNOWN);
        Some(Entry { start, end, link, kind, has_escapes, is_plain, key, names: 0 })
    }

    /// Records the escapes of a string that include other than simple ones.
    #[cold]
    #[inline(never)]
    fn note_others(&mut self, found: (usize, u32)) -> Option<Noted> {
        let found = self.strings.escaped(found)?;
        let (simple, mut escapes) = (found.letters + found.solidi, found.units);
        if found.solidi == 0 && !found.has_units {
            return Some(Noted { link: simple, has_escapes: simple != 0, is_plain: true });
        }
        escapes.bytes += simple;
        escapes.points += simple;
        escapes.utf16 += simple;
        escapes.quoting += found.letters;
        self.escapes.push(escapes);
        self.is_plain = false;
        Some(Noted { link: self.escapes.len() as u32 - 1, has_escapes: true, is_plain: false })
    }
}

/// The fields of a string's entry that describe its escapes.
struct Noted {
    link: u32,
    has_escapes: bool,
    is_plain: bool,
}

/// The ordinal of a key with escapes.
#[cold]
fn ordinal_of_escaped(raw: &[u8]) -> Option<u8> {
    let (name, _) = decode(std::str::from_utf8(raw).ok()?);
    Some(ordinal_of(name.as_bytes()))
}
