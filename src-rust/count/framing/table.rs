//! The rows of the table: one for each family of models, dated, with sources.
//!
//! *Requests* were recorded by pydantic-ai (MIT), with the usage that the provider reported; *sessions* are real Claude
//! Code sessions of the repository entireio/cli (MIT) with theirs. `benches/fit/framing.py` fits the constants and
//! measures their error.

use super::{Accuracy, FramingCost, Layout, ToolText, ToolsCost};
use crate::count::framing::media::PictureRule;
use crate::transcript::Framing;

/// Models with the same framing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// gpt-4o, gpt-4.1, gpt-4.5.
    Gpt4o,
    /// gpt-5 and the o-series.
    Gpt5,
    /// The chat models of cl100k: gpt-4, gpt-4-turbo, gpt-3.5-turbo.
    Gpt4,
    /// gpt-oss, in the harmony format.
    GptOss,
    /// gpt-6; no recorded requests.
    Gpt6,
    /// Claude up to 4.6.
    Claude,
    /// Claude Opus 4.7, which has a newer tokenizer.
    Claude47,
    /// Claude Opus 4.8 and later, with the same tokenizer and another frame.
    Claude48,
    /// Gemini.
    Gemini,
    /// Gemini by a vocabulary of Gemma and the rules of Google's own program.
    GeminiLocal,
    /// Open models with the markers of ChatML: Qwen, OLMo.
    ChatMl,
    /// Llama 3 and 4.
    Llama,
    /// DeepSeek.
    DeepSeek,
    /// Mistral, and Llama 2.
    Mistral,
    /// Gemma.
    Gemma,
    /// Other open models.
    Open,
    /// The framing of the messages' dialect: embedding models, and models that a caller registered.
    Plain,
}

impl Family {
    /// Every family with its public name.
    pub const ALL: &'static [(&'static str, Family)] = &[
        ("gpt-4o", Family::Gpt4o),
        ("gpt-5", Family::Gpt5),
        ("gpt-4", Family::Gpt4),
        ("gpt-oss", Family::GptOss),
        ("gpt-6", Family::Gpt6),
        ("claude", Family::Claude),
        ("claude-4.7", Family::Claude47),
        ("claude-4.8", Family::Claude48),
        ("gemini", Family::Gemini),
        ("gemini-local", Family::GeminiLocal),
        ("chatml", Family::ChatMl),
        ("llama", Family::Llama),
        ("deepseek", Family::DeepSeek),
        ("mistral", Family::Mistral),
        ("gemma", Family::Gemma),
        ("open", Family::Open),
        ("plain", Family::Plain),
    ];

    /// The public name.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, family)| *family == self).map_or("", |(name, _)| name)
    }

    /// The family with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, family)| *family)
    }

    /// The row for messages of a dialect; `None` for [`Family::Plain`]. OpenAI writes Responses items differently from
    /// chat messages. Elsewhere only the receiving model matters.
    #[must_use]
    pub fn cost(self, framing: Framing) -> Option<FramingCost> {
        match self {
            Family::Gpt4o if framing == Framing::OpenAiResponses => Some(FramingCost::RESPONSES_GPT_4O),
            Family::Gpt5 if framing == Framing::OpenAiResponses => Some(FramingCost::RESPONSES_GPT_5),
            Family::Gpt6 if framing == Framing::OpenAiResponses => Some(FramingCost::RESPONSES_GPT_6),
            Family::Gpt4 | Family::GptOss if framing == Framing::OpenAiResponses => {
                Some(FramingCost::RESPONSES_FITTED)
            }
            Family::Gpt4o => Some(FramingCost::OPENAI_GPT_4O),
            Family::Gpt5 => Some(FramingCost::OPENAI_GPT_5),
            Family::Gpt4 => Some(FramingCost::OPENAI_GPT_4),
            Family::GptOss => Some(FramingCost::GPT_OSS),
            Family::Gpt6 => Some(FramingCost::OPENAI_GPT_6),
            Family::Claude => Some(FramingCost::CLAUDE),
            Family::Claude47 => Some(FramingCost::CLAUDE_4_7),
            Family::Claude48 => Some(FramingCost::CLAUDE_4_8),
            Family::Gemini => Some(FramingCost::GEMINI),
            Family::GeminiLocal => Some(FramingCost::GEMINI_LOCAL),
            // Chat templates, read by hand; start and header of the reply are `request`.
            Family::ChatMl => Some(FramingCost::template(3, 5, 5)),
            Family::Llama => Some(FramingCost::template(5, 5, 5)),
            Family::DeepSeek => Some(FramingCost::template(2, 1, 2)),
            Family::Mistral => Some(FramingCost::template(1, 2, 1)),
            Family::Gemma => Some(FramingCost::template(4, 5, 5)),
            Family::Open => Some(FramingCost::template(4, 4, 4)),
            Family::Plain => None,
        }
    }

    /// Tokens of a text for a thousand of the encoding's, and their accuracy.
    ///
    /// Claude: see [`crate::count::claude`]. Gemini: fitted to requests.
    #[must_use]
    pub fn text(self) -> (u32, Accuracy) {
        match self {
            Family::Claude | Family::Claude47 | Family::Claude48 => (1000, Accuracy::RECONSTRUCTED),
            Family::Gemini => (1050, GEMINI),
            Family::GeminiLocal => (1000, GEMINI),
            Family::Gpt6 => (1000, Accuracy::ESTIMATED),
            _ => (1000, Accuracy::EXACT),
        }
    }
}

