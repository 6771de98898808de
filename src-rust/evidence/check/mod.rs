//! Checks that a summary holds the facts, and appends missing ones.

pub(super) mod facts;
pub(super) mod mend;
pub(super) mod presence;
