//! The counter of a model: its encoding, the factor of its family, and its family's framing.

use super::Model;
use crate::count::counter::{CountKind, Counter, GoOn, More};
use crate::count::exact::ExactCounter;
use crate::count::framing::{Family, FramingCost, Trust, scaled};
use crate::count::media::PictureRule;
use crate::error::Result;
use crate::transcript::Framing;

/// Counts as a model does: exactly where its encoding is public, calibrated where it is not.
#[derive(Clone, Copy)]
pub struct ModelCounter {
    encoding: ExactCounter,
    family: Family,
    pictures: Option<PictureRule>,
    permille: u32,
    trust: Trust,
}

impl ModelCounter {
    /// The counter of a model.
    ///
    /// # Errors
    /// `unknown_encoding`.
    pub fn new(model: &Model) -> Result<Self> {
        let encoding = ExactCounter::new(&model.encoding)?;
        let (permille, trust) = model.family.text();
        Ok(ModelCounter { encoding, family: model.family, pictures: model.pictures, permille, trust })
    }

    /// The largest count of the encoding that is not scaled beyond the limit, and one more for rounding.
    fn most_encoded(&self, limit: u64) -> u64 {
        u64::try_from(u128::from(limit) * 1000 / u128::from(self.permille) + 1).unwrap_or(u64::MAX)
    }

    /// What was counted as the model's own tokens, where they are at most `limit`.
    fn scaled_upto(&self, counted: Option<u64>, limit: u64) -> Option<u64> {
        counted.map(|tokens| scaled(tokens, self.permille)).filter(|&tokens| tokens <= limit)
    }
}

impl Counter for ModelCounter {
    fn count(&self, text: &str, go_on: GoOn<'_>) -> Result<u64> {
        Ok(scaled(self.encoding.count(text, go_on)?, self.permille))
    }

    fn count_upto(&self, text: &str, limit: u64, go_on: GoOn<'_>) -> Result<Option<u64>> {
        let counted = self.encoding.count_upto(text, self.most_encoded(limit), go_on)?;
        Ok(self.scaled_upto(counted, limit))
    }

    fn count_told(&self, more: More<'_>, go_on: GoOn<'_>) -> Result<u64> {
        Ok(scaled(self.encoding.count_told(more, go_on)?, self.permille))
    }

    fn told_upto(&self, more: More<'_>, limit: u64, go_on: GoOn<'_>) -> Result<Option<u64>> {
        let counted = self.encoding.told_upto(more, self.most_encoded(limit), go_on)?;
        Ok(self.scaled_upto(counted, limit))
    }

    fn count_encoded(&self, text: &str, go_on: GoOn<'_>) -> Result<u64> {
        self.encoding.count(text, go_on)
    }

    fn permille(&self) -> u32 {
        self.permille
    }

    /// The family's, whatever dialect the messages are in: it is the model that they will be sent to.
    fn framing(&self, framing: Framing) -> FramingCost {
        self.family.cost(framing).unwrap_or_else(|| FramingCost::of(framing)).with_pictures(self.pictures)
    }

    fn kind(&self) -> CountKind {
        self.trust.kind
    }

    fn trust(&self) -> Trust {
        self.trust
    }
}
