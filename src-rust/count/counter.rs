//! The trait of counters, which price texts and messages, and counts of transcripts.

pub use super::kind::CountKind;
pub use super::view::{Interrupt, MessageView, PLACEHOLDER, PartText, PartView};

use super::by_part::{ByPart, PartSums};
use super::estimate::formula::Heuristic;
use super::framing::{
    Accuracy, FramingCost, Layout, MessageFraming, ToolPlacement, elements, scaled, strings,
};
use super::memo::messages::MessageCache;
use super::tools::Tool;
use crate::error::{Error, Result};
use crate::transcript::{Framing, PieceKind, Transcript};

/// Messages between two calls of `check`.
pub(super) const ASK_EVERY_MESSAGES: usize = 256;

/// Prices texts and messages.
pub trait Counter: Send + Sync {
    /// Tokens of a text. O(bytes).
    ///
    /// # Errors
    /// `interrupted` if `check` returns `false`, or the error of a caller's counter.
    fn count(&self, text: &str, check: Interrupt<'_>) -> Result<u64>;

    /// Tokens of a text if they are at most `limit`. Exact counters stop as soon as it is exceeded.
    ///
    /// # Errors
    /// Those of [`Counter::count`].
    fn count_up_to(&self, text: &str, limit: u64, check: Interrupt<'_>) -> Result<Option<u64>> {
        Ok(Some(self.count(text, check)?).filter(|&tokens| tokens <= limit))
    }

    /// Tokens of a text in the counter's encoding, before any factor.
    ///
    /// # Errors
    /// Those of [`Counter::count`].
    fn count_encoded(&self, text: &str, check: Interrupt<'_>) -> Result<u64> {
        self.count(text, check)
    }

    /// The factor from the encoding's tokens to the counter's, in thousandths.
    fn permille(&self) -> u32 {
        1000
    }

    /// Tokens of a message: its texts and their framing.
    ///
    /// # Errors
    /// Those of [`Counter::count`].
    fn count_message(&self, message: &MessageView<'_>, check: Interrupt<'_>) -> Result<u32> {
        let cost = self.framing(message.transcript.framing);
        let around = MessageFraming::of(message, &cost);
        tokens_u32(message_tokens(self, &cost, message.texts(), &around, check)?.total)
    }

    /// The framing cost of messages of this dialect, in this counter's tokens.
    fn framing(&self, framing: Framing) -> FramingCost {
        let _ = framing;
        FramingCost::NONE
    }

    /// Tokens of tool schemas sent with these messages, and their accuracy.
    ///
    /// # Errors
    /// Those of [`Counter::count`].
    fn count_tools(
        &self,
        tools: &[Tool],
        beside: ToolPlacement,
        check: Interrupt<'_>,
    ) -> Result<(u64, Accuracy)> {
        let framing = self.framing(beside.framing);
        framing.of_tools(tools, beside, check, |text, check| self.count_encoded(text, check))
    }

    /// Accuracy of its counts of texts.
    fn kind(&self) -> CountKind;

    /// The same, with the measured error.
    fn accuracy(&self) -> Accuracy {
        Accuracy { kind: self.kind(), error_permille: None }
    }

    /// The cache of message counts, if it has one.
    fn message_cache(&self) -> Option<&MessageCache> {
        None
    }

    /// The formula over lengths, if the counter is one: such a count does not need the text.
    fn heuristic(&self) -> Option<Heuristic> {
        None
    }

    /// Whether [`Part::result_json_units`](crate::transcript::Part::result_json_units) must be measured.
    fn wants_result_json(&self) -> bool {
        self.heuristic().is_some_and(Heuristic::wants_result_json)
    }

    /// Whether it runs a caller's code, which must run on the calling thread.
    fn is_callers_own(&self) -> bool {
        false
    }
}

/// A caller's function.
pub struct CustomCounter<F>(pub F);

impl<F: Fn(&str) -> Result<u64> + Send + Sync> Counter for CustomCounter<F> {
    fn count(&self, text: &str, check: Interrupt<'_>) -> Result<u64> {
        if check() { (self.0)(text) } else { Err(Error::interrupted()) }
    }

    fn kind(&self) -> CountKind {
        CountKind::Estimated
    }

    fn is_callers_own(&self) -> bool {
        true
    }
}

impl Counter for Heuristic {
    fn count(&self, text: &str, _: Interrupt<'_>) -> Result<u64> {
        Ok(self.of_text(text))
    }

    fn count_message(&self, message: &MessageView<'_>, _: Interrupt<'_>) -> Result<u32> {
        let parts = message.parts().map(|view| self.of_part(message.transcript, view));
        tokens_u32(self.of_message(parts.sum()))
    }

    fn kind(&self) -> CountKind {
        CountKind::Estimated
    }

    fn heuristic(&self) -> Option<Heuristic> {
        Some(*self)
    }
}

/// Counts of a list of messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Tokens of each message, including its framing.
    pub per_message: Vec<u32>,
    /// Tokens added once for each request.
    pub overhead: u32,
    /// The kind of the total: the least certain of its parts.
    pub kind: CountKind,
    /// The relative error of the total in thousandths, if measured.
    pub error_permille: Option<u16>,
}

