//! Reads a summary that another program wrote into lists: by its headings and bold leads, else as prose.

use std::sync::LazyLock;

use crate::evidence::language::lists::{Named, is_item, item_of};
use crate::evidence::language::normal::folded;
use crate::evidence::language::steps::numbered_parts;
use crate::evidence::text::{head_bytes, one_line, sentences, starts_with_ignoring_case, without_marker};

/// The table of headings.
const TABLE: &str = include_str!("../data/headings.tsv");

/// Longest title of a section.
const MAX_TITLE_CHARS: usize = 60;
/// Most items of a section.
const MAX_ITEMS: usize = 80;

/// What the items of a section are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::evidence) enum Class {
    /// Left out: an analysis.
    Drop,
    /// Messages of the user.
    Words,
    /// What the user wants.
    Request,
    /// Rules and decisions of the user.
    Rules,
    /// Decisions of the agent.
    Agent,
    /// What is done.
    Done,
    /// What is being done.
    Doing,
    /// What is blocked.
    Blocked,
    /// What is still to do.
    Next,
    /// What is broken.
    Open,
    /// What was found out.
    Findings,
    /// Files, changed files, read files.
    Files,
    Changed,
    Read,
    /// Commands.
    Commands,
    /// Names.
    Names,
    /// Anything else.
    Context,
}

fn class(name: &str) -> Option<Class> {
    Some(match name {
        "drop" => Class::Drop,
        "words" => Class::Words,
        "request" => Class::Request,
        "rules" => Class::Rules,
        "agent" => Class::Agent,
        "done" => Class::Done,
        "doing" => Class::Doing,
        "blocked" => Class::Blocked,
        "next" => Class::Next,
        "open" => Class::Open,
        "findings" => Class::Findings,
        "files" => Class::Files,
        "changed" => Class::Changed,
        "read" => Class::Read,
        "commands" => Class::Commands,
        "names" => Class::Names,
        "context" => Class::Context,
        _ => return None,
    })
}

/// The class that a title names.
pub(in crate::evidence) fn class_of(title: &str) -> Option<Class> {
    /// Rows of the table, and for each byte those whose words begin with it.
    struct Rows(Vec<(Class, &'static str)>, Vec<Vec<usize>>);
    static ROWS: LazyLock<Rows> = LazyLock::new(|| {
        let row = |line: &'static str| {
            let mut cells = line.split('\t');
            Some((class(cells.next()?)?, cells.next()?))
        };
        let rows: Vec<_> = TABLE.lines().filter(|line| !line.starts_with('#')).filter_map(row).collect();
        let mut by_initial = vec![Vec::new(); 256];
        for (at, (_, words)) in rows.iter().enumerate() {
            words.bytes().next().into_iter().for_each(|initial| by_initial[usize::from(initial)].push(at));
        }
        Rows(rows, by_initial)
    });
    let Rows(rows, by_initial) = &*ROWS;
    let lower = folded(title);
    let bytes = lower.as_bytes();
    let is_edge =
        |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_none_or(|byte| !byte.is_ascii_alphanumeric());
    // As a whole word, singular or plural; long words anywhere.
    let is_at = |at: usize, words: &str| {
        let end = at + words.len();
        let ends = || is_edge(Some(end)) || (bytes.get(end) == Some(&b's') && is_edge(Some(end + 1)));
        bytes[at..].starts_with(words.as_bytes())
            && (words.len() > 6 || (is_edge(at.checked_sub(1)) && ends()))
    };
    let found = bytes.iter().enumerate().filter_map(|(at, initial)| {
        by_initial[usize::from(*initial)].iter().copied().find(|row| is_at(at, rows[*row].1))
    });
    found.min().map(|row| rows[row].0)
}

/// A section: its class and its items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Section {
    pub class: Class,
    pub items: Vec<Named>,
}

/// A summary as sections; one of class `Context` with the whole text if it has no headings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Outline {
    pub sections: Vec<Section>,
    /// Text without a heading, whole.
    pub prose: String,
}

