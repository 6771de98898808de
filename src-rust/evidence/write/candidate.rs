//! An item that may enter the document, as the lanes rank it.

use super::document::Section;

/// An item that may enter the document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    pub section: Section,
    /// Its place within the section.
    pub place: usize,
    pub text: String,
    /// The largest share of the budget that it may take, in percent.
    pub share: usize,
    /// Not needed where another item holds this text.
    pub unless: Option<String>,
    /// It is whole or not there.
    pub is_whole: bool,
}
