//! Framing: the tokens that providers add to the text of messages, as a dated table.
//!
//! A provider wraps every message in extra tokens, repeats the name of a called tool, and serializes tool schemas after
//! a preamble. No provider documents all of this, and the details change. [`FramingCost`] has a dated row for each
//! family of models, with its sources and its accuracy ([`Accuracy`]) for text, for calls and results, and for tool
//! schemas.
//!
//! # Measured
//!
//! Against the usage that providers reported for requests recorded by pydantic-ai (MIT) and for Claude Code sessions,
//! by `python benches/fit/framing.py`, 2026-11-28:
//!
//! ```text
//!                                           n   exact    <=1%     p50     p75     p90     max
//! openai, text                             18    100%    100%    0.0%    0.0%    0.0%    0.0%
//! openai, calls and tools                  38     95%    100%    0.0%    0.0%    0.0%    1.0%
//! openai_responses, text                   14     86%    100%    0.0%    0.0%    0.3%    0.7%
//! openai_responses, calls and tools        34     79%     97%    0.0%    0.0%    0.8%    3.9%
//! anthropic, text                          13     54%     54%    0.0%    1.5%    1.5%    1.6%
//! anthropic, calls and tools               26      4%     69%    0.7%    8.6%   13.1%   17.7%
//! gemini, text                             24     71%     75%    0.0%    2.5%   16.5%   50.0%
//! gemini, calls and tools                  70     23%     40%    3.5%    7.1%    7.3%   47.9%
//! Claude Code, turns, all logged          742     74%     92%    0.0%    0.0%    0.7% 2115.0%
//! Claude Code, turns of 300, all logged   578     70%     92%    0.0%    0.1%    0.7%  135.7%
//! Claude Code, turns of 300 and more      768     53%     70%    0.0%    4.0%   23.7%  135.7%
//! Claude Code, whole sessions              18      0%     22%    3.1%    7.3%   17.2%   39.9%
//! ```
//!
//! Columns: requests or turns, share that is exact, share within 1 %, percentiles of the relative error. Excluded are
//! costs that messages and tools do not show: files, response schemas, tools of the provider, responses stored there,
//! encrypted reasoning and compactions, thinking parameters (29 for Claude, whose API also drops earlier thinking),
//! thoughts that Gemini restores. Most of Gemini's text requests have 2 to 15 tokens, of which 16.5 % are 2 tokens.
//! Sessions include text that Claude Code injects without logging it, so their counts tend to be too low; a turn is
//! taken for logged if its prompt grew by less than 85 tokens more than was counted. Thinking that the API has dropped
//! is counted, which gives the largest errors.

pub mod elements;
mod encrypted;
pub mod media;
mod responses;
pub mod strings;
mod table;
mod trust;

pub use encrypted::encrypted_tokens;
pub use table::Family;
pub use trust::Accuracy;

use self::media::PictureRule;
use super::tools::{Tool, namespace};
use super::view::{Interrupt, MessageView, PartView};
use crate::error::Result;
use crate::media::{Media, Picture};
use crate::transcript::{Framing, Part, PartKind, PieceKind, Role, Transcript};

/// How tool schemas are serialized before they are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolText {
    /// As given, as JSON: the form that the provider uses is unknown.
    Given,
    /// Name, description and schema as JSON.
    Json,
    /// Claude's elements with JSON.
    Functions,
    /// OpenAI's TypeScript.
    Namespace,
    /// Gemini's texts.
    Texts,
    /// The texts that Google's own program counts.
    Strings,
}

/// How the parts of a message become the texts that are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Each text apart.
    Apart,
    /// Thinking, calls and results as elements of one text ([`elements`]).
    Elements,
    /// Each text apart, and of JSON each key and each string ([`strings`]).
    Strings,
}

/// The cost of tool schemas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolsCost {
    /// The form that is counted.
    pub text: ToolText,
    /// Factor on its tokens, in thousandths of the encoding's count.
    pub permille: u32,
    /// Once, if there are tools.
    pub request: i32,
    /// The same if there is a system message.
    pub request_with_system: i32,
    /// For each tool.
    pub tool: i32,
    /// Once, if a tool takes no arguments.
    pub parameterless: i32,
    /// Accuracy of the count.
    pub accuracy: Accuracy,
}

