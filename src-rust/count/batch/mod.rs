//! Token counts of many texts, on several threads.

pub mod texts;
pub mod threads;
