//! What a tool does, by its name.
//!
//! Agents name their tools differently, but with the same words. Only tools that words do not reveal (shells, patches,
//! task lists, questions) are listed.

use crate::evidence::FileOp;

/// The class of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tool {
    Files(FileOp),
    /// One tool with several commands: `view`, `create`, `str_replace`, `insert`.
    Editor,
    Shell,
    Patch,
    TaskList,
    TaskCreate,
    TaskUpdate,
    Ask,
    Plan,
    Lookup,
    Kill,
    Thought,
    Other,
}

pub(super) fn tool_of(name: &str) -> Tool {
    // MCP tools are named `mcp__server__tool`.
    let own = name.rsplit("__").next().unwrap_or(name);
    let squeezed: String =
        own.chars().filter(|c| c.is_alphanumeric()).map(|c| c.to_ascii_lowercase()).take(64).collect();
    match squeezed.as_str() {
        "bash" | "shell" | "sh" | "terminal" | "exec" | "execcommand" | "execute" | "executebash"
        | "executecommand" | "runcommand" | "runshell" | "runshellcommand" | "runterminalcmd"
        | "runinterminal" | "localshell" | "localshellcall" | "powershell" => Tool::Shell,
        "applypatch" | "applydiff" => Tool::Patch,
        "todowrite" | "updateplan" | "writetodos" | "updatetodolist" | "managetodolist" => Tool::TaskList,
        "taskcreate" => Tool::TaskCreate,
        "taskupdate" => Tool::TaskUpdate,
        "strreplacebasededittool" | "strreplaceeditor" | "strreplaceeditortool" => Tool::Editor,
        "askuserquestion"
        | "askfollowupquestion"
        | "askuser"
        | "askuserinput"
        | "askhuman"
        | "askquestion"
        | "askquestions"
        | "requestuserinput"
        | "getuserinput"
        | "humaninput"
        | "humanassistance"
        | "promptuser"
        | "elicit"
        | "elicitinput"
        | "clarify"
        | "question"
        | "vscodeaskquestions" => Tool::Ask,
        "exitplanmode" | "presentplan" | "submitplan" | "proposeplan" | "planmoderespond" => Tool::Plan,
        "todoread" | "tasklist" | "taskget" | "taskoutput" | "bashoutput" | "skill" | "enterplanmode"
        | "websearch" | "webfetch" | "toolsearch" => Tool::Lookup,
        "killshell" | "killbash" | "stopprocess" | "killprocess" => Tool::Kill,
        "thought" | "scratchpad" | "sequentialthinking" => Tool::Thought,
        _ if squeezed.starts_with("think") => Tool::Thought,
        _ => by_words(own),
    }
}

/// First words of tools that only ask for something.
const QUERIES: [&str; 23] = [
    "get",
    "fetch",
    "lookup",
    "look",
    "query",
    "calculate",
    "quote",
    "list",
    "show",
    "describe",
    "count",
    "estimate",
    "retrieve",
    "compare",
    "preview",
    "is",
    "has",
    "compute",
    "browse",
    "inspect",
    "search",
    "find",
    "verify",
];

/// The class of a tool by the words of its name.
fn by_words(name: &str) -> Tool {
    let mut found = Tool::Other;
    let words = words_of(name);
    let own = words.iter().find(|word| !word.is_empty()).map_or("", String::as_str);
    let is_look =
        own == "check" && !words.iter().any(|word| matches!(word.as_str(), "in" | "out" | "checkin"));
    if QUERIES.contains(&own) || is_look {
        found = Tool::Lookup;
    }
    for word in words {
        let tool = match word.as_str() {
            "read" | "view" | "open" | "cat" => Tool::Files(FileOp::Read),
            "write" | "save" => Tool::Files(FileOp::Written),
            "create" => Tool::Files(FileOp::Created),
            "edit" | "multiedit" | "replace" | "insert" | "patch" | "modify" | "update" | "append" => {
                Tool::Files(FileOp::Edited)
            }
            "delete" | "remove" => Tool::Files(FileOp::Deleted),
            "move" | "rename" => Tool::Files(FileOp::Moved),
            "grep" | "glob" | "search" | "find" | "list" | "ls" => Tool::Files(FileOp::Searched),
            _ => continue,
        };
        // The strongest word decides: `search_and_replace` edits.
        found = match (found, tool) {
            (Tool::Files(known), Tool::Files(new)) if known >= new => found,
            // `get_update_status` asks.
            (Tool::Lookup, Tool::Files(new)) if new.is_change() => found,
            _ => tool,
        };
    }
    found
}

/// `notebookEdit`, `notebook_edit` and `notebook-edit` as words.
fn words_of(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut after_lower = false;
    for c in name.chars().take(80) {
        if !c.is_alphanumeric() || (c.is_uppercase() && after_lower) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.push(c.to_ascii_lowercase());
        }
        after_lower = c.is_lowercase();
    }
    words
}

/// The action of a file tool with this name; `None` for other tools.
pub(in crate::evidence) fn file_action(name: &str) -> Option<FileOp> {
    match tool_of(name) {
        Tool::Files(action) => Some(action),
        Tool::Editor | Tool::Patch => Some(FileOp::Edited),
        _ => None,
    }
}
