//! Estimates of messages that are written alike: see [`crate::json::read_list`].
//!
//! What a message costs by a formula depends on its form and on the lengths of some strings. Which strings these are is
//! not known to this file: the reader of the message's dialect is watched. A string that it looks into belongs to the
//! form; of the others it can know no more than how long they are, where it asks. So any message of the same form has
//! the same role and cost, but for these lengths; and that is tried with other lengths before a form is used.
//!
//! Whatever is unusual is declined, errors among it, and read by [`super::read_at`].

mod told;

use std::cell::RefCell;

use self::told::Told;
use crate::count::counter::GoOn;
use crate::count::estimate::Estimate;
use crate::count::heuristics::Heuristic;
use crate::error::{Error, Result};
use crate::formats::{Format, Judge, Said, read_message, sniff};
use crate::json::{Form, Forms, Item, ReadItems, TapeNode, read_list};
use crate::node::{Kind, Node};

thread_local! {
    /// What this thread met last.
    static MET: RefCell<Met> = const { RefCell::new(Met::nothing()) };
}

/// Where a list stands in a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// It is the document.
    Document,
    /// It is a stored conversation by itself, or an object has it under `messages` and nothing else.
    Stored,
}

/// Estimates the messages of a JSON list by a formula; without a format, in the dialect that they speak. `None` where
/// they are to be read another way. O(bytes).
///
/// # Errors
/// `interrupted` when `go_on` said so.
pub fn estimate(
    heuristic: Heuristic,
    json: &[u8],
    format: Option<Format>,
    place: Place,
    go_on: GoOn<'_>,
) -> Option<Result<(Format, Estimate)>> {
    let around = Around::of(json, place)?;
    MET.with(|met| {
        // Whoever is asked whether to go on may count as well.
        let mut met = met.try_borrow_mut().ok()?;
        if met.rests() {
            return None;
        }
        met.tune(heuristic, format);
        let mut reading = Reading {
            heuristic,
            dialect: met.dialect,
            judge: format.is_none().then(|| Judge::new(around.key)),
            estimate: Estimate::new(heuristic),
            is_stored: place == Place::Stored,
            learned: 0,
            may_learn: met.may_learn,
            whole: 0,
            is_stopped: false,
            go_on,
        };
        let end = read_list(json, around.at, &mut met.forms, &mut reading);
        if reading.is_stopped {
            return Some(Err(Error::interrupted()));
        }
        let is_read = end.is_some_and(|end| around.is_closed(json, end));
        met.note(&reading, is_read);
        let is_told = reading.judge.is_none_or(|judge| judge.format() == reading.dialect);
        (is_read && is_told).then_some(Ok((reading.dialect, reading.estimate)))
    })
}

/// What stands around a list.
struct Around {
    /// Where it begins.
    at: usize,
    key: Option<&'static str>,
}

impl Around {
    fn of(json: &[u8], place: Place) -> Option<Self> {
        let rest = behind_blanks(json);
        let at = |rest: &[u8]| json.len() - rest.len();
        if rest.starts_with(b"[") {
            return Some(Around { at: at(rest), key: None });
        }
        if place != Place::Stored {
            return None;
        }
        let mut rest = rest;
        for part in [&b"{"[..], b"\"messages\"", b":"] {
            rest = behind_blanks(rest.strip_prefix(part)?);
        }
        rest.starts_with(b"[").then(|| Around { at: at(rest), key: Some("messages") })
    }

    /// Whether nothing more stands behind it.
    fn is_closed(&self, json: &[u8], end: usize) -> bool {
        let rest = behind_blanks(json.get(end..).unwrap_or_default());
        match self.key {
            Some(_) => rest.strip_prefix(b"}").is_some_and(|rest| behind_blanks(rest).is_empty()),
            None => rest.is_empty(),
        }
    }
}

/// What stands behind the blanks that a text begins with, such as JSON has.
fn behind_blanks(text: &[u8]) -> &[u8] {
    let blanks = text.iter().take_while(|byte| matches!(byte, b' ' | b'\n' | b'\r' | b'\t')).count();
    text.get(blanks..).unwrap_or_default()
}

/// What a thread knows of the messages that it met.
struct Met {
    /// The formula and the dialect for which the forms are known.
    heuristic: Heuristic,
    dialect: Format,
    forms: Forms<Told>,
    /// How many messages may be watched: those that were in vain cost more than they give.
    may_learn: u32,
    /// Lists that are left to others before one is tried again.
    rest: u32,
    /// As many were left to others the last time.
    last_rest: u32,
}

