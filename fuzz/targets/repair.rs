//! The passes of a repair: drafts name only what there is, nothing is lost without an action, and a pass without
//! actions changes nothing.
#![no_main]

use std::hash::{DefaultHasher, Hasher};

use foldline::formats::{Format, read_messages};
use foldline::json::with_document;
use foldline::node::Node;
use foldline::rules::shapes;
use foldline::rules::repair::{Block, OpenCalls, Options, Orphans, PASSES, Task, units};
use foldline::rules::validate::{ChatService, Provider, Strict, validate};
use foldline_fuzz::choice;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((chosen, json)) = choice(data, 256) else { return };
    let has = |bit: usize| chosen >> bit & 1 == 1;
    let provider =
        [Provider::OpenAiChat, Provider::OpenAiResponses, Provider::Anthropic, Provider::Gemini][chosen & 3];
    // In chat a stored history has no meaning: its bit chooses a service.
    let service = match (provider, has(6), has(7)) {
        (Provider::OpenAiChat, true, true) => Some(ChatService::Mistral),
        (Provider::OpenAiChat, true, false) => Some(ChatService::Cohere),
        _ => None,
    };
    let options = Options {
        open_calls: if has(2) { OpenCalls::Remove } else { OpenCalls::Answer },
        orphans: if has(3) { Orphans::Remove } else { Orphans::Text },
        strict: Strict { alternate: has(4), single_system: has(5), partial: has(6), no_prefill: has(7), service },
    };
    let format = Format::of(provider.framing());
    let read = with_document(json, |root| {
        let transcript = read_messages(&root, format, false)?;
        let mut hashes = Vec::new();
        root.each_item(|_, message| {
            let (mut text, mut hasher) = (String::new(), DefaultHasher::new());
            message.write_json(&mut text)?;
            hasher.write(text.as_bytes());
            hashes.push(u128::from(hasher.finish()));
            Ok(())
        })?;
        foldline::error::Result::Ok((transcript, shapes(&root, provider)?, hashes))
    });
    let Ok(Ok((transcript, shapes, hashes))) = read else { return };
    let hash_of = |i: usize| hashes.get(i).copied();
    let task = Task { transcript: &transcript, shapes: &shapes, hash_of: &hash_of, provider, options };
    let is_valid = validate(&transcript, &shapes, provider, options.strict).is_empty();
    for (number, pass) in PASSES.iter().enumerate() {
        let sketch = pass(&task);
        let mut used = vec![false; transcript.len()];
        for draft in &sketch.drafts {
            assert!(draft.about < transcript.len().max(1), "pass {number}: {draft:?}");
            assert!(draft.base.is_none_or(|base| base < transcript.len()), "pass {number}: {draft:?}");
            for block in &draft.blocks {
                match block {
                    Block::All(i)
                    | Block::WithIds(i, _)
                    | Block::NewIds(i, _)
                    | Block::WithItemId(i, _)
                    | Block::Tidied(i)
                    | Block::Listed(i)
                    | Block::Planned(i)
                    | Block::Unmarked(i, _) => used[*i] = true,
                    Block::Unit(i, unit)
                    | Block::WithId(i, unit, _)
                    | Block::WithName(i, unit, _)
                    | Block::WithErrorText(i, unit)
                    | Block::AsText(i, unit)
                    | Block::Answer(i, unit) => {
                        used[*i] = true;
                        let known = units(&transcript, provider, *i, &shapes[*i]);
                        // In OpenAI chat unit 0 is the message without its calls, which need not have a part.
                        let is_rest = provider == Provider::OpenAiChat && *unit == 0;
                        assert!(is_rest || known.contains(unit), "pass {number}: {block:?} of {known:?}");
                    }
                    Block::Note(note) => assert!(!note.is_empty()),
                }
            }
        }
        if sketch.actions.is_empty() && !sketch.drafts.is_empty() {
            let unchanged = sketch.drafts.iter().enumerate().all(|(i, draft)| draft.unchanged() == Some(i));
            assert!(unchanged && sketch.drafts.len() == transcript.len(), "pass {number}");
        }
        for action in &sketch.actions {
            assert!(action.index < transcript.len().max(1), "pass {number}: {action:?}");
        }
        if is_valid && number <= 2 {
            // A valid list is never given to the passes; the first three must see nothing to do in it either.
            assert!(
                sketch.actions.iter().all(|action| action.code == "empty_removed"),
                "{:?}",
                sketch.actions
            );
        }
    }
});
