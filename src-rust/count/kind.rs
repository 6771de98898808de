//! The kinds of counts.

/// Accuracy of a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CountKind {
    /// Equal to the tokenizer's own count.
    Exact,
    /// By a reconstruction of a tokenizer that is not published.
    Reconstructed,
    /// Fitted to counts that a provider reported.
    Calibrated,
    /// The result of a formula.
    Estimated,
}

impl CountKind {
    /// Every kind, from the most certain.
    pub const ALL: [CountKind; 4] =
        [CountKind::Exact, CountKind::Reconstructed, CountKind::Calibrated, CountKind::Estimated];

    /// The public name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            CountKind::Exact => "exact",
            CountKind::Reconstructed => "reconstructed",
            CountKind::Calibrated => "calibrated",
            CountKind::Estimated => "estimated",
        }
    }
}
