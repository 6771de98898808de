//! The named cases of `tests/cases`, on the pure crate: the same files that the Python tests read.

#![allow(clippy::unwrap_used, clippy::panic)] // A broken case file is a failing test.

use std::path::Path;

use foldline::count::bpe::counter::ExactCounter;
use foldline::count::counter::{Counter, count_transcript};
use foldline::count::estimate::formula::Heuristic;
use foldline::formats::{Format, read_messages};
use foldline::json::{JsonNode, with_document};
use foldline::node::Node;
use foldline::plan::{Keep, Plan, PlanOptions, Planned, ThinkingRule, Unit, plan};
use foldline::rules::shapes;
use foldline::rules::validate::{Provider, Strict, validate};
use foldline::rules::{Pins, analyze};

const OTHER: [&str; 3] = ["heuristics.json", "usage.json", "validity.json"];

/// The member of an object, by any name.
fn field<'d>(node: &JsonNode<'d>, name: &str) -> Option<JsonNode<'d>> {
    node.members().unwrap().into_iter().find(|(key, _)| key == name).map(|(_, value)| value)
}

fn text(node: &JsonNode<'_>) -> String {
    node.with_text(|text, _| text.to_owned()).unwrap_or_else(|| json(node))
}

fn json(node: &JsonNode<'_>) -> String {
    let mut out = String::new();
    node.write_json(&mut out).unwrap();
    out
}

fn number(node: &JsonNode<'_>) -> u64 {
    json(node).parse().unwrap()
}

/// Runs `check` on every case of a file and says how many there were.
fn each_case(file: &Path, check: impl Fn(&JsonNode<'_>)) -> usize {
    let bytes = std::fs::read(file).unwrap();
    with_document(&bytes, |cases| cases.items().iter().map(&check).count()).unwrap()
}

fn cases() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases")
}

fn counter(name: &str) -> Box<dyn Counter> {
    match Heuristic::from_name(name) {
        Some(heuristic) => Box::new(heuristic),
        None => Box::new(ExactCounter::new(name).unwrap()),
    }
}

fn keep(spec: &JsonNode<'_>) -> Keep {
    let members = spec.members().unwrap();
    let (kind, amount) = (members[0].0.as_str(), &members[0].1);
    match kind {
        "keep_tokens" => Keep::Tokens(number(amount)),
        "keep_messages" => Keep::Messages(number(amount)),
        "keep_turns" => Keep::Turns(number(amount)),
        "keep_iterations" => Keep::Iterations(number(amount)),
        "fit_tokens" => Keep::Fit(number(amount)),
        "keep_fraction" => {
            let of_messages = field(spec, "of").is_some_and(|of| text(&of) == "messages");
            let unit = if of_messages { Unit::Messages } else { Unit::Tokens };
            Keep::Fraction(json(amount).parse().unwrap(), unit)
        }
        other => panic!("no keep {other}"),
    }
}

fn thinking(rule: &str) -> ThinkingRule {
    match rule {
        "keep" => ThinkingRule::Keep,
        "strip" => ThinkingRule::Strip,
        "fold" => ThinkingRule::Fold,
        other => panic!("no rule {other}"),
    }
}

/// Chunks as the cases write them.
fn chunks(plan: &Plan, max_tokens: u64) -> String {
    let chunks = plan.chunks(max_tokens, None);
    let rows: Vec<_> = chunks.iter().map(|c| (c.start, c.stop, c.tokens, c.is_oversized)).collect();
    serde_json::to_string(&rows).unwrap()
}

/// What a plan says under a name that a case expects.
fn found(outcome: &Planned, name: &str, chunk_tokens: u64) -> String {
    let plan = match outcome {
        Planned::Infeasible(infeasible) => {
            return match name {
                "infeasible" => "true".to_owned(),
                "floor" => infeasible.floor.to_string(),
                _ => "infeasible".to_owned(),
            };
        }
        Planned::Plan(plan) => plan,
    };
    match name {
        "cut" => plan.cut.to_string(),
        "turn_prefix" => serde_json::to_string(&plan.turn_prefix).unwrap(),
        "actions" => serde_json::to_string(&plan.actions).unwrap(),
        "tokens_before" => plan.tokens_before.to_string(),
        "tokens_kept" => plan.tokens_kept.to_string(),
        "floor" => plan.floor.to_string(),
        "tokens_after" => plan.tokens_after().to_string(),
        "stripped" => serde_json::to_string(&plan.stripped).unwrap(),
        "warnings" => {
            let rows: Vec<_> = plan.warnings.iter().map(|warning| (&warning.code, warning.index)).collect();
            serde_json::to_string(&rows).unwrap()
        }
        "alternatives" => {
            let rows: Vec<_> = plan
                .alternatives
                .iter()
                .map(|a| (a.cut, a.tokens_kept, a.tokens_after, a.folded, a.is_mid_turn, a.why.name()))
                .collect();
            serde_json::to_string(&rows).unwrap()
        }
        "chunks" => chunks(plan, chunk_tokens),
        "first_changed_index" => serde_json::to_string(&plan.first_changed_index()).unwrap(),
        "tokens_prefix_kept" => plan.tokens_prefix_kept().to_string(),
        "tokens_rebilled" => plan.tokens_rebilled().to_string(),
        "infeasible" => "false".to_owned(),
        other => panic!("a case expects {other}"),
    }
}

