//! Counting: exact encodings, heuristics and what providers add around the text.

pub(crate) mod bpe;
pub mod counter;
pub mod encoding;
pub mod exact;
pub mod framing;
pub(crate) mod hash;
pub mod heuristics;
pub mod models;
pub(crate) mod pretokenize;
pub(crate) mod unicode;
pub(crate) mod vocab;
