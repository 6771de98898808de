//! Writes the page within a budget.
//!
//! Every section has a share of the budget. In a first pass each takes items within its share. A second pass distributes
//! the unused tokens in the order of value: first to items that fit whole, then to shortened ones. The counter may be
//! slow (a callable of the user), so the number of calls is bounded: one for an item that enters, a few for one that is
//! shortened, none for the long tail.

use std::cell::Cell;

use super::form::{Form, Part};
use super::item::{Item, Share};
use super::page::candidates;
use super::shares::{SHARES, share};
use super::shelf::{Shelf, Shown};
use crate::error::Result;
use crate::evidence::Evidence;
use crate::evidence::text::{cut_end, cut_outline, one_line};

/// The order of the second pass. The first of them come with items that fit whole before any is shortened; a page can
/// lack the others.
const SECOND: [Share; 12] = [
    Share::Request,
    Share::Task,
    Share::Rules,
    Share::Earlier,
    Share::Next,
    Share::Open,
    Share::State,
    Share::Done,
    Share::Files,
    Share::Commands,
    Share::Names,
    Share::Background,
];
const WHOLE: usize = 8;
/// What earlier requests take at most before the next steps are complete, and rules before the requests are whole.
const TENTH: usize = 10;
/// The newest request and the task take at most a quarter of the page each before files are listed.
const REQUEST_DIVISOR: usize = 4;
/// Files take at most a quarter of the page before what is done is complete.
const FILES_DIVISOR: usize = 4;
/// A page of this size names all files before it describes the changes of some.
const ALL_NAMES_TOKENS: usize = 2_000;
/// Consecutive items of a section that do not fit before the rest is skipped.
const MAX_MISFITS: usize = 5;
/// Most items of a section that are priced.
const MAX_PRICED: usize = 60;
/// Fewest tokens of a shortened item; a shorter one is not worth its place.
const MIN_ITEM_TOKENS: usize = 24;
/// An item of more characters that may not be shortened to any size is cut here where the whole has no room.
const LONG_CHARS: usize = 240;
/// Most attempts to shorten a text to a number of tokens.
const MAX_CUTS: usize = 8;

type Count<'c> = &'c dyn Fn(&str) -> Result<usize>;

struct Taken {
    item: usize,
    /// The text as it is shown.
    text: String,
    tokens: usize,
    is_cut: bool,
}

struct Page<'e> {
    form: Form,
    items: Vec<Item>,
    shelf: Shelf<'e>,
    taken: Vec<Taken>,
    /// Files shown, with the price of their section.
    files: (Shown, usize),
    opened: Vec<Part>,
    /// Tokens of the budget, and those not yet used.
    size: usize,
    left: usize,
    /// The price of each item as a whole, once known: an item is tried in several passes.
    prices: Vec<Cell<Option<usize>>>,
    /// Items that need not be tried again: taken, or redundant.
    settled: Vec<bool>,
}

/// The summary page of `evidence`, within `max_tokens` by `count`. It keeps part of the current request in any budget
/// that holds one word of it.
///
/// # Errors
/// Those of `count`.
pub fn render(evidence: &Evidence, count: Count<'_>, max_tokens: usize) -> Result<String> {
    render_as(Form::Handover, evidence, count, max_tokens)
}

/// The summary in a form, as [`render`] writes it.
///
/// # Errors
/// Those of `count`.
pub fn render_as(form: Form, evidence: &Evidence, count: Count<'_>, max_tokens: usize) -> Result<String> {
    let items = candidates(evidence);
    let mut page = Page::new(form, items.clone(), evidence, max_tokens);
    if page.items.is_empty() && page.shelf.len() == 0 {
        return Ok(String::new());
    }
    page.fill_all(count)?;
    if page.lacks_rules() {
        // More rules are worth more than the numbers of their messages.
        let mut uncited =
            Page::new(form, items.into_iter().map(Item::without_number).collect(), evidence, max_tokens);
        uncited.fill_all(count)?;
        if uncited.rules() > page.rules() {
            page = uncited;
        }
    }
    let is_request = |item: Option<&Item>| item.is_some_and(|item| item.share == Share::Request);
    if is_request(page.items.first())
        && !page.taken.iter().any(|taken| is_request(page.items.get(taken.item)))
    {
        return page.smallest(count, max_tokens);
    }
    let mut drops = 1;
    loop {
        let text = page.assemble();
        let tokens = count(&text)?;
        if tokens <= max_tokens && !text.is_empty() {
            return Ok(text);
        }
        if page.taken.len() <= 1 && page.files.0.is_empty() {
            return page.smallest(count, max_tokens);
        }
        // In doubling steps, so that a counter that is not additive does not make this slow.
        page.drop_last(drops);
        drops *= 2;
    }
}

