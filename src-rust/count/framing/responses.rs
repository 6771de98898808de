//! Rows of the table for OpenAI's Responses API, where calls and outputs are separate items.
//!
//! Requests, 2026-11. The instructions are a message like any other. A call with its output costs the name twice; an
//! item without text does not cost the price of a message.

use super::{Accuracy, FramingCost, ToolText, ToolsCost};

/// 90th percentile of the error for requests of text, of which 13 of 15 are exact.
const TEXT: Accuracy = Accuracy::within(10);

/// The same with calls or tools.
const CALLS: Accuracy = Accuracy::within(30);

const TOOLS: ToolsCost = ToolsCost {
    text: ToolText::Namespace,
    permille: 1000,
    request: 3,
    request_with_system: 3,
    tool: -1,
    parameterless: 1,
    accuracy: CALLS,
};

impl FramingCost {
    /// Items under an encoding, without a known model.
    pub const OPENAI_RESPONSES: FramingCost = FramingCost {
        item: 0,
        answer: 0,
        call: 11,
        text: TEXT,
        tools: ToolsCost { accuracy: Accuracy::FITTED, ..TOOLS },
        calls: Accuracy::FITTED,
        ..Self::OPENAI_CHAT
    };

    /// gpt-4o and gpt-4.1: two requests with a call, 11 in addition to its name twice.
    pub const RESPONSES_GPT_4O: FramingCost =
        FramingCost { call_names: 1, tools: TOOLS, calls: CALLS, ..Self::OPENAI_RESPONSES };

    /// gpt-5 and the o-series.
    ///
    /// A message of the model costs 2 more (three requests), a call 18 to 20 in addition to its name twice (eight
    /// calls).
    pub const RESPONSES_GPT_5: FramingCost = FramingCost {
        request: 2,
        assistant: 6,
        call: 19,
        tools: ToolsCost { request: 9, request_with_system: 9, parameterless: 0, ..TOOLS },
        ..Self::RESPONSES_GPT_4O
    };

    /// gpt-6: as gpt-5. Not measured.
    pub const RESPONSES_GPT_6: FramingCost = FramingCost {
        text: Accuracy::ESTIMATED,
        calls: Accuracy::ESTIMATED,
        tools: ToolsCost { accuracy: Accuracy::ESTIMATED, ..Self::RESPONSES_GPT_5.tools },
        ..Self::RESPONSES_GPT_5
    };

    /// The same for models without recorded requests to this API.
    pub const RESPONSES_FITTED: FramingCost = FramingCost {
        text: Accuracy::FITTED,
        calls: Accuracy::FITTED,
        tools: ToolsCost { accuracy: Accuracy::FITTED, ..TOOLS },
        ..Self::RESPONSES_GPT_4O
    };
}
