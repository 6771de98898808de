//! The accuracy of a count, as a value that can be combined.

use crate::count::kind::CountKind;

/// A kind and its measured error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accuracy {
    /// The kind.
    pub kind: CountKind,
    /// The 90th percentile of the relative error, in thousandths, if measured.
    pub error_permille: Option<u16>,
}

impl Accuracy {
    /// Equal to what the provider reports.
    pub const EXACT: Accuracy = Accuracy { kind: CountKind::Exact, error_permille: None };

    /// By a reconstruction of the tokenizer.
    pub const RECONSTRUCTED: Accuracy = Accuracy { kind: CountKind::Reconstructed, error_permille: None };

    /// A guess.
    pub const ESTIMATED: Accuracy = Accuracy { kind: CountKind::Estimated, error_permille: None };

    /// Fitted to counts that providers reported; the error was not measured.
    pub const FITTED: Accuracy = Accuracy { kind: CountKind::Calibrated, error_permille: None };

    /// Fitted, with nine of ten counts within this error.
    #[must_use]
    pub const fn within(error_permille: u16) -> Accuracy {
        Accuracy { kind: CountKind::Calibrated, error_permille: Some(error_permille) }
    }

    /// The accuracy of a sum: that of its least certain part.
    #[must_use]
    pub fn and(self, other: Accuracy) -> Accuracy {
        let error_permille = match (self.kind, other.kind) {
            (CountKind::Exact | CountKind::Reconstructed, _) => other.error_permille,
            (_, CountKind::Exact | CountKind::Reconstructed) => self.error_permille,
            // Known only if both are.
            _ => self.error_permille.zip(other.error_permille).map(|(a, b)| a.max(b)),
        };
        Accuracy { kind: self.kind.max(other.kind), error_permille }
    }

    /// The relative error as a fraction.
    #[must_use]
    pub fn error_bound(self) -> Option<f64> {
        self.error_permille.map(|permille| f64::from(permille) / 1000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_is_as_good_as_its_worst_part() {
        let (one, five) = (Accuracy::within(10), Accuracy::within(50));
        let guess = Accuracy { kind: CountKind::Estimated, error_permille: Some(143) };
        let cases = [
            (Accuracy::EXACT, Accuracy::EXACT, Accuracy::EXACT),
            (Accuracy::EXACT, one, one),
            (one, five, five),
            (one, Accuracy::FITTED, Accuracy::FITTED),
            (one, Accuracy::ESTIMATED, Accuracy::ESTIMATED),
            (guess, Accuracy::EXACT, guess),
            (guess, one, guess),
            (guess, Accuracy::within(200), Accuracy { error_permille: Some(200), ..guess }),
            (guess, Accuracy::FITTED, Accuracy::ESTIMATED),
            (guess, Accuracy::ESTIMATED, Accuracy::ESTIMATED),
            (Accuracy::EXACT, Accuracy::ESTIMATED, Accuracy::ESTIMATED),
        ];
        for (a, b, expected) in cases {
            assert_eq!(a.and(b), expected);
            assert_eq!(b.and(a), expected);
        }
        assert_eq!(one.error_bound(), Some(0.01));
    }
}
