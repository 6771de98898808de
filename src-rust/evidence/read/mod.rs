//! Reads facts from the calls, results and texts of a session.

pub(super) mod call_list;
pub(super) mod calls;
pub(super) mod collect;
pub(super) mod files;
pub(super) mod lookups;
pub(super) mod outcome;
pub(super) mod patch;
pub(super) mod runs;
pub(super) mod shell;
pub(super) mod shell_lexer;
pub(super) mod tasks;
pub(super) mod wrappers;