impl<'e> Page<'e> {
    /// An empty page.
    fn new(form: Form, items: Vec<Item>, evidence: &'e Evidence, max_tokens: usize) -> Self {
        Page {
            form,
            shelf: Shelf::new(evidence),
            taken: Vec::new(),
            files: (Shown::default(), 0),
            opened: Vec::new(),
            size: max_tokens,
            left: max_tokens,
            prices: vec![Cell::new(None); items.len()],
            settled: vec![false; items.len()],
            items,
        }
    }

    /// Both passes.
    fn fill_all(&mut self, count: Count<'_>) -> Result<()> {
        for (of, _) in SHARES {
            let least = if of == Share::Request { 2 * MIN_ITEM_TOKENS } else { 0 };
            let room = share(of, self.size).max(least);
            match of {
                Share::Files => self.fill_files(room, count)?,
                _ => self.fill(of, room, true, count)?,
            }
        }
        self.second_pass(count)?;
        if self.drop_redundant() {
            self.second_pass(count)?;
        }
        Ok(())
    }

    /// Whether a rule that would be shorter without the number of its message had no room.
    fn lacks_rules(&self) -> bool {
        self.items.iter().zip(&self.settled).any(|(item, settled)| item.uncited.is_some() && !settled)
    }

    /// Number of rules on the page.
    fn rules(&self) -> usize {
        self.taken.iter().filter(|taken| self.items[taken.item].share == Share::Rules).count()
    }

    /// Takes items of a share while they fit into `room`; shortened ones if `may_cut`.
    fn fill(&mut self, of: Share, room: usize, may_cut: bool, count: Count<'_>) -> Result<()> {
        if of == Share::Files {
            return self.fill_files(room, count);
        }
        let mut room = room.min(self.left);
        let (mut misfits, mut priced) = (0, 0);
        for at in 0..self.items.len() {
            if self.items[at].share != of || self.settled[at] {
                continue;
            }
            if misfits >= MAX_MISFITS || priced >= MAX_PRICED || room == 0 {
                break;
            }
            if self.is_redundant(at) {
                self.settled[at] = true;
                continue;
            }
            let part = self.items[at].part;
            let frame = if self.opened.contains(&part) {
                0
            } else {
                count(&format!("\n{}\n", self.form.heading(part)))?
            };
            priced += 1;
            match self.fitted(at, room.saturating_sub(frame), may_cut, count)? {
                Some(taken) => {
                    let cost = taken.tokens + frame;
                    room = room.saturating_sub(cost);
                    self.left = self.left.saturating_sub(cost);
                    self.opened.push(part);
                    self.settled[at] = true;
                    self.taken.push(taken);
                    misfits = 0;
                }
                None => misfits += 1,
            }
        }
        Ok(())
    }

    /// Distributes the unused tokens.
    fn second_pass(&mut self, count: Count<'_>) -> Result<()> {
        self.fill(Share::Rules, self.left.min(self.size / TENTH), false, count)?;
        for (order, may_cut) in [(&SECOND[..WHOLE], false), (&SECOND[..], true)] {
            for of in order {
                if *of == Share::Done && !may_cut {
                    self.fill_files(self.left.min(self.size / FILES_DIVISOR), count)?;
                }
                self.grow(*of, may_cut, usize::MAX, count)?;
                if !may_cut && matches!(*of, Share::Request | Share::Task) {
                    self.grow(*of, true, self.size / REQUEST_DIVISOR, count)?;
                }
                let is_limited = *of == Share::Earlier && !may_cut;
                let room = if is_limited { self.left.min(self.size / TENTH) } else { self.left };
                self.fill(*of, room, may_cut, count)?;
            }
        }
        Ok(())
    }

    /// Drops items whose text a request holds since it was made longer. Whether there were any.
    fn drop_redundant(&mut self) -> bool {
        let count = self.taken.len();
        let is_redundant: Vec<bool> = self.taken.iter().map(|taken| self.is_redundant(taken.item)).collect();
        let mut gone = is_redundant.into_iter();
        let mut freed = 0;
        self.taken.retain(|taken| {
            let is_gone = gone.next().unwrap_or(false);
            freed += if is_gone { taken.tokens } else { 0 };
            !is_gone
        });
        self.left += freed;
        self.taken.len() < count
    }

