//! Random transcripts, longer than those that can be tried exhaustively.

use foldline::apply::{Step, steps};
use foldline::plan::{Keep, Outcome, Plan, Unit};
use proptest::prelude::*;
use proptest::sample::select;

use crate::model::{
    Bound, Message, Part, Who, call, fixed_result, forms, named_result, nameless_call, result, text,
};
use crate::subject::{Subject, compare, folded, place, said};

fn part() -> impl Strategy<Value = Part> {
    let id = || select(vec!['a', 'b', 'c']);
    let chars = || prop_oneof![4 => 0usize..12, 2 => 12usize..60, 1 => 60usize..200];
    prop_oneof![
        3 => chars().prop_map(text),
        4 => id().prop_map(call),
        4 => (id(), chars()).prop_map(|(id, chars)| result(id, chars)),
        1 => select(vec!['n', 'm']).prop_map(nameless_call),
        1 => (select(vec![Some('n'), Some('m'), None]), chars()).prop_map(|(name, chars)| named_result(name, chars)),
    ]
}

/// A message of one of the forty forms, or one of several parts in any order.
fn message() -> impl Strategy<Value = Message> {
    let parts = prop::collection::vec(part(), 1..5);
    let who = select(vec![Who::User, Who::Assistant]);
    let mixed = (who, parts).prop_map(|(who, mut parts)| {
        // Only the model calls.
        parts.retain(|part| who == Who::Assistant || !matches!(part, Part::Call { .. }));
        // Without a call a turn of Gemini's model is bound to the next.
        let nameless = parts.iter().any(|part| matches!(part, Part::Result { id: None, .. }));
        let calls = parts.iter().any(|part| matches!(part, Part::Call { .. }));
        let bound = if who == Who::Assistant && nameless && !calls { Bound::Turn } else { Bound::Free };
        Message::new(who, bound, parts)
    });
    let served = (select(vec!['a', 'b', 'c']), 0usize..30).prop_map(|(id, chars)| {
        Message::new(Who::Assistant, Bound::Free, vec![call(id), fixed_result(id, chars)])
    });
    let filler = select(vec![(Who::User, "Go on."), (Who::Assistant, "Understood.")])
        .prop_map(|(who, text)| Message::new(who, Bound::Free, vec![Part::Text(text.to_owned())]));
    let pinned = (0u8..12, prop_oneof![12 => select(forms()), 10 => mixed, 2 => served, 1 => filler]);
    pinned.prop_map(|(pin, message)| if pin == 0 { message.pinned() } else { message })
}

fn keep() -> impl Strategy<Value = Keep> {
    prop_oneof![
        2 => (0u64..300).prop_map(Keep::Tokens),
        1 => (0u8..=10, any::<bool>()).prop_map(|(tenths, of_tokens)| {
            let unit = if of_tokens { Unit::Tokens } else { Unit::Messages };
            Keep::Fraction(f64::from(tenths) / 10.0, unit)
        }),
        1 => (0u64..14).prop_map(Keep::Messages),
        1 => (0u64..8).prop_map(Keep::Turns),
        1 => (0u64..10).prop_map(Keep::Iterations),
        3 => (0u64..600).prop_map(Keep::Fit),
    ]
}

/// Keeps that ask for at least something whatever the whole is.
fn fixed_keep() -> impl Strategy<Value = Keep> {
    prop_oneof![
        2 => (0u64..300).prop_map(Keep::Tokens),
        1 => (0u64..14).prop_map(Keep::Messages),
        1 => (0u64..8).prop_map(Keep::Turns),
        1 => (0u64..10).prop_map(Keep::Iterations),
    ]
}

/// All but `KeepFraction`, which shrinks by definition.
fn lasting_keep() -> impl Strategy<Value = Keep> {
    prop_oneof![3 => fixed_keep(), 1 => (0u64..600).prop_map(Keep::Fit)]
}

/// Messages, whether names answer calls, what is set aside for the summary, a keep.
type Case = (Vec<Message>, bool, u64, Keep);

fn case(keep: impl Strategy<Value = Keep>) -> impl Strategy<Value = Case> {
    (prop_oneof![3 => short(), 1 => long()], any::<bool>(), select(vec![0u64, 5, 40]), keep)
}

fn short() -> impl Strategy<Value = Vec<Message>> {
    prop::collection::vec(message(), 0..9)
}

fn long() -> impl Strategy<Value = Vec<Message>> {
    prop::collection::vec(message(), 9..24)
}

