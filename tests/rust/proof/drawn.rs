//! Cases by chance, drawn in one go. Made of proptest's own parts, a case would take longer to draw than to be tried;
//! what is left to do by hand is to make a failing list shorter.

use std::ops::Range;
use std::sync::OnceLock;

use foldline::plan::{Keep, Unit};
use proptest::prelude::Rng as _;
use proptest::strategy::{NewTree, Strategy, ValueTree};
use proptest::test_runner::{TestRng, TestRunner};

use super::model::{
    Bound, Message, Part, Who, call, fixed_result, forms, named_result, nameless_call, result, text,
};

/// A transcript and what is asked of it.
#[derive(Clone, Debug)]
pub struct Case {
    pub messages: Vec<Message>,
    /// Whether names answer calls.
    pub takes_names: bool,
    /// What is set aside for the summary.
    pub summary_tokens: u64,
    pub keep: Keep,
    /// Another of its kind: of two budgets the larger.
    pub other_keep: Keep,
    /// A message that comes later.
    pub more: Message,
}

/// Which keeps are asked for.
#[derive(Clone, Copy, Debug)]
pub enum Asked {
    /// All of them.
    Any,
    /// Those that ask for at least something whatever the whole is.
    Fixed,
    /// All but `KeepFraction`, which shrinks by definition.
    Lasting,
    /// Budgets.
    Budgets,
}

/// Cases with lists of so many messages.
#[derive(Clone, Debug)]
pub struct Cases {
    lengths: Range<usize>,
    asked: Asked,
}

impl Cases {
    pub fn new(lengths: Range<usize>, asked: Asked) -> Self {
        Cases { lengths, asked }
    }
}

impl Strategy for Cases {
    type Tree = Shorter;
    type Value = Case;

    fn new_tree(&self, runner: &mut TestRunner) -> NewTree<Self> {
        let mut dice = Dice(runner.rng());
        let length = self.lengths.start + dice.below(self.lengths.len());
        let messages = (0..length).map(|_| dice.message()).collect();
        let (keep, other_keep) = dice.keeps(self.asked);
        let case = Case {
            messages,
            takes_names: dice.one_in(2),
            summary_tokens: dice.of(&[0, 5, 40]),
            keep,
            other_keep,
            more: dice.message(),
        };
        Ok(Shorter { case, next: 0, last: None })
    }
}

/// A case that is made shorter a message at a time.
#[derive(Clone, Debug)]
pub struct Shorter {
    case: Case,
    next: usize,
    last: Option<Message>,
}

impl ValueTree for Shorter {
    type Value = Case;

    fn current(&self) -> Case {
        self.case.clone()
    }

    fn simplify(&mut self) -> bool {
        if self.next >= self.case.messages.len() {
            return false;
        }
        self.last = Some(self.case.messages.remove(self.next));
        true
    }

    fn complicate(&mut self) -> bool {
        let Some(message) = self.last.take() else { return false };
        self.case.messages.insert(self.next, message);
        self.next += 1;
        true
    }
}

struct Dice<'r>(&'r mut TestRng);

impl Dice<'_> {
    /// A number below `n`. (That some come a little more often than others does no harm here.)
    fn below(&mut self, n: usize) -> usize {
        self.0.next_u32() as usize % n
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    fn chars(&mut self) -> usize {
        match self.below(7) {
            0..4 => self.below(12),
            4 | 5 => 12 + self.below(48),
            _ => 60 + self.below(140),
        }
    }

    fn id(&mut self) -> char {
        self.of(&['a', 'b', 'c'])
    }

    fn part(&mut self) -> Part {
        match self.below(13) {
            0..3 => text(self.chars()),
            3..7 => call(self.id()),
            7..11 => result(self.id(), self.chars()),
            11 => nameless_call(self.of(&['n', 'm'])),
            _ => named_result(self.of(&[Some('n'), Some('m'), None]), self.chars()),
        }
    }

    /// A message of one of the forty forms, or one of several parts in any order.
    fn message(&mut self) -> Message {
        static FORMS: OnceLock<Vec<Message>> = OnceLock::new();
        let message = match self.below(25) {
            0..12 => {
                let forms = FORMS.get_or_init(forms);
                forms[self.below(forms.len())].clone()
            }
            12..22 => self.mixed(),
            22 | 23 => {
                let id = self.id();
                Message::new(Who::Assistant, Bound::Free, vec![call(id), fixed_result(id, self.below(30))])
            }
            _ => {
                let (who, text) = self.of(&[(Who::User, "Go on."), (Who::Assistant, "Understood.")]);
                Message::new(who, Bound::Free, vec![Part::Text(text.to_owned())])
            }
        };
        if self.one_in(12) { message.pinned() } else { message }
    }

    fn mixed(&mut self) -> Message {
        let who = self.of(&[Who::User, Who::Assistant]);
        let mut parts: Vec<Part> = (0..1 + self.below(4)).map(|_| self.part()).collect();
        // Only the model calls.
        parts.retain(|part| who == Who::Assistant || !matches!(part, Part::Call { .. }));
        // Without a call a turn of Gemini's model is bound to the next.
        let nameless = parts.iter().any(|part| matches!(part, Part::Result { id: None, .. }));
        let calls = parts.iter().any(|part| matches!(part, Part::Call { .. }));
        let bound = if who == Who::Assistant && nameless && !calls { Bound::Turn } else { Bound::Free };
        Message::new(who, bound, parts)
    }

    fn keeps(&mut self, asked: Asked) -> (Keep, Keep) {
        let kind = match asked {
            Asked::Any => self.below(9),
            Asked::Fixed => self.below(5),
            Asked::Lasting => self.of(&[0, 1, 2, 3, 4, 5]),
            Asked::Budgets => 5,
        };
        let number = |dice: &mut Self, below: usize| dice.below(below) as u64;
        match kind {
            0 | 1 => (Keep::Tokens(number(self, 300)), Keep::Tokens(number(self, 300))),
            2 => (Keep::Messages(number(self, 14)), Keep::Messages(number(self, 14))),
            3 => (Keep::Turns(number(self, 8)), Keep::Turns(number(self, 8))),
            4 => (Keep::Iterations(number(self, 10)), Keep::Iterations(number(self, 10))),
            5..8 => {
                let less = number(self, 600);
                (Keep::Fit(less), Keep::Fit(less + number(self, 100)))
            }
            _ => {
                let unit = self.of(&[Unit::Tokens, Unit::Messages]);
                let part = |dice: &mut Self| Keep::Fraction(dice.below(11) as f64 / 10.0, unit);
                (part(self), part(self))
            }
        }
    }
}
