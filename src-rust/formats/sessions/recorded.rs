//! What a session recorded beside its messages: the usage that the provider reported, and each compaction with its
//! trigger, time and tokens.
//!
//! | program | usage | compaction |
//! |---|---|---|
//! | Claude Code | `message.usage` of an answer | a `compact_boundary` with `compactMetadata` |
//! | Codex | an event `token_count` after an answer | a `compacted` entry; its tokens are the usage before |
//! | pi | `message.usage` of an answer | a `compaction` with `tokensBefore` and its summary |
//! | Gemini CLI | `tokens` of an answer | not recorded |
//!
//! Other programs mark only the place of a compaction.

use super::agent::Agent;
use super::session::{Thread, array_of, object_of};
use crate::node::{Key, Node};

/// The usage that a provider reported for one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Index of the message that is the answer.
    pub message: usize,
    /// The model, if recorded.
    pub model: Option<String>,
    /// Tokens of the whole request, cached ones included.
    pub input_tokens: u64,
    /// Tokens of the answer.
    pub output_tokens: u64,
    /// Those of the input that were read from the cache.
    pub cache_read_tokens: u64,
    /// Those of the input that were written to the cache.
    pub cache_write_tokens: u64,
}

/// A compaction by the program itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compaction {
    /// Index of the message before which it took place.
    pub before: usize,
    /// Its entry, if it has one.
    pub entry: Option<usize>,
    /// What caused it: `auto` or `manual`, if recorded.
    pub trigger: Option<String>,
    /// When it took place, as recorded.
    pub time: Option<String>,
    /// Tokens of the context before, as reported.
    pub tokens_before: Option<u64>,
    /// Tokens of the context after, as reported.
    pub tokens_after: Option<u64>,
    /// The text of the summary, if it is not a message.
    pub summary: Option<String>,
    /// Whether its content is encrypted, which only the provider can read.
    pub is_encrypted: bool,
}

/// What a thread recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Usage by answer, in order.
    pub usage: Vec<Usage>,
    /// Compactions, in order.
    pub compactions: Vec<Compaction>,
}

/// What the entries recorded about a thread. O(its messages), and O(entries) for a thread with compactions or of Codex.
#[must_use]
pub fn recorded<N: Node>(agent: Agent, entries: &[N], thread: &Thread<N>) -> Recorded {
    let agent = match agent {
        Agent::ClaudeCodeWeb => Agent::ClaudeCode,
        Agent::GeminiCliLog => Agent::GeminiCli,
        other => other,
    };
    let sources = |message: usize| thread.messages.get(message).map_or(&[][..], |it| it.sources.as_slice());
    let mut usage = Vec::new();
    if agent == Agent::Codex {
        usage = codex_usage(entries, thread);
    } else {
        for message in 0..thread.messages.len() {
            // An answer in several entries repeats its usage; the last one is complete.
            let found = sources(message).iter().rev().find_map(|entry| usage_of(agent, entries.get(*entry)?));
            usage.extend(found.map(|usage| Usage { message, ..usage }));
        }
    }
    let mut noted: Vec<Compaction> = Vec::new();
    let is_compacted = thread.name.is_empty() && !thread.compact_boundaries.is_empty();
    let searched = if is_compacted { entries } else { &[] };
    for (i, entry) in searched.iter().enumerate() {
        noted.extend(compaction_of(agent, entry).map(|found| Compaction { entry: Some(i), ..found }));
    }
    let is_matched = noted.len() == thread.compact_boundaries.len();
    let mut compactions = Vec::new();
    // Several compactions may take place before one message.
    let (mut last, mut next) = (usize::MAX, usize::MAX);
    for (number, &before) in thread.compact_boundaries.iter().enumerate() {
        if before != last {
            (last, next) = (before, sources(before).iter().min().copied().unwrap_or(usize::MAX));
        }
        let nearest = || noted[..noted.partition_point(|it| it.entry <= Some(next))].last();
        let found = if is_matched { noted.get(number) } else { nearest() };
        let mut found = Compaction { before, ..found.cloned().unwrap_or_default() };
        if found.tokens_before.is_none() {
            let last = usage[..usage.partition_point(|usage| usage.message < before)].last();
            found.tokens_before = last.map(|usage| usage.input_tokens.saturating_add(usage.output_tokens));
        }
        compactions.push(found);
    }
    Recorded { usage, compactions }
}