/// Tokens added to the texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FramingCost {
    /// The texts that are counted.
    pub layout: Layout,
    /// Once for each request.
    pub request: u32,
    /// Once for each message.
    pub message: u32,
    /// Instead of `message`, for a system or developer message.
    pub system: u32,
    /// Instead of `message`, for a message of the model.
    pub assistant: u32,
    /// For a message that ends the model's turn: its text without a call, or results with text of the user.
    pub turn_end: u32,
    /// Instead of `message`, for an item without text: a call, reasoning (Responses).
    pub item: u32,
    /// Instead of `message`, for results and nothing else.
    pub answer: u32,
    /// For the name of a participant.
    pub name: u32,
    /// For a tool call.
    pub call: u32,
    /// How often the name of a called tool is repeated outside the call.
    pub call_names: u32,
    /// For each further call of the same message (measured for two).
    pub parallel: u32,
    /// For a tool result.
    pub result: u32,
    /// The rule that prices pictures and other media; `None` if it is not known.
    pub pictures: Option<PictureRule>,
    /// Tool schemas.
    pub tools: ToolsCost,
    /// Accuracy of messages of text.
    pub text: Accuracy,
    /// Accuracy of messages with calls and results.
    pub calls: Accuracy,
}

/// The properties of a message that determine its framing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageFraming {
    /// The role.
    pub role: Role,
    /// Tool calls.
    pub calls: u32,
    /// Tool results.
    pub results: u32,
    /// Parts that name a participant.
    pub names: u32,
    /// Tokens of its pictures and other media.
    pub media: u32,
    /// Tokens of its encrypted content.
    pub encrypted: u32,
    /// Whether it has anything other than calls, results and reasoning.
    pub has_text: bool,
    /// Messages beyond the first, if it is a unit of several.
    pub further: u32,
}

impl MessageFraming {
    /// A message without parts.
    #[must_use]
    pub fn new(role: Role) -> Self {
        MessageFraming {
            role,
            calls: 0,
            results: 0,
            names: 0,
            media: 0,
            encrypted: 0,
            has_text: false,
            further: 0,
        }
    }

    /// Adds a part.
    pub fn add_part(&mut self, kind: PartKind) {
        match kind {
            PartKind::ToolCall => self.calls += 1,
            PartKind::ToolResult => self.results += 1,
            PartKind::Reasoning => {}
            _ => self.has_text = true,
        }
    }

    /// Whether it ends the model's turn: its text without a call, or results with text of the user.
    fn ends_turn(&self) -> bool {
        self.has_text && self.calls == 0 && (self.role == Role::Assistant || self.results > 0)
    }

    /// The properties of a message.
    #[must_use]
    pub fn of(message: &MessageView<'_>, cost: &FramingCost) -> Self {
        let transcript = message.transcript;
        let found = &transcript.messages[message.index];
        let mut around = MessageFraming { further: found.further, ..MessageFraming::new(found.role) };
        for (at, view) in message.indexed_parts() {
            let (PartView::Original(part) | PartView::Replaced(part, _)) = view else {
                around.add_part(PartKind::Text);
                continue;
            };
            around.add_part(part.kind);
            around.encrypted = around.encrypted.saturating_add(encrypted::of_part(transcript, part));
            if let (PartView::Original(part), true) = (view, part.images > 0) {
                let known = transcript.media_of(at);
                let unknown = std::iter::repeat(Media::Picture(Picture::default()));
                let all = known.chain(unknown).take(part.images as usize);
                around.media =
                    all.fold(around.media, |sum, medium| sum.saturating_add(cost.of_media(medium)));
            }
            let pieces = transcript.pieces_of(part);
            around.names += u32::from(pieces.iter().any(|piece| piece.kind == PieceKind::ParticipantName));
        }
        around
    }
}

/// The properties of messages that affect the cost of tool schemas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolPlacement {
    /// The dialect.
    pub framing: Framing,
    /// Whether the first message is a system or developer message.
    pub begins_with_system: bool,
}

impl ToolPlacement {
    /// Messages whose first, if any, has this role.
    #[must_use]
    pub fn new(framing: Framing, first: Option<Role>) -> Self {
        ToolPlacement { framing, begins_with_system: matches!(first, Some(Role::System | Role::Developer)) }
    }

    /// The messages of a transcript.
    #[must_use]
    pub fn of(transcript: &Transcript) -> Self {
        ToolPlacement::new(transcript.framing, transcript.messages.first().map(|message| message.role))
    }
}

impl FramingCost {
    /// The framing of messages of this dialect under an encoding, without a known model.
    #[must_use]
    pub fn of(framing: Framing) -> Self {
        match framing {
            Framing::OpenAiChat => Self::OPENAI_CHAT,
            Framing::OpenAiResponses => Self::OPENAI_RESPONSES,
            Framing::Anthropic => Self::ANTHROPIC,
            Framing::Gemini => Self::GEMINI_CONTENTS,
            Framing::Bedrock => Self::BEDROCK,
            Framing::Unframed => Self::NONE,
        }
    }

    /// The same with another rule for pictures.
    #[must_use]
    pub fn with_pictures(self, pictures: Option<PictureRule>) -> Self {
        FramingCost { pictures: pictures.or(self.pictures), ..self }
    }

