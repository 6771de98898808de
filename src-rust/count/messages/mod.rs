//! Counts of message lists directly from a reader, without a transcript.

pub mod read;
pub mod refs;
