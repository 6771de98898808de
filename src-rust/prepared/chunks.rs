//! The texts of a growing list, in chunks. A full chunk never changes, so copies of the list share it.

use std::sync::Arc;

use crate::transcript::{Builder, Framing, MessageSource, Transcript};

/// Messages after which a chunk is full: a bound on the chunk that a copy of the list does not share.
const CHUNK_MESSAGES: usize = 256;

/// Bytes of text after which a chunk is full: a bound on the text that a copy of the list does not share.
const CHUNK_BYTES: usize = 64 << 10;

/// Messages in chunks.
#[derive(Clone, Debug)]
pub(super) struct Chunks {
    full: Vec<Arc<Transcript>>,
    /// The first message of each full chunk, and of the last one.
    starts: Vec<u32>,
    last: Builder,
    wants_result_json: bool,
}

impl Chunks {
    pub fn new(framing: Framing, wants_result_json: bool) -> Self {
        let last = Builder::new(framing, wants_result_json);
        Chunks { full: Vec::new(), starts: vec![0], last, wants_result_json }
    }

    /// One full chunk.
    pub fn from_transcript(transcript: Transcript, wants_result_json: bool) -> Self {
        let mut chunks = Chunks::new(transcript.framing, wants_result_json);
        if !transcript.is_empty() {
            chunks.starts.push(transcript.len() as u32);
            chunks.full.push(Arc::new(transcript));
        }
        chunks
    }

    /// The first full chunk.
    pub fn first(&self) -> Option<&Transcript> {
        self.full.first().map(Arc::as_ref)
    }

    /// The builder of the last chunk, for the next message.
    pub fn last_mut(&mut self) -> &mut Builder {
        &mut self.last
    }

    /// The last chunk.
    pub fn last(&self) -> &Transcript {
        self.last.transcript()
    }

    /// Number of messages.
    pub fn len(&self) -> usize {
        self.first_of_last() + self.last().len()
    }

    /// Whether the last chunk is full.
    pub fn is_full(&self) -> bool {
        self.last().len() >= CHUNK_MESSAGES || self.last().text.len() >= CHUNK_BYTES
    }

    /// Starts another chunk if the last is full.
    pub fn close(&mut self) {
        if self.is_full() {
            let next = self.len();
            self.full.push(Arc::new(self.last.take()));
            self.starts.push(next as u32);
        }
    }

    fn first_of_last(&self) -> usize {
        self.starts.last().map_or(0, |&start| start as usize)
    }

    fn chunk_of(&self, message: usize) -> usize {
        // Fast path: most look-ups are of messages at the end.
        if message >= self.first_of_last() {
            return self.full.len();
        }
        self.starts.partition_point(|&start| start as usize <= message) - 1
    }

    /// Removes all but the first `messages` messages.
    pub fn truncate(&mut self, messages: usize) {
        let chunk = self.chunk_of(messages);
        let within = messages - self.starts[chunk] as usize;
        if let Some(full) = self.full.get(chunk) {
            self.last = Builder::resume(Transcript::clone(full), within, self.wants_result_json);
            self.full.truncate(chunk);
            self.starts.truncate(chunk + 1);
        } else {
            self.last.truncate(within);
        }
    }

    /// Bytes of text from the chunk with this message on.
    pub fn bytes_from(&self, message: usize) -> usize {
        let full = self.full.get(self.chunk_of(message)..).unwrap_or_default();
        full.iter().map(|chunk| chunk.text.len()).sum::<usize>() + self.last().text.len()
    }
}

impl MessageSource for Chunks {
    fn at(&self, message: usize) -> (&Transcript, usize) {
        let chunk = self.chunk_of(message);
        let transcript = self.full.get(chunk).map_or_else(|| self.last(), Arc::as_ref);
        (transcript, message - self.starts[chunk] as usize)
    }
}
