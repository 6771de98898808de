//! What a thread knows of the messages that it met, and whether it pays to look for more.

use super::told::Told;
use crate::count::heuristics::Heuristic;
use crate::formats::Format;
use crate::json::Forms;

/// Formulas and dialects whose forms are known at a time.
const MOST_SETS: usize = 4;

/// What it costs to learn a form, in messages that are met again: its reader is watched three times, and often in vain.
const LEARNING: u32 = 512;

/// What may be spent on forms which are perhaps not met again: at first, and at most.
const CREDIT: (u32, u32) = (16 * LEARNING, 64 * LEARNING);

/// Most lists that are left to others at a time.
const LONGEST_REST: u32 = 255;

/// What a thread met.
pub(super) struct Met {
    /// The dialect that messages spoke last, of those that were judged.
    dialect: Format,
    /// What was used last comes first.
    sets: Vec<Set>,
}

/// The forms of the messages of a dialect, with what they cost by a formula.
pub(super) struct Set {
    pub heuristic: Heuristic,
    pub dialect: Format,
    pub forms: Forms<Told>,
    /// What may be spent on learning.
    credit: u32,
    /// Lists that are left to others before one is tried again, and how many that were the last time.
    rest: u32,
    last_rest: u32,
}

/// What came of a list.
pub(super) struct Outcome {
    /// Whether it was read to its end.
    pub is_read: bool,
    /// Messages that had a known form.
    pub known: usize,
    /// Messages whose forms were learned, or could not be.
    pub learned: u32,
    /// Whether the other ones cost more than was gained.
    pub is_in_vain: bool,
    /// The dialect of the messages as far as they were read.
    pub spoken: Format,
}

impl Met {
    /// Nothing.
    pub const fn nothing() -> Self {
        Met { dialect: Format::OpenAiChat, sets: Vec::new() }
    }

    /// What is known for a formula and a dialect, or else for the one that messages spoke last.
    pub fn set(&mut self, heuristic: Heuristic, format: Option<Format>) -> &mut Set {
        let dialect = format.unwrap_or(self.dialect);
        let known = self.sets.iter().position(|set| set.heuristic == heuristic && set.dialect == dialect);
        match known {
            Some(0) => {}
            Some(known) => self.sets[..=known].rotate_right(1),
            None => {
                self.sets.truncate(MOST_SETS - 1);
                self.sets.insert(0, Set::new(heuristic, dialect));
            }
        }
        &mut self.sets[0]
    }

    /// Notes what came of a list that was read with [`Met::set`]. Where the messages speak another dialect than was taken for
    /// theirs, those of the next list may speak it too.
    pub fn note(&mut self, outcome: &Outcome) {
        let Some(set) = self.sets.first_mut() else { return };
        set.note(outcome);
        if set.dialect != outcome.spoken {
            self.dialect = outcome.spoken;
        }
    }
}

impl Set {
    fn new(heuristic: Heuristic, dialect: Format) -> Self {
        Set { heuristic, dialect, forms: Forms::new(), credit: CREDIT.0, rest: 0, last_rest: 0 }
    }

    /// Whether a list is left to others.
    pub fn rests(&mut self) -> bool {
        let rests = self.rest > 0;
        self.rest = self.rest.saturating_sub(1);
        self.credit = CREDIT.1.min(self.credit + u32::from(rests));
        rests
    }

    /// How many forms may be learned.
    pub fn may_learn(&self) -> u32 {
        self.credit / LEARNING
    }

    fn note(&mut self, outcome: &Outcome) {
        let earned = u32::try_from(outcome.known).unwrap_or(CREDIT.1).min(CREDIT.1);
        let spent = outcome.learned.saturating_mul(LEARNING);
        self.credit = CREDIT.1.min(self.credit.saturating_sub(spent) + earned);
        // Forms that were learned show what they are worth in the next list.
        let was_worth_it = outcome.is_read
            && outcome.spoken == self.dialect
            && !outcome.is_in_vain
            && (outcome.known > 0 || self.last_rest == 0);
        // One that was does not speak for those before, where they differ.
        self.last_rest =
            if was_worth_it { self.last_rest / 2 } else { LONGEST_REST.min(2 * self.last_rest + 1) };
        self.rest = if was_worth_it { 0 } else { self.last_rest };
    }
}

#[cfg(test)]
impl Met {
    /// Has the next list tried.
    pub fn wake(&mut self) {
        self.sets.iter_mut().for_each(|set| set.rest = 0);
    }

    /// Messages that had a known form, or one that was learned.
    pub fn hits(&self) -> u64 {
        self.sets.iter().map(|set| set.forms.hits()).sum()
    }
}
