//! Message dialects and their public names.

use crate::error::{Error, Result};
use crate::transcript::Framing;

/// A dialect of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `{"role", "content", "tool_calls", "tool_call_id"}`.
    OpenAiChat,
    /// Items of the Responses API, with and without `type`.
    OpenAiResponses,
    /// `{"role", "content": [blocks]}` with `tool_use` and `tool_result` blocks.
    Anthropic,
    /// `{"role", "parts": [{"text"}, {"functionCall"}, …]}`.
    Gemini,
    /// Messages of pi sessions: `toolCall` parts and `toolResult` messages.
    Pi,
    /// Messages of the AI SDK: `tool-call` and `tool-result` parts.
    AiSdk,
    /// Messages of LangChain as dicts: `{"type": "human", "data": {…}}`, or flat.
    LangChain,
    /// Iterations of gent: `{"messages": […], "origin", "metadata"}`.
    Gent,
    /// Training conversations: `{"from": "human", "value"}`.
    ShareGpt,
    /// Messages of Amazon Bedrock's Converse API: `toolUse` and `toolResult` blocks.
    BedrockConverse,
    /// Messages of a user interface of the AI SDK: `tool-NAME` parts with call and result.
    AiSdkUi,
    /// Messages of Mistral's chat API: as OpenAI's, with thinking as a list.
    Mistral,
    /// Messages of Cohere's chat API: as OpenAI's, with `tool_plan` and documents.
    Cohere,
}

impl Format {
    /// Every dialect with its public name.
    pub const ALL: &'static [(&'static str, Format)] = &[
        ("openai_chat", Format::OpenAiChat),
        ("openai_responses", Format::OpenAiResponses),
        ("anthropic", Format::Anthropic),
        ("gemini", Format::Gemini),
        ("pi", Format::Pi),
        ("ai_sdk", Format::AiSdk),
        ("langchain", Format::LangChain),
        ("gent", Format::Gent),
        ("sharegpt", Format::ShareGpt),
        ("bedrock_converse", Format::BedrockConverse),
        ("ai_sdk_ui", Format::AiSdkUi),
        ("mistral", Format::Mistral),
        ("cohere", Format::Cohere),
    ];

    /// The public name.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, format)| *format == self).map_or("", |(name, _)| name)
    }

    /// The dialect with this name.
    ///
    /// # Errors
    /// `unknown_format`.
    pub fn from_name(name: &str) -> Result<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, format)| *format).ok_or_else(|| {
            let known: Vec<&str> = Self::ALL.iter().map(|(name, _)| *name).collect();
            Error::config("unknown_format", "format", format!("not one of auto, {}", known.join(", ")))
        })
    }

    /// A dialect with this framing; pi's for messages that no provider takes.
    #[must_use]
    pub fn of(framing: Framing) -> Self {
        match framing {
            Framing::OpenAiChat => Format::OpenAiChat,
            Framing::OpenAiResponses => Format::OpenAiResponses,
            Framing::Anthropic => Format::Anthropic,
            Framing::Gemini => Format::Gemini,
            Framing::Bedrock => Format::BedrockConverse,
            Framing::Unframed => Format::Pi,
        }
    }

    /// The framing of its messages.
    #[must_use]
    pub fn framing(self) -> Framing {
        match self {
            Format::OpenAiChat => Framing::OpenAiChat,
            Format::OpenAiResponses => Framing::OpenAiResponses,
            Format::Anthropic => Framing::Anthropic,
            Format::Gemini => Framing::Gemini,
            Format::BedrockConverse => Framing::Bedrock,
            // Libraries and sessions: requests are written in a provider's dialect.
            Format::Pi
            | Format::AiSdk
            | Format::AiSdkUi
            | Format::LangChain
            | Format::Gent
            | Format::ShareGpt => Framing::Unframed,
            // What these providers add around a text is not measured.
            Format::Mistral | Format::Cohere => Framing::Unframed,
        }
    }
}
