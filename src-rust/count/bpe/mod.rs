//! Exact counts with the published byte-pair encodings.

pub(crate) mod batch;
pub(crate) mod count;
pub mod counter;
pub mod encoding;
pub(crate) mod lanes;
pub(crate) mod lookup;
pub(crate) mod merge;
pub(crate) mod miss;
pub(super) mod repeats;
