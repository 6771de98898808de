//! The crate's error type, with stable codes.
//!
//! An error has a machine-readable `code`, a location (`index` of the message, `path` inside it) and a `detail` in
//! general terms. It does not contain message content, so it may be logged anywhere.

use std::fmt;

/// The exception class of the Python layer that an [`Error`] becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// A message has an unreadable shape.
    Message,
    /// An array or column is not of text.
    TextType,
    /// A documented limit (nesting, bytes, number of messages) was exceeded.
    Limit,
    /// An option has a value outside its range.
    Config,
    /// A usable summary was not obtained.
    Summary,
    /// A defect in foldline itself.
    Internal,
    /// Not a failure: the caller interrupted the work, or a callback raised.
    Interrupted,
}

/// The error of the crate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The kind, which decides the exception class.
    pub kind: ErrorKind,
    /// A stable machine-readable code, such as `missing_role`.
    pub code: &'static str,
    /// Index of the message, if one is concerned.
    pub index: Option<usize>,
    /// Path inside the message (`content[2].text`) or name of the option.
    pub path: String,
    /// Description, without message content.
    pub detail: String,
    /// Index of the transcript, if there are several.
    pub transcript: Option<usize>,
    /// Line of JSON lines, from 1, if there is one.
    pub line: Option<u64>,
}

/// Result with the crate's error.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    fn new(kind: ErrorKind, code: &'static str, path: impl Into<String>, detail: impl Into<String>) -> Self {
        let (path, detail) = (path.into(), detail.into());
        Error { kind, code, index: None, path, detail, transcript: None, line: None }
    }

    /// An unreadable message.
    pub fn message(code: &'static str, path: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::Message, code, path, detail)
    }

    /// An array or column that is not of text.
    pub fn text_type(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::TextType, code, "", detail)
    }

    /// An exceeded limit.
    pub fn limit(code: &'static str, path: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::Limit, code, path, detail)
    }

    /// An option out of range; `field` is its name.
    pub fn config(code: &'static str, field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::Config, code, field, detail)
    }

    /// A refused summary.
    pub fn summary(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::Summary, code, "", detail)
    }

    /// A violated invariant of foldline.
    pub fn internal(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, code, "", detail)
    }

    /// Work stopped from outside (Ctrl-C, or a callback that raised).
    pub fn interrupted() -> Self {
        Self::new(ErrorKind::Interrupted, "interrupted", "", "stopped by the caller")
    }

    /// Adds the index of the message, unless it is set.
    #[must_use]
    pub fn at(mut self, index: usize) -> Self {
        self.index.get_or_insert(index);
        self
    }

    /// Adds the index of the transcript, unless it is set.
    #[must_use]
    pub fn in_transcript(mut self, transcript: usize) -> Self {
        self.transcript.get_or_insert(transcript);
        self
    }

    /// Adds the line, counted from 1, unless it is set.
    #[must_use]
    pub fn on_line(mut self, line: u64) -> Self {
        self.line.get_or_insert(line);
        self
    }

    /// Prepends `prefix` to the path.
    #[must_use]
    pub fn under(mut self, prefix: &str) -> Self {
        self.path = match (prefix.is_empty(), self.path.is_empty()) {
            (_, true) => prefix.to_owned(),
            (true, _) => self.path,
            _ if self.path.starts_with('[') => format!("{prefix}{}", self.path),
            _ => format!("{prefix}.{}", self.path),
        };
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.detail)?;
        let places = [
            self.line.map(|line| format!("line {line}")),
            self.transcript.map(|transcript| format!("transcript {transcript}")),
            self.index.map(|index| format!("message {index}")),
            (!self.path.is_empty()).then(|| format!("at {}", self.path)),
        ];
        let places: Vec<String> = places.into_iter().flatten().collect();
        if places.is_empty() { Ok(()) } else { write!(f, " ({})", places.join(", ")) }
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_where() {
        let error = Error::message("missing_role", "role", "no role").at(3);
        assert_eq!(error.to_string(), "missing_role: no role (message 3, at role)");
        let error = error.in_transcript(1).on_line(7);
        assert_eq!(error.to_string(), "missing_role: no role (line 7, transcript 1, message 3, at role)");
        assert_eq!(Error::internal("x", "y").to_string(), "x: y");
    }

    #[test]
    fn paths_nest() {
        let error = Error::message("bad_text", "text", "not a string").under("[2]").under("content");
        assert_eq!(error.path, "content[2].text");
    }
}
