//! Replaces ids that the API rejects or that two calls of a message share, in a call and its result.

use std::collections::{HashMap, HashSet, VecDeque};

use super::Task;
use super::actions::ID_REWRITTEN;
use super::draft::{Block, Draft, Sketch, checked, units};
use crate::rules::pair;
use crate::rules::validate::{MAX_ID_BYTES, Provider, head_of, is_good_id};
use crate::transcript::{KeyId, PartKind, Role, Transcript};

pub(super) fn repair(task: &Task<'_>) -> Sketch {
    let mut names = Names::of(task.transcript);
    let mut renamed: HashMap<usize, String> = HashMap::new();
    let mut sketch = Sketch::default();
    match task.provider {
        Provider::Anthropic => anthropic(task, &mut names, &mut renamed, &mut sketch),
        Provider::OpenAiResponses => responses(task, &mut names, &mut renamed, &mut sketch),
        Provider::OpenAiChat | Provider::Gemini => {}
    }
    if !sketch.actions.is_empty() {
        sketch.drafts = (0..task.transcript.len()).map(|i| draft(task, i, &renamed)).collect();
    }
    sketch
}

/// A draft of a message with the new ids of its parts.
fn draft(task: &Task<'_>, i: usize, renamed: &HashMap<usize, String>) -> Draft {
    let range = task.transcript.part_range(i);
    if !range.clone().any(|at| renamed.contains_key(&at)) {
        return Draft::whole(i);
    }
    let units = units(task.transcript, task.provider, i, task.shapes[i]);
    let blocks = range.zip(units).map(|(at, unit)| match renamed.get(&at) {
        Some(id) => Block::WithId(i, unit, id.clone()),
        None => Block::Unit(i, unit),
    });
    Draft { blocks: blocks.collect(), ..Draft::whole(i) }
}

/// By now calls are followed by their results in the next message: those of one id in the same order.
fn anthropic(task: &Task<'_>, names: &mut Names, renamed: &mut HashMap<usize, String>, sketch: &mut Sketch) {
    let transcript = task.transcript;
    for i in head_of(transcript, task.provider)..transcript.len() {
        let is_model = transcript.messages[i].role == Role::Assistant;
        let mut results: HashMap<Option<KeyId>, VecDeque<usize>> = HashMap::new();
        if is_model && transcript.messages.get(i + 1).is_some_and(|next| next.role == Role::User) {
            for result in checked(transcript, i + 1, PartKind::ToolResult) {
                results.entry(transcript.parts[result].key).or_default().push_back(result);
            }
        }
        let mut seen = HashSet::new();
        for call in checked(transcript, i, PartKind::ToolCall).filter(|_| is_model) {
            let key = transcript.parts[call].key;
            let result = results.get_mut(&key).and_then(VecDeque::pop_front);
            let id = key.map_or("", |key| transcript.key_text(key));
            if is_good_id(id) && seen.insert(key) {
                continue;
            }
            let id = names.new_for(id);
            renamed.extend(result.map(|result| (result, id.clone())));
            renamed.insert(call, id);
            sketch.actions.push(ID_REWRITTEN.at(i));
        }
    }
}

/// Gives ids to calls and outputs.
fn responses(task: &Task<'_>, names: &mut Names, renamed: &mut HashMap<usize, String>, sketch: &mut Sketch) {
    let transcript = task.transcript;
    let pairing = pair(transcript);
    for i in 0..transcript.len() {
        for call in checked(transcript, i, PartKind::ToolCall) {
            let result = pairing.result_of(call).map(|result| result as usize);
            let lacks = |part: usize| transcript.parts[part].key.is_none();
            if lacks(call) || result.is_some_and(lacks) {
                let id = names.new_for("");
                renamed.extend(result.map(|result| (result, id.clone())));
                renamed.insert(call, id);
                sketch.actions.push(ID_REWRITTEN.at(i));
            }
        }
    }
}

/// The ids in use.
struct Names {
    used: HashSet<String>,
    /// For each base, the newest number after it: all up to it are in use, so that the search goes on from there.
    newest: HashMap<String, usize>,
}

impl Names {
    fn of(transcript: &Transcript) -> Self {
        let used = transcript.keys.iter().map(|span| transcript.str(span).to_owned()).collect();
        Names { used, newest: HashMap::new() }
    }

    /// A valid unused id, as similar to the old one as possible.
    fn new_for(&mut self, id: &str) -> String {
        let good = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' };
        let base: String = id.chars().map(good).take(MAX_ID_BYTES).collect();
        let base = if base.is_empty() { "call".to_owned() } else { base };
        let number = self.newest.entry(base.clone()).or_insert(1);
        let mut found = base.clone();
        while *number > 1 || self.used.contains(&found) {
            *number += 1;
            let tail = format!("_{number}");
            found = format!("{}{tail}", &base[..base.len().min(MAX_ID_BYTES - tail.len())]);
            if !self.used.contains(&found) {
                break;
            }
        }
        self.used.insert(found.clone());
        found
    }
}
