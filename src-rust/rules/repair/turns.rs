//! Separates two turns of one side in a row: joins them if possible, else inserts a message of the other side. Gemini
//! requires this of the model, Bedrock and strict alternation of both sides.

use super::Task;
use super::actions::{MERGED, TURN_ADDED};
use super::draft::{Block, Draft, Sketch};
use crate::rules::roles::{Side, side};
use crate::rules::validate::Provider;
use crate::transcript::{PartKind, Role};

pub(super) fn repair(task: &Task<'_>) -> Sketch {
    let alternate = task.options.strict.alternate || task.provider == Provider::Bedrock;
    if !alternate && task.provider != Provider::Gemini {
        return Sketch::default();
    }
    let mut turns = Turns { task, sketch: Sketch::default(), last: None };
    for i in 0..task.transcript.len() {
        match (side(task.transcript, i), turns.last) {
            (Some(now), Some((at, last))) if now == last && (alternate || now == Side::Model) => {
                turns.separate(i, now, at);
            }
            (Some(now), _) => {
                turns.sketch.drafts.push(Draft::whole(i));
                turns.last = Some((turns.sketch.drafts.len() - 1, now));
            }
            (None, _) => turns.sketch.drafts.push(Draft::whole(i)),
        }
    }
    turns.sketch
}

struct Turns<'a> {
    task: &'a Task<'a>,
    sketch: Sketch,
    /// The newest draft that takes a turn, with its side.
    last: Option<(usize, Side)>,
}

impl Turns<'_> {
    /// Adds message `i`, of the same side as the draft `at` before it.
    fn separate(&mut self, i: usize, now: Side, at: usize) {
        let task = self.task;
        let drafts = &mut self.sketch.drafts;
        let is_plain = |draft: &Draft| {
            // Only plain messages are joined, so the last one tells of all.
            matches!(draft.blocks.last(), Some(Block::All(message)) if task.shapes[*message].is_plain)
        };
        if at + 1 == drafts.len() && is_plain(&drafts[at]) && task.shapes[i].is_plain {
            drafts[at].blocks.push(Block::All(i));
            self.sketch.actions.push(MERGED.at(i));
            return;
        }
        // A text of the model before its calls belongs to the message with the calls.
        let calls = drafts.get(at + 1).and_then(Draft::unchanged).filter(|&next| has_calls(task, next));
        if let Some(next) = calls.filter(|&next| now == Side::Model && task.shapes[next].is_plain)
            && is_plain(&drafts[at])
            && task.provider == Provider::OpenAiChat
        {
            let mut blocks = drafts[at].blocks.clone();
            blocks.push(Block::All(next));
            drafts[at + 1].blocks = blocks;
            let gone = drafts.remove(at);
            self.sketch.actions.push(MERGED.at(gone.about));
        } else {
            let (place, other) = (if now == Side::Model { at + 1 } else { drafts.len() }, now.other());
            drafts.insert(place, Draft::new(i, other.role(), vec![Block::Note(other.filler())]));
            self.sketch.actions.push(TURN_ADDED.at(i));
        }
        self.sketch.drafts.push(Draft::whole(i));
        self.last = Some((self.sketch.drafts.len() - 1, now));
    }
}

fn has_calls(task: &Task<'_>, i: usize) -> bool {
    let transcript = task.transcript;
    transcript.messages[i].role == Role::Assistant
        && transcript.parts_of(i).iter().any(|part| part.kind == PartKind::ToolCall)
}
