//! The vocabularies, as tables from the build script or from tokenizer files, and their hash functions.

pub(crate) mod file;
pub(crate) mod hash;
pub(crate) mod phf;
pub(crate) mod vocab;
