//! Many transcripts at once.

pub mod conversations;
pub mod entries;
pub mod folding;
pub mod lines;
pub mod made;
pub mod plans;
pub mod records;
pub mod sessions;
pub mod stream;
pub mod transcripts;
