//! Messages that are read one by one, in the dialect that all of them so far speak.

use super::Judge;
use crate::error::{Error, Result};
use crate::formats::header::Envelope;
use crate::formats::{Format, read_enveloped, read_message};
use crate::node::{Kind, Node};
use crate::transcript::Build;

/// Which dialect the messages are in that were heard so far: at any time the one that [`crate::formats::read_as`] finds for the
/// list of them.
#[derive(Clone, Copy, Debug)]
pub struct Listener {
    /// `None` where the caller named the dialect.
    judge: Option<Judge>,
    format: Format,
}

/// What came of a message.
#[derive(Clone, Copy, Debug)]
pub enum Heard {
    /// It was read.
    Read,
    /// It shows that all messages are in another dialect than was taken for theirs, and are to be read again with this
    /// listener, this one included. Nothing was read.
    Otherwise(Listener),
}

impl Listener {
    /// Has heard nothing. Without a format, the messages tell it.
    #[must_use]
    pub fn new(format: Option<Format>) -> Self {
        match format {
            Some(format) => Listener { judge: None, format },
            None => {
                let judge = Judge::new(None);
                Listener { judge: Some(judge), format: judge.format() }
            }
        }
    }

    /// The dialect of all that was heard.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// Hears message `i` of the list without reading it.
    ///
    /// # Errors
    /// Those of [`detect`](fn@crate::formats::detect), with the index. What is no object says nothing.
    pub fn hear<N: Node>(&mut self, i: usize, message: &N) -> Result<()> {
        if let Some(judge) = &mut self.judge
            && message.kind() == Kind::Object
        {
            let mut envelope = Envelope::sealed();
            envelope.open(message);
            judge.hear(i, message, &envelope)?;
            self.format = judge.format();
        }
        Ok(())
    }

    /// One that has heard nothing, of a dialect named or not as here.
    #[must_use]
    pub fn afresh(&self) -> Self {
        Listener::new(if self.judge.is_some() { None } else { Some(self.format) })
    }

    /// Hears message `i` of the list and reads it.
    ///
    /// # Errors
    /// Those of reading, with the index; then nothing was heard, though something may have been built.
    pub fn read<N: Node>(&mut self, i: usize, message: &N, builder: &mut impl Build<N>) -> Result<Heard> {
        let Some(judge) = &mut self.judge else {
            return self.read_again(i, message, builder).map(|()| Heard::Read);
        };
        if message.kind() != Kind::Object {
            return Err(not_an_object().at(i));
        }
        let mut envelope = Envelope::sealed();
        envelope.open(message);
        let mut heard = *judge;
        heard.hear(i, message, &envelope)?;
        if heard.format() != self.format {
            return Ok(Heard::Otherwise(Listener { judge: Some(heard), format: heard.format() }));
        }
        read_enveloped(message, &envelope, self.format, builder).map_err(|error| error.at(i))?;
        *judge = heard;
        Ok(Heard::Read)
    }

    /// Reads a message that was heard before.
    ///
    /// # Errors
    /// Those of [`crate::formats::read_message`], with the index.
    pub fn read_again<N: Node>(&self, i: usize, message: &N, builder: &mut impl Build<N>) -> Result<()> {
        read_message(message, self.format, builder).map_err(|error| error.at(i))
    }
}

fn not_an_object() -> Error {
    Error::message("not_an_object", "", "a message must be an object")
}
