//! Checks that a summary holds the facts, and appends those that are missing.

pub(super) mod facts;
pub(super) mod mend;
pub(super) mod presence;
