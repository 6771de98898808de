//! Checks a transcript against the structural rules of providers.
//!
//! A validator reports every violation with the index of the message and a stable code, in the order of the messages.
//! An empty report means that the list satisfies the rules.

mod anthropic;
mod codes;
mod gemini;
mod openai_chat;
mod openai_responses;
mod strict;

pub(super) use anthropic::{MAX_ID_BYTES, is_empty_text, is_good_id};
pub use codes::CODES;
pub(super) use gemini::{is_empty as is_empty_gemini_part, matching as gemini_matching};
pub(super) use openai_chat::Waiting;

use crate::error::{Error, Result};
use crate::transcript::{Framing, Part, PartKind, Role, Transcript};

/// A provider's API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provider {
    /// Chat completions, and services that speak them.
    OpenAiChat,
    /// OpenAI's Responses API.
    OpenAiResponses,
    /// Anthropic's messages.
    Anthropic,
    /// Gemini's `generateContent`.
    Gemini,
}

impl Provider {
    /// Every provider with its public name.
    pub const ALL: &'static [(&'static str, Provider)] = &[
        ("openai", Provider::OpenAiChat),
        ("responses", Provider::OpenAiResponses),
        ("anthropic", Provider::Anthropic),
        ("gemini", Provider::Gemini),
    ];

    /// The provider with this name.
    ///
    /// # Errors
    /// `unknown_provider`.
    pub fn from_name(name: &str) -> Result<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, provider)| *provider).ok_or_else(|| {
            let known: Vec<&str> = Self::ALL.iter().map(|(name, _)| *name).collect();
            Error::config("unknown_provider", "provider", format!("not one of {}", known.join(", ")))
        })
    }
}

impl Provider {
    /// The provider that accepts messages of this framing unchanged.
    #[must_use]
    pub fn of(framing: Framing) -> Option<Self> {
        Self::ALL.iter().map(|(_, provider)| *provider).find(|provider| provider.framing() == framing)
    }

    /// The public name.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, provider)| *provider == self).map_or("", |(name, _)| name)
    }

    /// The framing of its messages.
    #[must_use]
    pub fn framing(self) -> Framing {
        match self {
            Provider::OpenAiChat => Framing::OpenAiChat,
            Provider::OpenAiResponses => Framing::OpenAiResponses,
            Provider::Anthropic => Framing::Anthropic,
            Provider::Gemini => Framing::Gemini,
        }
    }
}

/// A violation of a provider's rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The message.
    pub index: usize,
    /// A stable code.
    pub code: &'static str,
    /// The violation in words, without content.
    pub detail: String,
}

impl Problem {
    fn new(index: usize, code: codes::Code, detail: impl Into<String>) -> Self {
        Problem { index, code: code.0, detail: detail.into() }
    }
}

/// Number of leading instructions, which these APIs take outside the messages.
pub(super) fn head_of(transcript: &Transcript, provider: Provider) -> usize {
    let is_head = |role| match provider {
        Provider::Anthropic => matches!(role, Role::System | Role::Developer),
        Provider::Gemini => role == Role::System,
        Provider::OpenAiChat | Provider::OpenAiResponses => false,
    };
    transcript.messages.iter().take_while(|message| is_head(message.role)).count()
}

/// Requirements on a list beyond the rules of an API.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Strict {
    /// User and assistant take turns, the user first, as chat templates of open models require.
    pub alternate: bool,
    /// At most one system message, which is the first.
    pub single_system: bool,
    /// Responses: the provider stores the earlier history, so results may answer calls outside the list.
    pub partial: bool,
}

/// Every violation that `provider` would reject. O(parts).
#[must_use]
pub fn validate(transcript: &Transcript, provider: Provider, strict: Strict) -> Vec<Problem> {
    let mut problems = match provider {
        Provider::OpenAiChat => openai_chat::problems(transcript),
        Provider::OpenAiResponses => openai_responses::problems(transcript),
        Provider::Anthropic => anthropic::problems(transcript),
        Provider::Gemini => gemini::problems(transcript),
    };
    if provider != Provider::OpenAiResponses {
        problems.extend(misplaced_calls(transcript, head_of(transcript, provider)));
    }
    if strict.partial && provider == Provider::OpenAiResponses {
        problems.retain(|problem| problem.code != codes::RESULT_WITHOUT_CALL.0);
    }
    strict::problems(transcript, strict, &mut problems);
    problems.sort_by_key(|problem| problem.index);
    problems
}

/// Calls outside the model's messages. In Responses a call is a separate item.
fn misplaced_calls(transcript: &Transcript, head: usize) -> impl Iterator<Item = Problem> + '_ {
    let is_call = |part: &Part| part.kind == PartKind::ToolCall && !part.is_unchecked;
    let is_misplaced = move |&i: &usize| {
        transcript.messages[i].role != Role::Assistant && transcript.parts_of(i).iter().any(is_call)
    };
    let detail = "a call belongs in a message of the model";
    (head..transcript.len()).filter(is_misplaced).map(move |i| Problem::new(i, codes::CALL_MISPLACED, detail))
}
