//! Preserved thinking: a provider may bind it to everything before it; a plan warns, strips or folds.
//!
//! Newer models of Anthropic check, for every block of thinking sent back, that nothing before it has changed. A
//! summary or a cleared result before it is such a change. The provider then rejects the request, unless the thinking
//! is left out or the request asks the provider to drop it (`thinking.block_binding.prefix_mismatch_behavior` =
//! `drop_block`). Within a tool loop, the thinking of the model's latest message must not be changed.

use super::model::Warning;
use crate::error::{Error, Result};
use crate::formats::Format;
use crate::rules::Structure;
use crate::transcript::{MessageSource, Part, PartKind, Role};

/// The code of the warning that thinking stays after a change.
pub const THINKING_BOUND: &str = "thinking_bound";

/// The treatment of thinking that stays after a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThinkingRule {
    /// It stays; the plan warns.
    #[default]
    Keep,
    /// It is stripped, except in a running tool loop.
    Strip,
    /// It is folded: the cut moves on until no thinking stays after it. If that is impossible, nothing is folded,
    /// unless a budget requires it.
    Fold,
}

impl ThinkingRule {
    /// The rule with this name.
    ///
    /// # Errors
    /// `bad_thinking`.
    pub fn from_name(name: &str) -> Result<Self> {
        match name {
            "keep" => Ok(ThinkingRule::Keep),
            "strip" => Ok(ThinkingRule::Strip),
            "fold" => Ok(ThinkingRule::Fold),
            _ => Err(Error::config("bad_thinking", "thinking", "is one of keep, strip, fold")),
        }
    }
}

/// The messages with thinking that a provider may bind.
pub(super) struct Thinking<'a> {
    pub source: &'a dyn MessageSource,
    pub structure: &'a Structure,
    /// Messages with thinking, ascending; empty if the provider binds nothing.
    messages: &'a [u32],
}

/// The treatment of the thinking after a change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Treated {
    /// Messages that stay without their thinking.
    pub stripped: Vec<usize>,
    /// The first message whose thinking stays after a change.
    pub bound: Option<usize>,
}

impl<'a> Thinking<'a> {
    /// The bound thinking of Anthropic messages; that of other formats is not bound.
    pub fn of(source: &'a dyn MessageSource, structure: &'a Structure, format: Format) -> Self {
        let messages = if format == Format::Anthropic { &structure.thinking[..] } else { &[] };
        Thinking { source, structure, messages }
    }

    /// Messages with thinking from `from` on.
    fn behind(&self, from: usize) -> impl DoubleEndedIterator<Item = usize> + '_ {
        let first = self.messages.partition_point(|&i| (i as usize) < from);
        self.messages[first..].iter().map(|&i| i as usize)
    }

    /// The first legal cut from `cut` on after which no thinking stays, or the message that prevents it. `limit` is the
    /// last cut allowed. O(thinking messages).
    pub fn cut_behind(&self, cut: usize, limit: usize) -> std::result::Result<usize, usize> {
        let structure = self.structure;
        if let Some(kept) = self.behind(structure.head).find(|&i| !structure.counts(i)) {
            return Err(kept);
        }
        let Some(last) = self.behind(cut).next_back() else { return Ok(cut) };
        let found = structure.legal_at_or_behind(last + 1).filter(|&k| k <= limit);
        found.ok_or_else(|| self.behind(cut).next().unwrap_or(last))
    }

    /// Thinking that stays at or after the first change, given the cut.
    fn staying(&self, changed: usize, cut: usize) -> impl Iterator<Item = usize> + '_ {
        let exceptions = &self.structure.exceptions;
        let from = exceptions.partition_point(|&i| (i as usize) < changed);
        let before_cut = exceptions[from..].iter().copied().take_while(move |&i| (i as usize) < cut);
        let stays = |i: &u32| !self.structure.counts(*i as usize) && self.messages.binary_search(i).is_ok();
        before_cut.filter(stays).map(|i| i as usize).chain(self.behind(changed.max(cut)))
    }

    /// Treats the thinking after the first change. `may_strip` returns whether a message may lose its thinking.
    /// O(messages that do not count before the cut), plus thinking messages after it if they are stripped.
    pub fn treat(
        &self,
        rule: ThinkingRule,
        first_changed: Option<usize>,
        cut: usize,
        mut may_strip: impl FnMut(usize) -> Result<bool>,
    ) -> Result<Treated> {
        let mut treated = Treated::default();
        let Some(changed) = first_changed else { return Ok(treated) };
        if rule != ThinkingRule::Strip {
            treated.bound = self.staying(changed, cut).next();
            return Ok(treated);
        }
        let in_loop = self.latest_in_loop();
        for i in self.staying(changed, cut) {
            if in_loop != Some(i) && may_strip(i)? {
                treated.stripped.push(i);
            } else {
                treated.bound = treated.bound.or(Some(i));
            }
        }
        Ok(treated)
    }

    /// The model's latest message, if it called tools and only results followed. O(those).
    fn latest_in_loop(&self) -> Option<usize> {
        let is_latest = |i: &usize| {
            let (transcript, index) = self.source.at(*i);
            transcript.messages[index].role == Role::Assistant
        };
        let from = (0..self.structure.len()).rev().find(|&i| !self.structure.is_result[i])?;
        let latest = (from..self.structure.len()).rev().find(is_latest)?;
        let (transcript, index) = self.source.at(latest);
        let is_call = |part: &Part| part.kind == PartKind::ToolCall && !part.is_unchecked;
        transcript.parts_of(index).iter().any(is_call).then_some(latest)
    }
}

impl Treated {
    pub fn warning(&self) -> Option<Warning> {
        self.bound.map(|index| Warning { code: THINKING_BOUND.to_owned(), index: Some(index) })
    }
}
