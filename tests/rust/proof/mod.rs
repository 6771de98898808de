//! Proof by exhaustion and by chance that the planner does what the design says: every keep against brute force over
//! all cuts, on every transcript of a few messages and on millions of longer ones.
//!
//! The counts `proof_length` and `proof_cases` of `tests/depth.json` say how many messages are tried exhaustively and
//! how many random transcripts there are.

#![allow(clippy::unwrap_used, clippy::panic)] // What does not read or plan is a failing test.

mod drawn;
mod model;
mod oracle;
mod random;
mod subject;

use std::sync::atomic::{AtomicUsize, Ordering};

use foldline::json::with_document;
use foldline::node::Node;
use foldline::plan::{Keep, Unit};

use super::depth::cases;
use model::{Message, forms};
use subject::{Subject, compare};

/// Keeps that take turns: one of each kind a transcript, with every amount in time.
fn asked(turn: usize) -> [Keep; 5] {
    let amount = (turn % 6) as u64;
    let unit = if turn.is_multiple_of(2) { Unit::Tokens } else { Unit::Messages };
    [
        Keep::Tokens(amount * 7),
        Keep::Fraction(amount as f64 / 5.0, unit),
        Keep::Messages(amount),
        Keep::Turns(amount),
        Keep::Iterations(amount),
    ]
}

/// Six budgets, from nothing to a token short of everything.
fn budgets(total: u64, summary_tokens: u64) -> [Keep; 6] {
    let most = total.saturating_sub(1);
    [0, most / 4, most / 2, most - most / 4, most, total + summary_tokens].map(Keep::Fit)
}

#[test]
fn every_short_transcript_is_planned_as_the_design_says() {
    let (forms, length) = (forms(), cases("proof_length") as usize);
    assert_eq!(forms.len(), 40);
    let written: Vec<_> = forms.iter().map(Message::written).collect();
    let texts: Vec<&str> = written.iter().map(|(_, text)| text.as_str()).collect();
    let json = format!("[{}]", texts.join(","));
    let (next, tried) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || {
        with_document(json.as_bytes(), |document| {
            let nodes = document.items();
            loop {
                // A part of the work is all transcripts that begin with one form.
                let first = next.fetch_add(1, Ordering::Relaxed);
                if first >= forms.len() {
                    break;
                }
                let mut numbers = vec![first];
                loop {
                    let messages: Vec<Message> = numbers.iter().map(|&i| forms[i].clone()).collect();
                    let turn = tried.fetch_add(1, Ordering::Relaxed);
                    let spoken = numbers.iter().map(|&i| (written[i].0, nodes[i]));
                    // What is set aside for the summary and whether names answer calls depend on the transcript alone.
                    let (takes_names, summary_tokens) =
                        (numbers.iter().sum::<usize>() % 2 == 1, [0, 4, 25][turn % 3]);
                    let subject = Subject::read(spoken, &messages, takes_names, summary_tokens);
                    let mut keeps = budgets(subject.counts.total(), summary_tokens).to_vec();
                    keeps.extend(asked(turn));
                    if let Err(why) = compare(&subject, &messages, takes_names, &keeps) {
                        panic!("{why}");
                    }
                    if !advance(&mut numbers, forms.len(), length) {
                        break;
                    }
                }
            }
        })
        .unwrap();
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let expected: usize = (1..=length).map(|n| 40usize.pow(n as u32)).sum();
    assert_eq!(tried.into_inner(), expected);
}

/// The next list of numbers behind the same first one, shorter ones first; false behind the last.
fn advance(numbers: &mut Vec<usize>, base: usize, length: usize) -> bool {
    for at in (1..numbers.len()).rev() {
        numbers[at] += 1;
        if numbers[at] < base {
            return true;
        }
        numbers[at] = 0;
    }
    numbers.push(0);
    numbers.len() <= length
}

#[test]
fn no_messages_need_no_plan() {
    let subject = Subject::new(&[], false, 9);
    compare(&subject, &[], false, &[Keep::Fit(0), Keep::Tokens(0), Keep::Messages(1)]).unwrap();
}