impl Counts {
    /// All messages and the overhead.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.per_message.iter().map(|&tokens| u64::from(tokens)).sum::<u64>() + u64::from(self.overhead)
    }

    /// Accuracy of the total.
    #[must_use]
    pub fn accuracy(&self) -> Accuracy {
        Accuracy { kind: self.kind, error_permille: self.error_permille }
    }

    /// Adds tokens sent with the messages, such as tool schemas.
    ///
    /// # Errors
    /// `too_many_tokens` beyond 2^32.
    pub fn add_overhead(&mut self, tokens: u64, accuracy: Accuracy) -> Result<()> {
        self.overhead = tokens_u32(u64::from(self.overhead) + tokens)?;
        let Accuracy { kind, error_permille } = self.accuracy().and(accuracy);
        (self.kind, self.error_permille) = (kind, error_permille);
        Ok(())
    }
}

/// Counts of a list of messages, and how the tokens are distributed over their parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageCounts {
    /// The counts.
    pub counts: Counts,
    /// The tokens of all messages, by kind of part.
    pub by_part: ByPart,
}

/// Counts every message of a transcript. O(bytes).
///
/// # Errors
/// Those of [`Counter::count`], located at the message.
pub fn count_transcript(
    counter: &dyn Counter,
    transcript: &Transcript,
    check: Interrupt<'_>,
) -> Result<Counts> {
    let framing = counter.framing(transcript.framing);
    let mut per_message = Vec::with_capacity(transcript.len());
    for index in 0..transcript.len() {
        // Counters call it only inside long texts, and there may be millions of short ones.
        if index % ASK_EVERY_MESSAGES == 0 && !check() {
            return Err(Error::interrupted());
        }
        let view = MessageView::original(transcript, index);
        per_message.push(counter.count_message(&view, check).map_err(|error| error.at(index))?);
    }
    let Accuracy { kind, error_permille } = counter.accuracy().and(framing.accuracy(transcript));
    Ok(Counts { per_message, overhead: framing.request, kind, error_permille })
}

/// Whether a transcript plus `more` tokens has at most `limit`. Stops at the first message beyond it.
///
/// # Errors
/// Those of [`Counter::count`], located at the message.
pub fn transcript_fits(
    counter: &dyn Counter,
    transcript: &Transcript,
    more: u64,
    limit: u64,
    check: Interrupt<'_>,
) -> Result<bool> {
    let overhead = counter.framing(transcript.framing).request;
    let mut total = u64::from(overhead) + more;
    for index in 0..transcript.len() {
        if total > limit {
            return Ok(false);
        }
        let view = MessageView::original(transcript, index);
        total += u64::from(counter.count_message(&view, check).map_err(|error| error.at(index))?);
    }
    Ok(total <= limit)
}

/// Tokens of a message.
#[derive(Clone, Copy, Debug)]
pub struct MessageTokens {
    /// All of them: its texts, the repeated names of called tools, and the framing.
    pub total: u64,
    /// Those of its texts.
    pub texts: u64,
    /// The same by kind of part, in the counter's encoding.
    pub encoded: PartSums,
}

/// Tokens of a message: its texts, the repeated names of called tools, and the framing.
///
/// # Errors
/// Those of the counter.
#[inline]
pub fn message_tokens<'a>(
    counter: &(impl Counter + ?Sized),
    cost: &FramingCost,
    texts: impl Iterator<Item = PartText<'a>> + Clone,
    around: &MessageFraming,
    check: Interrupt<'_>,
) -> Result<MessageTokens> {
    // The price of encrypted pieces is part of `around`.
    let texts = texts.filter(|text| text.place.piece != PieceKind::Encrypted);
    let message_cache = counter.message_cache();
    let known = message_cache.and_then(|message_cache| {
        Some((message_cache, message_cache.texts(texts.clone(), cost.call_names)?))
    });
    let encoded = match known.and_then(|(message_cache, key)| message_cache.find(key)) {
        Some(tokens) => tokens,
        None => {
            let count = |text: &str| counter.count_encoded(text, check);
            let tokens = match cost.layout {
                Layout::Elements if elements::has_elements(texts.clone()) => elements::count(texts, count)?,
                Layout::Strings => strings::count(texts, cost.call_names, count)?,
                _ => count_apart(counter, cost.call_names, texts, check)?,
            };
            if let Some((message_cache, key)) = known {
                message_cache.keep(key, &tokens);
            }
            tokens
        }
    };
    let texts = scaled(encoded.total(), counter.permille());
    let total = texts.saturating_add(cost.of_message(around).into());
    Ok(MessageTokens { total, texts, encoded })
}

/// Tokens of texts that are counted apart, by kind of part.
#[inline(always)]
fn count_apart<'a>(
    counter: &(impl Counter + ?Sized),
    call_names: u32,
    texts: impl Iterator<Item = PartText<'a>>,
    check: Interrupt<'_>,
) -> Result<PartSums> {
    let mut tokens = PartSums::default();
    for PartText { place, text } in texts {
        let times = if place.piece == PieceKind::CallName { 1 + u64::from(call_names) } else { 1 };
        tokens.add(place.part, times.saturating_mul(counter.count_encoded(text, check)?));
    }
    Ok(tokens)
}

/// A count as the 32-bit number that arrays store.
///
/// # Errors
/// `too_many_tokens` beyond 2^32.
#[inline]
pub fn tokens_u32(total: u64) -> Result<u32> {
    u32::try_from(total).map_err(|_| too_many_tokens())
}

#[cold]
fn too_many_tokens() -> Error {
    Error::limit("too_many_tokens", "", "more than 2^32 tokens in a message")
}
