//! Caches of counts: pre-tokens per thread, messages per counter.

pub(crate) mod cache_lines;
pub mod cached;
pub(crate) mod large;
pub mod messages;
pub(crate) mod thread;
