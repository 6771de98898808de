//! Counting: exact encodings, heuristics and what providers add around the text.

pub(crate) mod batch;
pub(crate) mod bpe;
pub(crate) mod classify;
pub(crate) mod cuts;
pub mod encoding;
pub(crate) mod hash;
pub(crate) mod memo;
pub(crate) mod pretokenize;
pub(crate) mod unicode;
pub(crate) mod vocab;
