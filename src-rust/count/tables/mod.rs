//! The vocabularies, as tables from the build script, and their hash functions.

pub(crate) mod hash;
pub(crate) mod vocab;
