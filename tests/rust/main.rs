//! The crate from outside, in one binary: a file each, `cargo test --test integration encoding::` runs those of one.
//!
//! Tests that are `ignored` are part of `make check`: `cargo test -- --include-ignored` with `FOLDLINE_DEPTH=deep`.

mod cases;
mod depth;
mod encoding;
mod encoding_data;
mod encoding_hostile;
mod evidence;
mod framing;
mod proof;
mod recalling;
mod rules;
mod tally;
