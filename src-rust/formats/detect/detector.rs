//! Reads messages one by one in the dialect detected so far.

use super::Candidates;
use crate::error::Result;
use crate::formats::header::Envelope;
use crate::formats::{Format, not_an_object, read_enveloped, read_message};
use crate::node::{Kind, Node};
use crate::transcript::Build;

/// Incremental format detector: its format always equals the one that [`crate::formats::read_as`] would detect for the
/// list of all messages so far.
#[derive(Clone, Copy, Debug)]
pub struct Detector {
    /// `None` if the caller named the format.
    candidates: Option<Candidates>,
    format: Format,
}

/// The outcome of reading a message.
#[derive(Clone, Copy, Debug)]
pub enum Observed {
    /// The message was read.
    Read,
    /// The message changes the detected format: all messages, this one included, must be read again with this detector.
    /// Nothing was read.
    Redetect(Detector),
}

impl Detector {
    /// A detector without messages. With `None`, it detects the format from the messages.
    #[must_use]
    pub fn new(format: Option<Format>) -> Self {
        match format {
            Some(format) => Detector { candidates: None, format },
            None => {
                let candidates = Candidates::new(None);
                Detector { candidates: Some(candidates), format: candidates.format() }
            }
        }
    }

    /// The format of the messages so far.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// Observes message `i` of the list without reading it. A value that is not an object is ignored.
    ///
    /// # Errors
    /// Those of [`detect`](fn@crate::formats::detect), with the index.
    pub fn observe<N: Node>(&mut self, i: usize, message: &N) -> Result<()> {
        if let Some(candidates) = &mut self.candidates
            && message.kind() == Kind::Object
        {
            let mut envelope = Envelope::sealed();
            envelope.open(message);
            candidates.observe(i, message, &envelope)?;
            self.format = candidates.format();
        }
        Ok(())
    }

    /// A detector without messages, with the same named format or with detection.
    #[must_use]
    pub fn reset(&self) -> Self {
        Detector::new(if self.candidates.is_some() { None } else { Some(self.format) })
    }

    /// Observes message `i` of the list and reads it.
    ///
    /// # Errors
    /// Those of reading, with the index. The detector is then unchanged, but the builder may hold a partial message.
    pub fn read<N: Node>(&mut self, i: usize, message: &N, builder: &mut impl Build<N>) -> Result<Observed> {
        let Some(candidates) = &mut self.candidates else {
            return self.read_again(i, message, builder).map(|()| Observed::Read);
        };
        if message.kind() != Kind::Object {
            return Err(not_an_object(message).at(i));
        }
        let mut envelope = Envelope::sealed();
        envelope.open(message);
        let mut observed = *candidates;
        observed.observe(i, message, &envelope)?;
        if observed.format() != self.format {
            return Ok(Observed::Redetect(Detector {
                candidates: Some(observed),
                format: observed.format(),
            }));
        }
        read_enveloped(message, &envelope, self.format, builder).map_err(|error| error.at(i))?;
        *candidates = observed;
        Ok(Observed::Read)
    }

    /// Reads a message that was observed before.
    ///
    /// # Errors
    /// Those of [`crate::formats::read_message`], with the index.
    pub fn read_again<N: Node>(&self, i: usize, message: &N, builder: &mut impl Build<N>) -> Result<()> {
        read_message(message, self.format, builder).map_err(|error| error.at(i))
    }
}
