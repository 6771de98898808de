//! Command lines: what their parts attempt, which files they touch, and which success covers which failure.

pub(super) mod echo;
mod effects;
pub(super) mod exit_code;
pub(super) mod folders;
mod kinds;
mod options;
pub(super) mod patch;
pub(super) mod programs;
pub(super) mod purpose;
pub(super) mod shell;
pub(super) mod shell_lexer;
pub(super) mod spelling;
