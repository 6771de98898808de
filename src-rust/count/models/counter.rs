//! The counter of a model: its encoding or tokenizer file, with the factor and framing of its family.

use super::Model;
use super::source::Source;
use crate::count::bpe::counter::ExactCounter;
use crate::count::claude::Generation;
use crate::count::claude::counter::ClaudeCounter;
use crate::count::counter::{CountKind, Counter, Interrupt};
use crate::count::files::counter::FileCounter;
use crate::count::framing::media::PictureRule;
use crate::count::framing::{Accuracy, Family, FramingCost, scaled};
use crate::error::Result;
use crate::transcript::Framing;

/// The counter of texts.
#[derive(Clone, Copy)]
enum TextCounter {
    Claude(ClaudeCounter),
    Encoding(ExactCounter),
    File(FileCounter),
}

/// Counts as a model does: exact if its encoding is public, else reconstructed or calibrated.
#[derive(Clone, Copy)]
pub struct ModelCounter {
    encoding: TextCounter,
    family: Family,
    pictures: Option<PictureRule>,
    permille: u32,
    accuracy: Accuracy,
}

impl ModelCounter {
    /// The counter of a model. `name` is the model's name as given, which may be a repository of Hugging Face.
    ///
    /// # Errors
    /// `unknown_encoding`; `missing_tokenizer` if its tokenizer file is not found; those of [`FileCounter::open`].
    pub fn new(model: &Model, name: &str) -> Result<Self> {
        let source = Source::of(model, name)?;
        let encoding = if let Some(counter) = source.open()? {
            TextCounter::File(counter)
        } else if let Some(generation) = Generation::from_name(&source.encoding) {
            TextCounter::Claude(ClaudeCounter::new(generation))
        } else {
            TextCounter::Encoding(ExactCounter::new(&source.encoding)?)
        };
        let (family, accuracy) = (source.family, model.accuracy());
        let permille = family.text().0;
        Ok(ModelCounter { encoding, family, pictures: model.pictures, permille, accuracy })
    }
}

impl TextCounter {
    #[inline]
    fn get(&self) -> &dyn Counter {
        match self {
            TextCounter::Claude(counter) => counter,
            TextCounter::Encoding(counter) => counter,
            TextCounter::File(counter) => counter,
        }
    }
}

impl Counter for ModelCounter {
    fn count(&self, text: &str, check: Interrupt<'_>) -> Result<u64> {
        Ok(scaled(self.encoding.get().count(text, check)?, self.permille))
    }

    fn count_up_to(&self, text: &str, limit: u64, check: Interrupt<'_>) -> Result<Option<u64>> {
        // The largest count of the encoding that does not scale beyond the limit, plus one for rounding.
        let most = u128::from(limit) * 1000 / u128::from(self.permille) + 1;
        let most = u64::try_from(most).unwrap_or(u64::MAX);
        let counted = self.encoding.get().count_up_to(text, most, check)?.map(|n| scaled(n, self.permille));
        Ok(counted.filter(|&tokens| tokens <= limit))
    }

    fn count_encoded(&self, text: &str, check: Interrupt<'_>) -> Result<u64> {
        self.encoding.get().count(text, check)
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
