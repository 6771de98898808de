//! Finds cues, names and statements in prose, by language.

pub(super) mod cues;
pub(super) mod languages;
pub(super) mod matcher;
pub(super) mod named;
pub(super) mod normal;
pub(super) mod prose;
pub(super) mod statements;
