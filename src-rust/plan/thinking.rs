//! Preserved thinking: where a provider binds thinking to everything before it, and what a plan does about that.
//!
//! Newer models of Anthropic check, for every block of thinking that comes back, that nothing before it has changed. A
//! summary in front of it, or a cleared result, is such a change. The request is then rejected, unless the thinking is
//! left out or the provider is asked to leave it out (`thinking.block_binding.prefix_mismatch_behavior` =
//! `drop_block`). Of the latest message of the model within a tool loop the thinking must not be touched.

use super::model::Warning;
use crate::error::{Error, Result};
use crate::formats::Format;
use crate::rules::Structure;
use crate::transcript::{MessageSource, Part, PartKind, Role};

/// The code of the warning that thinking stays behind a change.
pub const THINKING_BOUND: &str = "thinking_bound";

/// What becomes of thinking that stays behind a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThinkingRule {
    /// It stays; the plan warns.
    #[default]
    Keep,
    /// It goes, but for that of a running tool loop.
    Strip,
    /// It is folded too: the cut moves on until no thinking stays behind it. Where that cannot be, nothing is folded,
    /// unless a budget asks for it.
    Fold,
}

impl ThinkingRule {
    /// The rule of that name.
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

/// Where messages hold thinking that a provider may bind.
pub(super) struct Thinking<'a> {
    pub source: &'a dyn MessageSource,
    pub structure: &'a Structure,
    /// Messages with thinking, ascending; none where the provider binds nothing.
    messages: &'a [u32],
}

/// What is done about thinking.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Treated {
    /// Messages that stay without their thinking.
    pub stripped: Vec<usize>,
    /// The first message whose thinking stays behind a change.
    pub bound: Option<usize>,
}

impl<'a> Thinking<'a> {
    /// That of Anthropic messages; the thinking of others is not bound.
    pub fn of(source: &'a dyn MessageSource, structure: &'a Structure, format: Format) -> Self {
        let messages = if format == Format::Anthropic { &structure.thinking[..] } else { &[] };
        Thinking { source, structure, messages }
    }

    /// Messages with thinking from `from` on.
    fn behind(&self, from: usize) -> impl DoubleEndedIterator<Item = usize> + '_ {
        let first = self.messages.partition_point(|&i| (i as usize) < from);
        self.messages[first..].iter().map(|&i| i as usize)
    }

    /// The first legal cut, at or behind one that folds something, behind which no thinking stays; or the message that
    /// is in the way. `limit` is the last cut that may be taken. O(thinking messages).
    pub fn cut_behind(&self, cut: usize, limit: usize) -> std::result::Result<usize, usize> {
        let structure = self.structure;
        if let Some(kept) = self.behind(structure.head).find(|&i| !structure.counts(i)) {
            return Err(kept);
        }
        let Some(last) = self.behind(cut).next_back() else { return Ok(cut) };
        let found = structure.legal_at_or_behind(last + 1).filter(|&k| k <= limit);
        found.ok_or_else(|| self.behind(cut).next().unwrap_or(last))
    }

    /// Thinking that stays at or behind the first change, where `cut` folds what counts before it.
    fn staying(&self, changed: usize, cut: usize) -> impl Iterator<Item = usize> + '_ {
        let exceptions = &self.structure.exceptions;
        let from = exceptions.partition_point(|&i| (i as usize) < changed);
        let before_cut = exceptions[from..].iter().copied().take_while(move |&i| (i as usize) < cut);
        let stays = |i: &u32| !self.structure.counts(*i as usize) && self.messages.binary_search(i).is_ok();
        before_cut.filter(stays).map(|i| i as usize).chain(self.behind(changed.max(cut)))
    }

    /// What is done about thinking behind the first change. `may_strip` tells whether a message may lose its thinking.
    /// O(messages that do not count before the cut, and thinking messages behind it where it is stripped).
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

    /// The latest message of the model, where it called tools and nothing but results came since. O(those).
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
