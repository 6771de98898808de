//! The folded messages, divided for a summariser with a smaller context window.

use super::model::Plan;

/// A range of messages for one call of a summariser.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Chunk {
    /// The first message.
    pub start: usize,
    /// The message after the last.
    pub stop: usize,
    /// Tokens of the folded messages in the range; messages that stay are not sent.
    pub tokens: u64,
    /// Whether it exceeds the limit because no legal cut divides it.
    pub is_oversized: bool,
}

impl Plan {
    /// Divides the folded messages at legal cuts into the fewest ranges of at most `max_tokens`.
    ///
    /// The ranges are contiguous, from the first folded message to the cut. A range that exceeds the limit and that no
    /// legal cut divides is a chunk by itself. `sizes`: tokens of every message as it is sent. Default: the counted
    /// tokens. O(messages before the cut).
    #[must_use]
    pub fn chunks(&self, max_tokens: u64, sizes: Option<&[u64]>) -> Vec<Chunk> {
        let Some(first) = self.folded().next() else { return Vec::new() };
        let size = |i: usize| match sizes {
            _ if !self.is_folded(i) => 0,
            Some(sizes) => sizes.get(i).copied().unwrap_or(0),
            None => u64::from(self.message_tokens[i]),
        };
        let ends = self.split_points().chain([self.cut]);
        let mut chunks: Vec<Chunk> = Vec::new();
        let mut start = first;
        for stop in ends {
            let tokens = (start..stop).map(size).fold(0, u64::saturating_add);
            let has_folded = (start..stop).any(|i| self.is_folded(i));
            match chunks.last_mut() {
                Some(last) if !has_folded => last.stop = stop,
                Some(last) if last.tokens.saturating_add(tokens) <= max_tokens => {
                    last.stop = stop;
                    last.tokens += tokens;
                }
                _ => chunks.push(Chunk { start, stop, tokens, is_oversized: tokens > max_tokens }),
            }
            start = stop;
        }
        chunks
    }

    /// Legal cuts between the first folded message and the cut.
    fn split_points(&self) -> impl Iterator<Item = usize> + '_ {
        let first = self.folded().next().unwrap_or(self.cut);
        let from = self.legal_cuts.partition_point(|&at| at as usize <= first);
        self.legal_cuts[from..].iter().map(|&at| at as usize).take_while(|&at| at < self.cut)
    }
}
