//! Repairs contents that are not a list of blocks; empty lists of calls, empty names and absent content; and marks for
//! the prompt cache, of which there are too many.

use super::Task;
use super::actions::{CACHE_MARKS_REMOVED, CONTENT_ADDED, CONTENT_AS_LIST, EMPTY_REMOVED};
use super::draft::{Block, Draft, Sketch};
use crate::rules::validate::{ChatService, MAX_CACHE_MARKS, Provider, head_of};

pub(super) fn content(task: &Task<'_>) -> Sketch {
    let head = head_of(task.transcript, task.provider);
    let mut sketch = Sketch::default();
    for (i, shape) in task.shapes.iter().enumerate() {
        let mut draft = Draft::whole(i);
        if i >= head && shape.has_bad_content {
            draft.blocks = vec![Block::Listed(i)];
            sketch.actions.push(CONTENT_AS_LIST.at(i));
        }
        sketch.drafts.push(draft);
    }
    sketch
}

pub(super) fn repair(task: &Task<'_>) -> Sketch {
    match task.provider {
        Provider::OpenAiChat | Provider::OpenAiResponses => members(task),
        Provider::Anthropic | Provider::Bedrock => marks(task),
        Provider::Gemini => Sketch::default(),
    }
}

fn members(task: &Task<'_>) -> Sketch {
    let mut sketch = Sketch::default();
    let accepts_no_calls = task.options.strict.service == Some(ChatService::Mistral);
    for (i, shape) in task.shapes.iter().enumerate() {
        let has_nothing = shape.is_plain && task.transcript.part_range(i).is_empty();
        if shape.lacks_content && has_nothing {
            sketch.actions.push(EMPTY_REMOVED.at(i));
            continue;
        }
        let wrong = [
            (shape.has_empty_calls && !accepts_no_calls, EMPTY_REMOVED),
            (shape.has_empty_name, EMPTY_REMOVED),
            (shape.lacks_content, CONTENT_ADDED),
        ];
        let before = sketch.actions.len();
        sketch
            .actions
            .extend(wrong.into_iter().filter(|(is_wrong, _)| *is_wrong).map(|(_, kind)| kind.at(i)));
        let mut draft = Draft::whole(i);
        if sketch.actions.len() > before {
            draft.blocks = vec![Block::Tidied(i)];
        }
        sketch.drafts.push(draft);
    }
    sketch
}

/// Removes the oldest marks: the newest ones cover the longest beginnings of the list.
fn marks(task: &Task<'_>) -> Sketch {
    let marks: usize = task.shapes.iter().map(|shape| shape.cache_marks).sum();
    let mut left = marks.saturating_sub(MAX_CACHE_MARKS);
    let mut sketch = Sketch::default();
    for (i, shape) in task.shapes.iter().enumerate() {
        let mut draft = Draft::whole(i);
        let removed = left.min(shape.cache_marks);
        if removed > 0 {
            left -= removed;
            draft.blocks = vec![Block::Unmarked(i, removed)];
            sketch.actions.push(CACHE_MARKS_REMOVED.at(i));
        }
        sketch.drafts.push(draft);
    }
    sketch
}
