//! Messages as the rules see them, without a dialect: who speaks, what is called and answered, what hangs together.
//! Each can be written in one of the dialects, so that what is proved goes through the readers as well.

use foldline::formats::Format;
use foldline::transcript::SUMMARY_LABEL;

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    System,
    User,
    /// A command that the user ran.
    Bash,
    Assistant,
    Tool,
}

/// What a message hangs together with, beside calls and results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    Free,
    /// Reasoning by itself, of the model's message behind it.
    Reasoning,
    /// A call by itself, of one batch with the call behind it.
    Call,
    /// A turn of the model that wants another speaker behind it.
    Turn,
    /// What a provider compacted.
    Compaction,
}

/// A part of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    Text(String),
    Call {
        id: Option<char>,
        name: char,
    },
    Result {
        id: Option<char>,
        name: Option<char>,
        text: String,
        /// It goes back as it came, or not at all.
        is_fixed: bool,
    },
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub who: Who,
    pub bound: Bound,
    pub parts: Vec<Part>,
    pub is_pinned: bool,
}

pub fn text(chars: usize) -> Part {
    Part::Text("t".repeat(chars))
}

pub fn call(id: char) -> Part {
    Part::Call { id: Some(id), name: 'n' }
}

pub fn nameless_call(name: char) -> Part {
    Part::Call { id: None, name }
}

pub fn result(id: char, chars: usize) -> Part {
    Part::Result { id: Some(id), name: None, text: "r".repeat(chars), is_fixed: false }
}

pub fn named_result(name: Option<char>, chars: usize) -> Part {
    Part::Result { id: None, name, text: "r".repeat(chars), is_fixed: false }
}

pub fn fixed_result(id: char, chars: usize) -> Part {
    Part::Result { id: Some(id), name: None, text: "r".repeat(chars), is_fixed: true }
}

impl Message {
    pub fn new(who: Who, bound: Bound, parts: Vec<Part>) -> Self {
        Message { who, bound, parts, is_pinned: false }
    }

    pub fn pinned(mut self) -> Self {
        self.is_pinned = true;
        self
    }

    /// A summary of an earlier fold.
    pub fn summary(chars: usize) -> Self {
        let label = Part::Text(format!("{SUMMARY_LABEL}{}", "s".repeat(chars)));
        Message::new(Who::User, Bound::Free, vec![label])
    }

    pub fn is_summary(&self) -> bool {
        let first = self.parts.iter().find(|part| matches!(part, Part::Text(_)));
        let labelled = matches!(first, Some(Part::Text(text)) if text.starts_with(SUMMARY_LABEL));
        self.who == Who::User && labelled
    }