/// Reads a summary. O(bytes).
pub(super) fn outline(text: &str) -> Outline {
    let text = without_frame(text);
    let mut sections: Vec<(Class, Vec<&str>)> = Vec::new();
    let mut prose: Vec<&str> = Vec::new();
    let mut in_analysis = false;
    for line in text.lines() {
        let trimmed = line.trim();
        if starts_with_ignoring_case(trimmed, "<analysis") {
            in_analysis = true;
        }
        let closes = trimmed.to_ascii_lowercase().ends_with("</analysis>");
        if in_analysis {
            in_analysis = !closes;
            continue;
        }
        if matches!(trimmed, "<summary>" | "</summary>" | "Summary:" | "---" | "***") {
            // The heading above all sections ends the one before it, such as an analysis.
            if sections.last().is_some_and(|(class, _)| *class == Class::Drop) {
                sections.push((Class::Context, Vec::new()));
            }
            continue;
        }
        match title_of(line) {
            Some((title, rest)) => {
                let class = class_of(title).unwrap_or(Class::Context);
                sections.push((class, if rest.is_empty() { Vec::new() } else { vec![rest] }));
            }
            None => match sections.last_mut() {
                Some((_, lines)) => lines.push(line),
                None => prose.push(line),
            },
        }
    }
    let known =
        sections.iter().filter(|(class, lines)| *class != Class::Context && !lines.is_empty()).count();
    if known == 0 {
        return Outline { sections: Vec::new(), prose: text.trim().to_owned() };
    }
    let sections = sections
        .into_iter()
        .filter(|(class, _)| *class != Class::Drop)
        .map(|(class, lines)| Section { class, items: items_of(class, &lines) })
        .filter(|section| !section.items.is_empty())
        .collect();
    Outline { sections, prose: prose.join("\n").trim().to_owned() }
}

/// The text without the sentences that a program puts around a summary.
fn without_frame(text: &str) -> &str {
    const OPENINGS: [&str; 12] = [
        "this session is being continued",
        "another language model started",
        "the conversation history before this point",
        "the summary below",
        "here is the summary",
        "here is a summary",
        "below is a summary",
        "the following is a summary",
        "the previous conversation",
        "[compact summary]",
        "[conversation summary]",
        "<context>",
    ];
    const ENDINGS: [&str; 8] = [
        "if you need specific details",
        "please continue the conversation",
        "continue the conversation from where",
        "please continue from where",
        "continue from where",
        "you can find the full transcript",
        "read the full transcript",
        "resume directly",
    ];
    let mut text = text.trim();
    // A frame is a paragraph, or the part of a line up to its colon.
    for _ in 0..4 {
        let lower = folded(crate::evidence::text::head_bytes(text, 80));
        if !OPENINGS.iter().any(|opening| lower.starts_with(opening)) {
            break;
        }
        let paragraph = text.find("\n\n").unwrap_or(text.len());
        let line = text.find('\n').unwrap_or(text.len());
        text = if paragraph == text.len() && line == text.len() {
            // One line: the summary begins after the colon.
            text.split_once(": ").map_or("", |(_, rest)| rest)
        } else if text[..line].trim_end().ends_with(':') {
            &text[line..]
        } else {
            &text[paragraph..]
        }
        .trim_start();
    }
    for _ in 0..2 {
        let at = text.rfind("\n\n").unwrap_or(0);
        let last = folded(crate::evidence::text::head_bytes(text[at..].trim_start(), 80));
        if at == 0 || !ENDINGS.iter().any(|ending| last.starts_with(ending)) {
            break;
        }
        text = text[..at].trim_end();
    }
    text
}

