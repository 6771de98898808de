//! The counter of a model: its encoding, with the factor and framing of its family.

use super::Model;
use crate::count::bpe::counter::ExactCounter;
use crate::count::counter::{CountKind, Counter, Interrupt};
use crate::count::framing::media::PictureRule;
use crate::count::framing::{Accuracy, Family, FramingCost, scaled};
use crate::error::Result;
use crate::transcript::Framing;

/// Counts as a model does: exact if its encoding is public, else calibrated.
#[derive(Clone, Copy)]
pub struct ModelCounter {
    encoding: ExactCounter,
    family: Family,
    pictures: Option<PictureRule>,
    permille: u32,
    accuracy: Accuracy,
}

impl ModelCounter {
    /// The counter of a model.
    ///
    /// # Errors
    /// `unknown_encoding`.
    pub fn new(model: &Model) -> Result<Self> {
        let encoding = ExactCounter::new(&model.encoding)?;
        let (permille, accuracy) = model.family.text();
        Ok(ModelCounter { encoding, family: model.family, pictures: model.pictures, permille, accuracy })
    }
}

impl Counter for ModelCounter {
    fn count(&self, text: &str, check: Interrupt<'_>) -> Result<u64> {
        Ok(scaled(self.encoding.count(text, check)?, self.permille))
    }

    fn count_up_to(&self, text: &str, limit: u64, check: Interrupt<'_>) -> Result<Option<u64>> {
        // The largest count of the encoding that does not scale beyond the limit, plus one for rounding.
        let most = u128::from(limit) * 1000 / u128::from(self.permille) + 1;
        let most = u64::try_from(most).unwrap_or(u64::MAX);
        let counted = self.encoding.count_up_to(text, most, check)?.map(|n| scaled(n, self.permille));
        Ok(counted.filter(|&tokens| tokens <= limit))
    }

    fn count_encoded(&self, text: &str, check: Interrupt<'_>) -> Result<u64> {
        self.encoding.count(text, check)
    }

    fn permille(&self) -> u32 {
        self.permille
    }

    /// The framing of the family, whatever the dialect of the messages: the receiving model determines it.
    fn framing(&self, framing: Framing) -> FramingCost {
        self.family.cost(framing).unwrap_or_else(|| FramingCost::of(framing)).with_pictures(self.pictures)
    }

    fn kind(&self) -> CountKind {
        self.accuracy.kind
    }

    fn accuracy(&self) -> Accuracy {
        self.accuracy
    }
}