/// Messages that may be watched before one helped.
const FIRST_TRIES: u32 = 64;

/// Messages that were met again which pay for watching another; each list pays for one.
const PAYS: usize = 16;

/// Messages of a list that may be read whole, and not to learn from them, before it is asked whether most are.
const MOST_IN_VAIN: usize = 64;

/// Most lists that are left to others at a time.
const LONGEST_REST: u32 = 255;

impl Met {
    const fn nothing() -> Self {
        Met {
            heuristic: Heuristic::CharsDiv4,
            dialect: Format::OpenAiChat,
            forms: Forms::new(),
            may_learn: FIRST_TRIES,
            rest: 0,
            last_rest: 0,
        }
    }

    /// Whether a list is left to others.
    fn rests(&mut self) -> bool {
        let rests = self.rest > 0;
        self.rest = self.rest.saturating_sub(1);
        rests
    }

    /// Forgets what is of no use for that formula and dialect.
    fn tune(&mut self, heuristic: Heuristic, format: Option<Format>) {
        let dialect = format.unwrap_or(self.dialect);
        if self.heuristic != heuristic || self.dialect != dialect {
            let Met { rest, last_rest, .. } = *self;
            *self = Met { heuristic, dialect, rest, last_rest, ..Met::nothing() };
        }
    }

    /// Notes what came of a list.
    fn note(&mut self, reading: &Reading<'_>, is_read: bool) {
        let known = reading.estimate.messages().saturating_sub(reading.whole);
        self.may_learn = self.may_learn.saturating_sub(reading.learned);
        let paid = u32::try_from(1 + known / PAYS).unwrap_or(FIRST_TRIES);
        self.may_learn = FIRST_TRIES.min(self.may_learn + paid);
        let spoken = reading.judge.map_or(self.dialect, |judge| judge.format());
        // What is read whole is looked at twice.
        let was_worth_it = is_read
            && spoken == self.dialect
            && known >= reading.whole.saturating_sub(reading.learned as usize);
        self.last_rest = if was_worth_it { 0 } else { LONGEST_REST.min(2 * self.last_rest + 1) };
        self.rest = self.last_rest;
        // The next list may be in the same.
        self.tune(self.heuristic, Some(spoken));
    }
}

/// A list that is read.
struct Reading<'g> {
    heuristic: Heuristic,
    dialect: Format,
    /// `None` where the caller named the dialect.
    judge: Option<Judge>,
    estimate: Estimate,
    is_stored: bool,
    learned: u32,
    may_learn: u32,
    /// Messages that had no known form.
    whole: usize,
    is_stopped: bool,
    go_on: GoOn<'g>,
}

impl Reading<'_> {
    /// Hears what a message says of its dialect; `None` where it cannot be in the one that it is read in.
    #[inline(always)]
    fn hear(&mut self, index: usize, said: Option<Said>) -> Option<()> {
        let Some(judge) = &mut self.judge else { return Some(()) };
        judge.note(index, said?).ok()?;
        judge.allows(self.dialect).then_some(())
    }
}

impl ReadItems for Reading<'_> {
    type Told = Told;

    #[inline(always)]
    fn by_form(&mut self, told: &Told, item: &Item<'_>) -> Option<()> {
        let index = self.estimate.messages();
        if index == 0 && self.is_stored && !told.tells_messages {
            return None;
        }
        self.hear(index, told.said)?;
        self.estimate.add_message(told.role, told.sum_of(self.heuristic, item)).ok()
    }

    fn whole(&mut self, item: &TapeNode<'_>) -> Option<Option<(Form, Told)>> {
        let index = self.estimate.messages();
        if item.kind() != Kind::Object || (index == 0 && self.is_stored && !sniff::tells_messages(item)) {
            return None;
        }
        if self.judge.is_some() {
            self.hear(index, Said::by(item).ok())?;
        }
        read_message(item, self.dialect, &mut self.estimate).ok()?;
        self.whole += 1;
        // What is read whole is looked at twice.
        let in_vain = self.whole.saturating_sub(self.learned as usize);
        if in_vain > MOST_IN_VAIN && in_vain > self.estimate.messages() / 2 {
            return None;
        }
        if self.learned >= self.may_learn {
            return Some(None);
        }
        self.learned += 1;
        Some(Told::by(self.heuristic, self.dialect, item))
    }

    fn may_go_on(&mut self) -> bool {
        self.is_stopped = !(self.go_on)();
        !self.is_stopped
    }
}

#[cfg(test)]
mod tests;
