//! Vocabularies and their hashing: tables that the build script writes.

pub(crate) mod hash;
pub(crate) mod vocab;
