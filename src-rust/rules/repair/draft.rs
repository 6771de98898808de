//! Drafts: descriptions of the messages of a repaired list by their sources.

use std::collections::HashMap;

use super::Task;
use super::actions::RepairAction;
use crate::rules::shape::Shape;
use crate::rules::validate::Provider;
use crate::transcript::{KeyId, Part, PartKind, Role, Transcript};

/// A piece of a new message.
///
/// A unit moves as a whole: an Anthropic block, a Gemini part, a Responses item. In OpenAI chat unit 0 is the message
/// without its calls, and unit 1 + n the n-th item in its list of calls.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Block {
    /// A complete message.
    All(usize),
    /// A unit of a message, unchanged.
    Unit(usize, usize),
    /// A unit with another id.
    WithId(usize, usize, String),
    /// A result of OpenAI chat for several calls, with some of its ids, by their places in the list.
    WithIds(usize, Vec<usize>),
    /// A result of OpenAI chat for several calls, with other ids at some places of the list.
    NewIds(usize, Vec<(usize, String)>),
    /// A Responses item with another id of its own, or without one.
    WithItemId(usize, Option<String>),
    /// A call, or a response of Gemini, with another name.
    WithName(usize, usize, String),
    /// A result of a failed call at Anthropic or Bedrock, with a text that says so.
    WithErrorText(usize, usize),
    /// A message without an empty list of calls and an empty name; with an empty text if it lacks content.
    Tidied(usize),
    /// A message whose content is a list of objects.
    Listed(usize),
    /// A message of OpenAI chat whose text is the plan of its calls, as Cohere has it.
    Planned(usize),
    /// A message of Anthropic or Bedrock without its first marks for the prompt cache, this many.
    Unmarked(usize, usize),
    /// A call or a result as text.
    AsText(usize, usize),
    /// A synthesized result for this call, which has none.
    Answer(usize, usize),
    /// A fixed text.
    Note(&'static str),
}

/// A message of the new list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// The message it stems from, for reports of its origin.
    pub about: usize,
    /// The message whose fields it takes; `None` if it has only role and content.
    pub base: Option<usize>,
    /// Its role, if it differs from that of its base.
    pub role: Option<Role>,
    /// Its content.
    pub blocks: Vec<Block>,
}

impl Draft {
    /// An unchanged message.
    pub fn whole(i: usize) -> Self {
        Draft { about: i, base: Some(i), role: None, blocks: vec![Block::All(i)] }
    }

    /// An added message.
    pub fn new(about: usize, role: Role, blocks: Vec<Block>) -> Self {
        Draft { about, base: None, role: Some(role), blocks }
    }

    /// The message it equals, if it is unchanged.
    #[must_use]
    pub fn unchanged(&self) -> Option<usize> {
        match (self.base, self.role, self.blocks.as_slice()) {
            (Some(base), None, [Block::All(all)]) if *all == base => Some(base),
            _ => None,
        }
    }
}

/// The result of a pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sketch {
    /// The new list.
    pub drafts: Vec<Draft>,
    /// The repairs made; empty if the list is unchanged.
    pub actions: Vec<RepairAction>,
}

/// For each part of message `i`, the index of its unit.
///
/// A part is a unit, except for media in a Gemini response, which are separate parts of a transcript.
#[must_use]
pub fn units(transcript: &Transcript, provider: Provider, i: usize, shape: &Shape) -> Vec<usize> {
    let parts = transcript.parts_of(i);
    match (provider, shape.blocks) {
        (Provider::OpenAiChat, _) => {
            // The items of the list of calls are parts in their order, and come last but for a call in the older form.
            let is_older =
                parts.last().is_some_and(|part| part.kind == PartKind::ToolCall && part.is_unchecked);
            let end = parts.len() - usize::from(is_older);
            let is_listed = transcript.messages[i].role != Role::Tool;
            let start = end.saturating_sub(if is_listed { shape.calls } else { 0 });
            (0..parts.len()).map(|at| if (start..end).contains(&at) { at - start + 1 } else { 0 }).collect()
        }
        (Provider::OpenAiResponses, _) | (_, None) => vec![0; parts.len()],
        (_, Some(blocks)) if blocks == parts.len() => (0..blocks).collect(),
        (_, Some(blocks)) => units_by_slots(parts, blocks),
    }
}

