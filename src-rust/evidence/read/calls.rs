//! Classifies a tool call by its name and arguments.
//!
//! Agents name their tools differently, but with the same words: a tool with `read` in its name and a path in its
//! arguments reads that file. Only tools that words do not reveal (shells, patches, task lists) are listed.

use super::files::edited::{Change, change_of, changes_of_patch, patch_of};
use super::flat::{flat, line_of};
use super::tasks::{MAX_TASKS, status_of};
use super::tools::{Tool, tool_of};
use crate::evidence::commands::folders;
use crate::evidence::commands::patch;
use crate::evidence::commands::programs::address_of;
use crate::evidence::commands::shell::{self, ShellCommand};
use crate::evidence::commands::spelling::without_heredocs;
use crate::evidence::language::asking::UserQuestion;
use crate::evidence::text::{escape_section_tags, one_line};
use crate::evidence::{FileOp, TaskStatus, lines};
use crate::json::{Tape, with_document};
use crate::node::{Kind, Node};

/// Longest text of a command.
pub(super) const MAX_COMMAND_CHARS: usize = 400;
/// Longest text of an unclassified call.
const MAX_CALL_CHARS: usize = 600;
/// Most files that one call may name.
const MAX_FILES_PER_CALL: usize = 200;

/// The intent of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CallIntent {
    /// Actions on files.
    Files(Vec<(FileOp, String)>),
    /// A command.
    Shell { command: String, about: ShellCommand },
    /// The complete list of tasks.
    TaskList(Vec<(String, TaskStatus)>),
    /// A new task.
    TaskCreate(String),
    /// A new status of a task, by its number.
    TaskUpdate { number: String, status: String },
    /// The user dropped something.
    Dropped(String),
    /// No call: what the user does not want done, `block it`.
    Denied(String),
    /// A question to the user.
    Ask(Vec<UserQuestion>),
    /// A plan that the user is to approve.
    Plan(String),
    /// The end of a process, by its name or number.
    Kill(String),
    /// A thought, which is no work.
    Thought,
    /// A look-up outside files, with the address that it asks.
    Lookup { address: Option<String> },
    /// An unclassified call: as one line, and its arguments as `key value`.
    Other { line: String, arguments: Vec<String> },
}

/// What the arguments of a call say.
pub(super) struct CallRead {
    pub intent: CallIntent,
    /// The lines that it asks for of a file.
    pub lines: Option<(u32, u32)>,
    /// The changes that it makes, each with its file.
    pub changes: Vec<(String, Change)>,
}

/// Classifies a call whose shell is in `folder`, as far as known. Arguments that are not JSON are read as a patch or a
/// command.
pub(super) fn read(name: &str, arguments: &str, folder: &str) -> CallRead {
    let tool = tool_of(name);
    let read = match Tape::parse(arguments.as_bytes(), &mut || true) {
        Ok(Some(tape)) => Ok(from_json_whole(tool, name, arguments, &tape.root(), folder)),
        _ => {
            with_document(arguments.as_bytes(), |node| from_json_whole(tool, name, arguments, &node, folder))
        }
    };
    let (intent, changes) = match read {
        Ok(read) => return read,
        Err(_) if patch::is_patch(arguments) => {
            (CallIntent::Files(patch::files_of(arguments)), changes_of_patch(arguments))
        }
        Err(_) if tool == Tool::Shell && !arguments.is_empty() => {
            (shell_intent(arguments, folder), Vec::new())
        }
        Err(_) => (other(name, arguments, Vec::new()), Vec::new()),
    };
    CallRead { intent, lines: None, changes }
}

