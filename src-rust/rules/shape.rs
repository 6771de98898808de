//! Properties of a message in its provider's own form that its transcript does not hold.

use super::provider::Provider;
use crate::error::Result;
use crate::formats::is_cache_point;
use crate::node::{Key, Kind, Node};

/// The properties of one message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// Number of items in its list of blocks; `None` if its content is a text or absent.
    pub blocks: Option<usize>,
    /// OpenAI chat: number of items in its list of calls.
    pub calls: usize,
    /// It has no fields that prevent joining it with another message.
    pub is_plain: bool,
    /// A result for its call can be synthesized.
    pub is_answerable: bool,
    /// OpenAI chat: its list of calls is there and empty.
    pub has_empty_calls: bool,
    /// OpenAI chat: the name of its participant is an empty text.
    pub has_empty_name: bool,
    /// OpenAI chat and Responses: it has neither a content, or output, nor anything in its place.
    pub lacks_content: bool,
    /// Its content is of a shape that the API does not accept: a value that is no list of blocks, or an item in a list,
    /// also in that of a result, that is no object.
    pub has_bad_content: bool,
    /// Responses: the item's own id, which no other item may have.
    pub id: Option<String>,
    /// Responses: items of its type must have an id.
    pub needs_id: bool,
    /// Anthropic and Bedrock: number of its blocks with, or as, a mark for the prompt cache.
    pub cache_marks: usize,
}

impl Shape {
    /// The properties of a message in the form of `provider`. O(its blocks).
    pub fn of<N: Node>(message: &N, provider: Provider) -> Self {
        let content = content_of(message, provider).filter(|content| content.kind() != Kind::Null);
        let kind = content.as_ref().map(Node::kind);
        let mut shape = Shape {
            blocks: content.as_ref().filter(|_| kind == Some(Kind::Array)).map(Node::len),
            is_plain: kind != Some(Kind::Object) && is_plain(message, provider),
            // A screenshot cannot be invented.
            is_answerable: !message.text_is(Key::TYPE, "computer_call"),
            has_bad_content: content
                .as_ref()
                .is_some_and(|content| has_bad_content(message, content, provider)),
            ..Shape::default()
        };
        match provider {
            Provider::OpenAiChat => shape.read_chat(message),
            Provider::OpenAiResponses => shape.read_item(message),
            Provider::Anthropic => {
                let count = |blocks: &N| count_marks(blocks, true);
                shape.cache_marks = content.as_ref().map_or(0, count);
            }
            Provider::Bedrock => {
                let count = |blocks: &N| count_cache_points(blocks);
                shape.cache_marks = content.as_ref().map_or(0, count);
            }
            Provider::Gemini => {}
        }
        shape
    }

    fn read_chat<N: Node>(&mut self, message: &N) {
        let role = message.text_of(Key::ROLE).unwrap_or_default();
        let calls = message.get_some(Key::TOOL_CALLS);
        let listed = calls.as_ref().filter(|calls| calls.kind() == Kind::Array).map(Node::len);
        self.calls = listed.unwrap_or(0);
        self.has_empty_calls = listed == Some(0);
        // The older results of role `function` are named after their call.
        self.has_empty_name = role != "function" && message.text_is(Key::NAME, "");
        let has_calls = calls.is_some() && !self.has_empty_calls;
        let has_other = [Key::FUNCTION_CALL, Key::REFUSAL, Key::AUDIO];
        let stands_alone = has_calls || has_other.iter().any(|&key| message.get_some(key).is_some());
        let is_empty = match message.get_some(Key::CONTENT) {
            None => role != "function",
            Some(content) => content.kind() == Kind::Array && content.len() == 0,
        };
        self.lacks_content = is_empty && !stands_alone;
    }

    fn read_item<N: Node>(&mut self, item: &N) {
        let item_type = item.text_of(Key::TYPE).unwrap_or_default();
        // A shell's output may name its call by the field that is an item's own id elsewhere.
        let names_call = item_type == "local_shell_call_output" && item.get_some(Key::CALL_ID).is_none();
        self.id = item.text_of(Key::ID).filter(|id| !id.is_empty() && !names_call);
        self.needs_id = !matches!(
            item_type.as_str(),
            "" | "message"
                | "reasoning"
                | "compaction"
                | "function_call"
                | "function_call_output"
                | "custom_tool_call"
                | "custom_tool_call_output"
                | "shell_call"
                | "shell_call_output"
                | "apply_patch_call"
                | "apply_patch_call_output"
                | "computer_call_output"
                | "tool_search_call"
                | "tool_search_output"
                | "mcp_approval_response"
        );
        let is_text = matches!(
            item_type.as_str(),
            "function_call_output" | "custom_tool_call_output" | "local_shell_call_output"
        );
        self.lacks_content = is_text && item.get_some(Key::OUTPUT).is_none();
    }
}

