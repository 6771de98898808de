//! Checks that a summary holds the facts, and adds missing ones.

pub(super) mod facts;
pub(super) mod mend;
mod merge;
mod places;
pub(super) mod presence;