fn from_json_whole<N: Node>(tool: Tool, name: &str, arguments: &str, node: &N, folder: &str) -> CallRead {
    let members = node.members().unwrap_or_default();
    let Some(intent) = from_json(tool, name, node, &members, folder) else {
        return CallRead { intent: other(name, arguments, flat(node)), lines: None, changes: Vec::new() };
    };
    let (lines, changes) = match &intent {
        CallIntent::Files(files) => {
            let changes = match (tool, files.as_slice()) {
                (Tool::Patch, _) => {
                    patch_of(node, &members).map_or_else(Vec::new, |patch| changes_of_patch(&patch))
                }
                (_, [(action, path)]) if action.is_change() => {
                    vec![(path.clone(), change_of(&members, path))]
                }
                _ => Vec::new(),
            };
            (lines::of_call(&members), changes)
        }
        CallIntent::Shell { about, .. } if about.effects.iter().any(|(action, _)| action.is_change()) => {
            (None, patch_of(node, &members).map_or_else(Vec::new, |patch| changes_of_patch(&patch)))
        }
        _ => (None, Vec::new()),
    };
    CallRead { intent, lines, changes }
}

/// The intent of a shell command that runs in a folder.
pub(super) fn shell_intent(command: &str, folder: &str) -> CallIntent {
    let about = shell::analyse_in(command, folder);
    let command = one_line(&escape_section_tags(&without_heredocs(command)), MAX_COMMAND_CHARS);
    CallIntent::Shell { command, about }
}

/// A call as one line: `book_flight: id A1, cabin economy`.
fn other(name: &str, arguments: &str, mut flat: Vec<String>) -> CallIntent {
    // A task for another agent has a title beside its text.
    if flat.iter().any(|piece| piece.starts_with("description ")) {
        flat.retain(|piece| !piece.starts_with("prompt ") && !piece.starts_with("subagent_type "));
    }
    let name = one_line(&escape_section_tags(name), 80);
    if flat.is_empty() {
        let line = arguments.trim_matches(['{', '}', ' ']);
        let line = if line.is_empty() { name } else { format!("{name}: {line}") };
        return CallIntent::Other {
            line: one_line(&escape_section_tags(&line), MAX_CALL_CHARS),
            arguments: flat,
        };
    }
    CallIntent::Other { line: line_of(&name, &flat, MAX_CALL_CHARS), arguments: flat }
}

const PATH_KEYS: [&str; 16] = [
    "file_path",
    "path",
    "notebook_path",
    "notebook",
    "filePath",
    "absolute_path",
    "filename",
    "file_name",
    "target_file",
    "relative_path",
    "relative_workspace_path",
    "file",
    "source",
    "old_path",
    "paths",
    "files",
];
const TARGET_KEYS: [&str; 4] = ["destination", "new_path", "target", "to"];
const COMMAND_KEYS: [&str; 4] = ["command", "cmd", "script", "commands"];

const FOLDER_KEYS: [&str; 7] =
    ["workdir", "cwd", "working_directory", "workingDirectory", "working_dir", "directory", "dir_path"];

