//! Session files of agents: one reader each, from entries to messages. [`Agent`] is the table of them.

mod agent;
pub mod claude_code;
pub mod cline;
pub mod codex;
mod codex_events;
pub mod dialogue;
pub mod gemini_cli;
pub mod goose;
pub mod inspect;
pub mod opencode;
pub mod pi_session;
mod recorded;
pub mod session;
pub mod swe_agent;

pub use agent::{Agent, Storage};
pub use recorded::{Compaction, Recorded, Usage, recorded};