/// The title of a heading's line, and what follows it on the line.
pub(in crate::evidence) fn title_of(line: &str) -> Option<(&str, &str)> {
    let trimmed = line.trim();
    let is_short =
        |title: &str| title.chars().count() <= MAX_TITLE_CHARS && title.chars().any(char::is_alphabetic);
    if let Some(title) = trimmed.strip_prefix('#') {
        let title = title.trim_start_matches('#').trim().trim_matches('*').trim_end_matches([':', '.']);
        return is_short(title).then_some((title, ""));
    }
    let indent = line.len() - line.trim_start().len();
    if indent > 3 {
        return None;
    }
    let body = trimmed
        .strip_prefix(['-', '*', '•'])
        .filter(|rest| rest.starts_with(" **"))
        .unwrap_or(trimmed)
        .trim_start();
    let digits = body.bytes().take_while(u8::is_ascii_digit).count();
    let numbered = body[digits..].strip_prefix(['.', ')']).filter(|_| digits > 0).map(str::trim_start);
    let inner = numbered.unwrap_or(body);
    if let Some(rest) = inner.strip_prefix("**")
        && let Some((title, after)) = rest.split_once("**")
    {
        let title = title.trim().trim_end_matches([':', '.', '：']);
        let after = after.trim_start().trim_start_matches([':', '：', '—', '–', '-']).trim_start();
        let is_lead = || (indent == 0 || numbered.is_some()) && class_of(title).is_some();
        return (is_short(title) && (after.is_empty() || is_lead())).then_some((title, after));
    }
    if trimmed.starts_with(['-', '*', '•', '"', '`', '>']) {
        return None;
    }
    let colon = head_bytes(inner, 4 * MAX_TITLE_CHARS + 4).find([':', '：'])?;
    let (title, after) = inner.split_at(colon);
    let after = after.strip_prefix([':', '：']).unwrap_or(after);
    let opens = title.chars().next().is_some_and(|c| c.is_uppercase() || !c.is_ascii());
    if !opens || !is_short(title) || title.contains(['.', '`', '"', '(', '/']) {
        return None;
    }
    let words = title.split_whitespace().count();
    let after = after.trim();
    // A line that ends with its colon, or a lead of few words that the table knows.
    let is_lead = || words <= 4 && numbered.is_none() && indent == 0 && class_of(title).is_some();
    (words <= 6 && ((after.is_empty() && indent <= 1) || is_lead())).then_some((title, after))
}

/// The items of a section's lines: list items with what is below them, numbered parts of a line, or paragraphs.
fn items_of(class: Class, lines: &[&str]) -> Vec<Named> {
    let mut found: Vec<Named> = Vec::new();
    let mut is_open = false;
    let mut in_fence = false;
    let mut base: Option<usize> = None;
    for line in lines {
        let trimmed = line.trim();
        if trimmed.starts_with("```") {
            in_fence = !in_fence;
            is_open = false;
            continue;
        }
        if in_fence || trimmed.is_empty() || trimmed.starts_with("|-") {
            is_open = is_open && !trimmed.is_empty();
            continue;
        }
        if found.len() >= MAX_ITEMS {
            break;
        }
        if let Some(cells) = row_of(trimmed) {
            found.push(Named { number: None, text: cells });
            continue;
        }
        let parts = numbered_parts(trimmed);
        if parts.len() >= 2 {
            found.extend(parts.into_iter().map(|part| Named { number: None, ..part }));
            is_open = false;
            continue;
        }
        if is_item(line) {
            let indent = line.len() - line.trim_start().len();
            let is_nested = indent > *base.get_or_insert(indent) + 1;
            if let Some(last) = found.last_mut().filter(|_| is_nested) {
                last.text.push_str(": ");
                last.text.push_str(without_marker(trimmed));
                continue;
            }
            found.extend(boxed(trimmed).or_else(|| item_of(line)));
            is_open = true;
            continue;
        }
        if let Some(last) = found.last_mut().filter(|_| is_open) {
            last.text.push(' ');
            last.text.push_str(trimmed);
        } else {
            let text = without_marker(trimmed);
            // Rules and steps are single sentences; other paragraphs stay whole.
            let is_list =
                matches!(class, Class::Rules | Class::Next | Class::Done | Class::Findings | Class::Open);
            let pieces: Vec<&str> = if is_list { sentences(text).collect() } else { vec![text] };
            found.extend(pieces.into_iter().map(|text| Named { number: None, text: text.to_owned() }));
            is_open = !is_list;
        }
    }
    found.retain(|item| {
        item.text.chars().filter(|c| c.is_alphanumeric()).count() > 2 && !says_nothing(&item.text)
    });
    found.iter_mut().for_each(|item| item.text = one_line(&item.text, 1_500));
    found
}

