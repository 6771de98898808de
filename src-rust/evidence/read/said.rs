//! What users and agents say: requests, answers, rules; decisions, causes, steps.

use std::borrow::Cow;
use std::sync::LazyLock;

use super::calls::CallIntent;
use super::collect::{Cause, Collector, note, push};
use super::files::reports::remarks;
use super::runs::Call;
use super::wrappers::{self, ENVIRONMENT, Unwrapped};
use crate::evidence::Note;
use crate::evidence::language::asking::{
    TAIL_BYTES, UserQuestion, answered, answers_by_number, asked_in, chosen, is_question, left_to_answer,
};
use crate::evidence::language::corrections;
use crate::evidence::language::cues::{self, CuedSentence};
use crate::evidence::language::labels;
use crate::evidence::language::lists::plan_steps;
use crate::evidence::language::matcher::Matcher;
use crate::evidence::language::normal::folded;
use crate::evidence::language::plan_rules::{rules_in, rules_of_plan};
use crate::evidence::language::statements::{self, Statement};
use crate::evidence::language::steps::{self, overlaps, paths_in, telling};
use crate::evidence::language::table::{is_approval, is_courtesy};
use crate::evidence::text::{
    Phrases, cut_middle, cut_whole, escape_section_tags, head_bytes, one_line, sentences,
    starts_with_ignoring_case, tail_bytes,
};
use crate::evidence::write::document::ASKED;
use crate::evidence::write::ranking::is_nod;

/// Longest original task, later request and last text, in characters.
const MAX_TASK_CHARS: usize = 12_000;
const MAX_REQUEST_CHARS: usize = 4_000;
const MAX_STATE_CHARS: usize = 3_000;
/// Most sentences of a kind in one message.
const MAX_PER_MESSAGE: usize = 8;
/// Shortest text that counts as a report; shorter ones announce the next step.
const MIN_REPORT_BYTES: usize = 240;
/// Longest answer to a question.
const MAX_ANSWER_CHARS: usize = 400;
/// Longest answer that is no request of its own.
const MAX_PURE_CHARS: usize = 90;
/// Most calls that are listed after the first of those that were refused together.
const MAX_REFUSED_TOGETHER: usize = 2;
/// Most causes that may be ruled out, the newest.
const MAX_CAUSES: usize = 40;
/// Longest sentence such as "no chart", in words.
const MAX_DENIED_WORDS: usize = 4;
/// Words that make an answer a request as well.
const WISHES: [&str; 28] = [
    "please",
    "can you",
    "could you",
    "need",
    "want",
    "make",
    "add",
    "fix",
    "write",
    "create",
    "change",
    "remove",
    "use",
    "show",
    "run",
    "update",
    "also",
    "then",
    "next",
    "build",
    "move",
    "rename",
    "implement",
    "check",
    "find",
    "let's",
    "start",
    "give",
];