    /// Whether a quoted request holds the text of an item.
    fn is_redundant(&self, at: usize) -> bool {
        let item = &self.items[at];
        if !item.unless_quoted {
            return false;
        }
        let text =
            item.text.split_once("] \"").map_or(item.text.as_str(), |(_, rest)| rest.trim_end_matches('"'));
        let text = text.trim_end_matches(['.', '…']);
        self.taken.iter().filter(|taken| taken.item != at).any(|taken| {
            let other = &self.items[taken.item];
            match item.share {
                Share::Names => taken.text.contains(item.name.as_str()),
                Share::Commands => taken.text.contains(&format!("$ {} ", item.name)),
                Share::Earlier => other.share == Share::Rules && taken.text.contains(text),
                _ => {
                    matches!(other.share, Share::Request | Share::Task)
                        && one_line(&taken.text, usize::MAX).contains(text)
                }
            }
        })
    }

    /// The item within `room`, shortened if it may be and if the rest is worth reading.
    fn fitted(&self, at: usize, room: usize, may_cut: bool, count: Count<'_>) -> Result<Option<Taken>> {
        let item = &self.items[at];
        let mut text = item.whole();
        let mut tokens = match self.prices[at].get() {
            Some(known) => known,
            None => count(&item.part.item(&text))?,
        };
        self.prices[at].set(Some(tokens));
        if tokens <= room {
            return Ok(Some(Taken { item: at, text, tokens, is_cut: false }));
        }
        let base = item.short.as_ref().unwrap_or(&item.text);
        if may_cut && item.short.is_some() {
            tokens = count(&item.part.item(base))?;
            if tokens <= room {
                return Ok(Some(Taken { item: at, text: base.clone(), tokens, is_cut: true }));
            }
        }
        if !may_cut || room < MIN_ITEM_TOKENS {
            return Ok(None);
        }
        if !item.may_shorten {
            // A long command or call.
            if text.chars().count() <= LONG_CHARS {
                return Ok(None);
            }
            let text = cut_end(&text, LONG_CHARS).into_owned();
            tokens = count(&item.part.item(&text))?;
            return Ok((tokens <= room).then_some(Taken { item: at, text, tokens, is_cut: true }));
        }
        let mut chars = base.chars().count();
        for _ in 0..MAX_CUTS {
            chars = (chars * room / tokens.max(1)).min(chars * 9 / 10);
            let cut = cut_outline(base, chars);
            text = format!("{}{cut}{}", item.lead, item.end);
            tokens = count(&item.part.item(&text))?;
            if tokens <= room {
                return Ok(Some(Taken { item: at, text, tokens, is_cut: true }));
            }
        }
        Ok(None)
    }

    /// Replaces shortened items of a share by longer ones of at most `most` tokens, as far as there is room: by whole ones
    /// unless `may_cut`.
    fn grow(&mut self, of: Share, may_cut: bool, most: usize, count: Count<'_>) -> Result<()> {
        for at in 0..self.taken.len() {
            if !self.taken[at].is_cut || self.items[self.taken[at].item].share != of {
                continue;
            }
            let room = self.left + self.taken[at].tokens;
            if let Some(longer) = self.fitted(self.taken[at].item, room.min(most), may_cut, count)?
                && longer.tokens > self.taken[at].tokens
            {
                self.left = room.saturating_sub(longer.tokens);
                self.taken[at] = longer;
            }
        }
        Ok(())
    }

    /// Shows as many files as fit into `room`: all with their notes, or else names, those of the changed files first, and
    /// on a small page their notes before the names of read ones.
    fn fill_files(&mut self, room: usize, count: Count<'_>) -> Result<()> {
        let (total, changed) = (self.shelf.len(), self.shelf.changed());
        if total == 0 || self.files.0.is_complete(total, changed) {
            return Ok(());
        }
        let room = (room + self.files.1).min(self.left + self.files.1);
        let (shelf, form) = (&self.shelf, self.form);
        let price = |shown: Shown| {
            let text = shelf.text(shown, form);
            count(&format!("\n{}\n{text}", form.heading(Part::Files)))
        };
        let all = Shown { files: total, notes: changed };
        let tokens = price(all)?;
        let mut best = self.files;
        if tokens <= room {
            best = (all, tokens);
        } else {
            let names = |best: &mut (Shown, usize), most: usize| {
                let notes = best.0.notes;
                widest(best.0.files, most, room, &|files| Shown { files, notes }, &price, best)
            };
            let has_notes_first = self.size < ALL_NAMES_TOKENS;
            names(&mut best, if has_notes_first { changed } else { total })?;
            if best.0.files >= changed {
                let files = best.0.files;
                widest(best.0.notes, changed, room, &|notes| Shown { files, notes }, &price, &mut best)?;
            }
            if has_notes_first {
                names(&mut best, total)?;
            }
        }
        self.left = (self.left + self.files.1).saturating_sub(best.1);
        self.files = best;
        Ok(())
    }