fn from_json<N: Node>(
    tool: Tool,
    name: &str,
    node: &N,
    members: &[(String, N)],
    folder: &str,
) -> Option<CallIntent> {
    if node.kind() == Kind::String {
        return node.with_text(|text, _| read_text(tool, text, folder)).flatten();
    }
    let find = |keys: &[&str]| keys.iter().find_map(|key| members.iter().find(|(known, _)| known == key));
    let text_of =
        |keys: &[&str]| find(keys).and_then(|(_, value)| value.with_text(|text, _| text.to_owned()));
    let paths = |action: FileOp| {
        let mut files: Vec<(FileOp, String)> = find(&PATH_KEYS)
            .map_or_else(Vec::new, |(_, value)| texts_of(value).into_iter().map(|p| (action, p)).collect());
        if action == FileOp::Moved {
            files.extend(text_of(&TARGET_KEYS).map(|path| (FileOp::Created, path)));
        }
        files
    };
    match tool {
        Tool::Shell => {
            let command = find(&COMMAND_KEYS).map(|(_, value)| command_text(value))?;
            let own = text_of(&FOLDER_KEYS).filter(|own| !own.is_empty() && own != ".");
            let own = own.map(|own| folders::joined(folder, &own));
            let mut intent = shell_intent(&command, own.as_deref().unwrap_or(folder));
            let in_background =
                find(&["run_in_background", "is_background", "background"]).is_some_and(|(_, value)| {
                    let mut raw = String::new();
                    value.write_json(&mut raw).is_ok() && raw.trim() == "true"
                });
            if let CallIntent::Shell { command, about } = &mut intent {
                if in_background {
                    about.starts = Some(command.clone());
                }
                if own.is_some() {
                    about.ends_in = None;
                    about.folder_is_named = true;
                }
            }
            Some(intent)
        }
        Tool::Patch => {
            let patch = text_of(&["input", "patch", "diff", "patch_text", "patchText"]);
            let files = patch.map_or_else(Vec::new, |patch| patch::files_of(&patch));
            Some(CallIntent::Files(if files.is_empty() { paths(FileOp::Edited) } else { files }))
        }
        Tool::Editor => {
            let action = match text_of(&["command"])?.as_str() {
                "view" => FileOp::Read,
                "create" => FileOp::Written,
                _ => FileOp::Edited,
            };
            Some(CallIntent::Files(paths(action)))
        }
        Tool::TaskList => {
            find(&["todos", "plan", "items", "tasks", "todoList"]).map(|(_, list)| task_list(list))
        }
        Tool::TaskCreate => text_of(&["subject", "title", "description"]).map(CallIntent::TaskCreate),
        Tool::TaskUpdate => {
            let number = text_of(&["taskId", "task_id", "id"])?;
            Some(CallIntent::TaskUpdate { number, status: text_of(&["status"]).unwrap_or_default() })
        }
        Tool::Files(action) => {
            let files = paths(action);
            match (files.is_empty(), action) {
                (false, _) => Some(CallIntent::Files(files)),
                (true, FileOp::Searched | FileOp::Read) => Some(CallIntent::Lookup { address: None }),
                // `update_reservation` has a word of a file tool, but does not name a file.
                (true, _) => None,
            }
        }
        Tool::Ask => Some(CallIntent::Ask(questions_of(members))),
        Tool::Plan => Some(CallIntent::Plan(
            text_of(&["plan", "text", "content", "response", "markdown"]).unwrap_or_default(),
        )),
        Tool::Thought => Some(CallIntent::Thought),
        Tool::Kill => Some(CallIntent::Kill(
            text_of(&["shell_id", "bash_id", "process_id", "pid", "id", "session_id"]).unwrap_or_default(),
        )),
        Tool::Lookup => {
            let address = text_of(&["url", "uri", "address", "endpoint"]);
            Some(CallIntent::Lookup { address: address.and_then(|url| address_of(&url)) })
        }
        Tool::Other => {
            let command = find(&COMMAND_KEYS[..2]).filter(|_| name.to_ascii_lowercase().contains("command"));
            command.map(|(_, value)| shell_intent(&command_text(value), folder))
        }
    }
}

/// The questions of a call to the user, with their options.
fn questions_of<N: Node>(members: &[(String, N)]) -> Vec<UserQuestion> {
    const OPTIONS: [&str; 5] = ["options", "choices", "suggestions", "follow_up", "answers"];
    const TEXTS: [&str; 6] = ["question", "prompt", "message", "text", "query", "title"];
    let one = |members: &[(String, N)]| {
        let find = |keys: &[&str]| keys.iter().find_map(|key| members.iter().find(|(known, _)| known == key));
        let question = find(&TEXTS)?.1.with_text(|text, _| one_line(&escape_section_tags(text), 300))?;
        let label = |item: N| {
            let text = item.with_text(|text, _| text.to_owned());
            text.or_else(|| member_text(&item, &["label", "text", "title", "value", "name", "answer"]))
        };
        let options = find(&OPTIONS)
            .map_or_else(Vec::new, |(_, list)| list.first_items(20).into_iter().filter_map(label).collect());
        let options =
            options.into_iter().map(|text| (String::new(), one_line(&escape_section_tags(&text), 200)));
        Some(UserQuestion { question, options: options.collect() })
    };
    match members.iter().find(|(key, _)| key == "questions") {
        Some((_, list)) => list
            .first_items(20)
            .into_iter()
            .filter_map(|item| match item.with_text(|text, _| one_line(&escape_section_tags(text), 300)) {
                Some(question) => Some(UserQuestion { question, options: Vec::new() }),
                None => one(&item
                    .members()
                    .ok()?
                    .into_iter()
                    .map(|(key, value)| (key.to_string(), value))
                    .collect::<Vec<_>>()),
            })
            .collect(),
        None => one(members).into_iter().collect(),
    }
}