const CLAUDE: Accuracy = Accuracy::within(200);
const CLAUDE_47: Accuracy = Accuracy::within(250);
const GEMINI: Accuracy = Accuracy::within(200);

const GIVEN_TOOLS: ToolsCost = ToolsCost {
    text: ToolText::Given,
    permille: 1000,
    request: 0,
    request_with_system: 0,
    tool: 0,
    parameterless: 0,
    accuracy: Accuracy::ESTIMATED,
};

/// Requests to gpt-4o and gpt-4o-mini, 2025-01 to 2026-06.
const NAMESPACE_TOOLS: ToolsCost = ToolsCost {
    text: ToolText::Namespace,
    permille: 1000,
    request: 9,
    request_with_system: 5,
    tool: -1,
    parameterless: 1,
    accuracy: Accuracy::within(10),
};

const GPT_4O_TILES: PictureRule = PictureRule::Tiles { base: 85, tile: 170 };

impl FramingCost {
    /// No framing.
    pub const NONE: FramingCost = FramingCost {
        layout: Layout::Apart,
        request: 0,
        message: 0,
        assistant: 0,
        turn_end: 0,
        item: 0,
        answer: 0,
        system: 0,
        name: 0,
        call: 0,
        call_names: 0,
        parallel: 0,
        result: 0,
        pictures: None,
        tools: GIVEN_TOOLS,
        text: Accuracy::EXACT,
        calls: Accuracy::EXACT,
    };

    /// What a chat template adds, estimated: for the request, each message, and each message of the model. Tools and
    /// calls are counted as given.
    const fn template(request: u32, message: u32, assistant: u32) -> FramingCost {
        FramingCost {
            request,
            message,
            system: message,
            assistant,
            item: message,
            answer: message,
            text: Accuracy::ESTIMATED,
            calls: Accuracy::ESTIMATED,
            ..Self::NONE
        }
    }

    /// Chat messages under an encoding, without a known model. Requests, 2026-11: exact for messages of text.
    pub const OPENAI_CHAT: FramingCost = FramingCost {
        request: 3,
        message: 4,
        assistant: 4,
        item: 4,
        answer: 4,
        system: 4,
        name: 1,
        pictures: Some(GPT_4O_TILES),
        tools: NAMESPACE_TOOLS,
        calls: Accuracy::FITTED,
        ..Self::NONE
    };

    /// Anthropic messages under an encoding, without a known model. Requests, 2026-11: short English texts.
    pub const ANTHROPIC: FramingCost = FramingCost {
        request: 3,
        message: 4,
        assistant: 4,
        item: 4,
        answer: 4,
        system: 4,
        call: 38,
        result: 18,
        pictures: Some(PictureRule::ClaudeArea),
        tools: ToolsCost { accuracy: Accuracy::FITTED, ..Self::CLAUDE.tools },
        text: Accuracy::FITTED,
        calls: Accuracy::FITTED,
        ..Self::NONE
    };

    /// Messages of Bedrock's Converse API under an encoding, without a known model. Most of its models are Claude's, so it
    /// is priced as Anthropic's; not measured (2026-11).
    pub const BEDROCK: FramingCost = FramingCost {
        tools: ToolsCost { accuracy: Accuracy::ESTIMATED, ..Self::CLAUDE.tools },
        text: Accuracy::ESTIMATED,
        calls: Accuracy::ESTIMATED,
        ..Self::ANTHROPIC
    };

    /// gpt-4o and gpt-4.1, chat. Requests, 2026-11. A call and its result cost the name twice plus 5; two calls in one
    /// message cost 17 more, since they are wrapped into one (one request).
    pub const OPENAI_GPT_4O: FramingCost = FramingCost {
        call: 5,
        call_names: 1,
        parallel: 17,
        calls: Accuracy::within(10),
        ..Self::OPENAI_CHAT
    };

    /// gpt-5 and the o-series, chat. Requests, 2026-11: text exact, tools to the token. Every recorded request of this
    /// family with a call also has a file, so the price of a call is that of Responses, adjusted for the difference of
    /// items.
    pub const OPENAI_GPT_5: FramingCost = FramingCost {
        request: 2,
        call: 11,
        call_names: 1,
        tools: ToolsCost { request: 91, request_with_system: 91, parameterless: 0, ..NAMESPACE_TOOLS },
        calls: Accuracy::FITTED,
        ..Self::OPENAI_CHAT
    };

