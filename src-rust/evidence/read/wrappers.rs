//! Strips the wrappers that tools put into user messages.
//!
//! Agents add reminders, command echoes and hook output to user messages. These are not the user's words, so a summary
//! must not report them as requests.

use std::sync::LazyLock;

use crate::evidence::language::table::told_in;
use crate::evidence::text::{Phrases, lines, starts_with_ignoring_case};

/// Tags whose whole block is noise.
const NOISE_TAGS: [&str; 20] = [
    "system-reminder",
    "local-command-caveat",
    "local-command-stdout",
    "local-command-stderr",
    "command-name",
    "command-message",
    "user-prompt-submit-hook",
    "ide_opened_file",
    "ide_selection",
    "ide_diagnostics",
    "bash-input",
    "bash-stdout",
    "bash-stderr",
    "environment_context",
    "environment_details",
    "user_instructions",
    "task-notification",
    "system_reminder",
    "system_notification",
    "attached_files",
];

/// Tags around the user's own words.
const WRAPPER_TAGS: [&str; 4] = ["command-args", "user_query", "user_message", "user-request"];

/// Prefixes of messages from a program.
const NOISE_PREFIXES: [&str; 13] = [
    "[request interrupted by user",
    "caveat: the messages below were generated",
    "operation stopped by hook",
    "userpromptsubmit operation blocked by hook",
    "userpromptsubmit hook",
    "sessionstart hook",
    "sessionstart:",
    "pretooluse:",
    "posttooluse:",
    "stop hook feedback",
    "base directory for this skill:",
    "no response requested",
    "unknown slash command",
];

/// Prefixes of another program's summary of an earlier conversation.
const FOREIGN_SUMMARY_PREFIXES: [&str; 3] = [
    "this session is being continued from a previous conversation",
    "the conversation history before this point was compacted",
    "another language model started to solve this problem",
];

/// Openings of another program's summary that are too common to count without a heading.
const HANDOVER_PREFIXES: [&str; 9] = [
    "<summary>",
    "here is a summary of",
    "below is a summary of",
    "the following is a summary of",
    "summary of the conversation",
    "summary of our conversation",
    "conversation summary",
    "[compact summary]",
    "[conversation summary]",
];
/// First headings of a handover.
const HANDOVER_TITLES: [&str; 6] =
    ["handover", "hand-over", "handoff", "hand-off", "session summary", "conversation summary"];

/// The content of a user message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unwrapped {
    /// Nothing but noise.
    Nothing,
    /// The user's words.
    Words(String),
    /// A summary that another program wrote.
    ForeignSummary(String),
}

/// Strips the wrappers from the text of a user message. O(bytes): the end of an unclosed tag is searched once.
pub(super) fn unwrap(text: &str) -> Unwrapped {
    if let Some(name) = prompt_command(text) {
        return Unwrapped::Words(name.to_owned());
    }
    let stripped = strip_tags(text);
    let words = without_skill_call(stripped.trim());
    let begins = |prefixes: &[&str]| prefixes.iter().any(|prefix| starts_with_ignoring_case(words, prefix));
    if !words.chars().any(|c| !c.is_whitespace() && !c.is_control())
        || begins(&NOISE_PREFIXES)
        || is_bare_command(words)
    {
        return Unwrapped::Nothing;
    }
    if begins(&FOREIGN_SUMMARY_PREFIXES) || begins(&HANDOVER_PREFIXES) || is_handover(words) {
        return Unwrapped::ForeignSummary(words.to_owned());
    }
    if is_environment(words) {
        return Unwrapped::Nothing;
    }
    Unwrapped::Words(after_context(words).to_owned())
}

/// What the sandbox allows, by the block that an agent's program puts before the first request:
/// `Environment: sandbox read-only, network restricted, approval on-request`.
pub(super) fn sandbox(text: &str) -> Option<String> {
    const LIMITS: [(&str, &str); 3] =
        [("sandbox_mode", "sandbox"), ("network_access", "network"), ("approval_policy", "approval")];
    if !text.contains('<') {
        return None;
    }
    let block = text.split_once("<environment_context>")?.1.split_once("</environment_context>")?.0;
    let value = |tag: &str| {
        let value = block.split_once(&format!("<{tag}>"))?.1.split_once('<')?.0.trim();
        (!value.is_empty() && value.len() <= 40).then(|| value.to_owned())
    };
    let limits = LIMITS.iter().filter_map(|(tag, name)| Some(format!("{name} {}", value(tag)?)));
    let limits: Vec<String> = limits.collect();
    (!limits.is_empty()).then(|| format!("{ENVIRONMENT}{}", limits.join(", ")))
}

/// The label of what the sandbox allows.
pub(super) const ENVIRONMENT: &str = "Environment: ";

/// Words of the user inside reminders and other blocks that are otherwise noise.
pub(super) fn told(text: &str) -> Vec<String> {
    let has_tag = text.contains("<system");
    let found = if has_tag { told_in(text) } else { Vec::new() };
    found.into_iter().map(str::to_owned).collect()
}

