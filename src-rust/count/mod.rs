//! Counting: exact encodings, heuristics and the framing that providers add to text.

pub mod batch;
pub mod bpe;
pub mod by_part;
pub mod claude;
pub mod counter;
pub mod estimate;
pub mod files;
pub mod framing;
pub mod kind;
pub mod memo;
pub mod messages;
pub mod models;
pub(crate) mod pretokenize;
pub(crate) mod simd;
pub(crate) mod tables;
pub mod tools;
pub mod view;
