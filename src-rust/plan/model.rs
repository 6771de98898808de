//! A plan as data: one action and one reason per message, and the expected cost.

use serde::{Deserialize, Serialize};

/// Version of the JSON form, checked on reading. Its schema is `docs/plan.schema.json`.
pub const PLAN_VERSION: u32 = 3;

/// The action on a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Stays unchanged.
    Keep,
    /// Stays unchanged because it is pinned.
    Pin,
    /// Its results are replaced by a placeholder.
    Clear,
    /// Only the head and the tail of its results stay.
    Shorten,
    /// Goes into the summary.
    Summarize,
    /// Is dropped.
    Drop,
}

/// The reason for an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// A leading system or developer message.
    Head,
    /// In the group of the provider's newest compaction, which replaces everything before it.
    Compaction,
    /// Pinned by the caller.
    Pinned,
    /// In a group with a pinned message.
    PinnedGroup,
    /// In a group with an unanswered call.
    OpenCall,
    /// At or after the cut.
    Recent,
    /// Nothing is folded: the list is within its budget.
    Fits,
    /// Nothing is folded: everything that may be folded belongs to the keep, or only earlier summaries would be folded.
    NothingToFold,
    /// Nothing is folded: no legal cut leaves what the keep requires.
    KeepUnmet,
    /// Nothing is folded, since that would save less than the minimum gain.
    GainTooSmall,
    /// Nothing is folded, since even the shortest summary would take as many tokens as it replaces.
    NoGain,
    /// Before the cut.
    BeforeCut,
    /// An earlier summary, merged into the new one.
    EarlierSummary,
    /// Its results are cleared to fit the budget.
    ClearedToFit,
    /// Its results are shortened to fit the budget.
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
            Reason::Compaction => "compaction",
            Reason::Pinned => "pinned",
            Reason::PinnedGroup => "pinned_group",
            Reason::OpenCall => "open_call",
            Reason::Recent => "recent",
            Reason::Fits => "fits",
            Reason::NothingToFold => "nothing_to_fold",
            Reason::KeepUnmet => "keep_unmet",
            Reason::GainTooSmall => "gain_too_small",
            Reason::NoGain => "no_gain",
            Reason::BeforeCut => "before_cut",
            Reason::EarlierSummary => "earlier_summary",
            Reason::ClearedToFit => "cleared_to_fit",
            Reason::ShortenedToFit => "shortened_to_fit",
        }
    }
}

/// A result whose content changes. It contains no text: the original is cut when the plan is applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// The message.
    pub message: usize,
    /// The part, numbered within the message.
    pub part: usize,
    /// Code points that stay at the head and at the tail; `None` for the placeholder.
    pub kept_chars: Option<(usize, usize)>,
}

/// A warning for the caller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Warning {
    /// A stable code: `orphan_result`, `open_call`, `pin_grown`, `lone_surrogates`, `gain_too_small`,
    /// `thinking_bound`, `thinking_blocks_fold`.
    pub code: String,
    /// The message concerned, if it is a single one.
    pub index: Option<usize>,
}

/// The kind of an alternative cut.
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

/// An alternative cut and its result, without clearing, shortening or stripping.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Alternative {
    /// The cut.
    pub cut: usize,
    /// Tokens of the messages that would stay, without overhead and summary.
    pub tokens_kept: u64,
    /// Tokens of the folded request, overhead and summary included.
    pub tokens_after: u64,
    /// Number of messages that would go into the summary.
    pub folded: usize,
    /// Whether the cut lies inside a turn.
    pub is_mid_turn: bool,
    /// The kind of the alternative.
    pub why: AlternativeKind,
}

/// A plan for the messages of one transcript.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Version of this form.
    pub version: u32,
    /// The format of the messages.
    pub format: String,
    /// Number of leading messages that always stay.
    pub head: usize,
    /// The message before which the summary is placed: after the head, and after the provider's compaction if the cut
    /// passes it.
    pub summary_index: usize,
    /// The cut: before it only head, pinned and open messages stay. 0 if nothing is folded.
    pub cut: usize,
    /// The folded part of a turn, if the cut lies inside one.
    pub turn_prefix: Option<(usize, usize)>,
    /// One action per message.
    pub actions: Vec<Action>,
    /// One reason per message.
    pub reasons: Vec<Reason>,
    /// Tokens of the unchanged request: messages and overhead.
    pub tokens_before: u64,
    /// Tokens of the messages that stay, as edited, without overhead and summary.
    pub tokens_kept: u64,
    /// Tokens added once per request.
    pub overhead: u64,
    /// Tokens reserved for the summary.
    pub summary_tokens: u64,
    /// The least that `FitTokens` could reach.
    pub floor: u64,
    /// The kind of the counts.
    pub count_kind: String,
    /// Results whose content changes.
    pub edits: Vec<Edit>,
    /// Messages that stay without their thinking, ascending.
    pub stripped: Vec<usize>,
    /// Tokens of every unchanged message.
    pub message_tokens: Vec<u32>,
    /// All legal cuts, ascending. Those between folded messages are also the points at which these may be divided for a
    /// summariser.
    pub legal_cuts: Vec<u32>,
    /// Alternative cuts, ascending; at most one of each kind.
    pub alternatives: Vec<Alternative>,
    /// Warnings for the caller.
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

    /// Whether a summary stands for folded messages; false if they are only dropped.
    #[must_use]
    pub fn summarizes(&self) -> bool {
        self.actions.contains(&Action::Summarize)
    }

    /// Whether anything is folded, cleared or shortened.
    #[must_use]
    pub fn changes(&self) -> bool {
        self.folds() || !self.edits.is_empty()
    }

    /// Indices of the folded messages, ascending.
    pub fn folded(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.actions.len()).filter(|&i| self.is_folded(i))
    }

    /// Expected tokens of the request after folding: messages that stay, overhead, and the tokens reserved for the
    /// summary, if one is needed.
    #[must_use]
    pub fn tokens_after(&self) -> u64 {
        let summary = if self.folds() { self.summary_tokens } else { 0 };
        self.tokens_kept.saturating_add(self.overhead).saturating_add(summary)
    }

    /// Whether message `i` is folded.
    #[must_use]
    pub fn is_folded(&self, i: usize) -> bool {
        matches!(self.actions[i], Action::Summarize | Action::Drop)
    }
}

/// A budget that cannot be met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Infeasible {
    /// The least number of tokens that can be reached.
    pub floor: u64,
    /// The budget.
    pub limit: u64,
    /// The explanation, without content.
    pub why: String,
}