fn check_plan(case: &JsonNode<'_>) {
    let name = text(&field(case, "name").unwrap());
    let counter = counter(&text(&field(case, "counter").unwrap()));
    let format = Format::from_name(&text(&field(case, "format").unwrap())).unwrap();
    let messages = field(case, "messages").unwrap();
    let transcript = read_messages(&messages, format, counter.wants_result_json()).unwrap();
    let pinned = field(case, "pins").map_or(vec![], |pins| pins.items());
    // By importance, which also pins a summary.
    let importance = pinned.iter().map(|i| (number(i) as usize, 10.0)).collect();
    let structure = analyze(&transcript, &Pins { importance, ..Pins::default() }).unwrap();
    let counts = count_transcript(&*counter, &transcript, &mut || true).unwrap();
    let request = PlanOptions {
        summary_tokens: field(case, "summary_tokens").map_or(0, |tokens| number(&tokens)),
        min_gain_tokens: field(case, "min_gain_tokens").map_or(0, |tokens| number(&tokens)),
        thinking: field(case, "thinking").map_or(ThinkingRule::Keep, |rule| thinking(&text(&rule))),
        ..PlanOptions::new(keep(&field(case, "keep").unwrap()))
    };
    let outcome = plan(&transcript, format, &structure, &counts, &*counter, request, &mut || true).unwrap();
    for (key, expected) in field(case, "expect").unwrap().members().unwrap() {
        let chunk_tokens = field(case, "chunk_tokens").map_or(1, |tokens| number(&tokens));
        assert_eq!(found(&outcome, &key, chunk_tokens), json(&expected), "{name}: {key}");
    }
}

#[test]
fn plans_are_as_worked_out_by_hand() {
    let mut count = 0;
    for entry in std::fs::read_dir(cases()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.extension().is_some_and(|extension| extension == "json") && !OTHER.contains(&name) {
            count += each_case(&path, check_plan);
        }
    }
    assert!(count > 100, "only {count} cases");
}

#[test]
fn problems_are_as_worked_out_by_hand() {
    let count = each_case(&cases().join("validity.json"), |case| {
        let name = text(&field(case, "name").unwrap());
        let (provider, service) = Provider::from_name(&text(&field(case, "provider").unwrap())).unwrap();
        let messages = field(case, "messages").unwrap();
        let transcript = read_messages(&messages, Format::of(provider.framing()), false).unwrap();
        let mut found: Vec<String> = validate(
            &transcript,
            &shapes(&messages, provider).unwrap(),
            provider,
            Strict { service, ..Strict::default() },
        )
        .iter()
        .map(|problem| format!("[{},\"{}\"]", problem.index, problem.code))
        .collect();
        let mut expected: Vec<String> = field(case, "problems").unwrap().items().iter().map(json).collect();
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "{name}");
    });
    assert!(count > 20, "only {count} cases");
}

#[test]
fn heuristics_count_as_worked_out_by_hand() {
    let count = each_case(&cases().join("heuristics.json"), |case| {
        let counter = counter(&text(&field(case, "counter").unwrap()));
        let expected = json(&field(case, "expect").unwrap());
        let found = match field(case, "text") {
            Some(given) => counter.count(&text(&given), &mut || true).unwrap().to_string(),
            None => {
                let format = Format::from_name(&text(&field(case, "format").unwrap())).unwrap();
                let messages = field(case, "messages").unwrap();
                let transcript = read_messages(&messages, format, counter.wants_result_json()).unwrap();
                let counts = count_transcript(&*counter, &transcript, &mut || true).unwrap();
                serde_json::to_string(&counts.per_message).unwrap()
            }
        };
        assert_eq!(found, expected, "{}", json(case));
    });
    assert!(count > 20, "only {count} cases");
}
