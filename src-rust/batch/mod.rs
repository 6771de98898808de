//! Batches: many transcripts counted, planned or folded at once.

pub mod conversations;
pub mod folding;
pub mod lines;
pub mod plans;
pub mod records;
pub mod sessions;
pub mod stream;
pub mod transcripts;
