//! Steps that are named in texts and plans, less those done since; and the one that the agent is at.

pub(super) mod last_step;

use crate::evidence::language::lists::Named;
use crate::evidence::language::steps::{Steps, is_same_step, overlaps, paths_in, telling};
use crate::evidence::language::table::is_dropping;
use crate::evidence::text::{escape_section_tags, one_line};
use crate::evidence::{FileOp, FileTouched, Note, Step};

/// Longest step, and most of them.
const MAX_CHARS: usize = 300;
const MAX_STEPS: usize = 120;

/// Where a step was named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// A plan that the user approved, or a list of the user.
    Plan,
    /// An earlier summary.
    Earlier,
    /// A text of the agent.
    Agent,
}

#[derive(Clone, Debug)]
struct Item {
    message: usize,
    number: Option<u32>,
    text: String,
    words: Vec<String>,
    source: Source,
    is_done: bool,
    is_current: bool,
    /// The agent said that it comes next.
    is_next: bool,
}

/// The steps after all messages so far.
#[derive(Debug, Default)]
pub(super) struct Pending {
    items: Vec<Item>,
    /// The last announcement of the agent.
    now: Option<Note>,
    /// Ranges of numbers of the plan that are done.
    done: Vec<(u32, u32)>,
    progress_in: usize,
}

impl Pending {
    /// A plan: it replaces an earlier one.
    pub(super) fn plan(&mut self, message: usize, steps: Vec<Named>) {
        if steps.is_empty() {
            return;
        }
        self.items.retain(|item| item.source != Source::Plan);
        self.done.clear();
        steps.into_iter().for_each(|step| self.push(message, step.number, &step.text, Source::Plan, false));
    }