    /// gpt-4, gpt-4-turbo and gpt-3.5-turbo. Measured in OpenAI's notebook on counting tokens (checked 2026-11); calls
    /// and tools as for gpt-4o.
    pub const OPENAI_GPT_4: FramingCost = FramingCost {
        calls: Accuracy::FITTED,
        tools: ToolsCost { accuracy: Accuracy::FITTED, ..NAMESPACE_TOOLS },
        ..Self::OPENAI_GPT_4O
    };

    /// gpt-oss: a system message of the harmony format, 63 to 67 tokens depending on the service. Requests to three
    /// services, 2026-11.
    pub const GPT_OSS: FramingCost = FramingCost {
        request: 67,
        calls: Accuracy::ESTIMATED,
        text: Accuracy::FITTED,
        tools: ToolsCost { accuracy: Accuracy::ESTIMATED, ..NAMESPACE_TOOLS },
        ..Self::OPENAI_GPT_5
    };

    /// gpt-6: as gpt-5. Not measured.
    pub const OPENAI_GPT_6: FramingCost = FramingCost {
        text: Accuracy::ESTIMATED,
        calls: Accuracy::ESTIMATED,
        tools: ToolsCost { accuracy: Accuracy::ESTIMATED, ..Self::OPENAI_GPT_5.tools },
        ..Self::OPENAI_GPT_5
    };

    /// Claude up to 4.6. Messages: requests, 2026-11, exact; a message of the user costs 1 wherever it stands, since the
    /// model's turn has the marks of both sides; the system text is not framed. Thinking, calls and results: sessions,
    /// 2025-09 to 2026-03; results of their own have no frame, and text after them in a message of its own costs 5 more
    /// (few turns, not counted). Tools: requests since 2026, a preamble of 496 to 504, 94 more if a tool must be called;
    /// fewer in 2025.
    pub const CLAUDE: FramingCost = FramingCost {
        layout: Layout::Elements,
        request: 6,
        message: 1,
        assistant: 3,
        turn_end: 2,
        item: 3,
        system: 0,
        pictures: Some(PictureRule::ClaudeArea),
        tools: ToolsCost {
            text: ToolText::Functions,
            permille: 1000,
            request: 497,
            request_with_system: 497,
            tool: 0,
            parameterless: 0,
            accuracy: CLAUDE,
        },
        text: Accuracy::RECONSTRUCTED,
        calls: CLAUDE,
        ..Self::NONE
    };

    /// Claude Opus 4.7. One message costs 11 by ctok's records; the others as for 4.8.
    pub const CLAUDE_4_7: FramingCost = FramingCost { request: 10, ..Self::CLAUDE_4_8 };

    /// Claude Opus 4.8 and later. Few requests, 2026-11: 6 for one message (opus-5), 13 and 14 for three and four
    /// (opus-4-8), where 12 and 13 are counted.
    pub const CLAUDE_4_8: FramingCost = FramingCost {
        request: 5,
        pictures: Some(PictureRule::ClaudePatches),
        tools: ToolsCost {
            request: 350,
            request_with_system: 350,
            accuracy: CLAUDE_47,
            ..Self::CLAUDE.tools
        },
        text: Accuracy::within(50),
        calls: CLAUDE_47,
        ..Self::CLAUDE
    };

    /// Gemini. Requests, 2026-11: text, 2 for a system instruction and about 1 for a turn of the model; names of calls
    /// are repeated once, in the response. Thoughts restored by a signature are charged again and cannot be counted.
    /// Tools: name, description and the strings of the schema; a `parameters_json_schema` as JSON with blanks.
    pub const GEMINI: FramingCost = FramingCost {
        system: 2,
        assistant: 1,
        call: 3,
        call_names: 1,
        result: 4,
        pictures: Some(PictureRule::Flat(1120)),
        tools: ToolsCost {
            text: ToolText::Texts,
            permille: 1050,
            request: 0,
            request_with_system: 0,
            tool: 0,
            parameterless: 0,
            accuracy: GEMINI,
        },
        text: GEMINI,
        calls: GEMINI,
        ..Self::NONE
    };

    /// Gemini by a vocabulary of Gemma. Requests, 2026-11: 2 for a system instruction, and 1 for the key of a result that
    /// is one text (`output`, `error`), which is not among its texts; a `parameters_json_schema` as for
    /// [`GEMINI`](Self::GEMINI).
    pub const GEMINI_LOCAL: FramingCost = FramingCost {
        layout: Layout::Strings,
        assistant: 0,
        call: 0,
        result: 1,
        tools: ToolsCost { text: ToolText::Strings, permille: 1000, ..Self::GEMINI.tools },
        ..Self::GEMINI
    };

    /// Gemini contents under an encoding, without a known model.
    pub const GEMINI_CONTENTS: FramingCost = FramingCost {
        call_names: 0,
        pictures: Some(PictureRule::GeminiTiles),
        tools: ToolsCost { accuracy: Accuracy::FITTED, ..Self::GEMINI.tools },
        text: Accuracy::FITTED,
        calls: Accuracy::FITTED,
        ..Self::GEMINI
    };
}
