//! Summaries among the messages, ours and those of other programs, merged into the facts section by section.

use super::collect::{Collector, note, push};
use super::foreign::{self, Class};
use crate::evidence::language::cues;
use crate::evidence::language::lists::item_of;
use crate::evidence::language::normal::folded;
use crate::evidence::language::steps::{self, paths_in};
use crate::evidence::text::{cut_whole, escape_section_tags, one_line, sentences};
use crate::evidence::write::parse::parse;
use crate::evidence::write::ranking::is_nod;
use crate::evidence::{ErrorSeen, FileOp, FileTouched, Note};
use crate::transcript::SUMMARY_END;

/// Longest prose of another program's summary.
const MAX_PROSE_CHARS: usize = 8_000;
/// Most rules taken from a summary in prose.
const MAX_RULES: usize = 16;

impl Collector<'_> {
    /// Merges a summary of an earlier fold, section by section.
    pub(super) fn earlier_summary(&mut self, i: usize, text: &str) {
        let body = text.split_once('\n').map_or("", |(_, body)| body);
        let (document, after) = body.rsplit_once(SUMMARY_END).unwrap_or((body, ""));
        let mut parsed = parse(document, i);
        let found = &mut self.found;
        let lists = [
            (&mut found.requests, &mut parsed.requests),
            (&mut found.constraints, &mut parsed.constraints),
            (&mut found.corrections, &mut parsed.corrections),
            (&mut found.statements, &mut parsed.statements),
            (&mut found.answers, &mut parsed.answers),
            (&mut found.refusals, &mut parsed.refusals),
            (&mut found.decisions, &mut parsed.decisions),
            (&mut found.done, &mut parsed.done),
            (&mut found.findings, &mut parsed.findings),
            (&mut found.running, &mut parsed.running),
            (&mut found.context, &mut parsed.context),
        ];
        lists.into_iter().for_each(|(list, more)| list.append(more));
        found.questions = parsed.questions;
        found.next_steps = parsed.next_steps;
        self.last_said = None;
        parsed.identifiers.into_iter().chain(parsed.numbers).for_each(|name| self.names.add(name));
        if parsed.last_state.is_some() {
            (found.last_state, found.last_report) = (parsed.last_state, parsed.last_report);
        }
        found.last_step = parsed.last_step;
        found.committed = parsed.committed;
        if parsed.root.is_some() {
            found.root = parsed.root;
        }
        self.earlier.files.extend(parsed.files);
        self.earlier.commands.extend(parsed.commands);
        self.earlier.errors.extend(parsed.errors);
        for task in parsed.tasks {
            self.tasks.push(i, &task.text, task.status);
        }
        for step in parsed.steps {
            self.pending.earlier(i, step.number, &step.text, step.is_current);
        }
        self.user_words(i, after);
    }

    /// Adds a summary that foldline did not write, section by section; prose stays whole.
    pub(super) fn foreign_summary(&mut self, i: usize, summary: &str) {
        let outline = foreign::outline(summary);
        if !outline.prose.is_empty() {
            let text = escape_section_tags(&cut_whole(&outline.prose, MAX_PROSE_CHARS)).into_owned();
            if outline.sections.is_empty() {
                self.prose_summary(i, &outline.prose);
                // Whole, as what is to be done: nothing in it says what is what.
                push(&mut self.found.requests, Note::summary(i, text));
            } else {
                push(&mut self.found.context, Note::summary(i, text));
            }
        }
        for section in outline.sections {
            for item in section.items {
                let text = escape_section_tags(&item.text).into_owned();
                self.foreign_item(i, section.class, &text);
            }
        }
    }

    fn foreign_item(&mut self, i: usize, class: Class, text: &str) {
        let plain = |text: &str| one_line(text, 600);
        let found = &mut self.found;
        // A box tells more than the section.
        let (class, text) =
            match (text.strip_prefix("[ ]"), text.strip_prefix("[x]").or(text.strip_prefix("[X]"))) {
                (Some(open), _) if class == Class::Done => (Class::Next, open.trim_start()),
                (Some(open), _) => (class, open.trim_start()),
                (_, Some(done)) if matches!(class, Class::Next | Class::Doing) => {
                    (Class::Done, done.trim_start())
                }
                (_, Some(done)) => (class, done.trim_start()),
                _ => (class, text),
            };
        match class {
            Class::Drop => {}
            Class::Words => {
                let words = text.trim_matches(['"', '“', '”', ' ', '*']).to_owned();
                if !is_nod(&words) {
                    push(&mut found.requests, Note::new(i, words.clone()));
                    self.demands(i, &words, &cues::said(&words), false);
                }
            }
            Class::Request => {
                push(&mut found.requests, Note::summary(i, text));
                for sentence in sentences(text).filter(|sentence| cues::is_constraint(sentence)) {
                    push(&mut self.found.constraints, note(i, sentence));
                }
            }
            Class::Rules => push(&mut found.constraints, Note::summary(i, plain(text))),
            Class::Agent => push(&mut found.decisions, Note::summary(i, plain(text))),
            Class::Done => push(&mut found.done, Note::summary(i, plain(text))),
            Class::Doing | Class::Blocked => self.pending.earlier(i, None, text, true),
            Class::Next => self.pending.earlier(i, None, text, false),
            Class::Open => self.earlier.errors.push(ErrorSeen {
                message: i,
                subject: String::new(),
                text: plain(text),
                is_resolved: false,
                times: 1,
            }),
            Class::Findings => push(&mut found.findings, Note::summary(i, plain(text))),
            Class::Files | Class::Changed | Class::Read => self.foreign_file(i, class, text),
            Class::Commands | Class::Names | Class::Context => {
                push(&mut found.context, Note::summary(i, plain(text)))
            }
        }
    }

    /// A file of another program's list: its path first, then what was done.
    fn foreign_file(&mut self, i: usize, class: Class, text: &str) {
        let Some(path) = paths_in(text).first().map(|path| (*path).to_owned()) else { return };
        let lower = folded(text);
        let says = |words: &[&str]| words.iter().any(|word| lower.contains(word));
        let action = match class {
            Class::Read => FileOp::Read,
            _ if says(&["deleted", "removed"]) && text.len() < path.len() + 40 => FileOp::Deleted,
            _ if says(&["created", "new file", "added file"]) => FileOp::Created,
            Class::Changed => FileOp::Edited,
            _ if says(&[
                "edit",
                "chang",
                "rewrit",
                "rewrote",
                "new ",
                "add",
                "fix",
                "implement",
                "updat",
                "modif",
            ]) =>
            {
                FileOp::Edited
            }
            _ => FileOp::Read,
        };
        let note = text
            .split_once(&path)
            .map_or("", |(_, rest)| rest)
            .trim_matches(['`', '*', ':', ' ', '-', '—', '–', '(', ')']);
        self.earlier.files.push(FileTouched {
            message: i,
            last_message: i,
            path,
            actions: vec![action],
            times: 1,
            lines: Vec::new(),
            changed_in: None,
            note: Some(one_line(note, 90)).filter(|note| !note.is_empty()),
            moved_to: None,
        });
    }

    /// The rules and steps of a summary in plain prose.
    fn prose_summary(&mut self, i: usize, prose: &str) {
        let said = cues::said(prose);
        for sentence in cues::constraints(&said, MAX_RULES) {
            push(&mut self.found.constraints, Note::summary(i, note(i, sentence).text));
        }
        for step in steps::steps(prose).steps {
            self.pending.earlier(i, None, &step.text, false);
        }
        for line in prose.lines().filter(|line| line.trim_start().starts_with("- [ ]")) {
            item_of(line).into_iter().for_each(|step| self.pending.earlier(i, None, &step.text, false));
        }
    }
}
