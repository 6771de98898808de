//! What providers reject, read off a transcript.
//!
//! A validator answers with everything that is wrong, each with the index of the message and a stable code, in
//! the order of the messages. An empty answer means that the provider's rules on structure are met.

mod anthropic;
mod gemini;
mod openai_chat;
mod openai_responses;

use crate::error::{Error, Result};
use crate::transcript::{Framing, Transcript};

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

    /// The provider of that name.
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
    /// The dialect of its messages.
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

/// Something that a provider rejects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The message.
    pub index: usize,
    /// A stable code.
    pub code: &'static str,
    /// What is wrong, without content.
    pub detail: String,
}

impl Problem {
    fn new(index: usize, code: &'static str, detail: impl Into<String>) -> Self {
        Problem { index, code, detail: detail.into() }
    }
}

/// Everything that `provider` would reject. O(parts).
#[must_use]
pub fn validate(transcript: &Transcript, provider: Provider) -> Vec<Problem> {
    let mut problems = match provider {
        Provider::OpenAiChat => openai_chat::problems(transcript),
        Provider::OpenAiResponses => openai_responses::problems(transcript),
        Provider::Anthropic => anthropic::problems(transcript),
        Provider::Gemini => gemini::problems(transcript),
    };
    problems.sort_by_key(|problem| problem.index);
    problems
}