    /// Framing of one message, without repeated names, which the counter prices.
    #[must_use]
    pub fn of_message(&self, around: &MessageFraming) -> u32 {
        let mut total = self.of_role(around).saturating_add(self.message.saturating_mul(around.further));
        total = total.saturating_add(self.result * around.results + self.name * around.names);
        total = total.saturating_add(self.turn_end * u32::from(around.ends_turn()));
        total = total.saturating_add(around.media).saturating_add(around.encrypted);
        total.saturating_add(self.call * around.calls + self.parallel * around.calls.saturating_sub(1))
    }

    /// The cost of a picture or another medium: never 0, since a provider that does not say what it charges charges
    /// something.
    #[must_use]
    pub fn of_media(&self, medium: Media) -> u32 {
        self.pictures.unwrap_or(PictureRule::UNKNOWN).media_tokens(medium)
    }

    /// Framing of a message by its role.
    fn of_role(&self, around: &MessageFraming) -> u32 {
        match around.role {
            Role::System | Role::Developer => self.system,
            _ if around.results > 0 && around.calls == 0 && !around.has_text => self.answer,
            Role::Assistant | Role::Tool if !around.has_text => self.item,
            Role::Assistant => self.assistant,
            _ => self.message,
        }
    }

    /// Accuracy of counts of these messages.
    #[must_use]
    pub fn accuracy(&self, transcript: &Transcript) -> Accuracy {
        let is_call = |part: &Part| matches!(part.kind, PartKind::ToolCall | PartKind::ToolResult);
        self.accuracy_in(
            transcript.parts.iter().any(is_call),
            transcript.messages.iter().any(|message| message.is_estimated),
        )
    }

    /// The same, by whether there are calls or results, and content that can only be estimated.
    #[must_use]
    pub fn accuracy_in(&self, has_calls: bool, is_estimated: bool) -> Accuracy {
        let mut accuracy = self.text;
        if has_calls {
            accuracy = accuracy.and(self.calls);
        }
        if is_estimated {
            accuracy = accuracy.and(Accuracy::ESTIMATED);
        }
        accuracy
    }

    /// Tokens of tool schemas sent with these messages, and their accuracy. `count` prices a text in the encoding.
    ///
    /// # Errors
    /// Those of `count`.
    pub fn of_tools(
        &self,
        tools: &[Tool],
        beside: ToolPlacement,
        check: Interrupt<'_>,
        mut count: impl FnMut(&str, Interrupt<'_>) -> Result<u64>,
    ) -> Result<(u64, Accuracy)> {
        let cost = self.tools;
        let shown: Vec<&Tool> = tools.iter().filter(|tool| !tool.is_deferred).collect();
        if shown.is_empty() {
            return Ok((0, Accuracy::EXACT));
        }
        let mut accuracy = cost.accuracy;
        let mut encoded = 0;
        let functions = || shown.iter().filter_map(|tool| tool.function.as_ref());
        match cost.text {
            ToolText::Given => {}
            ToolText::Json => {
                for function in functions() {
                    encoded += count(&function.canonical_json(), check)?;
                }
            }
            ToolText::Functions => {
                for function in functions() {
                    encoded += count(&function.claude_text(), check)?;
                }
            }
            ToolText::Texts => {
                for text in functions().flat_map(|function| function.gemini_texts()) {
                    encoded += count(&text, check)?;
                }
            }
            ToolText::Strings => {
                for text in functions().flat_map(|function| function.google_texts()) {
                    encoded += count(&text, check)?;
                }
            }
            ToolText::Namespace => encoded += count(&namespace::render(functions()), check)?,
        }
        for tool in shown.iter().filter(|tool| cost.text == ToolText::Given || tool.function.is_none()) {
            encoded += count(&tool.json, check)?;
            accuracy = accuracy.and(Accuracy::ESTIMATED);
        }
        let fixed = if beside.begins_with_system { cost.request_with_system } else { cost.request };
        let mut fixed = i64::from(fixed);
        fixed += i64::from(cost.tool) * i64::try_from(shown.len()).unwrap_or(i64::MAX / 2);
        if functions().any(super::tools::Function::is_parameterless) {
            fixed += i64::from(cost.parameterless);
        }
        Ok((scaled(encoded, cost.permille).saturating_add_signed(fixed), accuracy))
    }
}

/// A count times thousandths, rounded to the nearest.
#[must_use]
pub fn scaled(tokens: u64, permille: u32) -> u64 {
    let scaled = (u128::from(tokens) * u128::from(permille) + 500) / 1000;
    u64::try_from(scaled).unwrap_or(u64::MAX)
}
