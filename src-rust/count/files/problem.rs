//! The errors of tokenizer files.

use std::path::Path;

use crate::error::Error;

/// The error for a file whose tokenizer is understood by its own package, but not by the engine. `what` names the part.
pub(crate) fn unsupported(what: &str) -> Error {
    let detail = format!(
        "{what} is not supported by the engine; a tokenizer.json is counted with engine=\"hf\" (extra hf), another file \
         by a function that returns the number of its package's tokens"
    );
    Error::config("unsupported_tokenizer", "counter", detail)
}

/// The error for a file that is not a tokenizer, or is damaged. `what` says what is wrong.
pub(crate) fn bad(what: &str) -> Error {
    Error::config("bad_tokenizer", "counter", what)
}

/// The error for a file that the system does not give.
pub(crate) fn unreadable(file: &Path, error: &std::io::Error) -> Error {
    bad(&format!("{} cannot be read: {}", file.display(), error.kind()))
}