/// The properties of each message of a list.
///
/// # Errors
/// The list changed while it was read.
pub fn shapes<N: Node>(messages: &N, provider: Provider) -> Result<Vec<Shape>> {
    let mut shapes = Vec::with_capacity(messages.len());
    messages.each_item(|_, message| {
        shapes.push(Shape::of(message, provider));
        Ok(())
    })?;
    Ok(shapes)
}

/// The content of a message.
fn content_of<N: Node>(message: &N, provider: Provider) -> Option<N> {
    let parts = if provider == Provider::Gemini { message.get(Key::PARTS) } else { None };
    parts.or_else(|| message.get(Key::CONTENT))
}

/// Whether the API refuses the shape of a message's content.
fn has_bad_content<N: Node>(message: &N, content: &N, provider: Provider) -> bool {
    match provider {
        // Other items have a content of their own.
        Provider::OpenAiResponses
            if !message.text_is(Key::TYPE, "message") && message.get(Key::TYPE).is_some() =>
        {
            false
        }
        // Gemini's content is under its parts.
        Provider::Gemini => message.get_some(Key::PARTS).is_none() || is_bad_list(content, provider),
        _ => is_bad_list(content, provider),
    }
}

/// Whether a content is neither a list of objects nor, where the API accepts it, a text.
fn is_bad_list<N: Node>(content: &N, provider: Provider) -> bool {
    match content.kind() {
        Kind::Null => false,
        Kind::String => matches!(provider, Provider::Gemini | Provider::Bedrock),
        Kind::Array => {
            let is_bad = |block: &N| {
                let inner = content_of_result(block, provider);
                block.kind() != Kind::Object || inner.is_some_and(|inner| is_bad_list(&inner, provider))
            };
            content.find_item(|block| is_bad(block).then_some(())).is_some()
        }
        _ => true,
    }
}

/// The content of a block that is a result.
pub fn content_of_result<N: Node>(block: &N, provider: Provider) -> Option<N> {
    match provider {
        _ if block.kind() != Kind::Object => None,
        Provider::Anthropic if block.text_is(Key::TYPE, "tool_result") => block.get(Key::CONTENT),
        Provider::Bedrock => block
            .get(Key::TOOL_RESULT_CAMEL)
            .filter(|result| result.kind() == Kind::Object)?
            .get(Key::CONTENT),
        _ => None,
    }
}

/// Whether a message has only the fields that are joined with those of another.
fn is_plain<N: Node>(message: &N, provider: Provider) -> bool {
    let taken: &[&str] = match provider {
        Provider::OpenAiChat => &["role", "content", "tool_calls"],
        Provider::OpenAiResponses => &["type", "role", "content"],
        Provider::Anthropic | Provider::Bedrock => &["role", "content"],
        Provider::Gemini => &["role", "parts"],
    };
    let is_odd = |value: &N| match value.kind() {
        Kind::Null => false,
        Kind::Array => value.find_item(|call| (call.kind() != Kind::Object).then_some(())).is_some(),
        _ => true,
    };
    let members = message.members().unwrap_or_default();
    members.iter().all(|(key, value)| {
        let is_odd = provider == Provider::OpenAiChat && key == "tool_calls" && is_odd(value);
        taken.contains(&key.as_str()) && !is_odd
    })
}

/// Number of blocks with a mark for the prompt cache, those within results and documents included.
fn count_marks<N: Node>(blocks: &N, enters: bool) -> usize {
    if blocks.kind() != Kind::Array {
        return 0;
    }
    let mut count = 0;
    let walked = blocks.each_item(|_, block| {
        if block.kind() == Kind::Object {
            count += usize::from(block.get_some(Key::CACHE_CONTROL).is_some());
            if let Some(inner) = Some(()).filter(|()| enters).and_then(|()| inner_blocks(block)) {
                count += count_marks(&inner, false);
            }
        }
        Ok(())
    });
    // A list that lost items in the meantime has no further ones.
    drop(walked);
    count
}

/// Number of blocks that are marks for the prompt cache.
fn count_cache_points<N: Node>(blocks: &N) -> usize {
    let mut count = 0;
    let walked = blocks.each_item(|_, block| {
        count += usize::from(block.kind() == Kind::Object && is_cache_point(block));
        Ok(())
    });
    // A list that lost items in the meantime has no further ones.
    drop(walked);
    count
}

/// The blocks within a block: the content of a result, or of a document that consists of blocks.
fn inner_blocks<N: Node>(block: &N) -> Option<N> {
    let source = block.get(Key::SOURCE).filter(|source| source.kind() == Kind::Object);
    block.get(Key::CONTENT).or_else(|| source?.get(Key::CONTENT))
}