/// The numbers from 0 on of an object under these names. O(members).
fn numbers_of<N: Node, const COUNT: usize>(object: &N, names: [&str; COUNT]) -> [Option<u64>; COUNT] {
    let mut found = [None; COUNT];
    let walked = object.each_member(|name, value| {
        if let Some(place) = names.iter().position(|wanted| *wanted == name) {
            let mut text = String::new();
            value.write_scalar(&mut text);
            found[place] = text.parse().ok().or(found[place]);
        }
        Ok(())
    });
    // A key that is no string ends the walk: what was read before it counts.
    drop(walked);
    found
}

fn usage_of<N: Node>(agent: Agent, entry: &N) -> Option<Usage> {
    let message = object_of(entry, Key::MESSAGE);
    let holder = message.as_ref().unwrap_or(entry);
    let key = if agent == Agent::GeminiCli { Key::TOKENS } else { Key::USAGE };
    let reported = object_of(holder, key)?;
    let tokens = |names: [&str; 4]| numbers_of(&reported, names).map(Option::unwrap_or_default);
    let usage = match agent {
        Agent::ClaudeCode => {
            let names =
                ["input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"];
            whole(tokens(names))
        }
        Agent::Pi => whole(tokens(["input", "output", "cacheRead", "cacheWrite"])),
        Agent::GeminiCli => {
            let [input_tokens, output, thoughts, cache_read_tokens] =
                tokens(["input", "output", "thoughts", "cached"]);
            let output_tokens = output.saturating_add(thoughts);
            Usage { input_tokens, output_tokens, cache_read_tokens, ..Usage::default() }
        }
        _ => return None,
    };
    // An aborted request has no usage.
    let is_reported = usage.input_tokens > 0;
    is_reported.then(|| Usage { model: holder.text_of(Key::MODEL), ..usage })
}

/// The usage where cached tokens are reported beside those of the input.
fn whole([input, output_tokens, cache_read_tokens, cache_write_tokens]: [u64; 4]) -> Usage {
    let input_tokens = input.saturating_add(cache_read_tokens).saturating_add(cache_write_tokens);
    Usage { input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, ..Usage::default() }
}

/// The usage of a rollout: an event after the answer names the newest request.
fn codex_usage<N: Node>(entries: &[N], thread: &Thread<N>) -> Vec<Usage> {
    let mut usage: Vec<Usage> = Vec::new();
    let mut message = 0;
    for (i, entry) in entries.iter().enumerate() {
        let is_before =
            |at: usize| thread.messages.get(at).is_some_and(|it| it.sources.iter().all(|&s| s < i));
        while is_before(message) {
            message += 1;
        }
        let event = object_of(entry, Key::PAYLOAD).filter(|event| event.text_is(Key::TYPE, "token_count"));
        let info = event.and_then(|event| object_of(&event, Key::INFO));
        let Some(last) = info.and_then(|info| object_of(&info, Key::LAST_TOKEN_USAGE)) else { continue };
        let [input_tokens, output_tokens, cache_read_tokens] =
            numbers_of(&last, ["input_tokens", "output_tokens", "cached_input_tokens"])
                .map(Option::unwrap_or_default);
        let Some(message) = message.checked_sub(1).filter(|_| input_tokens > 0) else { continue };
        // The event is repeated if only the rate limits changed.
        usage.pop_if(|known| known.message == message);
        usage.push(Usage { message, input_tokens, output_tokens, cache_read_tokens, ..Usage::default() });
    }
    usage
}

