//! Planning: what happens to each message, and why. A pure function of a transcript, its counts and a keep.

mod cuts;
mod fit;
mod keep;
mod ledger;
mod planner;
mod record;
mod shrink;

pub use keep::{Keep, Unit};
pub use ledger::Ledger;
pub use planner::{Outcome, Request, Subject, plan, plan_subject};
pub use record::{Action, Edit, Infeasible, Plan, Reason, Warning};
pub(crate) use shrink::plan_mismatch;
pub use shrink::{PLACEHOLDER, SHORTEN_MARKER, Source, replacements, shortened_text};
