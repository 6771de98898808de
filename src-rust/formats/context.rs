//! The request context of stored messages: tool schemas, the system text, and the messages that are summaries.

use super::Format;
use crate::node::{Key, Kind, Node};

/// The members of a stored conversation, besides its messages, that belong to a request.
#[derive(Clone, Debug)]
pub struct RequestContext<N> {
    /// Tool schemas.
    pub tools: Vec<N>,
    /// The system text: a non-empty string or list of parts.
    pub system: Option<N>,
    /// Indices of messages that are summaries of earlier folds.
    pub summaries: Vec<usize>,
}

impl<N: Node> RequestContext<N> {
    /// Reads the context of `count` messages of a format; `member` looks up a member by name.
    pub fn read(member: impl Fn(&str) -> Option<N>, format: Format, count: usize) -> Self {
        // Bedrock has them one level deeper.
        let configured = || member("toolConfig").filter(|it| it.kind() == Kind::Object)?.get(Key::TOOLS);
        let tools = match member("tools").or_else(configured) {
            Some(tool) if tool.kind() == Kind::Object => vec![tool],
            Some(tools) if tools.kind() == Kind::Array => tools.items(),
            _ => Vec::new(),
        };
        let given = match format {
            Format::Gemini => {
                let given = member("systemInstruction").or_else(|| member("system_instruction"));
                given.and_then(|given| match given.kind() {
                    Kind::Object => given.get(Key::PARTS),
                    _ => Some(given),
                })
            }
            Format::OpenAiResponses => member("instructions"),
            _ => member("system"),
        };
        let system = given.filter(|given| match given.kind() {
            Kind::String => given.with_text(|text, _| !text.is_empty()) == Some(true),
            Kind::Array => !given.is_empty(),
            _ => false,
        });
        let summaries = member("summaries").filter(|given| given.kind() == Kind::Array);
        let summaries = summaries.map_or_else(Vec::new, |given| given.items());
        let summaries = summaries.iter().filter_map(index).filter(|&index| index < count).collect();
        RequestContext { tools, system, summaries }
    }
}

/// A non-negative integer.
fn index<N: Node>(node: &N) -> Option<usize> {
    if node.kind() != Kind::Number {
        return None;
    }
    let mut digits = String::new();
    node.write_scalar(&mut digits);
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::with_document;

    fn read(json: &str, format: Format) -> (usize, Option<String>, Vec<usize>) {
        with_document(json.as_bytes(), |around| {
            let members = around.members().unwrap();
            let member = |name: &str| members.iter().find(|(key, _)| key == name).map(|(_, value)| *value);
            let context = RequestContext::read(member, format, 4);
            let mut system = String::new();
            let written = context.system.map(|node| node.write_json(&mut system)).is_some();
            (context.tools.len(), written.then_some(system), context.summaries)
        })
        .unwrap()
    }

    #[test]
    fn each_provider_has_a_name_of_its_own_for_the_system_text() {
        let json = r#"{"system":"a","instructions":"b","systemInstruction":{"parts":[{"text":"c"}]}}"#;
        assert_eq!(read(json, Format::Anthropic).1.as_deref(), Some(r#""a""#));
        assert_eq!(read(json, Format::OpenAiResponses).1.as_deref(), Some(r#""b""#));
        assert_eq!(read(json, Format::Gemini).1.as_deref(), Some(r#"[{"text":"c"}]"#));
        assert_eq!(read(r#"{"system":""}"#, Format::Anthropic).1, None);
        assert_eq!(read(r#"{"system":[]}"#, Format::Anthropic).1, None);
        assert_eq!(read(r#"{"system":7}"#, Format::Anthropic).1, None);
    }

    #[test]
    fn one_tool_may_stand_without_a_list() {
        assert_eq!(read(r#"{"tools":{"name":"a"}}"#, Format::Anthropic).0, 1);
        assert_eq!(read(r#"{"tools":[{"name":"a"},{"name":"b"}]}"#, Format::Anthropic).0, 2);
        assert_eq!(read(r#"{"tools":"a"}"#, Format::Anthropic).0, 0);
        let configured = r#"{"toolConfig":{"tools":[{"toolSpec":{"name":"a"}},{"cachePoint":{}}]}}"#;
        assert_eq!(read(configured, Format::BedrockConverse).0, 2);
    }

    #[test]
    fn summaries_are_whole_numbers_of_messages_that_exist() {
        let json = r#"{"summaries":[0,3,4,-1,1.5,true,"2",null]}"#;
        assert_eq!(read(json, Format::Pi).2, [0, 3]);
    }
}
