//! Messages from entries with a content block each.

use std::collections::HashMap;

use crate::node::{Key, Kind, Node};

/// A content block of an entry; `block` is `None` if the content is one string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRef {
    /// Index of the entry.
    pub entry: usize,
    /// Index of the block in the entry's content.
    pub block: Option<usize>,
}

/// A message assembled from blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assembled {
    /// `user` or `assistant`.
    pub role: &'static str,
    /// Its blocks, results first.
    pub blocks: Vec<BlockRef>,
}

/// One conversation: the main one, or that of the sub-agents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thread {
    /// The messages in order.
    pub messages: Vec<Assembled>,
    /// Indices of messages before which the session was compacted.
    pub compact_boundaries: Vec<usize>,
    /// Indices of messages that summarize the messages before a boundary.
    pub summaries: Vec<usize>,
}

/// The blocks of an entry's content.
pub(super) fn blocks_of<N: Node>(entry: usize, content: Option<&N>) -> Vec<(BlockRef, Option<N>)> {
    let Some(list) = content.filter(|content| content.kind() == Kind::Array) else {
        return vec![(BlockRef { entry, block: None }, None)];
    };
    let blocks = list.items().into_iter().enumerate();
    blocks.map(|(b, block)| (BlockRef { entry, block: Some(b) }, Some(block))).collect()
}

/// A message under construction, with the user message that answers it.
#[derive(Debug, Default)]
struct PartialTurn {
    role: &'static str,
    blocks: Vec<BlockRef>,
    is_summary: bool,
    /// Results of this message's calls, and the blocks next to them.
    results: Vec<BlockRef>,
    beside_results: Vec<BlockRef>,
}

/// The turns of a thread, from its entries in order: parallel results return to the message of their calls.
#[derive(Debug, Default)]
pub(super) struct TurnBuilder {
    partial_turns: Vec<PartialTurn>,
    /// Index of the strand of each assistant message id.
    by_message_id: HashMap<String, usize>,
    /// Index of the strand of the newest call with an id.
    by_call_id: HashMap<String, usize>,
    boundaries: Vec<usize>,
}

impl TurnBuilder {
    /// Marks a boundary of a compaction.
    pub(super) fn boundary(&mut self) {
        self.boundaries.push(self.partial_turns.len());
    }

    /// Reserves a place for a message of the user that may follow; returns its turn.
    pub(super) fn reserve(&mut self) -> usize {
        self.partial_turns.push(PartialTurn { role: "user", ..PartialTurn::default() });
        self.partial_turns.len() - 1
    }

    /// Puts a message into its reserved place.
    pub(super) fn fill<N>(&mut self, turn: usize, blocks: Vec<(BlockRef, Option<N>)>) {
        if let Some(turn) = self.partial_turns.get_mut(turn) {
            turn.blocks = blocks.into_iter().map(|(block_ref, _)| block_ref).collect();
        }
    }

    /// Adds the blocks of an entry.
    pub(super) fn weave<N: Node>(&mut self, entry_index: usize, role: &'static str, entry: &N, message: &N) {
        let content = message.get_some(Key::CONTENT);
        let blocks = blocks_of(entry_index, content.as_ref());
        if role == "assistant" {
            self.weave_assistant(message.text_of(Key::ID), &blocks);
        } else {
            self.weave_user(entry.is_true(Key::IS_COMPACT_SUMMARY), &blocks);
        }
    }

    fn weave_assistant<N: Node>(&mut self, message_id: Option<String>, blocks: &[(BlockRef, Option<N>)]) {
        let known = message_id.as_ref().and_then(|id| self.by_message_id.get(id).copied());
        let at = known.unwrap_or_else(|| {
            self.partial_turns.push(PartialTurn { role: "assistant", ..PartialTurn::default() });
            self.partial_turns.len() - 1
        });
        if let Some(id) = message_id {
            self.by_message_id.insert(id, at);
        }
        for (block_ref, block) in blocks {
            self.partial_turns[at].blocks.push(*block_ref);
            if let Some(id) =
                block.as_ref().filter(|b| b.text_is(Key::TYPE, "tool_use")).and_then(|b| b.text_of(Key::ID))
            {
                self.by_call_id.insert(id, at);
            }
        }
    }

    /// Adds the blocks of a message of the user: results to the message of their calls, the others as a message.
    pub(super) fn weave_user<N: Node>(&mut self, is_summary: bool, blocks: &[(BlockRef, Option<N>)]) {
        let mut answered = None;
        let mut rest = Vec::new();
        for (block_ref, block) in blocks {
            let call = block
                .as_ref()
                .filter(|block| block.text_is(Key::TYPE, "tool_result"))
                .and_then(|block| block.text_of(Key::TOOL_USE_ID))
                .and_then(|id| self.by_call_id.remove(&id));
            match call {
                Some(partial_turn) => {
                    self.partial_turns[partial_turn].results.push(*block_ref);
                    answered = Some(partial_turn);
                }
                None => rest.push(*block_ref),
            }
        }
        match answered {
            // Blocks next to a result stay in its message, after all results.
            Some(partial_turn) => self.partial_turns[partial_turn].beside_results.extend(rest),
            None => {
                self.partial_turns.push(PartialTurn {
                    role: "user",
                    blocks: rest,
                    is_summary,
                    ..PartialTurn::default()
                });
            }
        }
    }

    /// The messages.
    pub(super) fn finish(self) -> Thread {
        let mut thread = Thread::default();
        let mut boundaries = self.boundaries.into_iter().peekable();
        let count = self.partial_turns.len();
        for (i, partial_turn) in self.partial_turns.into_iter().enumerate() {
            while boundaries.next_if(|&at| at <= i).is_some() {
                thread.compact_boundaries.push(thread.messages.len());
            }
            if partial_turn.is_summary {
                thread.summaries.push(thread.messages.len());
            }
            if !partial_turn.blocks.is_empty() {
                thread.messages.push(Assembled { role: partial_turn.role, blocks: partial_turn.blocks });
            }
            if !partial_turn.results.is_empty() {
                let blocks = [partial_turn.results, partial_turn.beside_results].concat();
                thread.messages.push(Assembled { role: "user", blocks });
            }
        }
        thread.compact_boundaries.extend(boundaries.filter(|&at| at >= count).map(|_| thread.messages.len()));
        thread
    }
}
