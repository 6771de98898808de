//! Counts of message lists straight from a reader, without a transcript.

pub mod read;
pub mod refs;