    /// A step of an earlier summary.
    pub(super) fn earlier(&mut self, message: usize, number: Option<u32>, text: &str, is_current: bool) {
        let source = if number.is_some() { Source::Plan } else { Source::Earlier };
        self.push(message, number, text, source, is_current);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    fn push(&mut self, message: usize, number: Option<u32>, text: &str, source: Source, is_current: bool) {
        let text = one_line(&escape_section_tags(text), MAX_CHARS);
        let words = telling(&text);
        if self.items.len() >= MAX_STEPS || text.is_empty() {
            return;
        }
        self.items.push(Item {
            message,
            number,
            text,
            words,
            source,
            is_done: false,
            is_current,
            is_next: false,
        });
    }

    /// Steps that the agent names.
    pub(super) fn said(&mut self, message: usize, steps: Steps) {
        if let Some(now) = steps.now {
            let words = telling(&now);
            self.items.iter_mut().for_each(|item| item.is_current = overlaps(&item.words, &words));
            self.now = Some(Note::new(message, one_line(&escape_section_tags(&now), MAX_CHARS)));
        }
        if steps.steps.is_empty() {
            return;
        }
        if steps.is_whole {
            // A list of all that is left also replaces that of an earlier summary if it names a step of it.
            let said: Vec<Vec<String>> = match steps.is_all {
                true => steps.steps.iter().map(|step| telling(&step.text)).collect(),
                false => Vec::new(),
            };
            let names = |item: &Item| {
                item.source == Source::Earlier && said.iter().any(|words| overlaps(words, &item.words))
            };
            let is_earlier = self.items.iter().any(names);
            let is_kept = |item: &Item| match item.source {
                Source::Plan => true,
                Source::Earlier => !is_earlier || names(item),
                Source::Agent => false,
            };
            self.items.retain(is_kept);
        }
        if steps.is_next {
            self.items.retain(|item| !item.is_next);
            self.pass_over(&steps.steps);
        }
        for step in steps.steps {
            let is_known = |item: &Item| {
                !item.is_done && item.message != message && is_same_step(&step.text, &item.text)
            };
            if !self.items.iter().any(is_known) {
                self.push(message, None, &step.text, Source::Agent, false);
                if let Some(item) = self.items.last_mut().filter(|item| item.message == message) {
                    item.is_next = steps.is_next && !steps.is_whole;
                }
            }
        }
        self.now = self.now.take().filter(|now| now.message == message);
    }

    /// What comes next is the end of the open steps: those before it have been done.
    fn pass_over(&mut self, next: &[Named]) {
        if next.len() < 2 {
            return;
        }
        let is_open = |item: &&Item| item.source != Source::Plan && !item.is_done;
        let open = self.items.iter().filter(is_open).count();
        let Some(passed) = open.checked_sub(next.len()) else { return };
        let rest = self.items.iter().filter(is_open).skip(passed);
        if rest.zip(next).all(|(item, step)| is_same_step(&item.text, &step.text)) {
            let items = self.items.iter_mut().filter(|item| is_open(&&**item));
            items.take(passed).for_each(|item| item.is_done = true);
        }
    }

    /// The user drops a step, by its number or by a word of it.
    pub(super) fn drop_by(&mut self, sentence: &str) {
        let lower = sentence.to_lowercase();
        let number = lower.split_once("step ").and_then(|(_, rest)| {
            rest[..rest.bytes().take_while(u8::is_ascii_digit).count()].parse::<u32>().ok()
        });
        let words_of = |clause: &str| {
            let mut words = telling(clause);
            words.retain(|word| !is_dropping(word));
            words
        };
        let clauses: Vec<&str> = lower.split([',', ';']).collect();
        let drops = |clause: &&str| clause.split_whitespace().any(is_dropping);
        let at = clauses.iter().position(drops).unwrap_or(0);
        // What comes after a comma is the reason; "the tax script is dead, skip it" names the step before.
        let (said, is_before) = match words_of(clauses[at]) {
            said if said.is_empty() && at > 0 => (words_of(clauses[at - 1]), true),
            said => (said, false),
        };
        let is_said = |word: &String| {
            said.iter().any(|said| {
                said == word || said.strip_prefix(word.as_str()).is_some_and(|end| end.starts_with('.'))
            })
        };
        let is_dropped = |item: &Item| match number {
            Some(number) => item.number == Some(number),
            None if is_before => !item.words.is_empty() && item.words.iter().all(is_said),
            None => overlaps(&said, &item.words) && overlaps(&item.words, &said),
        };
        self.items.iter_mut().filter(|item| is_dropped(item)).for_each(|item| item.is_done = true);
    }

    /// A sentence of the agent says that something is done.
    pub(super) fn report(&mut self, message: usize, sentence: &str) {
        let words = telling(sentence);
        // A step that names a file is meant if the file is.
        let names = |item: &Item| {
            let paths = paths_in(&item.text);
            let name = |path: &str| path.rsplit('/').next().is_some_and(|name| sentence.contains(name));
            paths.is_empty() || paths.iter().any(|path| name(path))
        };
        let is_meant = |item: &Item| item.message < message && overlaps(&item.words, &words) && names(item);
        let share = |item: &Item| {
            100 * item.words.iter().filter(|word| words.contains(word)).count() / item.words.len().max(1)
        };
        let meant: Vec<usize> = (0..self.items.len()).filter(|&at| is_meant(&self.items[at])).collect();
        for &at in &meant {
            // Of the steps of one list, those that share the most words.
            let list = self.items[at].message;
            let of_list = meant.iter().filter(|&&other| self.items[other].message == list);
            let most = of_list.map(|&other| share(&self.items[other])).max();
            self.items[at].is_done |= Some(share(&self.items[at])) == most;
        }
    }

    /// Numbers of steps that are done, and the one that the agent is at.
    pub(super) fn progress(&mut self, message: usize, done: &[(u32, u32)], at: Option<u32>) {
        if done.is_empty() && at.is_none() {
            return;
        }
        let is_numbered = |item: &Item| item.source == Source::Plan && item.number.is_some();
        if !self.items.iter().any(is_numbered) {
            return;
        }
        self.progress_in = message;
        self.done.extend(done);
        for item in self.items.iter_mut().filter(|item| is_numbered(item)) {
            let number = item.number.unwrap_or(0);
            item.is_done |= done.iter().any(|(first, last)| (*first..=*last).contains(&number));
            if let Some(at) = at {
                // An agent goes through a plan in order.
                item.is_done |= number < at;
                item.is_current = number == at;
            }
        }
    }

    /// The open steps, what is said of the plan's progress, and the last announcement.
    pub(super) fn finish(
        mut self,
        files: &[FileTouched],
        last_passing: Option<usize>,
    ) -> (Vec<Step>, Option<Note>, Option<Note>) {
        for item in self.items.iter_mut().filter(|item| !item.is_done) {
            if let Some(is_done) = is_settled(files, &item.text, item.message, last_passing) {
                (item.is_done, item.is_current) = (is_done, !is_done);
            }
        }
        let numbers: Vec<u32> = self
            .items
            .iter()
            .filter(|item| item.source == Source::Plan && item.is_done)
            .filter_map(|item| item.number)
            .collect();
        let first_open = self
            .items
            .iter()
            .filter(|item| item.source == Source::Plan && !item.is_done)
            .filter_map(|item| item.number)
            .min();
        let said = self.done.iter().map(|(_, last)| *last).max();
        let last_done = numbers.iter().copied().max().max(said);
        let progress = last_done.map(|last| {
            let last = first_open.map_or(last, |open| last.min(open.saturating_sub(1).max(1)));
            let text = match last {
                1 => "Step 1 is done".to_owned(),
                _ => format!("Steps 1 to {last} are done"),
            };
            Note::new(self.progress_in, text)
        });
        let step = |item: Item| Step {
            message: item.message,
            number: item.number.filter(|_| item.source == Source::Plan),
            text: item.text,
            is_current: item.is_current,
        };
        let open = self.items.into_iter().filter(|item| !item.is_done).map(step).collect();
        (open, progress, self.now)
    }
}

/// Whether the files that a step names have been checked since they were changed; `None` if it names none, or not all
/// have been changed after `message`.
pub(super) fn is_settled(
    files: &[FileTouched],
    text: &str,
    message: usize,
    last_passing: Option<usize>,
) -> Option<bool> {
    let paths = paths_in(text);
    let changes: Vec<Change> =
        paths.iter().map(|path| changed_after(files, path, message)).collect::<Option<_>>()?;
    let is_checked = |change: &Change| {
        change.is_deleted || change.is_prose || last_passing.is_some_and(|passing| passing > change.message)
    };
    (!changes.is_empty()).then(|| changes.iter().all(is_checked))
}

struct Change {
    message: usize,
    is_deleted: bool,
    /// No check covers it: a document, a configuration.
    is_prose: bool,
}

fn changed_after(files: &[FileTouched], path: &str, message: usize) -> Option<Change> {
    let matches = |file: &&FileTouched| {
        file.path == path || file.path.strip_suffix(path).is_some_and(|before| before.ends_with('/'))
    };
    let file = files.iter().filter(matches).find(|file| file.changed_in.is_some_and(|at| at > message))?;
    let ending = path.rsplit('.').next().unwrap_or("");
    Some(Change {
        message: file.changed_in?,
        is_deleted: matches!(file.actions.last(), Some(FileOp::Deleted | FileOp::Moved)),
        is_prose: matches!(
            ending,
            "md" | "txt" | "rst" | "adoc" | "yml" | "yaml" | "json" | "toml" | "html" | "css"
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::language::steps::steps;

    fn open(pending: Pending) -> Vec<String> {
        pending.finish(&[], None).0.into_iter().map(|step| step.text).collect()
    }

    #[test]
    fn what_is_reported_as_done_is_no_step() {
        let mut pending = Pending::default();
        pending.earlier(0, None, "`jobs/exports.py`", false);
        pending.earlier(0, None, "remove the crontab lines", false);
        pending.report(3, "`jobs/exports.py` runs on `tempo` now, its tests pass.");
        assert_eq!(open(pending), ["remove the crontab lines"]);
    }

    #[test]
    fn a_new_list_of_the_agent_replaces_its_last_one() {
        let mut pending = Pending::default();
        pending.said(1, steps("Remaining:\n- the parser\n- the printer"));
        pending.said(5, steps("What is left is the printer and its page."));
        assert_eq!(open(pending), ["the printer and its page"]);
    }

    #[test]
    fn a_plan_keeps_its_open_steps_with_their_numbers() {
        let mut pending = Pending::default();
        let plan = (1..=4).map(|n| Named { number: Some(n), text: format!("Do the thing called {n}{n}") });
        pending.plan(0, plan.collect());
        pending.progress(4, &[(1, 2)], Some(3));
        let (open, progress, _) = pending.finish(&[], None);
        assert_eq!(
            open.iter().map(|step| (step.number, step.is_current)).collect::<Vec<_>>(),
            [(Some(3), true), (Some(4), false)]
        );
        assert_eq!(progress.map(|note| note.text).as_deref(), Some("Steps 1 to 2 are done"));
    }
}
