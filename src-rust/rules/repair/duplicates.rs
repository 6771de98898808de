//! Removes Responses items that are in the list already, and separates different items with one id.
//!
//! Calls with one `call_id` are told apart by [`super::ids`], once each has its output.

use std::collections::{HashMap, HashSet};

use super::Task;
use super::actions::{DUPLICATE_REMOVED, ID_REWRITTEN, ITEM_ID_REMOVED};
use super::draft::{Block, Draft, Sketch, checked};
use super::ids::Names;
use crate::rules::validate::Provider;
use crate::transcript::{KeyId, PartKind};

pub(super) fn repair(task: &Task<'_>) -> Sketch {
    let mut sketch = Sketch::default();
    if task.provider != Provider::OpenAiResponses {
        return sketch;
    }
    let own = task.shapes.iter().filter_map(|shape| shape.id.clone());
    let mut names = Names::beside(task.transcript, own);
    let mut ids: HashSet<&str> = HashSet::new();
    let mut known: HashSet<u128> = HashSet::new();
    let mut calls = Calls::of(task);
    for (i, shape) in task.shapes.iter().enumerate() {
        let is_new = shape.id.as_deref().is_none_or(|id| ids.insert(id));
        let hash = (task.hash_of)(i);
        let is_known = hash.is_some_and(|hash| !known.insert(hash));
        if is_known && (!is_new || calls.has_too_many(task, i)) {
            sketch.actions.push(DUPLICATE_REMOVED.at(i));
            continue;
        }
        let mut draft = Draft::whole(i);
        if let Some(id) = shape.id.as_deref().filter(|_| !is_new) {
            let id = shape.needs_id.then(|| names.new_for(id));
            sketch.actions.push(if id.is_some() { ID_REWRITTEN } else { ITEM_ID_REMOVED }.at(i));
            draft.blocks = vec![Block::WithItemId(i, id)];
        }
        sketch.drafts.push(draft);
    }
    sketch
}

/// For each id, how many more calls than outputs there are.
struct Calls(HashMap<KeyId, isize>);

impl Calls {
    fn of(task: &Task<'_>) -> Self {
        let mut left: HashMap<KeyId, isize> = HashMap::new();
        for i in 0..task.transcript.len() {
            for (kind, step) in [(PartKind::ToolCall, 1), (PartKind::ToolResult, -1)] {
                for at in checked(task.transcript, i, kind) {
                    if let Some(key) = task.transcript.parts[at].key {
                        *left.entry(key).or_default() += step;
                    }
                }
            }
        }
        Calls(left)
    }

    /// Whether item `i` is a call with an id that more calls than outputs have; it then counts as removed.
    fn has_too_many(&mut self, task: &Task<'_>, i: usize) -> bool {
        let call = checked(task.transcript, i, PartKind::ToolCall).next();
        let left = call.and_then(|at| task.transcript.parts[at].key).and_then(|key| self.0.get_mut(&key));
        left.is_some_and(|left| {
            *left -= 1;
            *left >= 0
        })
    }
}
