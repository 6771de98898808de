//! Reads facts from the calls, results and texts of a session.

mod aftermath;
mod answers;
pub(super) mod call_list;
pub(super) mod calls;
mod closing;
pub(super) mod collect;
mod edited;
pub(super) mod files;
mod finish;
mod flat;
pub(super) mod foreign;
mod lookups;
mod outcome;
mod pending;
mod rejection;
mod reports;
mod runs;
mod said;
mod structured;
pub(super) mod tasks;
pub(super) mod tools;
mod wrappers;
mod written_calls;
