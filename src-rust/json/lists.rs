//! Lists whose items are mostly written alike: see [`super::forms`].

use super::MAX_PARSED_DEPTH;
use super::blocks::{OnBlocks, Signs, WIDE, on_blocks};
use super::forms::{Form, MOST_STRINGS, Tried};
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
    /// Items that had a form that was known, or is since.
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

    /// The number of items that had a form that was known, or is since.
    #[cfg(test)]
    pub(crate) fn hits(&self) -> u64 {
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

    /// Reads an item that has no known form; gives its form where it wants to know it again. `None` where the list is
    /// to be read another way.
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

/// The first place from `at` on where no blank stands.
#[inline(always)]
#[must_use]
pub fn behind_blanks(text: &[u8], mut at: usize) -> usize {
    while matches!(text.get(at), Some(b' ' | b'\n' | b'\r' | b'\t')) {
        at += 1;
    }
    at
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
            self.at = behind_blanks(self.bytes, self.at);
            if !self.by_form(&signs, &mut held)? {
                self.whole()?;
            }
            if self.at >= next_look {
                next_look = self.at + LOOK_EVERY;
                if !self.reader.may_go_on() {
                    return None;
                }
            }
            self.at = behind_blanks(self.bytes, self.at);
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
            match form.end_of((self.bytes, self.at), signs, held) {
                Tried::EndsAt(end) => found = Some((i, end)),
                Tried::Other => continue,
                Tried::Odd => {}
            }
            break;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Every string of the items as it is written, and how many items were read by a form.
    #[derive(Default)]
    struct Strings {
        found: Vec<String>,
        by_form: usize,
    }

    impl ReadItems for Strings {
        type Told = usize;

        fn by_form(&mut self, strings: &usize, item: &Item<'_>) -> Option<()> {
            self.by_form += 1;
            for held in &item.held[..*strings] {
                self.found.push(String::from_utf8_lossy(&item.text[held.start..held.end]).into_owned());
            }
            Some(())
        }

        fn whole(&mut self, item: &TapeNode<'_>) -> Option<Option<(Form, usize)>> {
            self.found.extend(item.strings().iter().map(|string| string.written().to_owned()));
            Some(Form::of(item, |_| true).map(|(form, strings)| (form, strings.len())))
        }

        fn may_go_on(&mut self) -> bool {
            true
        }
    }

    /// What is read of a list, whose strings are those that are found by reading all of it; how many by a form.
    fn read(list: &[u8]) -> Option<usize> {
        let mut strings = Strings::default();
        let end = read_list(list, 0, &mut Forms::new(), &mut strings)?;
        assert_eq!(end, list.len());
        let tape = Tape::parse(list, &mut || true).unwrap().expect("what is read is JSON");
        let all: Vec<String> =
            tape.root().strings().iter().map(|string| string.written().to_owned()).collect();
        assert_eq!(strings.found, all, "{}", String::from_utf8_lossy(list));
        Some(strings.by_form)
    }

    #[test]
    fn an_item_has_the_form_of_another_if_nothing_differs_but_its_strings() {
        for long in 0..70 {
            let name = "n".repeat(long);
            let item = format!(
                r#"{{"{name}":"a text","b":[1.5,"more \" text"],"c{name}":null,"d":{{"e":"","{name}":"é"}}}}"#
            );
            let strings = [r#""a text""#, r#""more \" text""#, r#""""#, r#""é""#].map(|string| {
                let start = item.find(string).unwrap() + 1;
                start..start + string.len() - 2
            });
            assert_eq!(read(format!("[{item} , {item}]").as_bytes()), Some(1), "{item}");
            for at in 0..item.len() {
                for other in [b'~', b'"', b'\\', b'0', b'\n'] {
                    let mut changed = item.clone().into_bytes();
                    let is_other = std::mem::replace(&mut changed[at], other) != other;
                    let list = [b"[", item.as_bytes(), b",", &changed, b"]"].concat();
                    let is_alike = strings.iter().any(|string| string.contains(&at));
                    let by_form = read(&list);
                    assert!(by_form.is_none_or(|by_form| by_form == 0 || is_alike || !is_other), "{list:?}");
                    // A letter in the place of another.
                    let is_letter = other == b'~' && item.as_bytes()[at].is_ascii_alphabetic();
                    assert!(!is_alike || !is_letter || by_form == Some(1), "{list:?}");
                }
            }
        }
    }

    #[test]
    fn what_is_no_list_is_declined() {
        let lists = [
            "",
            "{}",
            "[",
            "[]",
            "[,]",
            "[1,]",
            "[1 2]",
            "[1",
            "[\"a]",
            "[\"\u{1}\"]",
            "[{\"a\":\"b\"},{\"a\":\"b]",
        ];
        assert!(lists.iter().all(|list| read(list.as_bytes()).is_none()));
        let nested = |depth: usize| format!("[{}{}]", "[".repeat(depth), "]".repeat(depth));
        assert!(read(nested(MAX_PARSED_DEPTH - 3).as_bytes()).is_some());
        assert!(read(nested(MAX_PARSED_DEPTH + 1).as_bytes()).is_none());
    }

    #[test]
    fn forms_that_are_not_met_are_forgotten() {
        let item = |i: usize| format!(r#"{{"{}":"text"}}"#, "k".repeat(i + 1));
        let all = (0..3 * MOST_FORMS).map(item).collect::<Vec<_>>().join(",");
        let mut forms = Forms::new();
        for _ in 0..2 {
            let list = format!("[{all},{},{}]", item(0), item(0));
            assert!(read_list(list.as_bytes(), 0, &mut forms, &mut Strings::default()).is_some());
        }
        assert_eq!(forms.known.len(), MOST_FORMS);
    }
}
