//! Lists the calls of a transcript, each with its tool, its main argument and the message of its result.

use serde::Serialize;

use super::calls::{self, CallIntent};
use super::outcome;
use super::written_calls::Written;
use crate::evidence::commands::shell::ShellCommand;
use crate::evidence::text::one_line;
use crate::evidence::{CommandKind, CommandStatus, FileOp};
use crate::json::with_document;
use crate::node::{Kind, Node};
use crate::rules::Structure;
use crate::transcript::{MessageSource, Part, PartKind, Transcript};

/// Longest main argument, in characters.
const MAX_ARGUMENT_CHARS: usize = 200;
/// Longest name of a tool, in characters.
const MAX_TOOL_CHARS: usize = 80;

/// A call of a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CallMade {
    /// Index of its message.
    pub message: usize,
    /// Index of the message with its result; `None` without a result.
    pub result: Option<usize>,
    /// The name of the tool.
    pub tool: String,
    /// The path, the command, or the first text among the arguments, on one line.
    pub argument: String,
    /// The files that it names, with what it does to them.
    pub files: Vec<(FileOp, String)>,
    /// The purpose of a command; `None` for other calls.
    pub command: Option<CommandKind>,
    /// The outcome, according to its result.
    pub outcome: CommandStatus,
    /// Tokens of its result: the share of that message's tokens that its text has.
    pub tokens: u64,
}

/// The calls of all messages, in order. `tokens_of` gives the tokens of a message. O(bytes of calls and results).
#[must_use]
pub fn calls_made(
    source: &dyn MessageSource,
    structure: &Structure,
    tokens_of: impl Fn(usize) -> u64,
) -> Vec<CallMade> {
    let mut made: Vec<CallMade> = Vec::new();
    let mut commands: Vec<Option<ShellCommand>> = Vec::new();
    let mut by_part: Vec<(u32, usize)> = Vec::new();
    for message in 0..structure.len() {
        let (transcript, index) = source.at(message);
        let first = structure.first_parts[message];
        let whole: u64 = transcript.parts_of(index).iter().map(|part| bytes_of(transcript, part)).sum();
        let mut written = Written::of(transcript, index);
        for (number, part) in (first..).zip(transcript.parts_of(index)) {
            match part.kind {
                PartKind::ToolCall => {
                    by_part.push((number, made.len()));
                    let (tool, arguments) = written.call(transcript, part);
                    let (call, command) = call(message, tool, &arguments);
                    made.push(call);
                    commands.push(command);
                }
                PartKind::ToolResult => {
                    let text = written.result(transcript, part);
                    let answered = structure.pairing.call_of(number as usize);
                    let at = answered
                        .and_then(|call| by_part.binary_search_by_key(&call, |(part, _)| *part).ok())
                        .and_then(|at| by_part.get(at));
                    let Some((at, call)) = at.and_then(|(_, at)| Some((*at, made.get_mut(*at)?))) else {
                        continue;
                    };
                    call.result = Some(message);
                    call.outcome = match commands.get(at).and_then(Option::as_ref) {
                        Some(command) => outcome::of_command(command, &text, part.is_error).outcome,
                        None => outcome::of_tool(&text, part.is_error).outcome,
                    };
                    let share = u128::from(tokens_of(message)) * u128::from(bytes_of(transcript, part));
                    call.tokens = u64::try_from(share / u128::from(whole.max(1))).unwrap_or(u64::MAX);
                }
                _ => {}
            }
        }
    }
    made
}

fn bytes_of(transcript: &Transcript, part: &Part) -> u64 {
    transcript.pieces_of(part).iter().map(|piece| u64::from(piece.span.end - piece.span.start)).sum()
}

/// A call without its result, and its command if it is one.
fn call(message: usize, tool: &str, arguments: &str) -> (CallMade, Option<ShellCommand>) {
    let (argument, files, command) = match calls::read(tool, arguments, "").intent {
        CallIntent::Files(files) => (files.first().map(|(_, path)| path.clone()), files, None),
        CallIntent::Shell { command, about } => (Some(command), about.effects.clone(), Some(about)),
        CallIntent::TaskCreate(text) => (Some(text), Vec::new(), None),
        _ => (None, Vec::new(), None),
    };
    let argument = argument.or_else(|| first_text(arguments)).unwrap_or_default();
    let made = CallMade {
        message,
        result: None,
        tool: one_line(tool, MAX_TOOL_CHARS),
        argument: one_line(&argument, MAX_ARGUMENT_CHARS),
        files,
        command: command.as_ref().map(|about| about.kind),
        outcome: CommandStatus::Unknown,
        tokens: 0,
    };
    (made, command)
}

/// The first text among the arguments.
fn first_text(arguments: &str) -> Option<String> {
    let found = with_document(arguments.as_bytes(), |node| {
        if node.kind() == Kind::String {
            return node.with_text(|text, _| text.to_owned());
        }
        let members = node.members().ok()?;
        members.iter().find_map(|(_, value)| value.with_text(|text, _| text.to_owned()))
    });
    found.unwrap_or_else(|_| Some(arguments.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::{Format, read_messages};
    use crate::rules::{Pins, analyze};

    #[test]
    fn calls_have_their_results_arguments_and_tokens() {
        let json = r#"[
            {"role":"assistant","content":[
                {"type":"tool_use","id":"a","name":"Read","input":{"file_path":"src/a.rs"}},
                {"type":"tool_use","id":"b","name":"Bash","input":{"command":"cargo test"}},
                {"type":"tool_use","id":"c","name":"ask","input":{"n":1,"question":"Which?"}}]},
            {"role":"user","content":[
                {"type":"tool_result","tool_use_id":"b","content":"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbb","is_error":true},
                {"type":"tool_result","tool_use_id":"a","content":"aaaaaaaaaa"}]}]"#;
        let found = with_document(json.as_bytes(), |list| {
            let transcript = read_messages(&list, Format::Anthropic, false).unwrap();
            let structure = analyze(&transcript, &Pins::default()).unwrap();
            calls_made(&transcript, &structure, |_| 80)
        });
        let seen: Vec<_> = found
            .unwrap()
            .into_iter()
            .map(|call| (call.tool, call.argument, call.result, call.tokens, call.outcome.is_failure()))
            .collect();
        let expected = [
            ("Read", "src/a.rs", Some(1), 20, false),
            ("Bash", "cargo test", Some(1), 60, true),
            ("ask", "Which?", None, 0, false),
        ];
        let expected: Vec<_> = expected
            .into_iter()
            .map(|(tool, argument, result, tokens, failed)| {
                (tool.to_owned(), argument.to_owned(), result, tokens, failed)
            })
            .collect();
        assert_eq!(seen, expected);
    }
}
