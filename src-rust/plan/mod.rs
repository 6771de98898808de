//! Planning: an action and a reason for each message. A pure function of a transcript, its counts and a keep.

mod alternatives;
mod cache;
mod chunks;
mod consistency;
mod cuts;
mod explain;
mod fit;
mod keep;
mod model;
mod planner;
mod prefix_sums;
mod shorten;
mod thinking;
mod trim;
mod variants;

pub use cache::{CacheEffect, Prices};
pub use chunks::Chunk;
pub use keep::{Keep, Unit};
pub use model::{
    Action, Alternative, AlternativeKind, Edit, Infeasible, PLAN_VERSION, Plan, Reason, Warning,
};
pub use planner::{LastCut, PlanInput, PlanOptions, Planned, plan, plan_input, plan_with_summary};
pub use prefix_sums::PrefixSums;
pub(crate) use shorten::plan_mismatch;
pub use shorten::{PLACEHOLDER, SHORTEN_MARKER, replacements, shortened_text};
pub use thinking::{THINKING_BOUND, ThinkingRule};
pub use trim::{TrimOptions, newest_user, trim_floor, trim_input};
