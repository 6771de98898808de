//! What is proved: the planner, reached through the readers, and its answers in the oracle's words.

use foldline::count::counter::{Counts, CustomCounter, count_transcript};
use foldline::error::Result as Found;
use foldline::fold::{Step, steps};
use foldline::formats::{Format, read_message};
use foldline::json::{JsonNode, with_document};
use foldline::node::Node;
use foldline::plan::{
    Action, Keep, Plan, PlanInput, PlanOptions, Planned, PrefixSums, ThinkingRule, TrimOptions, plan,
    trim_input,
};
use foldline::rules::roles::Side;
use foldline::rules::{Pins, Structure, analyze};
use foldline::transcript::{Builder, Framing, Transcript};

use super::model::{Bound, Message, Part, Who};
use super::oracle::{Act, Answer, Expected, Oracle};

/// One token a code point.
fn counter() -> CustomCounter<impl Fn(&str) -> Found<u64> + Send + Sync> {
    CustomCounter(|text: &str| Ok(text.chars().count() as u64))
}

/// Messages as the library reads them.
pub struct Subject {
    pub transcript: Transcript,
    pub structure: Structure,
    pub counts: Counts,
    pub summary_tokens: u64,
}

impl Subject {
    /// Writes messages in their dialects and reads them back.
    pub fn new(messages: &[Message], takes_names: bool, summary_tokens: u64) -> Self {
        let written: Vec<(Format, String)> = messages.iter().map(Message::written).collect();
        let texts: Vec<&str> = written.iter().map(|(_, text)| text.as_str()).collect();
        let json = format!("[{}]", texts.join(","));
        with_document(json.as_bytes(), |document| {
            let nodes = written.iter().map(|(format, _)| *format).zip(document.items());
            Subject::read(nodes, messages, takes_names, summary_tokens)
        })
        .unwrap()
    }

    /// Reads messages that were parsed before.
    pub fn read<'d>(
        nodes: impl Iterator<Item = (Format, JsonNode<'d>)>,
        messages: &[Message],
        takes_names: bool,
        summary_tokens: u64,
    ) -> Self {
        let framing = if takes_names { Framing::Gemini } else { Framing::Unframed };
        let mut builder = Builder::new(framing, false);
        nodes.for_each(|(format, node)| read_message(&node, format, &mut builder).unwrap());
        let transcript = builder.finish();
        let pinned = messages.iter().enumerate().filter(|(_, message)| message.is_pinned);
        // By importance, which also pins the summaries of earlier folds.
        let pins = Pins { importance: pinned.map(|(i, _)| (i, 10.0)).collect(), ..Pins::default() };
        let structure = analyze(&transcript, &pins).unwrap();
        let counts = count_transcript(&counter(), &transcript, &mut || true).unwrap();
        Subject { transcript, structure, counts, summary_tokens }
    }

    pub fn tokens(&self) -> Vec<u64> {
        self.counts.per_message.iter().map(|&tokens| u64::from(tokens)).collect()
    }

    pub fn plan(&self, keep: Keep) -> Planned {
        let request = PlanOptions {
            keep,
            summary_tokens: self.summary_tokens,
            context_window: None,
            min_gain_tokens: 0,
            thinking: ThinkingRule::Keep,
        };
        let Subject { transcript, structure, counts, .. } = self;
        plan(transcript, Format::Pi, structure, counts, &counter(), request, &mut || true).unwrap()
    }
}

impl Subject {
    /// Trims to a budget with every switch at its loosest, and without the pin of the newest user message.
    pub fn trim(&self, max_tokens: u64) -> Planned {
        let Subject { transcript, structure, counts, .. } = self;
        let sums = &PrefixSums::new(structure, &counts.per_message);
        let input = PlanInput {
            source: transcript,
            format: Format::Pi,
            structure,
            counts,
            sums,
            counter: &counter(),
            fingerprint: transcript.fingerprint(),
        };
        let options = TrimOptions {
            max_tokens,
            keep_newest_user: false,
            start_on_user: false,
            whole_turns: false,
            clear: true,
            shorten: true,
            filler_tokens: [0; 2],
        };
        trim_input(&input, options, None, &mut || true).unwrap()
    }
}

