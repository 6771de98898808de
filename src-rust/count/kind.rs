//! The kinds of counts.

/// How far a count can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CountKind {
    /// Equal to the tokenizer's own count.
    Exact,
    /// Fitted to what a provider reported.
    Calibrated,
    /// A formula.
    Estimated,
}

impl CountKind {
    /// The public name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            CountKind::Exact => "exact",
            CountKind::Calibrated => "calibrated",
            CountKind::Estimated => "estimated",
        }
    }
}
