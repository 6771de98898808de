//! Writes the evidence as a document within a budget.

pub(super) mod candidate;
pub(super) mod constraints;
pub(super) mod document;
pub(super) mod ranking;
pub(super) mod render;
