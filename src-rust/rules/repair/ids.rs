//! Replaces ids that the API rejects or that two calls share, in a call and its result.

use std::collections::{HashMap, HashSet, VecDeque};

use super::Task;
use super::actions::ID_REWRITTEN;
use super::draft::{Block, Draft, Sketch, checked, edited};
use crate::rules::pair;
use crate::rules::validate::{
    ChatService, MAX_ID_BYTES, MISTRAL_ID_BYTES, Provider, has_bad_mistral_id, head_of, is_good_bedrock_id,
    is_good_id, lacks_id,
};
use crate::transcript::{KeyId, PartKind, Role, Transcript};

/// The ids of calls whose results are in their places.
pub(super) fn repair(task: &Task<'_>) -> Sketch {
    let mut ids = Ids::of(task);
    match task.provider {
        Provider::Anthropic | Provider::Bedrock => {
            ids.by_message();
            ids.served();
        }
        Provider::OpenAiChat => ids.chat(task.options.strict.service),
        Provider::OpenAiResponses => ids.responses(),
        // Turns that a moved response had parted.
        Provider::Gemini => ids.served(),
    }
    ids.finish()
}

/// The ids of Gemini's calls, before their responses are looked for: an id decides which call a response answers.
pub(super) fn of_gemini(task: &Task<'_>) -> Sketch {
    let mut ids = Ids::of(task);
    if task.provider == Provider::Gemini {
        ids.gemini();
        ids.served();
    }
    ids.finish()
}

struct Ids<'a> {
    task: &'a Task<'a>,
    names: Names,
    /// The new ids of calls and results.
    renamed: HashMap<usize, String>,
    sketch: Sketch,
}

impl<'a> Ids<'a> {
    fn of(task: &'a Task<'a>) -> Self {
        let names = Names::beside(task.transcript, std::iter::empty());
        Ids { task, names, renamed: HashMap::new(), sketch: Sketch::default() }
    }

    fn finish(mut self) -> Sketch {
        if !self.sketch.actions.is_empty() {
            self.sketch.drafts = (0..self.task.transcript.len()).map(|i| self.draft(i)).collect();
        }
        self.sketch
    }

    /// A draft of a message with the new ids of its parts.
    fn draft(&self, i: usize) -> Draft {
        let transcript = self.task.transcript;
        let range = transcript.part_range(i);
        if !range.clone().any(|at| self.renamed.contains_key(&at)) {
            return Draft::whole(i);
        }
        if self.task.provider == Provider::OpenAiChat && transcript.messages[i].role == Role::Tool {
            let places =
                range.clone().filter_map(|at| Some((at - range.start, self.renamed.get(&at)?.clone())));
            return Draft { blocks: vec![Block::NewIds(i, places.collect())], ..Draft::whole(i) };
        }
        edited(self.task, i, |at, unit| Some(Block::WithId(i, unit, self.renamed.get(&at)?.clone())))
    }

    /// Gives a call and its result a new id.
    fn rename(&mut self, i: usize, call: usize, result: Option<usize>) {
        let transcript = self.task.transcript;
        let id = transcript.parts[call].key.map_or("", |key| transcript.key_text(key));
        let id = match self.task.options.strict.service {
            Some(ChatService::Mistral) => self.names.new_short(id),
            _ => self.names.new_for(id),
        };
        self.renamed.extend(result.map(|result| (result, id.clone())));
        self.renamed.insert(call, id);
        self.sketch.actions.push(ID_REWRITTEN.at(i));
    }

    /// Anthropic and Bedrock: by now calls are followed by their results in the next message: those of one id in the
    /// same order.
    fn by_message(&mut self) {
        let transcript = self.task.transcript;
        let is_good = if self.task.provider == Provider::Bedrock { is_good_bedrock_id } else { is_good_id };
        for i in head_of(transcript, self.task.provider)..transcript.len() {
            let is_model = transcript.messages[i].role == Role::Assistant;
            let mut results = Results::default();
            if is_model && transcript.messages.get(i + 1).is_some_and(|next| next.role == Role::User) {
                results.add(transcript, i + 1);
            }
            let mut seen = HashSet::new();
            for call in checked(transcript, i, PartKind::ToolCall).filter(|_| is_model) {
                let key = transcript.parts[call].key;
                let result = results.take(key);
                let id = key.map_or("", |key| transcript.key_text(key));
                if !is_good(id) || !seen.insert(key) {
                    self.rename(i, call, result);
                }
            }
        }
    }