fn plan_of(outcome: Outcome) -> Option<Box<Plan>> {
    match outcome {
        Outcome::Plan(plan) => Some(plan),
        Outcome::Infeasible(_) => None,
    }
}

/// Whether a fold puts a message behind one that binds to the next: reasoning that is pinned though it led to nothing,
/// a call by itself, a turn with what is put behind it. They are a group then, and count otherwise.
fn brings_together(plan: &Plan, subject: &Subject, messages: &[Message]) -> bool {
    let steps = steps(plan, &subject.transcript, false);
    if steps.iter().any(|step| matches!(step, Step::Filler(_))) {
        return true;
    }
    let stays: Vec<Option<usize>> = steps.into_iter().map(place).collect();
    stays.windows(2).any(|pair| match pair {
        [Some(one), Some(next)] => {
            one + 1 != *next && matches!(messages[*one].bound, Bound::Reasoning | Bound::Call)
        }
        _ => false,
    })
}

/// That part of the cases.
fn share(of: u32) -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(10_000);
    // A failing case is told whole; nothing is written beside the sources.
    ProptestConfig { cases: cases / of, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(share(2))]

    #[test]
    fn every_plan_of_a_short_list_is_what_brute_force_finds(
        messages in short(), takes_names: bool, summary_tokens in select(vec![0u64, 5, 40]), keep in keep(),
    ) {
        let subject = Subject::new(&messages, takes_names, summary_tokens);
        compare(&subject, &messages, takes_names, &[keep]).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn every_plan_of_a_long_list_is_what_brute_force_finds(
        messages in long(), takes_names: bool, summary_tokens in select(vec![0u64, 5, 40]), keep in keep(),
    ) {
        let subject = Subject::new(&messages, takes_names, summary_tokens);
        compare(&subject, &messages, takes_names, &[keep]).map_err(TestCaseError::fail)?;
    }
}

proptest! {
    // These take several plans each.
    #![proptest_config(share(20))]

    #[test]
    fn i6_a_folded_transcript_needs_no_second_fold((messages, takes_names, _, keep) in case(lasting_keep())) {
        let summary_tokens = 40;
        let subject = Subject::new(&messages, takes_names, summary_tokens);
        let Some(first) = plan_of(subject.plan(keep)) else { return Ok(()) };
        if brings_together(&first, &subject, &messages) {
            return Ok(());
        }
        let after = folded(&first, &subject, &messages, 3);
        let again = Subject::new(&after, takes_names, summary_tokens).plan(keep);
        let again = plan_of(again).ok_or_else(|| TestCaseError::fail("infeasible once folded"))?;
        prop_assert!(!again.changes(), "{:?} then {:?}", said(&Outcome::Plan(first)), said(&Outcome::Plan(again)));
    }

    #[test]
    fn i7_a_larger_budget_never_keeps_less(
        (messages, takes_names, summary_tokens, _) in case(keep()), less in 0u64..600, more in 0u64..100,
    ) {
        let subject = Subject::new(&messages, takes_names, summary_tokens);
        let Some(small) = plan_of(subject.plan(Keep::Fit(less))) else { return Ok(()) };
        let large = subject.plan(Keep::Fit(less + more));
        let large = plan_of(large).ok_or_else(|| TestCaseError::fail("infeasible with more"))?;
        prop_assert!(large.folded().count() <= small.folded().count());
    }

    #[test]
    fn i8_an_appended_message_never_moves_the_cut_back(
        (messages, takes_names, summary_tokens, keep) in case(fixed_keep()), more in message(),
    ) {
        let before = Subject::new(&messages, takes_names, summary_tokens);
        let longer: Vec<Message> = messages.iter().cloned().chain([more]).collect();
        let after = Subject::new(&longer, takes_names, summary_tokens);
        let (Some(one), Some(two)) = (plan_of(before.plan(keep)), plan_of(after.plan(keep))) else { return Ok(()) };
        let last = messages.len();
        let calls = after.transcript.part_range(last).filter_map(|part| after.structure.pairing.call_of[part]);
        let answered: Vec<usize> =
            calls.map(|call| after.structure.pairing.message_of[call as usize] as usize).collect();
        // Nothing already summarised is answered by what comes later: it would be an orphan.
        prop_assert!(one.folded().all(|i| !answered.contains(&i)));
        // What joins an earlier group (a result, what reasoning led to) may open it, or move its end.
        let group = after.structure.groups[after.structure.group_of[last] as usize];
        if group.first as usize == last {
            prop_assert!(two.cut >= one.cut, "{} then {}\n{longer:#?}", one.cut, two.cut);
        }
    }
}
