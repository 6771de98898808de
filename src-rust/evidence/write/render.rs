//! Writes the document within a budget.
//!
//! Greedy selection: items are taken by value until the budget is full, each priced once; then the whole is counted,
//! and the least valuable items are dropped until it fits. The counter may be slow (a callable of the user), so the
//! number of calls is bounded: one for an item that enters, a few for one that is cut, none for the long tail.

use super::candidate::Candidate;
use super::document::{PROGRESS, ROOT, Section};
use super::ranking::{PathStyle, candidates};
use crate::error::Result;
use crate::evidence::Evidence;
use crate::evidence::text::cut_middle;

/// Consecutive items that do not fit before the rest is skipped, which bounds the attempts.
const MAX_MISFITS: usize = 24;
/// Largest share of the budget for full paths, in percent; beyond it they are written relative to a root.
const MAX_FULL_PATHS_PERCENT: usize = 30;
/// Fewest tokens of a cut item; a shorter one is not worth its place.
const MIN_ITEM_TOKENS: usize = 40;
/// Most attempts to cut a text to a number of tokens.
const MAX_CUTS: usize = 12;

/// An item with its price.
struct Taken {
    candidate: Candidate,
    tokens: usize,
}

/// The summary document of `evidence`, within `max_tokens` by `count`. It keeps part of the original task in any budget
/// that holds one word of it.
///
/// # Errors
/// Those of `count`.
pub fn render(
    evidence: &Evidence,
    count: &dyn Fn(&str) -> Result<usize>,
    max_tokens: usize,
) -> Result<String> {
    let style = path_style(evidence, count, max_tokens)?;
    let ranked = candidates(evidence, &style, max_tokens);
    let Some(first) = ranked.first().cloned() else { return Ok(String::new()) };
    let mut taken = take(ranked, &style, count, max_tokens)?;
    let mut drops = 1;
    loop {
        let text = assemble(&taken, &style);
        let tokens = count(&text)?;
        if tokens <= max_tokens && !taken.is_empty() {
            return Ok(text);
        }
        if taken.len() <= 1 {
            return smallest(&first, count, max_tokens);
        }
        // Dropped by price, then in doubling steps, so that a counter that is not additive does not make this slow.
        let mut excess = tokens.saturating_sub(max_tokens);
        for _ in 0..drops.min(taken.len() - 1) {
            excess = excess.saturating_sub(taken.pop().map_or(0, |last| last.tokens));
        }
        while excess > 0 && taken.len() > 1 {
            excess = excess.saturating_sub(taken.pop().map_or(0, |last| last.tokens));
        }
        drops *= 2;
    }
}

fn path_style(
    evidence: &Evidence,
    count: &dyn Fn(&str) -> Result<usize>,
    max_tokens: usize,
) -> Result<PathStyle> {
    let lines: Vec<&str> = evidence.files.iter().map(|file| file.path.as_str()).collect();
    if lines.is_empty() || count(&lines.join("\n"))? <= max_tokens * MAX_FULL_PATHS_PERCENT / 100 {
        return Ok(PathStyle::default());
    }
    Ok(PathStyle::short(evidence))
}

/// Items by value, while their prices and those of their headings fit the budget.
fn take(
    ranked: Vec<Candidate>,
    style: &PathStyle,
    count: &dyn Fn(&str) -> Result<usize>,
    max_tokens: usize,
) -> Result<Vec<Taken>> {
    let mut taken: Vec<Taken> = Vec::new();
    let (mut left, mut misfits, mut opened) = (max_tokens, 0, Vec::new());
    for candidate in ranked {
        let section = candidate.section;
        let is_held = |text: &str| taken.iter().any(|item| item.candidate.text.contains(text));
        if candidate.unless.as_deref().is_some_and(is_held) {
            continue;
        }
        let mut overhead = 0;
        if !opened.contains(&section) {
            overhead = count(&frame(section, style))?;
        }
        let share = (max_tokens * candidate.share / 100).max(MIN_ITEM_TOKENS);
        let room = left.saturating_sub(overhead).min(share);
        match fitted(candidate, count, room)? {
            Some(item) => {
                left = left.saturating_sub(item.tokens + overhead);
                opened.push(section);
                taken.push(item);
                misfits = 0;
            }
            // The most valuable item keeps its place: alone it can be cut further.
            None if taken.is_empty() => break,
            None => misfits += 1,
        }
        if misfits >= MAX_MISFITS {
            break;
        }
    }
    Ok(taken)
}

