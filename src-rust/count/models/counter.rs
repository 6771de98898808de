//! The counter of a model: its encoding, the factor of its family, and its family's framing.

use super::Model;
use crate::count::counter::{CountKind, Counter, GoOn, MessageView, tokens_u32};
use crate::count::exact::ExactCounter;
use crate::count::framing::{Family, FramingCost, Trust, message_tokens, scaled};
use crate::count::media::PictureRule;
use crate::count::tools::Tool;
use crate::error::Result;
use crate::transcript::{Framing, Transcript};

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
}

impl Counter for ModelCounter {
    fn count(&self, text: &str, go_on: GoOn<'_>) -> Result<u64> {
        Ok(scaled(self.encoding.count(text, go_on)?, self.permille))
    }

    fn count_upto(&self, text: &str, limit: u64, go_on: GoOn<'_>) -> Result<Option<u64>> {
        // The largest count of the encoding that is not scaled beyond the limit, and one more for rounding.
        let most = u128::from(limit) * 1000 / u128::from(self.permille) + 1;
        let counted = self.encoding.count_upto(text, u64::try_from(most).unwrap_or(u64::MAX), go_on)?;
        Ok(counted.map(|tokens| scaled(tokens, self.permille)).filter(|&tokens| tokens <= limit))
    }

    fn count_message(&self, message: &MessageView<'_>, go_on: GoOn<'_>) -> Result<u32> {
        let cost = self.framing(message.transcript.framing);
        let count = |text: &str, go_on: GoOn<'_>| self.encoding.count(text, go_on);
        tokens_u32(message_tokens(&cost, self.permille, message, go_on, count)?)
    }

    /// The family's, whatever dialect the messages are in: it is the model that they will be sent to.
    fn framing(&self, framing: Framing) -> FramingCost {
        self.family.cost(framing).unwrap_or_else(|| FramingCost::of(framing)).with_pictures(self.pictures)
    }

    fn count_tools(&self, tools: &[Tool], transcript: &Transcript, go_on: GoOn<'_>) -> Result<(u64, Trust)> {
        let cost = self.framing(transcript.framing);
        cost.of_tools(tools, transcript, go_on, |text, go_on| self.encoding.count(text, go_on))
    }

    fn kind(&self) -> CountKind {
        self.trust.kind
    }

    fn trust(&self) -> Trust {
        self.trust
    }
}