    /// Drops the least valuable items.
    fn drop_last(&mut self, drops: usize) {
        const VALUE: [Share; 12] = [
            Share::Background,
            Share::Names,
            Share::Commands,
            Share::Files,
            Share::Done,
            Share::State,
            Share::Open,
            Share::Earlier,
            Share::Next,
            Share::Rules,
            Share::Task,
            Share::Request,
        ];
        for _ in 0..drops {
            if self.taken.len() <= 1 && self.files.0.is_empty() {
                return;
            }
            for of in VALUE {
                if of == Share::Files && !self.files.0.is_empty() {
                    self.files.0 = self.files.0.half();
                    break;
                }
                let last = self.taken.iter().rposition(|taken| self.items[taken.item].share == of);
                if let Some(last) = last.filter(|_| self.taken.len() > 1) {
                    self.taken.remove(last);
                    break;
                }
            }
        }
    }

    fn assemble(&self) -> String {
        let mut out = String::new();
        let mut above = "";
        for &(part, heading) in self.form.sections() {
            let mut items: Vec<&Taken> =
                self.taken.iter().filter(|taken| self.items[taken.item].part == part).collect();
            let files =
                if part == Part::Files { self.shelf.text(self.files.0, self.form) } else { String::new() };
            if items.is_empty() && files.is_empty() {
                continue;
            }
            if heading != above || heading.is_empty() {
                if !out.is_empty() {
                    out.push('\n');
                }
                out.push_str(heading);
                if !heading.is_empty() {
                    out.push('\n');
                }
                above = heading;
            }
            items.sort_by_key(|taken| self.items[taken.item].place);
            items.iter().for_each(|taken| out.push_str(&part.item(&taken.text)));
            out.push_str(&files);
        }
        out
    }

    /// The most valuable item alone, cut until it fits: under its heading, else bare, else empty.
    fn smallest(&self, count: Count<'_>, max_tokens: usize) -> Result<String> {
        let Some(first) = self.items.first() else { return Ok(String::new()) };
        let framed = |text: &str| {
            format!(
                "{}\n{}",
                self.form.heading(first.part),
                first.part.item(&format!("{}{text}{}", first.lead, first.end))
            )
        };
        let bare = |text: &str| text.replace('\n', " ");
        for form in [&framed as &dyn Fn(&str) -> String, &bare] {
            if let Some(text) = longest_cut(&first.text, form, count, max_tokens)? {
                return Ok(text);
            }
        }
        Ok(String::new())
    }
}

/// The most of a list, above `known` and up to `most`, that fits into `room`, by bisection.
fn widest(
    known: usize,
    most: usize,
    room: usize,
    shown: &dyn Fn(usize) -> Shown,
    price: &dyn Fn(Shown) -> Result<usize>,
    best: &mut (Shown, usize),
) -> Result<()> {
    let (mut fits, mut too_many) = (known, most + 1);
    while too_many > fits + 1 {
        let middle = fits + (too_many - fits) / 2;
        let tokens = price(shown(middle))?;
        if tokens <= room {
            (fits, *best) = (middle, (shown(middle), tokens));
        } else {
            too_many = middle;
        }
    }
    Ok(())
}

/// The longest cut of `text` that fits in its form, by bisection.
fn longest_cut(
    text: &str,
    form: &dyn Fn(&str) -> String,
    count: Count<'_>,
    max_tokens: usize,
) -> Result<Option<String>> {
    // No vocabulary in use has tokens of more characters on average.
    let (mut fits, mut too_long) = (0, text.chars().count().min(max_tokens.saturating_mul(64)) + 1);
    let mut best = None;
    while too_long - fits > 1 {
        let middle = fits + (too_long - fits) / 2;
        let candidate = form(&cut_end(text, middle));
        if count(&candidate)? <= max_tokens {
            (fits, best) = (middle, Some(candidate));
        } else {
            too_long = middle;
        }
    }
    Ok(best)
}