/// The frame of a section without its items.
fn frame(section: Section, style: &PathStyle) -> String {
    let mut out = format!("\n{}\n", section.heading());
    if let Some(closing) = section.closing() {
        out.push_str(closing);
    }
    if section.names_files() && !style.root.is_empty() {
        out.push_str(&format!("\n{}\n- {ROOT}{}\n", Section::Context.heading(), style.root));
    }
    if section.is_progress() {
        out.push_str(PROGRESS);
    }
    out
}

/// The item, cut to `room` tokens if the rest is worth reading. Paths are not cut.
fn fitted(
    mut candidate: Candidate,
    count: &dyn Fn(&str) -> Result<usize>,
    room: usize,
) -> Result<Option<Taken>> {
    let mut tokens = count(&candidate.section.item(&candidate.text))?;
    let mut tries = 0;
    while tokens > room {
        tries += 1;
        if candidate.is_whole || room < MIN_ITEM_TOKENS || tries > MAX_CUTS {
            return Ok(None);
        }
        let chars = candidate.text.chars().count();
        let target = (chars * room / tokens).min(chars * 19 / 20);
        candidate.text = cut_middle(&candidate.text, target).into_owned();
        tokens = count(&candidate.section.item(&candidate.text))?;
    }
    Ok(Some(Taken { candidate, tokens }))
}

fn assemble(taken: &[Taken], style: &PathStyle) -> String {
    let mut sections: Vec<(Section, usize, &str)> =
        taken.iter().map(|t| (t.candidate.section, t.candidate.place, t.candidate.text.as_str())).collect();
    let names_files = sections.iter().any(|(section, ..)| section.names_files());
    let root = format!("{ROOT}{}", style.root);
    if names_files && !style.root.is_empty() {
        sections.push((Section::Context, 0, &root));
    }
    sections.sort_by_key(|(section, place, _)| (*section, *place));
    let mut out = String::new();
    let mut has_progress = false;
    for section in Section::ALL {
        let items: Vec<&str> =
            sections.iter().filter(|(of, ..)| *of == section).map(|(_, _, text)| *text).collect();
        if items.is_empty() {
            continue;
        }
        if !out.is_empty() {
            out.push('\n');
        }
        if section.is_progress() && !std::mem::replace(&mut has_progress, true) {
            out.push_str(PROGRESS);
            out.push('\n');
        }
        out.push_str(section.heading());
        out.push('\n');
        for (i, text) in items.iter().enumerate() {
            let item = section.item(text);
            // Steps are numbered by their position in the document.
            match item.strip_prefix("1. ").filter(|_| section == Section::NextSteps) {
                Some(step) => out.push_str(&format!("{}. {step}", i + 1)),
                None => out.push_str(&item),
            }
        }
        if let Some(closing) = section.closing() {
            out.push_str(closing);
            out.push('\n');
        }
    }
    out
}

/// The most valuable item alone, cut until it fits: under its heading, else bare, else empty.
fn smallest(first: &Candidate, count: &dyn Fn(&str) -> Result<usize>, max_tokens: usize) -> Result<String> {
    let heading = first.section.heading();
    let closing = first.section.closing().map_or(String::new(), |closing| format!("{closing}\n"));
    let framed = |text: &str| format!("{heading}\n{}{closing}", first.section.item(text));
    let bare = |text: &str| text.replace('\n', " ");
    for form in [&framed as &dyn Fn(&str) -> String, &bare] {
        if let Some(text) = longest_cut(&first.text, form, count, max_tokens)? {
            return Ok(text);
        }
    }
    Ok(String::new())
}

/// The longest cut of `text` that fits in its form, by bisection.
fn longest_cut(
    text: &str,
    form: &dyn Fn(&str) -> String,
    count: &dyn Fn(&str) -> Result<usize>,
    max_tokens: usize,
) -> Result<Option<String>> {
    // No vocabulary in use has tokens of more characters on average.
    let (mut fits, mut too_long) = (0, text.chars().count().min(max_tokens.saturating_mul(64)) + 1);
    let mut best = None;
    while too_long - fits > 1 {
        let middle = fits + (too_long - fits) / 2;
        let candidate = form(&cut_middle(text, middle));
        if count(&candidate)? <= max_tokens {
            (fits, best) = (middle, Some(candidate));
        } else {
            too_long = middle;
        }
    }
    Ok(best)
}
