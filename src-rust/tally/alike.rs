//! Estimates of messages that are written alike: see [`crate::json::read_list`].
//!
//! What a message costs by a formula depends on its form and on the lengths of some strings. Which strings these are is
//! not known to this file: the reader of the message's dialect is watched. A string that it looks into belongs to the
//! form; of the others it can know no more than how long they are, where it asks. So any message of the same form has
//! the same role and cost, but for these lengths; and that is tried with other lengths before a form is used.
//!
//! Whatever is unusual is declined, errors among it, and read by [`super::read_at`].

mod met;
mod told;

use std::cell::RefCell;

use self::met::{Met, Outcome};
use self::told::Told;
use crate::count::counter::GoOn;
use crate::count::estimate::Estimate;
use crate::count::heuristics::Heuristic;
use crate::error::{Error, Result};
use crate::formats::{Format, Judge, Said, read_message, sniff};
use crate::json::{Form, Item, ReadItems, TapeNode, behind_blanks, read_list};
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
    MET.try_with(|met| {
        // Whoever is asked whether to go on may count as well.
        let mut met = met.try_borrow_mut().ok()?;
        let set = met.set(heuristic, format);
        if set.rests() {
            return None;
        }
        let mut reading = Reading {
            heuristic,
            dialect: set.dialect,
            judge: format.is_none().then(|| Judge::new(around.key)),
            estimate: Estimate::new(heuristic),
            is_stored: place == Place::Stored,
            learned: 0,
            may_learn: set.may_learn(),
            whole: 0,
            is_stopped: false,
            go_on,
        };
        let end = read_list(json, around.at, &mut set.forms, &mut reading);
        if reading.is_stopped {
            return Some(Err(Error::interrupted()));
        }
        let outcome = reading.outcome(end.is_some_and(|end| around.is_closed(json, end)));
        met.note(&outcome);
        let is_told = outcome.is_read && outcome.spoken == reading.dialect;
        is_told.then_some(Ok((reading.dialect, reading.estimate)))
    })
    .ok()?
}

/// What stands around a list.
struct Around {
    /// Where it begins.
    at: usize,
    key: Option<&'static str>,
}

impl Around {
    fn of(json: &[u8], place: Place) -> Option<Self> {
        let mut at = behind_blanks(json, 0);
        if json.get(at) == Some(&b'[') {
            return Some(Around { at, key: None });
        }
        if place != Place::Stored {
            return None;
        }
        for part in [&b"{"[..], b"\"messages\"", b":"] {
            if !json.get(at..)?.starts_with(part) {
                return None;
            }
            at = behind_blanks(json, at + part.len());
        }
        (json.get(at) == Some(&b'[')).then_some(Around { at, key: Some("messages") })
    }

    /// Whether nothing more stands behind it.
    fn is_closed(&self, json: &[u8], end: usize) -> bool {
        let mut at = behind_blanks(json, end);
        if self.key.is_some() {
            if json.get(at) != Some(&b'}') {
                return false;
            }
            at = behind_blanks(json, at + 1);
        }
        at == json.len()
    }
}

/// Messages of a list that may be read whole, and not to learn from them, before it is asked whether most are.
const MOST_IN_VAIN: usize = 16;

/// Messages at the beginning of a list of which one has a known form, or the list is left to others.
const FIRST: usize = 8;

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
    /// Messages that had a known form.
    fn known(&self) -> usize {
        self.estimate.messages().saturating_sub(self.whole)
    }

    /// Messages that were read whole and taught nothing.
    fn in_vain(&self) -> usize {
        self.whole.saturating_sub(self.learned as usize)
    }

    /// Whether these cost more than was gained: to read one by itself, and not with all others, takes some five times what
    /// one with a known form saves (of 100 bytes 320 ns, 85 in a list that is read at once, 41 by its form).
    fn is_in_vain(&self) -> bool {
        self.known() < 6 * self.in_vain()
    }

    /// What came of it.
    fn outcome(&self, is_read: bool) -> Outcome {
        Outcome {
            is_read,
            known: self.known(),
            learned: self.learned,
            is_in_vain: self.is_in_vain(),
            spoken: self.judge.map_or(self.dialect, |judge| judge.format()),
        }
    }

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
        let is_strange = self.whole >= FIRST && self.known() == 0;
        if is_strange || (self.in_vain() > MOST_IN_VAIN && self.is_in_vain()) {
            return None;
        }
        if self.learned >= self.may_learn || !Form::may_be_of(item) {
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
