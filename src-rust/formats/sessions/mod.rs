//! Session files of agents: one reader each, from entries to messages.

pub mod claude_code;
pub mod codex;
mod codex_typed;
pub mod dialogue;
pub mod gemini_cli;
pub mod pi_session;
pub mod session;
pub mod swe_agent;
