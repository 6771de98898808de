//! A plan as data: one action and one reason for every message, and what it is expected to cost.

use serde::{Deserialize, Serialize};

use crate::formats::Format;

/// Version of the JSON form.
pub const PLAN_VERSION: u32 = 1;

/// What happens to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// It stays as it is.
    Keep,
    /// It stays as it is because it is pinned.
    Pin,
    /// Its results become a placeholder.
    Clear,
    /// Of its results the head and the tail stay.
    Shorten,
    /// It goes into the summary.
    Summarize,
    /// It goes.
    Drop,
}

/// Why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// A leading system or developer message.
    Head,
    /// The caller pinned it.
    Pinned,
    /// It belongs to a group with a pinned message.
    PinnedGroup,
    /// It belongs to a group with an unanswered call.
    OpenCall,
    /// It lies at or behind the cut.
    Recent,
    /// Nothing is folded.
    NothingToFold,
    /// It lies before the cut.
    BeforeCut,
    /// It is an earlier summary, merged into the new one.
    EarlierSummary,
    /// Its results had to go for the rest to fit.
    ClearedToFit,
    /// Its results were too long for the rest to fit.
    ShortenedToFit,
}

impl Action {
    /// The public name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Action::Keep => "keep",
            Action::Pin => "pin",
            Action::Clear => "clear",
            Action::Shorten => "shorten",
            Action::Summarize => "summarize",
            Action::Drop => "drop",
        }
    }
}

impl Reason {
    /// The public name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Reason::Head => "head",
            Reason::Pinned => "pinned",
            Reason::PinnedGroup => "pinned_group",
            Reason::OpenCall => "open_call",
            Reason::Recent => "recent",
            Reason::NothingToFold => "nothing_to_fold",
            Reason::BeforeCut => "before_cut",
            Reason::EarlierSummary => "earlier_summary",
            Reason::ClearedToFit => "cleared_to_fit",
            Reason::ShortenedToFit => "shortened_to_fit",
        }
    }
}

/// A result whose content changes. Holds no text: the original is cut when the plan is applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// The message.
    pub message: usize,
    /// The part, counted within the message.
    pub part: usize,
    /// Code points that stay at the head and at the tail; `None` where the content becomes the placeholder.
    pub kept_chars: Option<(usize, usize)>,
}

/// Something the caller should know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Warning {
    /// A stable code: `orphan_result`, `open_call`, `pin_grown`, `lone_surrogates`.
    pub code: String,
    /// The message, where one is concerned.
    pub index: Option<usize>,
}

/// What is done to a transcript.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Version of this form.
    pub version: u32,
    /// The dialect of the messages.
    pub format: String,
    /// Number of leading messages that always stay; the summary stands behind them.
    pub head: usize,
    /// The boundary: before it only head, pinned and open messages stay. 0 where nothing is folded.
    pub cut: usize,
    /// The part of a turn that is folded, where the cut lies inside one.
    pub turn_prefix: Option<(usize, usize)>,
    /// One action a message.
    pub actions: Vec<Action>,
    /// One reason a message.
    pub reasons: Vec<Reason>,
    /// Tokens of the request as it is: messages and overhead.
    pub tokens_before: u64,
    /// Tokens of what stays, placeholders and shortened text included, without overhead and summary.
    pub tokens_kept: u64,
    /// Tokens that are added once a request.
    pub overhead: u64,
    /// Tokens set aside for the summary.
    pub summary_tokens: u64,
    /// The least that `FitTokens` could reach.
    pub floor: u64,
    /// The kind of these counts.
    pub count_kind: String,
    /// Results whose content changes.
    pub edits: Vec<Edit>,
    /// What the caller should know.
    pub warnings: Vec<Warning>,
    /// Hash of the messages that the plan was made for, as 16 hexadecimal digits.
    pub fingerprint: String,
}

impl Plan {
    /// Whether anything is folded.
    #[must_use]
    pub fn folds(&self) -> bool {
        self.cut > 0
    }

    /// Whether anything changes at all.
    #[must_use]
    pub fn changes(&self) -> bool {
        self.folds() || !self.edits.is_empty()
    }

    /// Indices of the messages that go into the summary, ascending.
    pub fn folded(&self) -> impl Iterator<Item = usize> + '_ {
        let actions = self.actions.iter().enumerate();
        actions.filter(|(_, action)| matches!(action, Action::Summarize | Action::Drop)).map(|(i, _)| i)
    }

    /// Checks what no plan of ours breaks; for plans that come from outside.
    #[must_use]
    pub fn is_consistent(&self) -> bool {
        let count = self.actions.len();
        self.version == PLAN_VERSION
            && self.reasons.len() == count
            && self.head <= count
            && self.cut <= count
            && (self.cut == 0 || self.folded().next().is_some())
            && (0..count).all(|i| self.is_consistent_at(i))
            && self.turn_prefix.is_none_or(|(from, to)| from < to && to == self.cut && to < count)
            && self.edits_are_consistent()
            && self.tokens_kept <= self.tokens_before
            && self.warnings.iter().all(|warning| warning.index.is_none_or(|index| index < count))
            && ["exact", "calibrated", "estimated"].contains(&self.count_kind.as_str())
            && Format::from_name(&self.format).is_ok()
            && self.fingerprint.len() == 16
            && self.fingerprint.bytes().all(|byte| byte.is_ascii_hexdigit())
    }

    /// Before the cut only head, pinned and open messages stay; behind it nothing is folded.
    fn is_consistent_at(&self, i: usize) -> bool {
        match self.actions[i] {
            Action::Summarize | Action::Drop => i >= self.head && i < self.cut,
            Action::Pin => matches!(self.reasons[i], Reason::Pinned | Reason::PinnedGroup),
            Action::Keep if i < self.cut => matches!(self.reasons[i], Reason::Head | Reason::OpenCall),
            Action::Keep => true,
            Action::Clear | Action::Shorten => i >= self.cut,
        }
    }

    /// Edits are in order, and exactly those messages have some that are cleared or shortened.
    fn edits_are_consistent(&self) -> bool {
        let in_order = |pair: &[Edit]| (pair[0].message, pair[0].part) < (pair[1].message, pair[1].part);
        let is_edited = |action: &Action| matches!(action, Action::Clear | Action::Shorten);
        let mut edited: Vec<usize> = self.edits.iter().map(|edit| edit.message).collect();
        edited.dedup();
        let actions = self.actions.iter().enumerate();
        self.edits.windows(2).all(in_order)
            && edited.into_iter().eq(actions.filter(|(_, action)| is_edited(action)).map(|(i, _)| i))
    }
}

/// A budget that cannot be met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Infeasible {
    /// The least that could be reached.
    pub floor: u64,
    /// The budget.
    pub limit: u64,
    /// Why, without content.
    pub why: String,
}
