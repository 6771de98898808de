//! What may be done to a transcript, one definition each: who answers whom, what stays together, where a cut is
//! legal, what providers reject.

mod pairing;
mod pins;
mod structure;
pub mod validate;

pub use pairing::{Pairing, pair};
pub use pins::{Pins, collect_pins};
pub use structure::{Group, Standing, Structure, analyze};
