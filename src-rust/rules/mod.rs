//! Rules for editing a transcript, one definition each: pairs, groups, legal cuts, provider validation and repair.

mod incremental;
mod pairing;
mod pins;
mod provider;
pub mod repair;
mod results;
pub mod roles;
mod served;
mod shape;
mod structure;
pub mod validate;

pub use incremental::{Incremental, analyze};
pub use pairing::{Pairing, pair};
pub use pins::{Pins, check_importance, check_index, pin_on_summary};
pub use results::{FoundResult, results};
pub use shape::{Shape, content_of_result, shapes};
pub use structure::{Foldability, Group, Structure};