/// Arguments that are one JSON string.
fn read_text(tool: Tool, text: &str, folder: &str) -> Option<CallIntent> {
    match tool {
        _ if patch::is_patch(text) => Some(CallIntent::Files(patch::files_of(text))),
        Tool::Shell => Some(shell_intent(text, folder)),
        _ => None,
    }
}

/// A string, or the strings of a list.
fn texts_of<N: Node>(value: &N) -> Vec<String> {
    let text = |node: &N| node.with_text(|text, _| text.to_owned());
    match value.kind() {
        Kind::Array => value
            .first_items(MAX_FILES_PER_CALL)
            .iter()
            .filter_map(|item| text(item).or_else(|| member_text(item, &PATH_KEYS)))
            .collect(),
        _ => text(value).into_iter().collect(),
    }
}

fn member_text<N: Node>(node: &N, keys: &[&str]) -> Option<String> {
    let members = node.members().ok()?;
    let named = |key: &&str| members.iter().find(|(known, _)| known == key);
    keys.iter().find_map(|key| named(key).and_then(|(_, value)| value.with_text(|text, _| text.to_owned())))
}

/// A command from a string, or from words such as `["bash", "-lc", "…"]`.
fn command_text<N: Node>(value: &N) -> String {
    let words = texts_of(value);
    match words.as_slice() {
        [shell, flag, script, ..]
            if shell.ends_with("sh") && flag.starts_with('-') && flag.ends_with('c') =>
        {
            script.clone()
        }
        _ => words.join(" "),
    }
}