/// Units of a message whose results have media: a result names its block.
fn units_by_slots(parts: &[Part], blocks: usize) -> Vec<usize> {
    let place = |part: &Part| part.slot.and_then(|slot| slot.item).map(|(_, at)| at as usize);
    let mut units = Vec::with_capacity(parts.len());
    let (mut at, mut media) = (0, 0);
    for (p, part) in parts.iter().enumerate() {
        if let Some(found) = place(part) {
            let next = parts[p + 1..].iter().position(|part| place(part).is_some());
            let between = next.unwrap_or(parts.len() - p - 1);
            let end = next.and_then(|next| place(&parts[p + 1 + next])).unwrap_or(blocks);
            media = (between + found + 1).saturating_sub(end);
            at = found;
        } else if media > 0 {
            media -= 1;
            units.push(at.saturating_sub(1));
            continue;
        }
        units.push(at.min(blocks.saturating_sub(1)));
        at += 1;
    }
    units
}

/// A draft of message `i` in which `edit` replaces units by their first parts.
pub(super) fn edited(task: &Task<'_>, i: usize, edit: impl Fn(usize, usize) -> Option<Block>) -> Draft {
    let units = units(task.transcript, task.provider, i, &task.shapes[i]);
    let is_chat = task.provider == Provider::OpenAiChat;
    let (mut blocks, mut previous) = (Vec::with_capacity(units.len()), None);
    if is_chat {
        blocks.push(Block::Unit(i, 0));
        previous = Some(0);
    }
    for (at, unit) in task.transcript.part_range(i).zip(units) {
        if previous.replace(unit) != Some(unit) && !(is_chat && unit == 0) {
            blocks.push(edit(at, unit).unwrap_or(Block::Unit(i, unit)));
        }
    }
    Draft { blocks, ..Draft::whole(i) }
}

/// Parts of message `i` that its API pairs, by index in the transcript.
pub(super) fn checked(
    transcript: &Transcript,
    i: usize,
    kind: PartKind,
) -> impl Iterator<Item = usize> + Clone + '_ {
    transcript.part_range(i).filter(move |&at| {
        let part = &transcript.parts[at];
        part.kind == kind && !part.is_unchecked
    })
}

/// Results by the key of the calls they answer, ascending.
pub(super) fn by_key(
    transcript: &Transcript,
    result_of: &HashMap<usize, usize>,
) -> HashMap<KeyId, Vec<usize>> {
    let mut found: HashMap<KeyId, Vec<usize>> = HashMap::new();
    for (&call, &result) in result_of {
        if let Some(key) = transcript.parts[call].key {
            found.entry(key).or_default().push(result);
        }
    }
    found.values_mut().for_each(|results| results.sort_unstable());
    found
}

/// Whether an orphan repeats the nearest result with its key: both are text alone, and equal.
pub(super) fn repeats(transcript: &Transcript, answered: &HashMap<KeyId, Vec<usize>>, orphan: usize) -> bool {
    let parts = &transcript.parts;
    let Some(results) = parts[orphan].key.and_then(|key| answered.get(&key)) else { return false };
    let before = results.partition_point(|&result| result < orphan).saturating_sub(1);
    let (one, other) = (&parts[results[before]], &parts[orphan]);
    let (mine, theirs) = (transcript.pieces_of(one), transcript.pieces_of(other));
    one.images == 0
        && other.images == 0
        && mine.len() == theirs.len()
        && mine.iter().zip(theirs).all(|(a, b)| transcript.str(&a.span) == transcript.str(&b.span))
}
