//! The counter of a model: its encoding, with the factor and framing of its family.

use super::Model;
use crate::count::bpe::counter::ExactCounter;
use crate::count::counter::{CountKind, Counter, GoOn};
use crate::count::framing::media::PictureRule;
use crate::count::framing::{Family, FramingCost, Trust, scaled};
use crate::error::Result;
use crate::transcript::Framing;

/// Counts as a model does: exact if its encoding is public, else calibrated.
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
}

impl Counter for ModelCounter {
    fn count(&self, text: &str, go_on: GoOn<'_>) -> Result<u64> {
        Ok(scaled(self.encoding.count(text, go_on)?, self.permille))
    }

    fn count_upto(&self, text: &str, limit: u64, go_on: GoOn<'_>) -> Result<Option<u64>> {
        // The largest count of the encoding that does not scale beyond the limit, plus one for rounding.
        let most = u128::from(limit) * 1000 / u128::from(self.permille) + 1;
        let most = u64::try_from(most).unwrap_or(u64::MAX);
        let counted = self.encoding.count_upto(text, most, go_on)?.map(|n| scaled(n, self.permille));
        Ok(counted.filter(|&tokens| tokens <= limit))
    }

    fn count_encoded(&self, text: &str, go_on: GoOn<'_>) -> Result<u64> {
        self.encoding.count(text, go_on)
    }

    fn permille(&self) -> u32 {
        self.permille
    }

    /// The framing of the family, whatever the dialect of the messages: the receiving model determines it.
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