/// Whether the first line is the title of a handover.
fn is_handover(words: &str) -> bool {
    let line = words.lines().next().unwrap_or("");
    let is_title = line.starts_with(['#', '*']) || line.trim_end().ends_with(':');
    let names_handover = || {
        let title = line.trim_start_matches(['#', '*', ' ']).to_lowercase();
        HANDOVER_TITLES.iter().any(|lead| title.starts_with(lead))
    };
    is_title && line.len() < 100 && lines(words).nth(2).is_some() && names_handover()
}

/// The request after a list of what is open in an editor: `## My request for Codex:`.
fn after_context(words: &str) -> &str {
    let mut at = 0;
    for line in words.split_inclusive('\n') {
        at += line.len();
        let Some(title) = line.trim_start().strip_prefix('#') else { continue };
        let title = title.trim_start_matches('#').trim_start();
        let leads = ["my request for ", "my request:", "user request", "my task", "request for "];
        let is_lead = leads.iter().any(|lead| starts_with_ignoring_case(title, lead));
        if is_lead && !words[at..].trim().is_empty() {
            return words[at..].trim();
        }
    }
    words
}

/// Fewest characters of a bar that shows progress.
const MIN_BAR_CHARS: usize = 9;

/// Whether a text has the signs of a progress meter. Most texts have none.
fn may_have_meter(text: &str) -> bool {
    static SIGNS: LazyLock<Phrases> = LazyLock::new(|| Phrases::new(&["%", "it/s]", "ETA "]));
    // The characters of a bar that are not ASCII begin with one byte.
    let is_of_bar = |byte: &u8| matches!(byte, b'=' | b'#' | 0xe2);
    SIGNS.any_in(text) || text.bytes().filter(is_of_bar).count() >= MIN_BAR_CHARS
}

/// Whether an environment answers in the user's role: a shell prompt, an observation, a progress meter.
fn is_environment(words: &str) -> bool {
    const OPENINGS: [&str; 14] = [
        "<returncode>",
        "<output>",
        "observation:",
        "execution result:",
        "[the command completed with exit code",
        "current terminal state:",
        "new terminal output:",
        "command output:",
        "tool output:",
        "exit code:",
        "(open file:",
        "the command exited with",
        "<tool_result>",
        "<function_results>",
    ];
    if OPENINGS.iter().any(|opening| starts_with_ignoring_case(words, opening)) {
        return true;
    }
    let lines: Vec<&str> = lines(words).take(60).map(str::trim).filter(|line| !line.is_empty()).collect();
    let is_meter = |line: &&&str| {
        let percent =
            line.contains("%|") || (line.contains("% ") && line.contains(['=', '#', '█', '━', '▏']));
        percent
            || line.contains("it/s]")
            || line.contains("ETA ")
            || line.chars().filter(|c| "█━▓░=#".contains(*c)).count() >= MIN_BAR_CHARS
    };
    let is_prompt = |line: &str| {
        let head = line.split(' ').next().unwrap_or("");
        line == "$"
            || line == "#"
            || line == ">>>"
            || line.starts_with("$ ")
            || line.starts_with(">>> ")
            || line.starts_with("bash-") && line.contains("$ ")
            || (head.contains('@') && head.contains(':') && head.ends_with(['$', '#', '%']))
            || (head.contains('@') && line.contains(":~"))
    };
    let meters = if may_have_meter(words) { lines.iter().filter(is_meter).count() } else { 0 };
    let begins = lines.first().is_some_and(|line| is_prompt(line));
    let ends = lines.len() > 1 && lines.last().is_some_and(|line| is_prompt(line) && line.len() < 60);
    (meters > 0 && 2 * meters >= lines.len())
        || (begins && (ends || lines.len() == 1 && words.len() < 4))
        || (ends && lines.len() > 2)
}

/// Whether the text is a bare command to the program, such as `/model`. `/review the parser` has content, and a path
/// has more slashes.
fn is_bare_command(words: &str) -> bool {
    words
        .strip_prefix('/')
        .is_some_and(|name| name.bytes().all(|b| b.is_ascii_alphabetic() || b"-_:".contains(&b)))
}

/// Whether the text is a command with any name and without arguments.
pub(super) fn is_command(words: &str) -> bool {
    words.strip_prefix('/').is_some_and(|name| !name.contains(|c: char| c.is_whitespace() || c == '/'))
}

/// The command that runs a prompt, without arguments: `/review`. Claude Code writes the name of such a command after its
/// message, and that of a command to the program, such as `/model`, before it.
fn prompt_command(text: &str) -> Option<&str> {
    let rest = text.trim().strip_prefix("<command-message>")?.split_once("</command-message>")?.1;
    let (name, rest) = rest.trim_start().strip_prefix("<command-name>")?.split_once("</command-name>")?;
    let rest = rest.trim();
    let is_alone = rest.is_empty()
        || rest == "<command-args></command-args>"
        || starts_with_ignoring_case(rest, "base directory for this skill:");
    (is_command(name) && is_alone).then_some(name)
}

