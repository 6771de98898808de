//! The programs whose sessions foldline reads, with the form in which each stores them.

use super::session::Session;
use super::{
    claude_code, cline, codex, dialogue, gemini_cli, goose, inspect, opencode, pi_session, swe_agent,
};
use crate::error::{Error, Result};
use crate::formats::Format;
use crate::node::{Key, Node};

/// A program and a form of its sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agent {
    /// Lines of a Claude Code session.
    ClaudeCode,
    /// A Claude Code session of the web.
    ClaudeCodeWeb,
    /// Lines of a pi session.
    Pi,
    /// Lines of a Codex rollout.
    Codex,
    /// A Gemini CLI session document.
    GeminiCli,
    /// Lines of a Gemini CLI session log.
    GeminiCliLog,
    /// An SWE-agent trajectory with a history.
    SweAgent,
    /// An SWE-agent trajectory with steps alone.
    SweAgentSteps,
    /// An opencode session: an export, a list of its messages, or the storage folder.
    OpenCode,
    /// The messages of a task of Cline or Roo Code.
    Cline,
    /// The messages of a task of Roo Code in its second form, those of the AI SDK.
    RooCode,
    /// The log of such a task, as its user sees it.
    ClineLog,
    /// An exported goose session.
    Goose,
    /// Lines of a goose session, after a header.
    GooseLines,
    /// Rows of goose's database, whose JSON texts the caller has parsed.
    GooseRows,
    /// A sample of an Inspect log.
    Inspect,
    /// A dialogue of two unnamed speakers.
    Dialogue,
}

/// What is fixed for an agent.
#[derive(Clone, Copy, Debug)]
pub struct Storage {
    /// The agent.
    pub agent: Agent,
    /// The unique name of this form.
    pub name: &'static str,
    /// The name of the program, shared by its forms.
    pub program: &'static str,
    /// The dialect of the messages.
    pub format: Format,
    /// Whether a session is one JSON value; else an entry a line.
    pub is_document: bool,
    /// The key of an entry's id.
    pub id: Option<Key>,
}

const fn lines(agent: Agent, name: &'static str, format: Format, id: Option<Key>) -> Storage {
    Storage { agent, name, program: name, format, is_document: false, id }
}

const fn document(agent: Agent, name: &'static str, format: Format, id: Option<Key>) -> Storage {
    Storage { agent, name, program: name, format, is_document: true, id }
}

const fn of_program(program: &'static str, storage: Storage) -> Storage {
    Storage { program, ..storage }
}

impl Agent {
    /// Every agent, in the order in which the sessions of one file are given.
    pub const ALL: &'static [Storage] = &[
        lines(Agent::ClaudeCode, "claude_code", Format::Anthropic, Some(Key::UUID)),
        of_program(
            "claude_code",
            document(Agent::ClaudeCodeWeb, "claude_code_web", Format::Anthropic, Some(Key::UUID)),
        ),
        lines(Agent::Pi, "pi", Format::Pi, Some(Key::ID)),
        lines(Agent::Codex, "codex", Format::OpenAiResponses, None),
        document(Agent::GeminiCli, "gemini_cli", Format::Gemini, Some(Key::ID)),
        of_program("gemini_cli", lines(Agent::GeminiCliLog, "gemini_cli_log", Format::Gemini, Some(Key::ID))),
        document(Agent::SweAgent, "swe_agent", Format::OpenAiChat, None),
        of_program("swe_agent", document(Agent::SweAgentSteps, "swe_agent_steps", Format::OpenAiChat, None)),
        document(Agent::OpenCode, "opencode", Format::Anthropic, None),
        document(Agent::Cline, "cline", Format::Anthropic, Some(Key::ID)),
        of_program("cline", document(Agent::RooCode, "roo_code", Format::AiSdk, Some(Key::ID))),
        of_program("cline", document(Agent::ClineLog, "cline_log", Format::OpenAiChat, None)),
        document(Agent::Goose, "goose", Format::Anthropic, Some(Key::ID)),
        of_program("goose", lines(Agent::GooseLines, "goose_lines", Format::Anthropic, Some(Key::ID))),
        of_program("goose", document(Agent::GooseRows, "goose_rows", Format::Anthropic, Some(Key::ID))),
        document(Agent::Inspect, "inspect", Format::OpenAiChat, Some(Key::ID)),
        document(Agent::Dialogue, "dialogue", Format::OpenAiChat, None),
    ];

    /// What is fixed for this agent.
    #[must_use]
    pub fn storage(self) -> &'static Storage {
        // Every agent has a row, which a test checks; the first one stands for none.
        Self::ALL.iter().find(|row| row.agent == self).unwrap_or(&Self::ALL[0])
    }

    /// The agent with this name of a form.
    ///
    /// # Errors
    /// `unknown_format`.
    pub fn from_name(name: &str) -> Result<Self> {
        let row = Self::ALL.iter().find(|row| row.name == name);
        row.map(|row| row.agent)
            .ok_or_else(|| Error::config("unknown_format", "kind", "not a kind of session"))
    }

    /// Whether messages without an envelope are entries of a session that has begun.
    #[must_use]
    pub fn takes_messages(self) -> bool {
        // In the older form of a rollout, items have no envelopes; a message of goose has none.
        matches!(self, Agent::Codex | Agent::GooseLines)
    }

    /// Assembles a session from its entries.
    ///
    /// # Errors
    /// Those of [`super::session::each_entry`].
    pub fn assemble<N: Node>(self, entries: &N) -> Result<Session<N>> {
        match self {
            Agent::ClaudeCode | Agent::ClaudeCodeWeb => claude_code::session(entries),
            Agent::Pi => pi_session::assemble(entries),
            Agent::Codex => codex::assemble(entries),
            Agent::GeminiCli => gemini_cli::assemble(entries),
            Agent::GeminiCliLog => gemini_cli::assemble_log(entries),
            Agent::SweAgent => swe_agent::assemble(entries),
            Agent::SweAgentSteps => swe_agent::assemble_steps(entries),
            Agent::OpenCode => opencode::assemble(entries),
            Agent::Cline | Agent::RooCode => cline::assemble(entries),
            Agent::ClineLog => cline::assemble_log(entries),
            Agent::Goose | Agent::GooseLines | Agent::GooseRows => goose::assemble(entries),
            Agent::Inspect => inspect::assemble(entries),
            Agent::Dialogue => dialogue::assemble(entries),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::with_document;

    #[test]
    fn every_agent_has_one_row_and_reads_a_list() {
        for (at, row) in Agent::ALL.iter().enumerate() {
            assert_eq!(row.agent.storage().name, row.name);
            assert_eq!(Agent::from_name(row.name).unwrap(), row.agent);
            assert!(Agent::ALL.iter().skip(at + 1).all(|other| other.name != row.name), "{}", row.name);
            let read = |json: &[u8]| {
                with_document(json, |node| row.agent.assemble(&node).map(drop).map_err(|error| error.code))
                    .unwrap()
            };
            assert_eq!((read(b"[]"), read(b"{}")), (Ok(()), Err("not_a_list")), "{}", row.name);
        }
        assert_eq!(Agent::from_name("morse").unwrap_err().code, "unknown_format");
    }
}
