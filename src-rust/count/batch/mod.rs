//! Token counts of many texts, on several threads.

pub(super) mod script_order;
pub mod texts;
pub mod threads;