/// An item with a box, which its section may not tell: `- [x] Camera preview`.
fn boxed(line: &str) -> Option<Named> {
    let text = without_marker(line);
    let has_box = ["[ ]", "[x]", "[X]"].iter().any(|mark| text.starts_with(mark));
    has_box.then(|| Named { number: None, text: text.to_owned() })
}

/// A row of a table as its cells; `None` for other lines and for a head.
fn row_of(line: &str) -> Option<String> {
    let inner = line.strip_prefix('|')?.strip_suffix('|')?;
    let cells: Vec<&str> = inner.split('|').map(str::trim).filter(|cell| !cell.is_empty()).collect();
    let is_head = cells.iter().all(|cell| cell.chars().all(|c| c == '-' || c == ':'))
        || cells.first().is_some_and(|cell| cell.contains("File") && cell.len() < 20);
    (!is_head && !cells.is_empty()).then(|| cells.join(" — "))
}

fn says_nothing(text: &str) -> bool {
    let lower = text.to_lowercase();
    let lower = lower.trim_matches(['(', ')', '.', ' ', '*', '-']);
    matches!(
        lower,
        "none" | "n/a" | "nothing" | "none yet" | "not applicable" | "none so far" | "no errors" | "unknown"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<(Class, Vec<String>)> {
        let sections = outline(text).sections.into_iter();
        sections.map(|s| (s.class, s.items.into_iter().map(|item| item.text).collect())).collect()
    }

    #[test]
    fn every_row_of_the_table_has_an_example_that_is_a_heading_of_its_class() {
        for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
            let cells: Vec<&str> = line.split('\t').collect();
            let [name, _, example] = cells[..] else { panic!("{line}") };
            let title = title_of(example).map_or(example, |(title, _)| title);
            assert_eq!(class_of(title), class(name), "{example}");
        }
    }

    #[test]
    fn nine_sections_are_lists() {
        let text = "This session is being continued from a previous conversation. The summary below covers it.\n\n\
            Analysis:\nFirst I looked at 1. a 2. b.\n\nSummary:\n1. Primary Request and Intent:\n   Make it fast.\n\n\
            2. All user messages:\n   - \"make it fast\"\n\n7. Pending Tasks:\n   - Warm the cache\n   - Add the check\n\n\
            8. Current Work:\n   The cache was being written.\n\nIf you need specific details, read the transcript.";
        let expected: [(Class, &[&str]); 4] = [
            (Class::Request, &["Make it fast."]),
            (Class::Words, &["\"make it fast\""]),
            (Class::Next, &["Warm the cache", "Add the check"]),
            (Class::Doing, &["The cache was being written."]),
        ];
        let expected: Vec<(Class, Vec<String>)> = expected
            .iter()
            .map(|(class, items)| (*class, items.iter().map(|item| (*item).to_owned()).collect()))
            .collect();
        assert_eq!(texts(text), expected);
    }

    #[test]
    fn bold_leads_are_sections() {
        let text = "Another language model started. Here is the summary:\n\n**Goal.** Move the jobs.\n\
            **Decided with the user.** Invoices stay. Retries at most 3.\n**Remaining.** 1. exports 2. the page\n";
        let found = texts(text);
        assert_eq!(found[0], (Class::Request, vec!["Move the jobs.".into()]));
        assert_eq!(found[1], (Class::Rules, vec!["Invoices stay.".into(), "Retries at most 3.".into()]));
        assert_eq!(found[2], (Class::Next, vec!["exports".into(), "the page".into()]));
    }

    #[test]
    fn prose_stays_whole() {
        let text = "We moved the parser. The user wants tabs. The docs are still open.";
        assert_eq!(outline(text), Outline { sections: Vec::new(), prose: text.to_owned() });
    }
}
