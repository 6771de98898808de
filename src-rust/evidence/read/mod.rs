//! Reads facts from the calls, results and texts of a session.

mod acknowledged;
mod aftermath;
mod answers;
pub(super) mod call_list;
pub(super) mod calls;
mod closing;
pub(super) mod collect;
pub(super) mod files;
mod finish;
mod flat;
pub(super) mod foreign;
mod lookups;
mod outcome;
mod overruling;
mod pending;
mod runs;
mod said;
mod summaries;
pub(super) mod tasks;
pub(super) mod tools;
mod wrappers;
mod written_calls;
