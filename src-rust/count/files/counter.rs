//! The counter of a tokenizer file.

use std::path::Path;

use super::load::load;
use super::tokenizer::Tokenizer;
use crate::count::bpe::encoding::Stop;
use crate::count::counter::{CountKind, Counter, Interrupt};
use crate::count::framing::{Accuracy, FramingCost};
use crate::error::{Error, Result};
use crate::transcript::Framing;

/// Counts as the tokenizer of a file does: equal to the package that the file is made for.
#[derive(Clone, Copy)]
pub struct FileCounter {
    tokenizer: &'static Tokenizer,
    framing: FramingCost,
}

impl FileCounter {
    /// The counter of a tokenizer file, or of a model's folder.
    ///
    /// The file does not say what a chat template adds to messages: only their texts are counted.
    ///
    /// # Errors
    /// `bad_tokenizer`, `unsupported_tokenizer`.
    pub fn open(path: &Path) -> Result<Self> {
        let framing =
            FramingCost { text: Accuracy::ESTIMATED, calls: Accuracy::ESTIMATED, ..FramingCost::NONE };
        Ok(FileCounter { tokenizer: load(path)?, framing })
    }

    /// The same with the framing of a family.
    #[must_use]
    pub fn with_framing(self, framing: FramingCost) -> Self {
        FileCounter { framing, ..self }
    }

    fn run(&self, text: &str, limit: usize, check: Interrupt<'_>) -> Result<Option<usize>> {
        let mut is_stopped = false;
        let mut keep_going = || {
            is_stopped |= !check();
            !is_stopped
        };
        let counted = self.tokenizer.count(text, &mut Stop::new(limit, Some(&mut keep_going)));
        if is_stopped { Err(Error::interrupted()) } else { Ok(counted) }
    }
}

impl Counter for FileCounter {
    fn count(&self, text: &str, check: Interrupt<'_>) -> Result<u64> {
        self.run(text, usize::MAX, check)?.map(|n| n as u64).ok_or_else(Error::interrupted)
    }

    fn count_up_to(&self, text: &str, limit: u64, check: Interrupt<'_>) -> Result<Option<u64>> {
        let counted = self.run(text, usize::try_from(limit).unwrap_or(usize::MAX), check)?;
        Ok(counted.map(|n| n as u64).filter(|&n| n <= limit))
    }

    fn framing(&self, _: Framing) -> FramingCost {
        self.framing
    }

    fn kind(&self) -> CountKind {
        CountKind::Exact
    }
}
