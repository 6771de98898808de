//! Finds cues, names and statements in prose, by language.

pub(super) mod asking;
pub(super) mod corrections;
pub(super) mod cues;
pub(super) mod labels;
mod languages;
pub(super) mod lists;
pub(super) mod matcher;
pub(super) mod named;
pub(super) mod normal;
mod options;
pub(super) mod plan_rules;
pub(super) mod prose;
pub(super) mod statements;
pub(super) mod steps;
pub(super) mod table;