fn task_list<N: Node>(list: &N) -> CallIntent {
    let mut tasks = Vec::new();
    list.find_item(|item| {
        let text = member_text(item, &["content", "step", "text", "title", "description", "task"]);
        let status = member_text(item, &["status", "state"]).unwrap_or_default();
        tasks.extend(text.map(|text| (text, status_of(&status))));
        (tasks.len() == MAX_TASKS).then_some(())
    });
    CallIntent::TaskList(tasks)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn intent(name: &str, arguments: &str) -> CallIntent {
        read(name, arguments, "").intent
    }
    use FileOp::{Created, Deleted, Edited, Moved, Read, Searched, Written};

    #[test]
    fn tools_of_common_agents_name_their_files() {
        type Case = (&'static str, &'static str, &'static [(FileOp, &'static str)]);
        let cases: [Case; 16] = [
            ("Read", r#"{"file_path":"/a"}"#, &[(Read, "/a")]),
            ("read", r#"{"path":"a"}"#, &[(Read, "a")]),
            ("read_many_files", r#"{"paths":["a","b"]}"#, &[(Read, "a"), (Read, "b")]),
            ("Write", r#"{"file_path":"/a","content":"x"}"#, &[(Written, "/a")]),
            ("MultiEdit", r#"{"file_path":"/a"}"#, &[(Edited, "/a")]),
            ("NotebookEdit", r#"{"notebook_path":"/n.ipynb"}"#, &[(Edited, "/n.ipynb")]),
            ("Grep", r#"{"pattern":"x","path":"src/a.rs"}"#, &[(Searched, "src/a.rs")]),
            ("str_replace_based_edit_tool", r#"{"command":"view","path":"/a"}"#, &[(Read, "/a")]),
            ("str_replace_editor", r#"{"command":"insert","path":"/a"}"#, &[(Edited, "/a")]),
            ("str_replace_editor", r#"{"command":"create","path":"/a"}"#, &[(Written, "/a")]),
            ("apply_patch", r#"{"input":"*** Begin Patch\n*** Delete File: d"}"#, &[(Deleted, "d")]),
            ("apply_patch", "*** Begin Patch\n*** Add File: n", &[(Created, "n")]),
            ("mcp__fs__move_file", r#"{"source":"a","destination":"b"}"#, &[(Moved, "a"), (Created, "b")]),
            ("delete_file", r#"{"target_file":"a"}"#, &[(Deleted, "a")]),
            ("search_and_replace", r#"{"path":"a"}"#, &[(Edited, "a")]),
            ("writeFile", r#"{"filePath":"a"}"#, &[(Written, "a")]),
        ];
        for (name, arguments, expected) in cases {
            let expected = expected.iter().map(|(a, p)| (*a, (*p).to_owned())).collect();
            assert_eq!(intent(name, arguments), CallIntent::Files(expected), "{name}");
        }
    }

    #[test]
    fn shells_are_analysed_in_all_their_spellings() {
        for (name, arguments) in [
            ("Bash", r#"{"command":"cat a.txt"}"#),
            ("shell", r#"{"command":["bash","-lc","cat a.txt"]}"#),
            ("exec_command", r#"{"cmd":"cat a.txt"}"#),
            ("run_shell_command", r#"{"command":"cat a.txt"}"#),
            ("bash", "cat a.txt"),
        ] {
            let CallIntent::Shell { command, about } = intent(name, arguments) else { panic!("{name}") };
            assert_eq!((command.as_str(), about.effects.len()), ("cat a.txt", 1), "{name}");
        }
    }

    #[test]
    fn task_lists_of_two_agents_read_the_same() {
        let expected = CallIntent::TaskList(vec![("x".into(), TaskStatus::InProgress)]);
        let todo = r#"{"todos":[{"content":"x","status":"in_progress","activeForm":"X"}]}"#;
        assert_eq!(intent("TodoWrite", todo), expected);
        assert_eq!(intent("update_plan", r#"{"plan":[{"step":"x","status":"in_progress"}]}"#), expected);
    }

    #[test]
    fn other_calls_become_one_line_and_lookups_nothing() {
        let line = |name: &str, arguments: &str| match intent(name, arguments) {
            CallIntent::Other { line, .. } => line,
            other => format!("{other:?}"),
        };
        assert_eq!(
            line("book_flight", r#"{"id":"A1","cabin":"economy","note":null}"#),
            "book_flight: id A1, cabin economy"
        );
        assert_eq!(
            line("update_reservation", r#"{"id":"x","to":{"day":3}}"#),
            "update_reservation: id x, to day 3"
        );
        assert_eq!(
            line(
                "Task",
                r#"{"subagent_type":"Explore","prompt":"Read all.","description":"Explore the data"}"#
            ),
            "Task: description Explore the data"
        );
        assert_eq!(line("broken", "{\"a\":"), "broken: \"a\":");
        assert_eq!(line("", ""), "");
        for name in
            ["get_user_details", "quote_change", "search_departures", "check_availability", "list_orders"]
        {
            assert_eq!(intent(name, r#"{"user":"x"}"#), CallIntent::Lookup { address: None }, "{name}");
        }
        for name in ["check_in_passenger", "cancel_order", "send_email"] {
            assert!(matches!(intent(name, r#"{"user":"x"}"#), CallIntent::Other { .. }), "{name}");
        }
    }

    #[test]
    fn questions_come_with_their_options() {
        let found = intent(
            "AskUserQuestion",
            r#"{"questions":[{"question":"Which?","options":[{"label":"A"},{"label":"B"}]}]}"#,
        );
        let options = ["A", "B"].map(|text| (String::new(), text.to_owned())).to_vec();
        assert_eq!(found, CallIntent::Ask(vec![UserQuestion { question: "Which?".into(), options }]));
        let one = intent("ask_followup_question", r#"{"question":"Which?","follow_up":["x"]}"#);
        assert!(matches!(one, CallIntent::Ask(asked) if asked[0].options.len() == 1));
    }
}
