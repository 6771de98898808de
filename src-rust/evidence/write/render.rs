//! Writes the page within a budget.
//!
//! Every section has a share of the budget. In a first pass each takes whole items within its share; in a second pass what
//! is left goes to the sections in the order of their value, first to items that were shortened. The counter may be slow
//! (a callable of the user), so the number of calls is bounded: one for an item that enters, a few for one that is
//! shortened, none for the long tail.

use super::form::{Form, Part};
use super::page::{Item, Share, candidates};
use super::shelf::Shelf;
use crate::error::Result;
use crate::evidence::Evidence;
use crate::evidence::text::{cut_end, cut_whole, one_line};

/// Shares of a page of 500, 1,000, 2,000 and 4,000 tokens.
const SHARES: [(Share, [usize; 4]); 9] = [
    (Share::Request, [120, 200, 350, 600]),
    (Share::Task, [60, 100, 250, 600]),
    (Share::Rules, [120, 220, 450, 900]),
    (Share::State, [60, 120, 250, 450]),
    (Share::Open, [40, 80, 150, 300]),
    (Share::Next, [50, 120, 250, 450]),
    (Share::Files, [30, 90, 180, 400]),
    (Share::Commands, [0, 30, 50, 100]),
    (Share::Names, [20, 40, 70, 200]),
];
const SIZES: [usize; 4] = [500, 1_000, 2_000, 4_000];
/// The order in which what is left is given away.
const SECOND_PASS: [Share; 11] = [
    Share::Request,
    Share::Task,
    Share::Rules,
    Share::Next,
    Share::Open,
    Share::State,
    Share::Files,
    Share::Earlier,
    Share::Commands,
    Share::Names,
    Share::Background,
];
/// Consecutive items of a section that do not fit before the rest is skipped.
const MAX_MISFITS: usize = 5;
/// Most items of a section that are priced.
const MAX_PRICED: usize = 60;
/// Fewest tokens of a shortened item; a shorter one is not worth its place.
const MIN_ITEM_TOKENS: usize = 24;
/// Most attempts to shorten a text to a number of tokens.
const MAX_CUTS: usize = 8;

/// The share of a section in a page of `max_tokens`.
fn share(of: Share, max_tokens: usize) -> usize {
    let Some((_, row)) = SHARES.iter().find(|(share, _)| *share == of) else { return 0 };
    let above = SIZES.iter().position(|size| *size >= max_tokens);
    match above {
        Some(0) => row[0] * max_tokens / SIZES[0],
        Some(at) => {
            let (low, high) = (SIZES[at - 1], SIZES[at]);
            row[at - 1] + (row[at].saturating_sub(row[at - 1])) * (max_tokens - low) / (high - low)
        }
        None => row[3].saturating_mul(max_tokens) / SIZES[3],
    }
}

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
    files: (usize, usize),
    /// Whether each file has a line and a note.
    has_notes: bool,
    opened: Vec<Part>,
    left: usize,
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
    let shelf = Shelf::new(evidence);
    if items.is_empty() && shelf.len() == 0 {
        return Ok(String::new());
    }
    let settled = vec![false; items.len()];
    let mut page = Page {
        form,
        items,
        shelf,
        taken: Vec::new(),
        files: (0, 0),
        has_notes: true,
        opened: Vec::new(),
        left: max_tokens,
        settled,
    };
    for (of, _) in SHARES {
        let least = if of == Share::Request { 2 * MIN_ITEM_TOKENS } else { 0 };
        let room = share(of, max_tokens).max(least);
        page.fill(of, room, count)?;
    }
    page.second_pass(count)?;
    if page.drop_redundant() {
        page.second_pass(count)?;
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
        if page.taken.len() <= 1 && page.files.0 == 0 {
            return page.smallest(count, max_tokens);
        }
        // In doubling steps, so that a counter that is not additive does not make this slow.
        page.drop_last(drops);
        drops *= 2;
    }
}

