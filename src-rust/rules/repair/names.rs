//! Names calls that have no name, and responses of Gemini, after their partner; rewrites names that Bedrock or Mistral
//! rejects.

use std::collections::HashMap;

use super::actions::{NAME_ADDED, NAME_REWRITTEN};
use super::draft::{Block, Draft, Sketch, checked, edited};
use super::{Task, UNNAMED};
use crate::rules::pair;
use crate::rules::validate::{
    ChatService, MAX_NAME_BYTES, Provider, gemini_matching, has_bad_mistral_name, head_of, is_misnamed,
    is_nameless, is_nameless_function,
};
use crate::transcript::{Part, PartKind, Role};

pub(super) fn repair(task: &Task<'_>) -> Sketch {
    let transcript = task.transcript;
    let head = head_of(transcript, task.provider);
    let partners = partners(task, head);
    let name_of = |at: usize| {
        let name = transcript.parts[at].name.as_ref().map(|span| transcript.str(span));
        name.filter(|name| !name.is_empty())
    };
    let is_bad = |at: usize| match task.options.strict.service {
        Some(ChatService::Mistral) => has_bad_mistral_name(transcript, &transcript.parts[at]),
        _ => task.provider == Provider::Bedrock && is_misnamed(transcript, &transcript.parts[at]),
    };
    let mut names: HashMap<usize, String> = HashMap::new();
    let mut sketch = Sketch::default();
    for i in head..transcript.len() {
        for at in transcript.part_range(i) {
            if is_nameless(transcript, task.provider, &transcript.parts[at]) {
                let name = partners.get(&at).and_then(|&other| name_of(other)).unwrap_or(UNNAMED);
                names.insert(at, name.to_owned());
                sketch.actions.push(NAME_ADDED.at(i));
            } else if is_bad(at) {
                names.insert(at, good_name(name_of(at).unwrap_or(UNNAMED)));
                sketch.actions.push(NAME_REWRITTEN.at(i));
            }
        }
    }
    if !sketch.actions.is_empty() {
        let first = |i: usize| names.get(&transcript.part_range(i).start).cloned().unwrap_or_default();
        let named = |i: usize| match transcript.messages[i].role {
            // The name of a message that is a result.
            Role::Tool if task.provider == Provider::OpenAiChat => {
                Draft { blocks: vec![Block::WithName(i, 0, first(i))], ..Draft::whole(i) }
            }
            _ => {
                edited(task, i, |at, unit| names.get(&at).map(|name| Block::WithName(i, unit, name.clone())))
            }
        };
        let is_named = |i| transcript.part_range(i).any(|at| names.contains_key(&at));
        sketch.drafts =
            (0..transcript.len()).map(|i| if is_named(i) { named(i) } else { Draft::whole(i) }).collect();
    }
    sketch
}

/// Names calls in OpenAI's older form, and their results, after the message next to them.
pub(super) fn of_functions(task: &Task<'_>) -> Sketch {
    let transcript = task.transcript;
    let nameless = |i: usize| {
        let is_one = |at: &usize| is_nameless_function(transcript, task.provider, &transcript.parts[*at]);
        transcript.part_range(i).find(is_one).map(|at| transcript.parts[at].kind)
    };
    let name_in = |i: usize, kind: PartKind| {
        let is_partner = |part: &&Part| part.is_unchecked && part.kind != kind;
        let partner = transcript.parts_of(i).iter().find(is_partner)?;
        let name = transcript.str(partner.name.as_ref()?);
        (!name.is_empty()).then(|| name.to_owned())
    };
    let mut sketch = Sketch::default();
    for i in 0..transcript.len() {
        let mut draft = Draft::whole(i);
        if let Some(kind) = nameless(i) {
            let beside = if kind == PartKind::ToolCall { Some(i + 1) } else { i.checked_sub(1) };
            let name =
                beside.filter(|&beside| beside < transcript.len()).and_then(|beside| name_in(beside, kind));
            draft.blocks = vec![Block::WithName(i, 0, name.unwrap_or_else(|| UNNAMED.to_owned()))];
            sketch.actions.push(NAME_ADDED.at(i));
        }
        sketch.drafts.push(draft);
    }
    sketch
}

/// A name that Bedrock and Mistral accept, as similar to the old one as possible.
fn good_name(name: &str) -> String {
    let good = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' };
    name.chars().map(good).take(MAX_NAME_BYTES).collect()
}

/// For each call its result, and the other way around.
fn partners(task: &Task<'_>, head: usize) -> HashMap<usize, usize> {
    let transcript = task.transcript;
    let mut partners = HashMap::new();
    let mut bind = |call: usize, result: usize| {
        partners.insert(call, result);
        partners.insert(result, call);
    };
    if task.provider != Provider::Gemini {
        let pairing = pair(transcript);
        for at in 0..transcript.parts.len() {
            pairing.call_of(at).into_iter().for_each(|call| bind(call as usize, at));
        }
        return partners;
    }
    for i in head + 1..transcript.len() {
        let all = |i, kind| -> Vec<usize> { checked(transcript, i, kind).collect() };
        let (calls, responses) = (all(i - 1, PartKind::ToolCall), all(i, PartKind::ToolResult));
        let parts = |at: &[usize]| -> Vec<&Part> { at.iter().map(|&at| &transcript.parts[at]).collect() };
        let found = gemini_matching(transcript, &parts(&calls), &parts(&responses));
        for (&call, response) in calls.iter().zip(found) {
            response.into_iter().for_each(|at| bind(call, responses[at]));
        }
    }
    partners
}
