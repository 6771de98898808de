//! The rows of the table for the Responses API of OpenAI, where calls and outputs are items of their own.
//!
//! Requests, 2026-11. The instructions are a message like any other. A call with its output costs the
//! name twice; an item that is no text has no price of a message.

use super::{FramingCost, ToolText, ToolsCost, Trust};

/// How far requests of text were off: nine of ten within that. 13 of 15 are exact.
const TEXT: Trust = Trust::within(10);

/// The same with calls or tools.
const CALLS: Trust = Trust::within(30);

const TOOLS: ToolsCost = ToolsCost {
    text: ToolText::Namespace,
    permille: 1000,
    request: 3,
    request_with_system: 3,
    tool: -1,
    parameterless: 1,
    trust: CALLS,
};

impl FramingCost {
    /// Items under an encoding, no model known.
    pub const OPENAI_RESPONSES: FramingCost = FramingCost {
        item: 0,
        call: 11,
        text: TEXT,
        tools: ToolsCost { trust: Trust::FITTED, ..TOOLS },
        calls: Trust::FITTED,
        ..Self::OPENAI_CHAT
    };

    /// gpt-4o and gpt-4.1: two requests with a call, 11 beside its name twice.
    pub const RESPONSES_GPT_4O: FramingCost =
        FramingCost { call_names: 1, tools: TOOLS, calls: CALLS, ..Self::OPENAI_RESPONSES };

    /// gpt-5 and the o-series: a message of the model costs 2 more (three requests), a call 18 to 20 beside its name
    /// twice (eight calls).
    pub const RESPONSES_GPT_5: FramingCost = FramingCost {
        request: 2,
        assistant: 6,
        call: 19,
        tools: ToolsCost { request: 9, request_with_system: 9, parameterless: 0, ..TOOLS },
        ..Self::RESPONSES_GPT_4O
    };

    /// gpt-6: as gpt-5. Not measured.
    pub const RESPONSES_GPT_6: FramingCost = FramingCost {
        text: Trust::ESTIMATED,
        calls: Trust::ESTIMATED,
        tools: ToolsCost { trust: Trust::ESTIMATED, ..Self::RESPONSES_GPT_5.tools },
        ..Self::RESPONSES_GPT_5
    };

    /// The same for models of which no request to this API was recorded.
    pub const RESPONSES_FITTED: FramingCost = FramingCost {
        text: Trust::FITTED,
        calls: Trust::FITTED,
        tools: ToolsCost { trust: Trust::FITTED, ..TOOLS },
        ..Self::RESPONSES_GPT_4O
    };
}
