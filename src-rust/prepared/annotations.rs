//! The caller's annotations of messages: pins, importance, origin.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{Error, Result};
use crate::rules::{Pins, check_importance, check_index};
use crate::transcript::PIN_IMPORTANCE;

/// The origin of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// The conversation.
    #[default]
    Original,
    /// A fold: the summary of folded messages.
    CompactedSynthetic,
    /// A fold: a message whose results were cleared or shortened.
    CompactedModified,
    /// Outside: earlier history that was retrieved.
    RetrievedHistory,
}

impl Origin {
    /// Every origin with its public name.
    pub const ALL: &'static [(&'static str, Origin)] = &[
        ("original", Origin::Original),
        ("compacted_synthetic", Origin::CompactedSynthetic),
        ("compacted_modified", Origin::CompactedModified),
        ("retrieved_history", Origin::RetrievedHistory),
    ];

    /// The public name.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, origin)| *origin == self).map_or("", |(name, _)| name)
    }

    /// The origin with this name.
    ///
    /// # Errors
    /// `bad_origin`.
    pub fn from_name(name: &str) -> Result<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, origin)| *origin).ok_or_else(|| {
            let known: Vec<&str> = Self::ALL.iter().map(|(name, _)| *name).collect();
            Error::config("bad_origin", "origins", format!("is one of {}", known.join(", ")))
        })
    }
}

/// Pins, importance and origins by index. A message without annotations is neutral.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Annotations {
    pinned: BTreeSet<usize>,
    importance: BTreeMap<usize, f64>,
    origins: BTreeMap<usize, Origin>,
}

impl Annotations {
    /// The annotations equal to `pins`, the form the rules take.
    #[must_use]
    pub fn from_pins(pins: &Pins) -> Self {
        Annotations {
            pinned: pins.indices.iter().copied().collect(),
            importance: pins.importance.iter().copied().collect(),
            origins: pins.summaries.iter().map(|&index| (index, Origin::CompactedSynthetic)).collect(),
        }
    }

    /// Whether a message is pinned, explicitly or by its importance.
    #[must_use]
    pub fn is_pinned(&self, message: usize) -> bool {
        self.pinned.contains(&message) || self.importance(message) >= PIN_IMPORTANCE
    }

    /// The importance of a message; 0 is neutral.
    #[must_use]
    pub fn importance(&self, message: usize) -> f64 {
        self.importance.get(&message).copied().unwrap_or(0.0)
    }

    /// The origin of a message.
    #[must_use]
    pub fn origin(&self, message: usize) -> Origin {
        self.origins.get(&message).copied().unwrap_or_default()
    }

    /// Pins or unpins message `index` of `count`.
    ///
    /// # Errors
    /// `index_out_of_range`.
    pub fn set_pin(&mut self, index: usize, is_pinned: bool, count: usize) -> Result<usize> {
        check_index(index, count, "pins")?;
        if is_pinned {
            self.pinned.insert(index);
        } else {
            self.pinned.remove(&index);
        }
        Ok(index)
    }

    /// Sets the importance of message `index` of `count`.
    ///
    /// # Errors
    /// `index_out_of_range`, `bad_importance`.
    pub fn set_importance(&mut self, index: usize, importance: f64, count: usize) -> Result<usize> {
        check_importance(importance)?;
        check_index(index, count, "importance")?;
        self.importance.insert(index, importance);
        Ok(index)
    }

    /// Sets the origin of message `index` of `count`.
    ///
    /// # Errors
    /// `index_out_of_range`.
    pub fn set_origin(&mut self, index: usize, origin: Origin, count: usize) -> Result<usize> {
        check_index(index, count, "origins")?;
        self.origins.insert(index, origin);
        Ok(index)
    }

    /// The annotations in the form the rules take.
    #[must_use]
    pub fn pins(&self) -> Pins {
        let is_summary = |(_, origin): &(&usize, &Origin)| **origin == Origin::CompactedSynthetic;
        Pins {
            indices: self.pinned.iter().copied().collect(),
            matched: Vec::new(),
            importance: self.importance.iter().map(|(&index, &importance)| (index, importance)).collect(),
            summaries: self.origins.iter().filter(is_summary).map(|(&index, _)| index).collect(),
        }
    }

    /// The annotations of the first `messages` messages.
    #[must_use]
    pub fn truncated(&self, messages: usize) -> Self {
        self.moved(|index| (index < messages).then_some(index))
    }

    /// The annotations after the messages have moved; `place` returns the new index, or `None` for removed messages.
    #[must_use]
    pub fn moved(&self, place: impl Fn(usize) -> Option<usize>) -> Self {
        Annotations {
            pinned: self.pinned.iter().filter_map(|&index| place(index)).collect(),
            importance: self.importance.iter().filter_map(|(&i, &value)| Some((place(i)?, value))).collect(),
            origins: self.origins.iter().filter_map(|(&i, &origin)| Some((place(i)?, origin))).collect(),
        }
    }
}
