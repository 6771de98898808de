//! Random transcripts, longer than those that can be tried exhaustively.

use foldline::fold::{Step, steps};
use foldline::plan::{Plan, Planned};
use proptest::prelude::*;

use super::super::depth::{cases, config};
use super::drawn::{Asked, Case, Cases};
use super::model::{Bound, Message};
use super::subject::{Subject, compare, folded, place, said};

fn plan_of(outcome: Planned) -> Option<Box<Plan>> {
    match outcome {
        Planned::Plan(plan) => Some(plan),
        Planned::Infeasible(_) => None,
    }
}

/// Whether a fold puts a message behind one that binds to the next: reasoning that is pinned though it led to nothing,
/// a call by itself, a turn with what is put behind it. They are a group then, and count otherwise.
fn brings_together(plan: &Plan, subject: &Subject, messages: &[Message]) -> bool {
    let steps = steps(plan, &subject.transcript, true, false);
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

/// A part of the random transcripts.
fn share(of: u32) -> ProptestConfig {
    config(cases("proof_cases") / of)
}

proptest! {
    #![proptest_config(share(2))]

    #[test]
    fn every_plan_of_a_short_list_is_what_brute_force_finds(case in Cases::new(0..9, Asked::Any)) {
        let Case { messages, takes_names, summary_tokens, keep, .. } = case;
        let subject = Subject::new(&messages, takes_names, summary_tokens);
        compare(&subject, &messages, takes_names, &[keep]).map_err(TestCaseError::fail)?;
    }
}

proptest! {
    #![proptest_config(share(4))]

    #[test]
    fn every_plan_of_a_long_list_is_what_brute_force_finds(case in Cases::new(9..24, Asked::Any)) {
        let Case { messages, takes_names, summary_tokens, keep, .. } = case;
        let subject = Subject::new(&messages, takes_names, summary_tokens);
        compare(&subject, &messages, takes_names, &[keep]).map_err(TestCaseError::fail)?;
    }
}

proptest! {
    // These take several plans each.
    #![proptest_config(share(12))]

    #[test]
    fn i6_a_folded_transcript_needs_no_second_fold(case in Cases::new(0..18, Asked::Lasting)) {
        let Case { messages, takes_names, keep, .. } = case;
        let summary_tokens = 40;
        let subject = Subject::new(&messages, takes_names, summary_tokens);
        let Some(first) = plan_of(subject.plan(keep)) else { return Ok(()) };
        if brings_together(&first, &subject, &messages) {
            return Ok(());
        }
        let after = folded(&first, &subject, &messages, 3);
        let again = Subject::new(&after, takes_names, summary_tokens).plan(keep);
        let again = plan_of(again).ok_or_else(|| TestCaseError::fail("infeasible once folded"))?;
        prop_assert!(!again.changes(), "{:?} then {:?}", said(&Planned::Plan(first)), said(&Planned::Plan(again)));
    }

    #[test]
    fn i7_a_larger_budget_never_keeps_less(case in Cases::new(0..18, Asked::Budgets)) {
        let Case { messages, takes_names, summary_tokens, keep, other_keep, .. } = case;
        let subject = Subject::new(&messages, takes_names, summary_tokens);
        let Some(small) = plan_of(subject.plan(keep)) else { return Ok(()) };
        let large = plan_of(subject.plan(other_keep)).ok_or_else(|| TestCaseError::fail("infeasible with more"))?;
        prop_assert!(large.folded().count() <= small.folded().count());
    }

    #[test]
    fn trim_answers_from_its_floor_on_and_drops_less_with_more(case in Cases::new(0..18, Asked::Any)) {
        let Case { messages, takes_names, .. } = case;
        let subject = Subject::new(&messages, takes_names, 0);
        let total = subject.counts.total();
        let mut dropped = messages.len();
        let floor = plan_of(subject.trim(total)).map_or(total, |plan| plan.floor);
        for budget in [floor.saturating_sub(1), floor, (floor + total) / 2, total.saturating_sub(1).max(floor), total] {
            let Some(plan) = plan_of(subject.trim(budget)) else {
                prop_assert!(budget < floor);
                continue;
            };
            prop_assert!(budget >= floor && plan.is_consistent() && !plan.summarizes());
            prop_assert!(plan.tokens_after() <= budget);
            let gone: Vec<usize> = plan.folded().collect();
            let group = &subject.structure.group_of;
            let stays = |i: &usize| !plan.is_folded(*i);
            prop_assert!(!gone.iter().any(|&i| (0..messages.len()).filter(stays).any(|j| group[i] == group[j])));
            prop_assert!(gone.iter().all(|&i| subject.structure.counts(i)));
            prop_assert!(gone.len() <= dropped);
            dropped = gone.len();
        }
    }

    #[test]
    fn i8_an_appended_message_never_moves_the_cut_back(case in Cases::new(0..18, Asked::Fixed)) {
        let Case { messages, takes_names, summary_tokens, keep, more, .. } = case;
        let before = Subject::new(&messages, takes_names, summary_tokens);
        let longer: Vec<Message> = messages.iter().cloned().chain([more]).collect();
        let after = Subject::new(&longer, takes_names, summary_tokens);
        let (Some(one), Some(two)) = (plan_of(before.plan(keep)), plan_of(after.plan(keep))) else { return Ok(()) };
        let last = messages.len();
        let calls = after.transcript.part_range(last).filter_map(|part| after.structure.pairing.call_of(part));
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