impl Collector<'_> {
    /// A message of the user: the words in it, or a summary, or nothing.
    pub(super) fn user_words(&mut self, i: usize, text: &str) {
        self.turn_ended();
        let unwrapped = wrappers::unwrap(text);
        let told: Vec<String> = wrappers::told(text);
        if let Some(sandbox) = wrappers::sandbox(text) {
            self.found.findings.retain(|note| !note.text.starts_with(ENVIRONMENT));
            push(&mut self.found.findings, note(i, &sandbox));
        }
        match unwrapped {
            Unwrapped::Nothing => {}
            Unwrapped::ForeignSummary(summary) => self.foreign_summary(i, &summary),
            Unwrapped::Words(words) => self.words(i, &words),
        }
        told.iter().for_each(|words| self.words(i, words));
    }

    /// Words of the user.
    pub(super) fn words(&mut self, i: usize, words: &str) {
        let words = words.trim();
        let asked = self.last_said.take().and_then(|(_, end)| asked_in(&end));
        let asked = asked.filter(|asked| !is_courtesy(&asked.question));
        let is_nod = is_nod(words);
        let by_number = asked.as_ref().map(|asked| answers_by_number(asked, words));
        let (by_number, besides) = match by_number.flatten() {
            Some((pairs, besides)) => (pairs, Cow::Owned(besides)),
            None => (Vec::new(), Cow::Borrowed(words)),
        };
        let mut is_answer = !by_number.is_empty() && (besides.is_empty() || self::is_nod(&besides));
        for (asked, answer) in &by_number {
            self.answered(i, asked, answer);
        }
        // A question answers nothing, and consent to what was shown decides nothing.
        let says_nothing =
            |asked: &UserQuestion| is_question(words) || (is_nod && is_approval(&asked.question));
        if let Some(asked) = asked.filter(|asked| by_number.is_empty() && !says_nothing(asked))
            && words.chars().count() <= MAX_ANSWER_CHARS
            && !words.contains("\n\n")
        {
            self.answered(i, &asked, words);
            is_answer = is_pure_answer(&asked, words);
        }
        // The model's earlier questions have been answered.
        self.found.next_steps.clear();
        let all: Vec<&str> = sentences(words).collect();
        let questions = all.iter().filter(|sentence| is_question(sentence));
        self.found.questions = questions.take(MAX_PER_MESSAGE).map(|words| note(i, words)).collect();
        self.names.read(i, words, true);
        if is_nod {
            return;
        }
        // The answer to a question of a skill is the task.
        let is_first = self.found.requests.iter().all(|note| wrappers::is_command(&note.text));
        if !is_answer || (is_first && !self.found.requests.is_empty()) {
            let most = if self.found.requests.is_empty() { MAX_TASK_CHARS } else { MAX_REQUEST_CHARS };
            let said = if besides.is_empty() { words } else { &besides };
            let request = escape_section_tags(&cut_middle(said, most)).into_owned();
            // A command alone, such as `/review`, is the task only if nothing else is.
            if is_first && !wrappers::is_command(&request) {
                self.found.requests.clear();
            }
            push(&mut self.found.requests, Note::new(i, request));
            self.found.last_step = None;
            self.user_list(i, &besides);
        }
        let rules = rules_in(words);
        let said: Vec<CuedSentence<'_>> = match &rules {
            Cow::Borrowed(_) => all.iter().map(|sentence| CuedSentence::new(sentence)).collect(),
            Cow::Owned(rules) => cues::said(rules),
        };
        self.demands(i, &rules, &said, is_answer);
        for clause in denied(words) {
            self.calls.push(Call::new(i, "", CallIntent::Denied(clause)));
        }
        // "No chart." drops the step of that name.
        for sentence in all.iter().filter(|sentence| !is_question(sentence)) {
            if starts_with_ignoring_case(sentence, "no ")
                && sentence.split_whitespace().count() <= MAX_DENIED_WORDS
            {
                self.pending.drop_by(&sentence["no ".len()..]);
            }
        }
        for sentence in said.iter().filter(|said| said.drops()) {
            self.tasks.drop_by(sentence.sentence);
            self.pending.drop_by(sentence.sentence);
            self.calls.push(Call::new(i, "", CallIntent::Dropped(sentence.sentence.to_owned())));
        }
    }

    /// A numbered list of the user is a list of steps, unless it describes something.
    fn user_list(&mut self, i: usize, words: &str) {
        let describes = ["reproduce", "expected", "actual", "steps to", "option", "question", "error"];
        let listed = plan_steps(words);
        if listed.len() < 2 || listed.iter().any(|step| step.number.is_none()) {
            return;
        }
        let lower = folded(head_bytes(words, 4_000));
        if !describes.iter().any(|word| lower.contains(word)) {
            self.pending.plan(i, listed);
        }
    }

    /// An answer with its question.
    pub(super) fn answered(&mut self, i: usize, asked: &UserQuestion, answer: &str) {
        let text = escape_section_tags(&answered(asked, answer)).into_owned();
        push(&mut self.found.answers, Note::new(i, text));
        self.found.next_steps.clear();
        self.last_said = None;
    }

    /// A call or plan that the user refused, with the words. Calls that were refused together are one item.
    pub(super) fn refused(&mut self, i: usize, subject: &str, words: Option<&str>) {
        let before = self.found.refusals.pop_if(|last| last.message == i && !last.text.ends_with('"'));
        let mut text = match before {
            // Many that were refused at once are many of a kind.
            Some(before) if before.text.matches("; ").count() >= MAX_REFUSED_TOGETHER => before.text,
            Some(before) => format!("{}; {subject}", before.text),
            None => format!("Refused: {subject}"),
        };
        if let Some(words) = words {
            text.push_str(&format!(". \"{}\"", one_line(&escape_section_tags(words), MAX_ANSWER_CHARS)));
            self.words(i, words);
        }
        push(&mut self.found.refusals, Note::new(i, text));
    }

    /// A plan that the user approved: its steps, and its rules.
    pub(super) fn approved(&mut self, i: usize, plan: &str) {
        self.pending.plan(i, plan_steps(plan));
        for line in rules_of_plan(plan, false) {
            let said = cues::said(line);
            for sentence in cues::constraints(&said, MAX_PER_MESSAGE) {
                push(&mut self.found.constraints, note(i, sentence));
            }
        }
    }

    /// Adds constraints, corrections and labelled lines of the user. A labelled line is one item.
    pub(super) fn demands(&mut self, i: usize, words: &str, said: &[CuedSentence<'_>], is_answer: bool) {
        let labelled = labels::labelled(words, 2 * MAX_PER_MESSAGE);
        let is_apart = |sentence: &&str| !labelled.iter().any(|line| line.contains(sentence));
        for line in &labelled {
            let is_constraint = cues::is_constraint(line) || sentences(line).any(cues::is_constraint);
            let list = if is_constraint { &mut self.found.constraints } else { &mut self.found.statements };
            push(list, note(i, line));
        }
        // The first request cannot be a correction, and an answer stands with its question.
        let is_first = self.found.requests.len() <= 1;
        let corrections = match is_first || is_answer {
            true => Vec::new(),
            false => corrections::corrections(words, said, MAX_PER_MESSAGE),
        };
        for sentence in corrections.iter().filter(|sentence| is_apart(sentence)) {
            push(&mut self.found.corrections, note(i, sentence));
        }
        let is_new = |sentence: &&str| {
            is_apart(sentence)
                && !corrections.iter().any(|known| known.contains(sentence))
                && !(is_answer && said.len() == 1)
        };
        for sentence in cues::constraints(said, MAX_PER_MESSAGE).iter().filter(|sentence| is_new(sentence)) {
            push(&mut self.found.constraints, note(i, sentence));
        }
    }

    /// A text of the agent.
    pub(super) fn assistant_words(&mut self, i: usize, text: &str) {
        let text = text.trim();
        if text.is_empty() {
            return;
        }
        self.acknowledges(i, text);
        let (mut names_step, mut kept, mut ruled_out) = (false, 0, 0);
        for said in statements::statements(text) {
            names_step |= said.names_step;
            if said.rules_out && ruled_out < MAX_PER_MESSAGE {
                ruled_out += 1;
                self.rule_out(i, said.sentence);
            }
            if said.reports && !self.pending.is_empty() {
                self.pending.report(i, said.sentence);
            }
            if kept >= MAX_PER_MESSAGE {
                continue;
            }
            match said.statement {
                Some(Statement::Decision) if said.is_cause && said.is_confirmed => {
                    let cause = note(i, said.sentence);
                    self.states_cause(&cause, true);
                    push(&mut self.found.findings, cause.clone());
                    push(&mut self.found.decisions, cause);
                    kept += 1;
                }
                Some(Statement::Decision) => {
                    let decision = note(i, said.sentence);
                    if said.is_cause {
                        self.states_cause(&decision, false);
                    }
                    push(&mut self.found.decisions, decision);
                    kept += 1;
                }
                // A legend: `(merged)` = the branch has been merged.
                Some(Statement::Outcome) if said.sentence.contains(" = ") => {}
                Some(Statement::Outcome) => {
                    push(&mut self.found.done, note(i, said.sentence));
                    kept += 1;
                }
                None if said.finds && tells(said.sentence) => {
                    let finding = note(i, said.sentence);
                    if said.is_confirmed {
                        self.states_cause(&finding, true);
                    }
                    push(&mut self.found.findings, finding);
                    kept += 1;
                }
                None => {}
            }
        }
        let remarks = remarks(text);
        if !remarks.is_empty() {
            self.reports.push((i, remarks));
        }
        let (done, at) = match self.pending.is_empty() {
            true => (Vec::new(), None),
            false => steps::progress(text),
        };
        self.pending.progress(i, &done, at);
        if names_step {
            self.pending.said(i, steps::steps(text));
        }
        let state = Note::new(i, escape_section_tags(&cut_whole(text, MAX_STATE_CHARS)).into_owned());
        if text.len() >= MIN_REPORT_BYTES {
            self.found.last_report = Some(state.clone());
        }
        self.found.last_state = Some(state);
        self.found.questions.clear();
        self.names.read(i, text, false);
        self.found.next_steps.clear();
        self.last_said = Some((i, tail_bytes(text, TAIL_BYTES).to_owned()));
    }

    /// What the agent's last text leaves to the user, if the user has said nothing since.
    pub(super) fn left_to_user(&mut self) {
        let Some((i, end)) = self.last_said.take() else { return };
        let question = left_to_answer(&end);
        self.found.next_steps.extend(question.map(|words| note(i, &format!("{ASKED}{words}"))));
    }

    /// Notes a cause; of many, only the newest can be ruled out.
    fn states_cause(&mut self, note: &Note, is_confirmed: bool) {
        self.causes.push(Cause { words: cause_words(&note.text), note: note.clone(), is_confirmed });
        if self.causes.len() > MAX_CAUSES {
            self.causes.remove(0);
        }
    }

    /// A cause that the agent stated before turns out to be none: those that share words with what is ruled out, or the
    /// newest if there are no words ("That is unchanged too").
    fn rule_out(&mut self, i: usize, sentence: &str) {
        let clause = sentence.split([',', ';', ':']).find(|clause| statements::rules_out(clause));
        let words = match cause_words(clause.unwrap_or(sentence)) {
            words if words.is_empty() => cause_words(sentence),
            words => words,
        };
        let shares = |cause: &Cause| words.iter().any(|word| word.len() > 3 && cause.words.contains(word));
        let (mut gone, mut left): (Vec<Cause>, Vec<Cause>) =
            std::mem::take(&mut self.causes).into_iter().partition(shares);
        if gone.is_empty() && words.is_empty() {
            gone.extend(left.pop_if(|cause| !cause.is_confirmed));
        }
        self.causes = left;
        for cause in &gone {
            self.found.decisions.retain(|note| *note != cause.note);
            self.found.findings.retain(|note| *note != cause.note);
        }
        push(&mut self.found.findings, note(i, &format!("Ruled out: {sentence}")));
    }
}