/// A plan in the oracle's words.
pub fn said(outcome: &Planned) -> Answer {
    let plan = match outcome {
        Planned::Plan(plan) => plan,
        Planned::Infeasible(infeasible) => return Err(infeasible.floor),
    };
    let act = |action: &Action| match action {
        Action::Keep => Act::Keep,
        Action::Pin => Act::Pin,
        Action::Summarize | Action::Drop => Act::Summarize,
        Action::Clear => Act::Clear,
        Action::Shorten => Act::Shorten,
    };
    Ok(Expected {
        cut: plan.cut,
        turn_prefix: plan.turn_prefix,
        actions: plan.actions.iter().map(act).collect(),
        tokens_kept: plan.tokens_kept,
        edits: plan.edits.iter().map(|edit| (edit.message, edit.part, edit.kept_chars)).collect(),
    })
}

/// Plans messages for each keep and compares with the oracle; the message of what differs.
///
/// # Errors
/// What the planner says, beside what it should.
pub fn compare(
    subject: &Subject,
    messages: &[Message],
    takes_names: bool,
    keeps: &[Keep],
) -> Result<(), String> {
    let tokens = subject.tokens();
    let oracle = Oracle::new(messages, &tokens, takes_names, subject.summary_tokens);
    for &keep in keeps {
        let outcome = subject.plan(keep);
        let (found, expected) = (said(&outcome), oracle.plan(keep));
        if found != expected {
            return Err(format!("{keep:?}\nfound    {found:?}\nexpected {expected:?}\n{messages:#?}"));
        }
        if let Planned::Plan(plan) = outcome {
            let floor = oracle.floor();
            if plan.floor != floor {
                return Err(format!("{keep:?}: floor {} for {floor}\n{messages:#?}", plan.floor));
            }
            sound(&plan, subject).map_err(|why| format!("{keep:?}: {why}\n{messages:#?}"))?;
        }
    }
    Ok(())
}

/// What holds of every plan, whatever was asked for: a partition (I1), in order (I2), whole groups (I3).
fn sound(plan: &Plan, subject: &Subject) -> Result<(), String> {
    if !plan.is_consistent() {
        return Err("the plan contradicts itself".to_owned());
    }
    let steps = steps(plan, &subject.transcript, true, false);
    let stays: Vec<usize> = steps.iter().filter_map(|step| place(*step)).collect();
    let folded: Vec<usize> = plan.folded().collect();
    let mut all: Vec<usize> = stays.iter().chain(&folded).copied().collect();
    all.sort_unstable();
    if !stays.is_sorted() || !all.iter().copied().eq(0..subject.transcript.len()) {
        return Err("not every message is either kept, in order, or folded".to_owned());
    }
    let summaries = steps.iter().filter(|step| **step == Step::Summary).count();
    if summaries != usize::from(plan.cut > 0) {
        return Err(format!("{summaries} summaries"));
    }
    let group = &subject.structure.group_of;
    let torn = folded.iter().any(|&i| stays.iter().any(|&j| group[i] == group[j]));
    if torn { Err("a group is torn".to_owned()) } else { Ok(()) }
}

/// The caller's message at a place of the folded list.
pub fn place(step: Step) -> Option<usize> {
    match step {
        Step::Keep(i) | Step::Edit(i) => Some(i),
        Step::Summary | Step::Filler(_) => None,
    }
}

/// The folded messages, with a summary of so many code points beyond its label.
pub fn folded(plan: &Plan, subject: &Subject, messages: &[Message], summary_chars: usize) -> Vec<Message> {
    let edited = |i: usize| {
        let mut message = messages[i].clone();
        for edit in plan.edits.iter().filter(|edit| edit.message == i) {
            if let Part::Result { text, .. } = &mut message.parts[edit.part] {
                *text = match edit.kept_chars {
                    None => foldline::plan::PLACEHOLDER.to_owned(),
                    // JSON writes the marker's newlines as escapes; its length is what matters here.
                    Some((head, tail)) => foldline::plan::shortened_text(text, head, tail).replace('\n', "_"),
                };
            }
        }
        message
    };
    let new = |step: Step| match step {
        Step::Keep(i) | Step::Edit(i) => edited(i),
        Step::Summary => Message::summary(summary_chars),
        Step::Filler(side) => {
            let who = if side == Side::User { Who::User } else { Who::Assistant };
            Message::new(who, Bound::Free, vec![Part::Text(side.filler().to_owned())])
        }
    };
    steps(plan, &subject.transcript, true, false).into_iter().map(new).collect()
}
