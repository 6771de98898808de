//! Planning: what happens to each message, and why. A pure function of a transcript, its counts and a keep.

mod cuts;
mod fit;
mod keep;
mod planner;
mod record;
mod shrink;

pub use keep::{Keep, Unit};
pub use planner::{Outcome, Request, plan};
pub use record::{Action, Edit, Infeasible, Plan, Reason, Warning};
pub(crate) use shrink::plan_mismatch;
pub use shrink::{PLACEHOLDER, SHORTEN_MARKER, replacements, shortened_text};
