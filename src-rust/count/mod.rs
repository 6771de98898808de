//! Counting: exact encodings, heuristics and what providers add around the text.

pub(crate) mod bpe;
pub mod encoding;
pub(crate) mod hash;
pub(crate) mod pretokenize;
pub(crate) mod unicode;
pub(crate) mod vocab;