    /// The message in a dialect that can say it.
    pub fn written(&self) -> (Format, String) {
        let nameless = |part: &Part| {
            matches!(part, Part::Call { id: None, .. } | Part::Result { id: None, is_fixed: false, .. })
        };
        match (self.who, self.bound) {
            (_, Bound::Compaction) => (Format::OpenAiResponses, r#"{"type":"compaction"}"#.to_owned()),
            (_, Bound::Reasoning) => (Format::OpenAiResponses, self.reasoning()),
            (_, Bound::Call) => (Format::OpenAiResponses, self.call_item()),
            (Who::System, _) => {
                (Format::OpenAiChat, format!(r#"{{"role":"system","content":"{}"}}"#, self.texts()))
            }
            (Who::Bash, _) => {
                (Format::Pi, format!(r#"{{"role":"bashExecution","command":"{}"}}"#, self.texts()))
            }
            (Who::Tool, _) => (Format::OpenAiChat, self.tool_message()),
            (_, bound) if bound == Bound::Turn || self.parts.iter().any(nameless) => {
                (Format::Gemini, self.turn())
            }
            _ => (Format::Anthropic, self.blocks()),
        }
    }

    fn texts(&self) -> String {
        let text = |part: &Part| if let Part::Text(text) = part { text.clone() } else { String::new() };
        self.parts.iter().map(text).collect()
    }

    fn reasoning(&self) -> String {
        format!(r#"{{"type":"reasoning","content":[{{"text":"{}"}}]}}"#, self.texts())
    }

    fn call_item(&self) -> String {
        let Some(Part::Call { id: Some(id), name }) = self.parts.first() else { return "{}".to_owned() };
        format!(r#"{{"type":"function_call","call_id":"{id}","name":"{name}","arguments":"{{}}"}}"#)
    }

    fn tool_message(&self) -> String {
        let Some(Part::Result { id, name, text, .. }) = self.parts.first() else { return "{}".to_owned() };
        let mut members = vec![r#""role":"tool""#.to_owned(), format!(r#""content":"{text}""#)];
        members.extend(id.map(|id| format!(r#""tool_call_id":"{id}""#)));
        members.extend(name.map(|name| format!(r#""name":"{name}""#)));
        format!("{{{}}}", members.join(","))
    }

    fn turn(&self) -> String {
        let member = |id: &Option<char>| id.map_or(String::new(), |id| format!(r#""id":"{id}","#));
        let part = |part: &Part| match part {
            Part::Text(text) => format!(r#"{{"text":"{text}"}}"#),
            Part::Call { id, name } => {
                format!(r#"{{"functionCall":{{{}"name":"{name}","args":{{}}}}}}"#, member(id))
            }
            Part::Result { id, name, text, .. } => {
                let name = name.map_or(String::new(), |name| format!(r#""name":"{name}","#));
                let id = member(id);
                format!(r#"{{"functionResponse":{{{id}{name}"response":{{"output":"{text}"}}}}}}"#)
            }
        };
        let role = if self.who == Who::Assistant { "model" } else { "user" };
        let parts: Vec<String> = self.parts.iter().map(part).collect();
        format!(r#"{{"role":"{role}","parts":[{}]}}"#, parts.join(","))
    }

    fn blocks(&self) -> String {
        let block = |part: &Part| match part {
            Part::Text(text) => format!(r#"{{"type":"text","text":"{text}"}}"#),
            Part::Call { id, name } => {
                let id = id.unwrap_or('?');
                format!(r#"{{"type":"tool_use","id":"{id}","name":"{name}","input":{{}}}}"#)
            }
            Part::Result { id, text, is_fixed, .. } => {
                let (id, kind) =
                    (id.unwrap_or('?'), if *is_fixed { "web_search_tool_result" } else { "tool_result" });
                format!(r#"{{"type":"{kind}","tool_use_id":"{id}","content":"{text}"}}"#)
            }
        };
        let role = if self.who == Who::Assistant { "assistant" } else { "user" };
        let blocks: Vec<String> = self.parts.iter().map(block).collect();
        format!(r#"{{"role":"{role}","content":[{}]}}"#, blocks.join(","))
    }
}

/// Forty forms: every kind of message that the rules tell apart, alone and in the ways in which it meets others.
pub fn forms() -> Vec<Message> {
    use Bound::{Call, Compaction, Free, Reasoning, Turn};
    use Who::{Assistant, Bash, System, Tool, User};
    let of = Message::new;
    vec![
        of(System, Free, vec![text(3)]),
        of(User, Free, vec![text(2)]),
        of(User, Free, vec![text(9)]),
        of(User, Free, vec![]),
        of(User, Free, vec![text(4)]).pinned(),
        of(Bash, Free, vec![text(5)]),
        Message::summary(2),
        Message::summary(2).pinned(),
        of(Assistant, Free, vec![text(2)]),
        of(Assistant, Free, vec![text(9)]),
        of(Assistant, Free, vec![text(3)]).pinned(),
        of(Assistant, Free, vec![call('a')]),
        of(Assistant, Free, vec![call('b')]),
        of(Assistant, Free, vec![text(4), call('a'), call('b')]),
        of(Assistant, Free, vec![call('a'), call('a')]),
        of(Assistant, Free, vec![call('a')]).pinned(),
        of(Assistant, Free, vec![nameless_call('n')]),
        of(Assistant, Free, vec![nameless_call('n'), nameless_call('m')]),
        of(Assistant, Free, vec![call('a'), nameless_call('n')]),
        of(Assistant, Free, vec![call('a'), result('a', 12)]),
        of(Assistant, Free, vec![call('a'), result('a', 12), call('b')]),
        of(Assistant, Free, vec![call('a'), fixed_result('a', 15)]),
        of(Assistant, Reasoning, vec![text(6)]),
        of(Assistant, Reasoning, vec![text(6)]).pinned(),
        of(Assistant, Call, vec![call('a')]),
        of(Assistant, Call, vec![call('b')]),
        of(Assistant, Turn, vec![text(7)]),
        of(Assistant, Turn, vec![text(7)]).pinned(),
        of(Assistant, Compaction, vec![]),
        of(Tool, Free, vec![result('a', 2)]),
        of(Tool, Free, vec![result('a', 40)]),
        of(Tool, Free, vec![result('b', 40)]),
        of(Tool, Free, vec![result('a', 30)]).pinned(),
        of(Tool, Free, vec![named_result(Some('n'), 35)]),
        of(Tool, Free, vec![named_result(None, 11)]),
        of(User, Free, vec![result('a', 45), result('b', 33)]),
        of(User, Free, vec![result('a', 25), text(5)]),
        of(User, Free, vec![result('b', 12), result('a', 12), result('a', 60)]),
        of(User, Free, vec![named_result(Some('m'), 20), named_result(Some('n'), 20)]),
        of(User, Free, vec![fixed_result('a', 50)]),
    ]
}
