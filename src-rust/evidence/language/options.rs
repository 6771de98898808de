//! Options of a question: lines and pieces of a sentence with a letter or a number.

use crate::evidence::text::one_line;

/// Most options of a question.
const MAX_OPTIONS: usize = 20;

/// The options of a text: lines such as `A) …` and `2. …`, or `1) …, 2) …` in a sentence.
pub(super) fn options_in(text: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for line in text.lines() {
        let line = line.trim().trim_start_matches(['-', '*', '•', ' ']);
        if let Some((label, rest)) = label_of(line) {
            if follows(found.last().map(|(label, _)| label.as_str()), label) {
                found.push((label.to_owned(), one_line(rest.trim_matches('*').trim(), 200)));
            } else if is_first(label) {
                found = vec![(label.to_owned(), one_line(rest.trim_matches('*').trim(), 200))];
            }
        }
        if found.len() >= MAX_OPTIONS {
            break;
        }
    }
    if found.len() >= 2 {
        return found;
    }
    // Of several questions, each with its options, all that have labels of their own.
    let mut all: Vec<(String, String)> = Vec::new();
    for options in text.lines().rev().map(inline).filter(|options| options.len() >= 2) {
        let is_known = |label: &String| all.iter().any(|(known, _)| known.eq_ignore_ascii_case(label));
        if options.iter().any(|(label, _)| is_known(label)) || all.len() + options.len() > MAX_OPTIONS {
            break;
        }
        all.splice(0..0, options);
    }
    all
}

/// `1) stay, 2) move` or `A. stay B. move` in one line.
pub(super) fn inline(line: &str) -> Vec<(String, String)> {
    let mut starts: Vec<(usize, usize, String)> = Vec::new();
    let bytes = line.as_bytes();
    for (at, mark) in line.match_indices([')', '.']) {
        let before = line[..at].char_indices().rev().find(|(_, c)| !c.is_ascii_alphanumeric());
        let from = before.map_or(0, |(before, c)| before + c.len_utf8());
        let label = &line[from..at];
        let begins = from == 0 || matches!(bytes[from - 1], b' ' | b'(' | b'*');
        // "by me. Then" is no label, and neither is "at 5. 6 are left" unless a 4 is before it.
        let is_label = mark == ")" || label.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit());
        if label.is_empty()
            || label.len() > 2
            || !is_label
            || !begins
            || !bytes.get(at + 1).is_some_and(u8::is_ascii_whitespace)
        {
            continue;
        }
        let start = if from > 0 && bytes[from - 1] == b'(' { from - 1 } else { from };
        if follows(starts.last().map(|(_, _, label)| label.as_str()), label) {
            starts.push((start, at + 1, label.to_owned()));
        } else if is_first(label) {
            starts = vec![(start, at + 1, label.to_owned())];
        }
    }
    let ends = starts.iter().skip(1).map(|(start, ..)| *start).chain([line.len()]);
    let option = |((_, from, label), end): (&(usize, usize, String), usize)| {
        let text = line[*from..end]
            .trim()
            .trim_end_matches([',', ';'])
            .trim_end_matches(" or")
            .trim_end_matches(" and");
        // The last option ends with its sentence.
        let text = text.split(". ").next().unwrap_or(text);
        (label.clone(), one_line(text.trim_end_matches(['.', ',', '?']), 200))
    };
    let options = starts.iter().zip(ends).map(option).filter(|(_, text)| !text.is_empty());
    options.take(MAX_OPTIONS).collect()
}

/// The label of a line and the text after it: `A) …`, `(b) …`, `2. …`, `Option 3: …`.
pub(super) fn label_of(line: &str) -> Option<(&str, &str)> {
    let line = line.strip_prefix("**").unwrap_or(line);
    let line = ["Option ", "option ", "Variant ", "Plan "]
        .iter()
        .find_map(|word| line.strip_prefix(word))
        .unwrap_or(line);
    let line = line.strip_prefix('(').unwrap_or(line);
    let end = line.find(|c: char| !c.is_ascii_alphanumeric())?;
    let label = &line[..end];
    let rest = line[end..].strip_prefix([')', '.', ':']).or_else(|| line[end..].strip_prefix(" — "))?;
    let is_label = label.len() <= 2
        && (label.bytes().all(|b| b.is_ascii_digit())
            || (label.len() == 1 && label.bytes().all(|b| b.is_ascii_alphabetic())));
    let rest = rest.strip_prefix("**").unwrap_or(rest);
    (is_label && rest.starts_with([' ', '*'])).then_some((label, rest))
}

fn is_first(label: &str) -> bool {
    matches!(label, "A" | "a" | "1" | "0")
}

/// Whether a label comes directly after another.
fn follows(before: Option<&str>, label: &str) -> bool {
    let Some(before) = before else { return false };
    match (before.parse::<u32>(), label.parse::<u32>()) {
        (Ok(before), Ok(label)) => label == before + 1,
        (Err(_), Err(_)) => {
            let (a, b) = (before.as_bytes(), label.as_bytes());
            a.len() == 1 && b.len() == 1 && b[0] == a[0] + 1
        }
        _ => false,
    }
}
