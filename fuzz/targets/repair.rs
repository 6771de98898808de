//! The passes of a repair: drafts name only what there is, nothing is lost without an action, and a pass without
//! actions changes nothing.
#![no_main]

use foldline::formats::{Format, read_messages};
use foldline::json::with_document;
use foldline::node::{Key, Kind, Node};
use foldline::rules::repair::{Block, OpenCalls, Options, Orphans, PASSES, Shape, Task, units};
use foldline::rules::validate::{Provider, Strict, validate};
use foldline_fuzz::choice;
use libfuzzer_sys::fuzz_target;

fn shapes<N: Node>(messages: &N, provider: Provider) -> Vec<Shape> {
    let field = if provider == Provider::Gemini { Key::PARTS } else { Key::CONTENT };
    let mut shapes = Vec::new();
    let walked = messages.each_item(|_, message| {
        let content = message.get(field).filter(|content| content.kind() == Kind::Array);
        let is_plain = message.members().is_ok_and(|members| members.len() <= 2);
        let blocks = content.map(|content| content.len());
        let calls = message.get(Key::TOOL_CALLS).filter(|calls| calls.kind() == Kind::Array);
        let calls = calls.map_or(0, |calls| calls.len());
        shapes.push(Shape { blocks, calls, is_plain, is_answerable: true });
        Ok(())
    });
    assert!(walked.is_ok());
    shapes
}

fuzz_target!(|data: &[u8]| {
    let Some((chosen, json)) = choice(data, 128) else { return };
    let has = |bit: usize| chosen >> bit & 1 == 1;
    let provider =
        [Provider::OpenAiChat, Provider::OpenAiResponses, Provider::Anthropic, Provider::Gemini][chosen & 3];
    let options = Options {
        open_calls: if has(2) { OpenCalls::Remove } else { OpenCalls::Answer },
        orphans: if has(3) { Orphans::Remove } else { Orphans::Text },
        strict: Strict { alternate: has(4), single_system: has(5), partial: has(6) },
    };
    let format = Format::of(provider.framing());
    let read = with_document(json, |root| {
        read_messages(&root, format, false).map(|transcript| (transcript, shapes(&root, provider)))
    });
    let Ok(Ok((transcript, shapes))) = read else { return };
    let task = Task { transcript: &transcript, shapes: &shapes, provider, options };
    let is_valid = validate(&transcript, provider, options.strict).is_empty();
    for (number, pass) in PASSES.iter().enumerate() {
        let sketch = pass(&task);
        let mut used = vec![false; transcript.len()];
        for draft in &sketch.drafts {
            assert!(draft.about < transcript.len().max(1), "pass {number}: {draft:?}");
            assert!(draft.base.is_none_or(|base| base < transcript.len()), "pass {number}: {draft:?}");
            for block in &draft.blocks {
                match block {
                    Block::All(i) | Block::WithIds(i, _) => used[*i] = true,
                    Block::Unit(i, unit)
                    | Block::WithId(i, unit, _)
                    | Block::WithName(i, unit, _)
                    | Block::AsText(i, unit)
                    | Block::Answer(i, unit) => {
                        used[*i] = true;
                        let known = units(&transcript, provider, *i, shapes[*i]);
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
        if is_valid && number == 0 {
            // A valid list is never given to the passes; the first must see nothing to do in it either.
            assert!(
                sketch.actions.iter().all(|action| action.code == "empty_removed"),
                "{:?}",
                sketch.actions
            );
        }
    }
});