/// The user's text after a skill call, which the program writes as a separate sentence.
fn without_skill_call(words: &str) -> &str {
    const ENDING: &str = "skill and follow it exactly as presented to you";
    if !starts_with_ignoring_case(words, "invoke the ") {
        return words;
    }
    let call = words.split_once(ENDING).filter(|(call, _)| !call.contains('\n'));
    let Some((_, rest)) = call else { return words };
    let rest = rest.trim_start_matches('.').trim_start();
    rest.strip_prefix("ARGUMENTS:").unwrap_or(rest).trim_start()
}

fn strip_tags(text: &str) -> String {
    let mut out = String::with_capacity(text.len().min(4096));
    let mut has_no_end = [false; NOISE_TAGS.len()];
    let mut at = 0;
    while let Some(found) = text[at..].find('<') {
        let tag_at = at + found;
        out.push_str(&text[at..tag_at]);
        at = match tag_end(text, tag_at, &mut has_no_end) {
            Some(end) => end,
            None => {
                out.push('<');
                tag_at + 1
            }
        };
    }
    out.push_str(&text[at..]);
    out
}

/// Position after the tag at `at`, if it is a known one.
fn tag_end(text: &str, at: usize, has_no_end: &mut [bool]) -> Option<usize> {
    let inner = &text[at + 1..];
    let name_of = |inner: &str| {
        inner.len()
            - inner.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_').len()
    };
    if let Some(closing) = inner.strip_prefix('/') {
        let name = &closing[..name_of(closing)];
        let is_ours = WRAPPER_TAGS.contains(&name) && closing[name.len()..].starts_with('>');
        return is_ours.then(|| at + 2 + name.len() + 1);
    }
    let name = &inner[..name_of(inner)];
    let after = &inner[name.len()..];
    if !after.starts_with(['>', ' ']) {
        return None;
    }
    let open_end = at + 1 + name.len() + crate::evidence::text::head_bytes(after, 400).find('>')? + 1;
    if WRAPPER_TAGS.contains(&name) {
        return Some(open_end);
    }
    let tag = NOISE_TAGS.iter().position(|known| *known == name).filter(|&tag| !has_no_end[tag])?;
    let closing = format!("</{name}>");
    match text[open_end..].find(&closing) {
        Some(end) => Some(open_end + end + closing.len()),
        None => {
            has_no_end[tag] = true;
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> String {
        match unwrap(text) {
            Unwrapped::Words(words) => words,
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn reminders_and_command_echoes_vanish() {
        assert_eq!(words("<system-reminder>x\n<b></system-reminder>\nfix it"), "fix it");
        assert_eq!(
            unwrap("<command-name>/exit</command-name>\n <command-args></command-args>"),
            Unwrapped::Nothing
        );
        assert_eq!(words("<ide_opened_file>The user opened a</ide_opened_file> create b"), "create b");
        assert_eq!(unwrap("<local-command-stdout>Bye!</local-command-stdout>"), Unwrapped::Nothing);
    }

    #[test]
    fn arguments_of_a_command_are_the_users_words() {
        let text = "<command-name>/plan</command-name><command-args>add a flag</command-args>";
        assert_eq!(words(text), "add a flag");
    }

    #[test]
    fn hook_output_and_interruptions_are_nobodys_request() {
        for text in ["[Request interrupted by user for tool use]", "Operation stopped by hook: x", "  \n "] {
            assert_eq!(unwrap(text), Unwrapped::Nothing, "{text}");
        }
        assert_eq!(unwrap("/model"), Unwrapped::Nothing);
        assert_eq!(words("/review the parser"), "/review the parser");
        assert_eq!(words("/src/a.rs"), "/src/a.rs");
        let skill = "Invoke the x:plan skill and follow it exactly as presented to you";
        assert_eq!(unwrap(skill), Unwrapped::Nothing);
        assert_eq!(words(&format!("{skill}\n\n\nARGUMENTS: small steps")), "small steps");
        let summary = "This session is being continued from a previous conversation that ran out";
        assert!(matches!(unwrap(summary), Unwrapped::ForeignSummary(_)));
    }

    #[test]
    fn other_tags_and_unclosed_ones_stay() {
        assert_eq!(words("use <div> and a < b"), "use <div> and a < b");
        assert_eq!(words("<system-reminder>never closed"), "<system-reminder>never closed");
        let many = "<system-reminder>".repeat(50_000);
        assert_eq!(words(&many).len(), many.len());
    }

    #[test]
    fn the_limits_of_a_sandbox_are_read() {
        let text = "<environment_context>\n<cwd>/r</cwd>\n<approval_policy>never</approval_policy>\n\
            <sandbox_mode>read-only</sandbox_mode>\n</environment_context>";
        assert_eq!(sandbox(text).as_deref(), Some("Environment: sandbox read-only, approval never"));
        assert_eq!(sandbox("<environment_context><cwd>/r</cwd></environment_context>"), None);
        assert_eq!(sandbox("<sandbox_mode>read-only</sandbox_mode>"), None);
    }
}