impl Page<'_> {
    /// Takes items of a share while they fit into `room`.
    fn fill(&mut self, of: Share, room: usize, count: Count<'_>) -> Result<()> {
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
            match self.fitted(at, room.saturating_sub(frame), count)? {
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

    /// Gives away what is left.
    fn second_pass(&mut self, count: Count<'_>) -> Result<()> {
        for of in SECOND_PASS {
            self.grow(of, count)?;
            let room = self.left;
            self.fill(of, room, count)?;
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
                Share::Earlier => other.share == Share::Rules && taken.text.contains(text),
                _ => {
                    matches!(other.share, Share::Request | Share::Task)
                        && one_line(&taken.text, usize::MAX).contains(text)
                }
            }
        })
    }

    /// The item within `room`, shortened if it may be and if the rest is worth reading.
    fn fitted(&self, at: usize, room: usize, count: Count<'_>) -> Result<Option<Taken>> {
        let item = &self.items[at];
        let mut text = item.whole();
        let mut tokens = count(&item.part.item(&text))?;
        if tokens <= room {
            return Ok(Some(Taken { item: at, text, tokens, is_cut: false }));
        }
        if !item.may_shorten || room < MIN_ITEM_TOKENS {
            return Ok(None);
        }
        let mut chars = item.text.chars().count();
        for _ in 0..MAX_CUTS {
            chars = (chars * room / tokens.max(1)).min(chars * 9 / 10);
            let cut = cut_whole(&item.text, chars);
            text = format!("{}{cut}{}", item.lead, item.end);
            tokens = count(&item.part.item(&text))?;
            if tokens <= room {
                return Ok(Some(Taken { item: at, text, tokens, is_cut: true }));
            }
        }
        Ok(None)
    }

    /// Makes shortened items of a share longer with what is left.
    fn grow(&mut self, of: Share, count: Count<'_>) -> Result<()> {
        for at in 0..self.taken.len() {
            if !self.taken[at].is_cut || self.items[self.taken[at].item].share != of {
                continue;
            }
            let room = self.left + self.taken[at].tokens;
            if let Some(longer) = self.fitted(self.taken[at].item, room, count)?
                && longer.tokens > self.taken[at].tokens
            {
                self.left = room.saturating_sub(longer.tokens);
                self.taken[at] = longer;
            }
        }
        Ok(())
    }

    /// Shows as many files as fit into `room`, by bisection; without notes if not all fit with them.
    fn fill_files(&mut self, room: usize, count: Count<'_>) -> Result<()> {
        let total = self.shelf.len();
        if total == 0 || (self.files.0 == total && self.has_notes) {
            return Ok(());
        }
        let room = (room + self.files.1).min(self.left + self.files.1);
        let list = |shown: usize, has_notes: bool| {
            let text = self.shelf.text(shown, self.form, has_notes);
            count(&format!("\n{}\n{text}", self.form.heading(Part::Files)))
        };
        // Most lists fit as a whole.
        let all = list(total, true)?;
        if all <= room {
            self.left = (self.left + self.files.1).saturating_sub(all);
            self.files = (total, all);
            self.has_notes = true;
            return Ok(());
        }
        let price = |shown: usize| list(shown, false);
        let known = if self.has_notes { (0, 0) } else { self.files };
        let (mut best, mut fits, mut too_many) = (known, known.0, total + 1);
        while too_many - fits > 1 && best.0 < total {
            let middle = fits + (too_many - fits) / 2;
            let tokens = price(middle)?;
            if tokens <= room {
                (fits, best) = (middle, (middle, tokens));
            } else {
                too_many = middle;
            }
        }
        self.left = (self.left + self.files.1).saturating_sub(best.1);
        self.files = best;
        self.has_notes = false;
        Ok(())
    }

    /// Drops the least valuable items.
    fn drop_last(&mut self, drops: usize) {
        const VALUE: [Share; 11] = [
            Share::Background,
            Share::Names,
            Share::Commands,
            Share::Files,
            Share::State,
            Share::Open,
            Share::Earlier,
            Share::Next,
            Share::Rules,
            Share::Task,
            Share::Request,
        ];
        for _ in 0..drops {
            if self.taken.len() <= 1 && self.files.0 == 0 {
                return;
            }
            for of in VALUE {
                if of == Share::Files && self.files.0 > 0 {
                    self.files.0 /= 2;
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
            let files = if part == Part::Files {
                self.shelf.text(self.files.0, self.form, self.has_notes)
            } else {
                String::new()
            };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_follow_the_table() {
        assert_eq!(share(Share::Request, 500), 120);
        assert_eq!(share(Share::Rules, 1_500), 335);
        assert_eq!(share(Share::Task, 8_000), 1_200);
        assert_eq!(share(Share::Names, 250), 10);
        for size in [500, 1_000, 2_000, 4_000] {
            let sum: usize = SHARES.iter().map(|(of, _)| share(*of, size)).sum();
            assert!(sum <= size, "{sum} of {size}");
        }
    }
}
