//! The providers whose rules foldline knows.

use crate::error::{Error, Result};
use crate::transcript::Framing;

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
    /// Amazon Bedrock's Converse API.
    Bedrock,
}

impl Provider {
    /// Every provider with its public name.
    pub const ALL: &'static [(&'static str, Provider)] = &[
        ("openai", Provider::OpenAiChat),
        ("responses", Provider::OpenAiResponses),
        ("anthropic", Provider::Anthropic),
        ("gemini", Provider::Gemini),
        ("bedrock", Provider::Bedrock),
    ];

    /// The names of all providers, those of chat services last.
    pub fn names() -> impl Iterator<Item = &'static str> {
        let services = ChatService::ALL.iter().map(|(name, _)| *name);
        Self::ALL.iter().map(|(name, _)| *name).chain(services)
    }

    /// The provider with this name; for that of a chat service, the API that it speaks and the service.
    ///
    /// # Errors
    /// `unknown_provider`.
    pub fn from_name(name: &str) -> Result<(Self, Option<ChatService>)> {
        if let Some((_, service)) = ChatService::ALL.iter().find(|(known, _)| *known == name) {
            return Ok((Provider::OpenAiChat, Some(*service)));
        }
        let known = Self::ALL.iter().find(|(known, _)| *known == name);
        known.map(|(_, provider)| (*provider, None)).ok_or_else(|| {
            let known: Vec<&str> = Self::names().collect();
            Error::config("unknown_provider", "provider", format!("not one of {}", known.join(", ")))
        })
    }
}

/// A service that takes messages of OpenAI chat and has rules of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChatService {
    /// Mistral's chat API.
    Mistral,
    /// Cohere's chat API (v2).
    Cohere,
}

impl ChatService {
    /// Every service with its public name as a provider.
    pub const ALL: &'static [(&'static str, ChatService)] =
        &[("mistral", ChatService::Mistral), ("cohere", ChatService::Cohere)];
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
            Provider::Bedrock => Framing::Bedrock,
        }
    }
}
