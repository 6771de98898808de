//! Counting: exact encodings, heuristics and what providers add around the text.

pub mod auto;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512;
pub(crate) mod batch;
pub(crate) mod bpe;
pub(crate) mod classify;
pub mod counter;
pub(crate) mod counting;
pub(crate) mod cuts;
pub mod encoding;
pub(crate) mod engine;
pub mod estimate;
pub mod exact;
pub mod framing;
pub mod gather;
pub(crate) mod hash;
pub mod heuristics;
pub(crate) mod huge;
pub mod kind;
mod likeness;
pub(crate) mod lines;
pub(crate) mod look_up;
pub mod media;
pub(crate) mod memo;
pub mod models;
pub mod parallel;
mod passes;
pub(crate) mod pretokenize;
pub mod recall;
pub mod recalling;
pub mod texts;
pub mod tools;
pub(crate) mod unicode;
pub(crate) mod unknown;
pub mod view;
pub(crate) mod vocab;
pub(crate) mod words;