    /// Server tools: results follow their calls, those of one id in the same order.
    fn served(&mut self) {
        let transcript = self.task.transcript;
        let mut open: HashMap<Option<KeyId>, VecDeque<usize>> = HashMap::new();
        let (mut seen, mut is_after_model) = (HashSet::new(), false);
        // Consecutive messages of the model may become one, and a system message between them may move.
        let joins = matches!(self.task.provider, Provider::Gemini | Provider::Bedrock);
        let may_join = self.task.options.strict.alternate || joins;
        let is_model = |i: usize| transcript.messages[i].role == Role::Assistant;
        let is_system = |i: usize| matches!(transcript.messages[i].role, Role::System | Role::Developer);
        for i in head_of(transcript, self.task.provider)..transcript.len() {
            if !(is_system(i) || may_join && is_model(i) && is_after_model) {
                let turn = i + 1..transcript.len();
                let joined = turn.take_while(|&j| may_join && is_model(i) && (is_model(j) || is_system(j)));
                let calls =
                    std::iter::once(i).chain(joined).flat_map(|j| checked(transcript, j, PartKind::ToolCall));
                seen = calls.map(|call| transcript.parts[call].key).collect();
                is_after_model = is_model(i);
            }
            for at in transcript.part_range(i).filter(|&at| transcript.parts[at].is_unchecked) {
                let key = transcript.parts[at].key;
                match transcript.parts[at].kind {
                    PartKind::ToolCall => {
                        if key.is_some() && !seen.insert(key) {
                            self.rename(i, at, None);
                        }
                        open.entry(key).or_default().push_back(at);
                    }
                    PartKind::ToolResult => {
                        let call = open.get_mut(&key).and_then(VecDeque::pop_front);
                        if let Some(id) = call.and_then(|call| self.renamed.get(&call)) {
                            self.renamed.insert(at, id.clone());
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    /// Ids of one turn differ; the response to a call is in the next one.
    fn gemini(&mut self) {
        let transcript = self.task.transcript;
        for i in head_of(transcript, self.task.provider)..transcript.len() {
            let mut responses = Results::default();
            if transcript.messages.get(i + 1).is_some_and(|next| next.role != Role::Assistant) {
                responses.add(transcript, i + 1);
            }
            let mut seen = HashSet::new();
            for call in checked(transcript, i, PartKind::ToolCall) {
                let Some(key) = transcript.parts[call].key else { continue };
                let response = responses.take(Some(key));
                if !seen.insert(key) {
                    self.rename(i, call, response);
                }
            }
        }
    }

    /// Ids of one message differ, and are well-formed for a service; its results are the messages directly after it.
    fn chat(&mut self, service: Option<ChatService>) {
        let transcript = self.task.transcript;
        let is_bad = |at: usize| match service {
            Some(ChatService::Mistral) => has_bad_mistral_id(transcript, &transcript.parts[at]),
            Some(ChatService::Cohere) => lacks_id(transcript, &transcript.parts[at]),
            None => false,
        };
        for i in 0..transcript.len() {
            let calls: Vec<usize> = checked(transcript, i, PartKind::ToolCall).collect();
            if calls.is_empty() || (calls.len() < 2 && service.is_none()) {
                continue;
            }
            let mut results = Results::default();
            let is_tool = |&next: &usize| transcript.messages[next].role == Role::Tool;
            for next in (i + 1..transcript.len()).take_while(is_tool) {
                results.add(transcript, next);
            }
            let mut seen = HashSet::new();
            for call in calls {
                let key = transcript.parts[call].key;
                let result = results.take(key);
                let is_second = key.is_some() && !seen.insert(key);
                if is_second || is_bad(call) || result.is_some_and(is_bad) {
                    self.rename(i, call, result);
                }
            }
        }
    }

    /// Calls and outputs have an id, which differs from that of every other call.
    fn responses(&mut self) {
        let transcript = self.task.transcript;
        let pairing = pair(transcript);
        let mut seen = HashSet::new();
        for i in 0..transcript.len() {
            for call in checked(transcript, i, PartKind::ToolCall) {
                let result = pairing.result_of(call).map(|result| result as usize);
                let lacks = |part: usize| transcript.parts[part].key.is_none();
                let is_second = transcript.parts[call].key.is_some_and(|key| !seen.insert(key));
                if is_second {
                    self.rename(i, call, result);
                } else if lacks(call) || result.is_some_and(lacks) {
                    let id = self.names.new_for("");
                    self.renamed.extend(result.map(|result| (result, id.clone())));
                    self.renamed.insert(call, id);
                    self.sketch.actions.push(ID_REWRITTEN.at(i));
                }
            }
        }
    }
}

/// Results by the id of their call, in order.
#[derive(Default)]
struct Results(HashMap<Option<KeyId>, VecDeque<usize>>);

impl Results {
    fn add(&mut self, transcript: &Transcript, i: usize) {
        for result in checked(transcript, i, PartKind::ToolResult) {
            self.0.entry(transcript.parts[result].key).or_default().push_back(result);
        }
    }

    fn take(&mut self, key: Option<KeyId>) -> Option<usize> {
        self.0.get_mut(&key).and_then(VecDeque::pop_front)
    }
}

/// The ids in use.
pub(super) struct Names {
    used: HashSet<String>,
    /// For each base, the newest number after it: all up to it are in use, so that the search goes on from there.
    newest: HashMap<String, usize>,
}

impl Names {
    /// The ids of a transcript's calls, and others.
    pub fn beside(transcript: &Transcript, others: impl Iterator<Item = String>) -> Self {
        let keys = transcript.keys.iter().map(|span| transcript.str(span).to_owned());
        Names { used: keys.chain(others).collect(), newest: HashMap::new() }
    }

    /// A valid unused id, as similar to the old one as possible.
    pub fn new_for(&mut self, id: &str) -> String {
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

    /// A valid unused id for Mistral: the last letters and digits of the old one, which tell it from others.
    pub fn new_short(&mut self, id: &str) -> String {
        let signs: String = id.chars().filter(char::is_ascii_alphanumeric).collect();
        let end = &signs[signs.len().saturating_sub(MISTRAL_ID_BYTES)..];
        let base = format!("{end:0<MISTRAL_ID_BYTES$}");
        let number = self.newest.entry(base.clone()).or_insert(0);
        let mut found = base.clone();
        while *number > 0 || self.used.contains(&found) {
            *number += 1;
            let tail = number.to_string();
            found = format!("{}{tail}", &base[..MISTRAL_ID_BYTES.saturating_sub(tail.len())]);
            if !self.used.contains(&found) {
                break;
            }
        }
        self.used.insert(found.clone());
        found
    }
}
