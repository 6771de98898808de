//! Tokenizer files, read at run time into the engine's tables.
//!
//! A file is read as a whole, its tokens are ranked by their bytes, and from then on it counts like a built-in encoding.
//! Whatever would change a count and is not understood is an error that names it, never a wrong count.

mod added;
mod base64;
mod cache;
pub mod counter;
pub(in crate::count) mod folder;
mod gguf;
mod hf;
pub mod load;
mod merges;
mod normalize;
mod problem;
mod sentencepiece;
mod stamps;
mod steps;
mod tekken;
mod tiktoken;
mod tokenizer;
mod vocabulary;
mod words;