/// Whether an answer asks for nothing besides.
fn is_pure_answer(asked: &UserQuestion, words: &str) -> bool {
    let count = words.split_whitespace().count();
    if chosen(words, &asked.options).is_some() && count <= 3 {
        return true;
    }
    if words.chars().count() > MAX_PURE_CHARS || sentences(words).nth(1).is_some() {
        return false;
    }
    let lower = folded(words);
    let is_value = lower.starts_with(|c: char| c.is_ascii_digit());
    // "Yes, and put them there" asks for more, in any language.
    const YES: [&str; 8] = ["yes", "oui", "ja", "sí", "si", "sì", "sim", "да"];
    const AND: [&str; 12] = [
        " and ", " but ", " et ", " mais ", " und ", " aber ", " y ", " pero ", " e ", " ma ", " mas ", " и ",
    ];
    let first = lower.split(|c: char| !c.is_alphanumeric()).next().unwrap_or("");
    let adds = YES.contains(&first) && (count > 4 || AND.iter().any(|word| lower.contains(word)));
    static WISHED: LazyLock<Matcher> = LazyLock::new(|| Matcher::default().with(1, &WISHES));
    !adds && (is_value || !WISHED.is_in(&lower))
}

/// The words of a sentence that name a cause.
fn cause_words(sentence: &str) -> Vec<String> {
    const GENERIC: [&str; 8] = ["caus", "cause", "problem", "reason", "issue", "error", "wrong", "theory"];
    let mut words = telling(sentence);
    words.retain(|word| !GENERIC.contains(&word.as_str()));
    words
}

