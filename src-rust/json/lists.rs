//! Lists whose items are mostly written alike: see [`super::forms`].

use super::MAX_PARSED_DEPTH;
use super::blocks::{OnBlocks, Signs, WIDE, on_blocks};
use super::forms::{Form, MOST_STRINGS};
use super::scan::LOOK_EVERY;
use super::string_end::Held;
use super::tape::{Tape, TapeNode};

/// Most forms that are known at a time.
const MOST_FORMS: usize = 16;

/// Forms of items, each with what their reader wants to know of them.
#[derive(Debug)]
pub struct Forms<T> {
    known: Vec<Known<T>>,
    /// The form of the last item that had one.
    last: usize,
    /// Items that had a known form, ever.
    hits: u64,
}

#[derive(Debug)]
struct Known<T> {
    form: Form,
    told: T,
    /// The form that came behind it the last time.
    next: usize,
    /// [`Forms::hits`] when an item had it last.
    hit: u64,
}

impl<T> Forms<T> {
    /// None.
    #[must_use]
    pub const fn new() -> Self {
        Forms { known: Vec::new(), last: 0, hits: 0 }
    }

    /// Items that had a form which was known, ever.
    #[must_use]
    pub fn hits(&self) -> u64 {
        self.hits
    }

    /// Gets to know a form, and forgets the one that was longest not met.
    fn learn(&mut self, (form, told): (Form, T)) {
        let known = Known { form, told, next: 0, hit: self.hits };
        let oldest = (0..self.known.len()).min_by_key(|&i| self.known[i].hit);
        let place = match oldest {
            Some(oldest) if self.known.len() >= MOST_FORMS => oldest,
            _ => self.known.len(),
        };
        if place < self.known.len() {
            self.known[place] = known;
        } else {
            self.known.push(known);
        }
        self.met(place);
    }

    /// Notes that an item had that form.
    #[inline(always)]
    fn met(&mut self, place: usize) {
        if let Some(last) = self.known.get_mut(self.last) {
            last.next = place;
        }
        self.hits += 1;
        if let Some(known) = self.known.get_mut(place) {
            known.hit = self.hits;
        }
        self.last = place;
    }
}

impl<T> Default for Forms<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// An item that has a known form.
#[derive(Debug)]
pub struct Item<'a> {
    /// The text that it stands in.
    pub text: &'a [u8],
    /// The strings of it that differ, in their order, and others behind them.
    pub held: &'a [Held; MOST_STRINGS],
}

/// Reads the items of a list.
pub trait ReadItems {
    /// What it wants to know of a form.
    type Told;

    /// Reads an item by its form. `None` where the list is to be read another way.
    fn by_form(&mut self, told: &Self::Told, item: &Item<'_>) -> Option<()>;

    /// Reads an item that has no known form; gives its form where it wants to know it again. `None` where the list is to
    /// be read another way.
    fn whole(&mut self, item: &TapeNode<'_>) -> Option<Option<(Form, Self::Told)>>;

    /// Asked now and then whether to go on.
    fn may_go_on(&mut self) -> bool;
}

/// Reads the items of the list that begins at `at`, with its bracket: gives the place behind it. `None` where it is not
/// plainly JSON, where the reader declined it, and where it was not to go on. O(bytes).
pub fn read_list<R: ReadItems>(
    bytes: &[u8],
    at: usize,
    forms: &mut Forms<R::Told>,
    reader: &mut R,
) -> Option<usize> {
    u32::try_from(bytes.len()).ok()?;
    on_blocks(List { bytes, at, forms, reader, is_ascii: true, valid: None })
}

struct List<'a, 'f, R: ReadItems> {
    bytes: &'a [u8],
    at: usize,
    forms: &'f mut Forms<R::Told>,
    reader: &'f mut R,
    /// Whether all strings are ASCII that were found by forms.
    is_ascii: bool,
    /// All of it, once it had to be seen whether it is UTF-8.
    valid: Option<&'a str>,
}

impl<R: ReadItems> OnBlocks for List<'_, '_, R> {
    type Outcome = Option<usize>;

    #[inline(always)]
    fn run(mut self, signs: impl Fn(&[u8; WIDE]) -> Signs) -> Option<usize> {
        let mut held = [Held::default(); MOST_STRINGS];
        let mut next_look = LOOK_EVERY;
        self.pass(b'[')?;
        loop {
            self.pass_blanks();
            if !self.by_form(&signs, &mut held)? {
                self.whole()?;
            }
            if self.at >= next_look {
                next_look = self.at + LOOK_EVERY;
                if !self.reader.may_go_on() {
                    return None;
                }
            }
            self.pass_blanks();
            if self.pass(b',').is_none() {
                break;
            }
        }
        self.pass(b']')?;
        if !self.is_ascii {
            self.text()?;
        }
        Some(self.at)
    }
}

impl<'a, R: ReadItems> List<'a, '_, R> {
    #[inline(always)]
    fn pass(&mut self, sign: u8) -> Option<()> {
        (self.bytes.get(self.at) == Some(&sign)).then(|| self.at += 1)
    }

    #[inline(always)]
    fn pass_blanks(&mut self) {
        while matches!(self.bytes.get(self.at), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    /// Reads the next item by a form that it has; says whether there is one.
    #[inline(always)]
    fn by_form(
        &mut self,
        signs: &impl Fn(&[u8; WIDE]) -> Signs,
        held: &mut [Held; MOST_STRINGS],
    ) -> Option<bool> {
        let forms = &mut *self.forms;
        let guess = forms.known.get(forms.last).map_or(0, |last| last.next);
        let mut found = None;
        for i in (guess..forms.known.len()).chain(0..guess) {
            let form = &forms.known.get(i)?.form;
            if let Some(end) = form.end_of((self.bytes, self.at), signs, held) {
                found = Some((i, end));
                break;
            }
        }
        let Some((i, end)) = found else { return Some(false) };
        let item = Item { text: self.bytes, held };
        self.reader.by_form(&forms.known.get(i)?.told, &item)?;
        self.is_ascii &= held.iter().take(forms.known.get(i)?.form.strings()).all(|held| held.is_ascii);
        forms.met(i);
        self.at = end;
        Some(true)
    }

    /// Reads the next item as any other is read.
    #[cold]
    fn whole(&mut self) -> Option<()> {
        let text = self.text()?;
        let (tape, end) = Tape::parse_first(text.get(self.at..)?, &mut || self.reader.may_go_on())?;
        // It lies in the list, and that in an object perhaps.
        if tape.depth() + 2 > MAX_PARSED_DEPTH {
            return None;
        }
        if let Some(form) = self.reader.whole(&tape.root())? {
            self.forms.learn(form);
        }
        self.at += end;
        Some(())
    }

    fn text(&mut self) -> Option<&'a str> {
        if self.valid.is_none() {
            self.valid = simdutf8::basic::from_utf8(self.bytes).ok();
        }
        self.valid
    }
}
