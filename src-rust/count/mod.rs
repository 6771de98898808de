//! Counting: exact encodings, heuristics and what providers add around the text.

pub mod counter;
pub mod exact;
pub mod framing;
pub mod heuristics;
pub mod models;
