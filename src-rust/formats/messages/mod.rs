//! Dialects of providers and libraries: one reader each, from a message to parts of a transcript.

pub(super) mod ai_sdk;
pub(super) mod ai_sdk_ui;
pub(super) mod anthropic;
pub(super) mod bedrock;
pub(super) mod calls_in_text;
pub(super) mod cohere;
pub(super) mod gemini;
pub mod gent;
pub mod langchain;
pub(super) mod mistral;
pub(super) mod openai_chat;
pub(super) mod openai_responses;
pub(super) mod pi;
pub mod sharegpt;
pub(super) mod simple_message;

use crate::node::Node;

/// Whether a block holds thinking, plain or encrypted.
pub fn is_thinking_block<N: Node>(block: &N) -> bool {
    anthropic::is_thinking(block) || bedrock::is_thinking(block)
}
