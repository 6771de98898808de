//! Sets of dialects.

use crate::formats::Format;

/// A set of dialects: one bit each, in the order of [`Format::ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FormatSet(pub(super) u16);

impl FormatSet {
    pub(super) const fn of(format: Format) -> Self {
        FormatSet(1 << format as u16)
    }

    pub(super) const fn or(self, format: Format) -> Self {
        FormatSet(self.0 | 1 << format as u16)
    }

    pub(super) fn has(self, format: Format) -> bool {
        self.0 & Self::of(format).0 != 0
    }

    pub(super) fn and(self, other: Self) -> Self {
        FormatSet(self.0 & other.0)
    }

    /// The dialects of the set, in the order of [`Format::ALL`].
    pub(super) fn formats(self) -> impl Iterator<Item = Format> {
        Format::ALL.iter().map(|(_, format)| *format).filter(move |format| self.has(*format))
    }

    /// The names of the dialects, for errors.
    pub(super) fn names(self) -> String {
        self.formats().map(Format::name).collect::<Vec<_>>().join(" or ")
    }
}

pub(super) const ANY: FormatSet = FormatSet(u16::MAX);
pub(super) const NONE: FormatSet = FormatSet(0);
pub(super) const CHAT: FormatSet = FormatSet::of(Format::OpenAiChat);
pub(super) const RESPONSES: FormatSet = FormatSet::of(Format::OpenAiResponses);
pub(super) const OPENAI: FormatSet = CHAT.or(Format::OpenAiResponses);
pub(super) const ANTHROPIC: FormatSet = FormatSet::of(Format::Anthropic);
pub(super) const GEMINI: FormatSet = FormatSet::of(Format::Gemini);
pub(super) const PI: FormatSet = FormatSet::of(Format::Pi);
pub(super) const AI_SDK: FormatSet = FormatSet::of(Format::AiSdk);
pub(super) const LANGCHAIN: FormatSet = FormatSet::of(Format::LangChain);
pub(super) const GENT: FormatSet = FormatSet::of(Format::Gent);
pub(super) const SHARE_GPT: FormatSet = FormatSet::of(Format::ShareGpt);
pub(super) const BEDROCK: FormatSet = FormatSet::of(Format::BedrockConverse);
pub(super) const AI_SDK_UI: FormatSet = FormatSet::of(Format::AiSdkUi);
pub(super) const MISTRAL: FormatSet = FormatSet::of(Format::Mistral);
pub(super) const COHERE: FormatSet = FormatSet::of(Format::Cohere);
/// The dialects with the calls and results of OpenAI chat. Those of Mistral and Cohere are read as that unless a part of
/// their own is there.
pub(super) const CHAT_LIKE: FormatSet = CHAT.or(Format::Mistral).or(Format::Cohere);
/// The dialects of a message that has no feature but its role.
pub(super) const PLAIN: FormatSet =
    FormatSet(OPENAI.0 | ANTHROPIC.0 | GEMINI.0 | PI.0 | AI_SDK.0 | AI_SDK_UI.0 | BEDROCK.0 | CHAT_LIKE.0);
