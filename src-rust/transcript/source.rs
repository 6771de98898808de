//! Access to messages that are stored in one or several transcripts.

use super::Transcript;

/// Messages by their index in the whole list.
pub trait MessageSource: Sync {
    /// The transcript that contains a message, and the message's index in it.
    fn at(&self, message: usize) -> (&Transcript, usize);
}

impl MessageSource for Transcript {
    fn at(&self, message: usize) -> (&Transcript, usize) {
        (self, message)
    }
}
