//! Command lines: what their parts attempt, which files they touch, and which success covers which failure.

mod effects;
mod options;
pub(super) mod patch;
pub(super) mod programs;
pub(super) mod purpose;
pub(super) mod shell;
pub(super) mod shell_lexer;
mod spelling;
