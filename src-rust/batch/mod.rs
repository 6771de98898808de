//! Many transcripts at once.

pub mod conversations;
pub mod lines;
pub mod plans;
pub mod transcripts;
