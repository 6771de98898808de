//! Messages of a library, as the library writes them in a provider's request.
//!
//! A library has a message for each result. Where a provider takes all results of a batch in one message, the library
//! joins them, and adds the user's next message if the provider wants it there. It gives each result the name of its
//! call, and does not send an empty text next to calls.

use std::collections::HashMap;
use std::ops::Range;

use super::Provider;
use crate::transcript::{KeyId, Message, PartKind, Role, Span, Transcript};

/// The messages in the order and number in which a provider gets them, and for each of them its first message in the
/// list. O(parts).
#[must_use]
pub fn as_sent(mut transcript: Transcript, provider: Provider) -> (Transcript, Vec<usize>) {
    name_results(&mut transcript);
    let mut firsts = Vec::with_capacity(transcript.len());
    let mut sent: Vec<Message> = Vec::with_capacity(transcript.len());
    let mut follows_result = false;
    for (index, mut message) in std::mem::take(&mut transcript.messages).into_iter().enumerate() {
        message.parts = without_empty_text(&transcript, message.parts);
        let is_result = message.role == Role::Tool;
        let joins = match provider {
            Provider::Anthropic | Provider::Bedrock => is_result || message.role == Role::User,
            Provider::Gemini => is_result,
            Provider::OpenAiChat | Provider::OpenAiResponses => false,
        };
        if is_result && matches!(provider, Provider::Anthropic | Provider::Bedrock) {
            message.role = Role::User;
        }
        match sent.last_mut() {
            // The parts of neighbours are neighbours.
            Some(last) if joins && follows_result => last.parts.end = message.parts.end,
            _ => {
                sent.push(message);
                firsts.push(index);
            }
        }
        follows_result = joins && (is_result || follows_result);
    }
    transcript.messages = sent;
    (transcript, firsts)
}

/// Gives results without a name that of the newest call with their id.
fn name_results(transcript: &mut Transcript) {
    let mut names: HashMap<KeyId, Span> = HashMap::new();
    for part in &mut transcript.parts {
        let Some(key) = part.key else { continue };
        match (&part.name, part.kind) {
            (Some(name), PartKind::ToolCall) => drop(names.insert(key, name.clone())),
            (None, PartKind::ToolResult) => part.name = names.get(&key).cloned(),
            _ => {}
        }
    }
}

/// The parts of a message without an empty text at their beginning, if others follow.
fn without_empty_text(transcript: &Transcript, range: Range<u32>) -> Range<u32> {
    let Some(first) = transcript.parts.get(range.start as usize) else { return range };
    let is_empty = transcript.pieces_of(first).iter().all(|piece| piece.span.is_empty());
    let is_text = first.kind == PartKind::Text;
    if range.len() > 1 && is_text && is_empty { range.start + 1..range.end } else { range }
}
