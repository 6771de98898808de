//! A candidate item of the document, as ranked by the lanes.

use super::document::Section;

/// A candidate item of the document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    pub section: Section,
    /// Its position within the section.
    pub place: usize,
    pub text: String,
    /// Largest share of the budget that it may take, in percent.
    pub share: usize,
    /// Redundant if another item contains this text.
    pub unless: Option<String>,
    /// It must not be cut.
    pub is_whole: bool,
}
