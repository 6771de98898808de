//! Tokenizer files, read at run time into the engine's tables.
//!
//! A file is read as a whole, its tokens are ranked by their bytes, and from then on it counts like a built-in encoding.
//! Whatever would change a count and is not understood is an error that names it, never a wrong count.

mod added;
mod base64;
pub mod counter;
mod gguf;
mod hf;
mod load;
mod merges;
mod normalize;
mod parts;
mod sentencepiece;
mod tekken;
mod tiktoken;
mod tokenizer;
mod vocabulary;
mod words;

pub use load::is_tokenizer_path;

use crate::error::Error;

/// The error for a file whose tokenizer is understood by its own package, but not by the engine. `what` names the part.
pub(crate) fn unsupported(what: &str) -> Error {
    let detail = format!("{what} is not supported by the engine; count with engine=\"hf\" (extra hf)");
    Error::config("unsupported_tokenizer", "counter", detail)
}

/// The error for a file that is not a tokenizer, or is damaged. `what` says what is wrong.
pub(crate) fn bad(what: &str) -> Error {
    Error::config("bad_tokenizer", "counter", what)
}
