//! Where messages stand: in one transcript, or in several that make up a list.

use super::Transcript;

/// Messages by their index in the whole list.
pub trait MessageSource: Sync {
    /// The transcript that holds a message, and the message's index in it.
    fn at(&self, message: usize) -> (&Transcript, usize);
}

impl MessageSource for Transcript {
    fn at(&self, message: usize) -> (&Transcript, usize) {
        (self, message)
    }
}