/// What the user does not want done: `block it` of "no, don't block it".
fn denied(words: &str) -> Vec<String> {
    let clause = |sentence: &str| {
        let lower = folded(sentence);
        let mut rest = lower.as_str();
        for opening in ["no, ", "no ", "ok, ", "please "] {
            rest = rest.strip_prefix(opening).unwrap_or(rest);
        }
        let rest = ["don't ", "do not ", "dont "].iter().find_map(|cue| rest.strip_prefix(cue))?;
        let clause = rest.split([',', ';', '.', '!']).next().unwrap_or("").trim();
        (!clause.is_empty()).then(|| clause.to_owned())
    };
    let head = head_bytes(words, 4_000);
    // Few messages deny anything: most of them are not read sentence by sentence.
    static CUES: LazyLock<Phrases> = LazyLock::new(|| Phrases::new(&["n't ", "n’t ", "nt ", "not "]));
    if !CUES.any_in(head) {
        return Vec::new();
    }
    sentences(head).filter_map(clause).take(MAX_PER_MESSAGE).collect()
}

/// Whether a finding is worth a line: it names something, and is not about the agent's own next move.
fn tells(sentence: &str) -> bool {
    let chars = sentence.chars().count();
    let lower = folded(sentence);
    (30..=240).contains(&chars)
        && (sentence.contains('`')
            || sentence.bytes().any(|b| b.is_ascii_digit())
            || !paths_in(sentence).is_empty())
        && !["i will", "i'll", "let me", "i need", "we need", "i am going", "i'm going"]
            .iter()
            .any(|lead| lower.contains(lead))
}

/// Whether two sentences are about the same.
pub(super) fn is_same_matter(a: &str, b: &str) -> bool {
    let (a, b) = (telling(a), telling(b));
    overlaps(&a, &b) || overlaps(&b, &a)
}
