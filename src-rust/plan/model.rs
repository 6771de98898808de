//! A plan as data: one action and one reason for every message, and what it is expected to cost.

use serde::{Deserialize, Serialize};

/// Version of the JSON form. Its schema is `docs/plan.schema.json`.
pub const PLAN_VERSION: u32 = 2;

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
    /// Nothing is folded, since it would save less than was asked for.
    GainTooSmall,
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
            Reason::GainTooSmall => "gain_too_small",
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
    /// A stable code: `orphan_result`, `open_call`, `pin_grown`, `lone_surrogates`, `gain_too_small`,
    /// `thinking_bound`, `thinking_blocks_fold`.
    pub code: String,
    /// The message, where one is concerned.
    pub index: Option<usize>,
}

/// Why another cut is worth a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AlternativeKind {
    /// The next legal cut that folds less.
    Shallower,
    /// The next legal cut that folds more.
    Deeper,
    /// The nearest legal start of a turn.
    TurnStart,
    /// The last legal cut.
    Everything,
}

impl AlternativeKind {
    /// The public name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            AlternativeKind::Shallower => "shallower",
            AlternativeKind::Deeper => "deeper",
            AlternativeKind::TurnStart => "turn_start",
            AlternativeKind::Everything => "everything",
        }
    }
}

/// Another cut and what it would give, without clearing, shortening or stripping.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Alternative {
    /// The boundary.
    pub cut: usize,
    /// Tokens of what would stay, without overhead and summary.
    pub tokens_kept: u64,
    /// Tokens of the folded request, overhead and summary included.
    pub tokens_after: u64,
    /// Messages that would go into the summary.
    pub folded: usize,
    /// Whether it lies inside a turn.
    pub is_mid_turn: bool,
    /// Why it is worth a look.
    pub why: AlternativeKind,
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
    /// Messages that stay without their thinking, ascending.
    pub stripped: Vec<usize>,
    /// Tokens of every message as it is.
    pub message_tokens: Vec<u32>,
    /// Legal cuts between the folded messages, ascending: where what is summarised may be divided.
    pub split_points: Vec<u32>,
    /// Other cuts, ascending; at most four.
    pub alternatives: Vec<Alternative>,
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
        (0..self.actions.len()).filter(|&i| self.is_folded(i))
    }

    /// Tokens of the request after folding, as far as can be told: what stays, the overhead, and the room for the
    /// summary where there is one.
    #[must_use]
    pub fn tokens_after(&self) -> u64 {
        let summary = if self.folds() { self.summary_tokens } else { 0 };
        self.tokens_kept.saturating_add(self.overhead).saturating_add(summary)
    }

    /// Whether message `i` goes into the summary.
    #[must_use]
    pub fn is_folded(&self, i: usize) -> bool {
        matches!(self.actions[i], Action::Summarize | Action::Drop)
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
