//! Checks that a summary holds the facts, and appends missing ones.

pub(super) mod facts;
pub(super) mod mend;
mod places;
pub(super) mod presence;
