//! Counts messages while they are read, without building a transcript.
//!
//! An estimate by length sums lengths; any other counter receives references to the texts.

use crate::count::counter::{Counter, Interrupt, MessageCounts};
use crate::count::estimate::lengths::LengthSum;
use crate::count::framing::ToolPlacement;
use crate::count::messages::refs::TextRefs;
use crate::count::tools::Tool;
use crate::error::Result;
use crate::formats::{Format, read_as, read_text_as};
use crate::json::{Tape, with_document};
use crate::node::{Kind, Node};

/// A list of messages after reading.
#[derive(Debug)]
pub enum Read<T> {
    /// Counts that were estimated while reading.
    Estimated(MessageCounts, ToolPlacement),
    /// References to texts that remain to be counted.
    Texts(Box<TextRefs<T>>),
}

/// Reads an array node of messages for a counter. Without a format, detects the dialect by content.
///
/// O(bytes) for JSON; for Python objects O(values) if their texts are ASCII.
///
/// # Errors
/// Those of [`read_as`].
pub fn read<N: Node>(counter: &dyn Counter, messages: &N, format: Option<Format>) -> Result<Read<N::Text>> {
    read_at(counter, messages, format, None)
}

/// The same for the value under a key of a request. It may be a plain text, which is a single user message.
///
/// # Errors
/// Those of [`read_as`].
pub fn read_at<N: Node>(
    counter: &dyn Counter,
    messages: &N,
    format: Option<Format>,
    key: Option<&str>,
) -> Result<Read<N::Text>> {
    let is_text = key.is_some() && messages.kind() == Kind::String;
    match counter.heuristic() {
        Some(heuristic) => {
            let make = |_| LengthSum::new(heuristic);
            let (format, estimate) = match is_text {
                true => read_text_as(messages, format, key, make)?,
                false => read_as(messages, format, key, make)?,
            };
            let beside = ToolPlacement::new(format.framing(), estimate.first_role());
            Ok(Read::Estimated(estimate.finish(), beside))
        }
        None => {
            let make = |framing| TextRefs::new(framing, counter.framing(framing));
            let (_, texts) = match is_text {
                true => read_text_as(messages, format, key, make)?,
                false => read_as(messages, format, key, make)?,
            };
            Ok(Read::Texts(Box::new(texts)))
        }
    }
}

impl<T: std::ops::Deref<Target = str>> Read<T> {
    /// Bytes of text that remain to be counted.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Read::Estimated(..) => 0,
            Read::Texts(texts) => texts.bytes(),
        }
    }

    /// Counts the messages and the tool schemas sent with them. O(bytes).
    ///
    /// # Errors
    /// Those of [`Counter::count`], located at the message.
    pub fn count(
        &self,
        counter: &dyn Counter,
        tools: &[Tool],
        check: Interrupt<'_>,
    ) -> Result<MessageCounts> {
        let (mut counts, beside) = match self {
            Read::Estimated(counts, beside) => (counts.clone(), *beside),
            Read::Texts(texts) => (texts.count(counter, check)?, texts.beside()),
        };
        if !tools.is_empty() {
            let (tokens, accuracy) = counter.count_tools(tools, beside, check)?;
            counts.counts.add_overhead(tokens, accuracy)?;
        }
        Ok(counts)
    }
}

/// Counts the messages of a JSON array. O(bytes).
///
/// # Errors
/// `bad_json`, and those of [`read`] and [`Read::count`].
pub fn count_json(
    counter: &dyn Counter,
    json: &[u8],
    format: Option<Format>,
    tools: &[Tool],
    check: Interrupt<'_>,
) -> Result<MessageCounts> {
    match Tape::parse(json, check)? {
        Some(tape) => read(counter, &tape.root(), format)?.count(counter, tools, check),
        None => with_document(json, |node| read(counter, &node, format)?.count(counter, tools, check))?,
    }
}