fn compaction_of<N: Node>(agent: Agent, entry: &N) -> Option<Compaction> {
    let time = || entry.text_of(Key::TIMESTAMP);
    match agent {
        Agent::ClaudeCode => {
            let is_boundary =
                entry.text_is(Key::SUBTYPE, "compact_boundary") && !entry.is_true(Key::IS_SIDECHAIN);
            let about = is_boundary.then(|| object_of(entry, Key::COMPACT_METADATA_CAMEL))?;
            let numbers = about.as_ref().map(|about| numbers_of(about, ["preTokens", "postTokens"]));
            let [tokens_before, tokens_after] = numbers.unwrap_or_default();
            Some(Compaction {
                trigger: about.and_then(|about| about.text_of(Key::TRIGGER)),
                time: time(),
                tokens_before,
                tokens_after,
                ..Compaction::default()
            })
        }
        Agent::Codex => {
            let is_compacted = entry.text_is(Key::TYPE, "compacted");
            let payload = object_of(entry, Key::PAYLOAD).filter(|_| is_compacted)?;
            let put = array_of(&payload, Key::REPLACEMENT_HISTORY);
            let is_encrypted = put.is_some_and(|put| {
                let is_sealed =
                    |item: &N| item.text_of(Key::ENCRYPTED_CONTENT).is_some_and(|it| !it.is_empty());
                put.items().iter().any(|item| item.text_is(Key::TYPE, "compaction") && is_sealed(item))
            });
            Some(Compaction { time: time(), is_encrypted, ..Compaction::default() })
        }
        Agent::Pi => entry.text_is(Key::TYPE, "compaction").then(|| {
            let [tokens_before, tokens_after] = numbers_of(entry, ["tokensBefore", "tokensAfter"]);
            Compaction {
                time: time(),
                tokens_before,
                tokens_after,
                summary: entry.text_of(Key::SUMMARY),
                ..Compaction::default()
            }
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::with_document;

    fn read(agent: Agent, entries: &str) -> Recorded {
        with_document(format!("[{entries}]").as_bytes(), |node| {
            let session = agent.assemble(&node).unwrap();
            recorded(agent, &node.items(), &session.threads[0])
        })
        .unwrap()
    }

    #[test]
    fn claude_code_reports_usage_and_the_boundary_its_tokens() {
        let found = read(
            Agent::ClaudeCode,
            r#"{"type":"user","uuid":"1","message":{"role":"user","content":"go"}},
            {"type":"assistant","uuid":"2","message":{"id":"m","model":"c","role":"assistant","content":[
                {"type":"text","text":"a"}],"usage":{"input_tokens":1,"cache_read_input_tokens":20,"output_tokens":1}}},
            {"type":"assistant","uuid":"3","message":{"id":"m","model":"c","role":"assistant","content":[
                {"type":"text","text":"b"}],"usage":{"input_tokens":1,"cache_read_input_tokens":20,"output_tokens":9}}},
            {"type":"system","subtype":"compact_boundary","uuid":"4","timestamp":"t",
                "compactMetadata":{"trigger":"auto","preTokens":30}},
            {"type":"user","uuid":"5","isCompactSummary":true,"message":{"role":"user","content":"so far"}}"#,
        );
        let usage = Usage {
            message: 1,
            model: Some("c".into()),
            input_tokens: 21,
            output_tokens: 9,
            cache_read_tokens: 20,
            cache_write_tokens: 0,
        };
        assert_eq!(found.usage, vec![usage]);
        let compaction = Compaction {
            before: 2,
            entry: Some(3),
            trigger: Some("auto".into()),
            time: Some("t".into()),
            tokens_before: Some(30),
            ..Compaction::default()
        };
        assert_eq!(found.compactions, vec![compaction]);
    }

    #[test]
    fn codex_compactions_take_their_tokens_from_the_event_before() {
        let found = read(
            Agent::Codex,
            r#"{"timestamp":"1","type":"session_meta","payload":{"id":"s"}},
            {"timestamp":"2","type":"response_item","payload":{"type":"message","role":"user","content":[]}},
            {"timestamp":"3","type":"response_item","payload":{"type":"message","role":"assistant","content":[]}},
            {"timestamp":"4","type":"event_msg","payload":{"type":"token_count","info":{"last_token_usage":
                {"input_tokens":50,"cached_input_tokens":40,"output_tokens":5,"total_tokens":55}}}},
            {"timestamp":"5","type":"compacted","payload":{"message":"","replacement_history":[
                {"type":"compaction","encrypted_content":"x"}]}}"#,
        );
        let usage = &found.usage[0];
        assert_eq!((usage.message, usage.input_tokens, usage.cache_read_tokens), (1, 50, 40));
        let compaction = &found.compactions[0];
        assert_eq!((compaction.before, compaction.entry, compaction.tokens_before), (2, Some(4), Some(55)));
        assert!(compaction.is_encrypted);
    }

    #[test]
    fn pi_keeps_the_summary_in_the_compaction() {
        let found = read(
            Agent::Pi,
            r#"{"type":"session","id":"s"},
            {"type":"message","id":"a","parentId":null,"message":{"role":"user","content":"go"}},
            {"type":"message","id":"b","parentId":"a","message":{"role":"assistant","content":[],"model":"m",
                "usage":{"input":3,"output":2,"cacheRead":4,"cacheWrite":1}}},
            {"type":"compaction","id":"c","parentId":"b","timestamp":"t","summary":"so far","tokensBefore":10}"#,
        );
        assert_eq!((found.usage[0].input_tokens, found.usage[0].cache_write_tokens), (8, 1));
        let compaction = &found.compactions[0];
        assert_eq!((compaction.before, compaction.tokens_before), (2, Some(10)));
        assert_eq!(compaction.summary.as_deref(), Some("so far"));
    }
}
