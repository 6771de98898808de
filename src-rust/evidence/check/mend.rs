//! Checks a foreign summary against the evidence and adds missing facts.
//!
//! [`mend`] looks up every fact above a minimum weight, and adds missing ones to the sections of the text; those for
//! which it has none are appended in a section of their own, which a later fold reads back. It reports those that do
//! not fit. [`list`] writes the weightiest facts as bullets, for a prompt.

use std::collections::HashMap;
use std::ops::Range;

use super::facts::{Fact, FactItem, FactKind, facts};
use super::merge::{HEADING, Merged, merged};
use super::places::in_chars;
use super::presence::{Index, Key, Names};
use crate::error::Result;
use crate::evidence::Evidence;
use crate::evidence::text::escape_section_tags;
use crate::evidence::write::document::{ASKS, CORRECTION, IDENTIFIER, LAST_STATE, NUMBER, ROOT, Section};
use crate::evidence::write::ranking::PathStyle;

/// Minimum weight of a fact that can be missed.
const MIN_WEIGHT: u32 = 300;
/// Most facts checked, the weightiest first: each is priced, and the counter may be slow.
const MAX_FACTS: usize = 512;
/// Width of a band of weights: facts are taken band by band, within a band by weight per token.
const BAND: u32 = 200;
/// Cost of an item besides its tokens: the reader's attention.
const ITEM_TOKENS: usize = 8;
/// Consecutive facts that do not fit before the rest is skipped, which bounds the attempts.
const MAX_MISFITS: usize = 32;
/// Fewest missing files whose paths are written relative to a folder.
const MIN_FILES_FOR_ROOT: usize = 5;

/// The result of a check. The three lists partition the facts above the minimum weight.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Mended {
    /// The text with the section of missing facts; byte-identical if none is missing or none fits.
    #[serde(skip)]
    pub text: String,
    /// Facts found in the text.
    pub kept: Vec<FactItem>,
    /// Facts that were appended.
    #[serde(rename = "added")]
    pub mended: Vec<FactItem>,
    /// Facts still missing.
    pub dropped: Vec<FactItem>,
}

impl Mended {
    /// Forgets where the text holds the facts, because the text has changed.
    pub fn forget_places(&mut self) {
        self.kept.iter_mut().chain(&mut self.mended).for_each(|item| item.place = None);
    }
}

struct Priced {
    fact: Fact,
    tokens: usize,
    /// Its bytes in the text.
    place: Option<(usize, usize)>,
}

impl Priced {
    fn item(self) -> FactItem {
        let Fact { kind, text, message, weight, .. } = self.fact;
        FactItem { kind, text, message, weight, tokens: self.tokens, place: self.place }
    }
}

/// Checks `text` against `evidence` and adds missing facts, so that the result stays within `max_tokens` by `price`.
///
/// Linear in the text and the evidence. `price` is called once for each of at most `MAX_FACTS` facts, and some ten
/// times more.
///
/// # Errors
/// Those of `price`.
pub fn mend(
    evidence: &Evidence,
    text: &str,
    price: &dyn Fn(&str) -> Result<usize>,
    max_tokens: usize,
) -> Result<Mended> {
    let (mut kept, missing) = held(evidence, text, price)?;
    let room = max_tokens.saturating_sub(price(text)?);
    let is_file = |priced: &&Priced| priced.fact.section.closing().is_some();
    let style = match missing.iter().filter(is_file).count() >= MIN_FILES_FOR_ROOT {
        true => PathStyle::short(evidence),
        false => PathStyle::default(),
    };
    let (mut taken, mut left_over) = select(missing, &style, price, room)?;
    let mut drops = 1;
    let whole = loop {
        if taken.is_empty() {
            break text.to_owned();
        }
        let within = merged(text, &taken.iter().map(|priced| &priced.fact).collect::<Vec<_>>());
        let (whole, places) = with_section(&within, &taken, &style);
        if price(&whole)? <= max_tokens {
            for (priced, place) in taken.iter_mut().zip(places) {
                priced.place = Some((place.start, place.end));
            }
            kept.iter_mut().for_each(|priced| priced.place = priced.place.map(|place| within.moved(place)));
            break whole;
        }
        // Doubled, so that a counter that is not additive does not make this slow.
        let cut = taken.len().saturating_sub(drops);
        left_over.extend(taken.drain(cut..));
        drops *= 2;
    };
    let items = |mut list: Vec<Priced>| {
        list.sort_by_key(|priced| (priced.fact.section, priced.fact.message));
        list.into_iter().map(Priced::item).collect()
    };
    let mut found =
        Mended { text: whole, kept: items(kept), mended: items(taken), dropped: items(left_over) };
    let places = found.kept.iter_mut().chain(&mut found.mended).map(|item| &mut item.place);
    in_chars(&found.text, places);
    Ok(found)
}

/// Reports which facts above the minimum weight `text` holds, without changing it.
///
/// # Errors
/// Those of `price`.
pub fn check(evidence: &Evidence, text: &str, price: &dyn Fn(&str) -> Result<usize>) -> Result<Mended> {
    let (kept, missing) = held(evidence, text, price)?;
    let items = |list: Vec<Priced>| list.into_iter().map(Priced::item).collect();
    let mut kept: Vec<FactItem> = items(kept);
    in_chars(text, kept.iter_mut().map(|item| &mut item.place));
    Ok(Mended { text: text.to_owned(), kept, mended: Vec::new(), dropped: items(missing) })
}

fn held(
    evidence: &Evidence,
    text: &str,
    price: &dyn Fn(&str) -> Result<usize>,
) -> Result<(Vec<Priced>, Vec<Priced>)> {
    let all = facts(evidence);
    let paths: Vec<String> = all.iter().filter_map(path_of).map(str::to_owned).collect();
    let names = Names::new(paths.iter().map(String::as_str));
    let index = Index::new(text);
    let (mut kept, mut missing) = (Vec::new(), Vec::new());
    for fact in weightiest(all, MIN_WEIGHT) {
        let is_kept = index.holds(&fact.key, &names);
        let place = if is_kept { index.place(text, &fact.key, &names) } else { None };
        let place = place.map(|place| (place.start, place.end));
        let tokens = price(&fact.section.item(&fact.text))?;
        let list = if is_kept { &mut kept } else { &mut missing };
        list.push(Priced { fact, tokens, place });
    }
    Ok((kept, missing))
}

fn path_of(fact: &Fact) -> Option<&str> {
    match &fact.key {
        Key::Path(path) => Some(path),
        _ => None,
    }
}

/// The weightiest facts, in document order.
fn weightiest(all: Vec<Fact>, min_weight: u32) -> Vec<Fact> {
    let mut order: Vec<(std::cmp::Reverse<u32>, usize)> = all
        .iter()
        .enumerate()
        .filter(|(_, fact)| fact.weight >= min_weight && !fact.text.trim().is_empty())
        .map(|(i, fact)| (std::cmp::Reverse(fact.weight), i))
        .collect();
    order.sort_unstable();
    order.truncate(MAX_FACTS);
    let mut chosen = vec![false; all.len()];
    order.iter().for_each(|(_, i)| chosen[*i] = true);
    all.into_iter().zip(chosen).filter(|(_, is_chosen)| *is_chosen).map(|(fact, _)| fact).collect()
}

/// Splits facts into the best that fit within `room` tokens, best first, and the others.
fn select(
    facts: Vec<Priced>,
    style: &PathStyle,
    price: &dyn Fn(&str) -> Result<usize>,
    room: usize,
) -> Result<(Vec<Priced>, Vec<Priced>)> {
    let mut order = facts;
    order.sort_by_key(|Priced { fact, tokens, .. }| {
        let value_a_token = (u64::from(fact.weight) << 16) / (*tokens as u64 + ITEM_TOKENS as u64);
        std::cmp::Reverse((fact.weight / BAND, value_a_token))
    });
    let mut left = room.saturating_sub(price(&format!("\n\n{HEADING}\n"))?);
    let (mut taken, mut others, mut opened) = (Vec::new(), Vec::new(), Vec::new());
    let mut misfits = 0;
    for mut priced in order {
        let section = priced.fact.section;
        if misfits >= MAX_MISFITS || left == 0 {
            others.push(priced);
            continue;
        }
        let frame = if opened.contains(&section) { 0 } else { price(&frame(section, style))? };
        let is_relative = section.closing().is_some() && !style.root.is_empty();
        let tokens = match is_relative {
            true => price(&section.item(&style.listed(&priced.fact.text)))?,
            false => priced.tokens,
        };
        if tokens + frame <= left {
            left -= tokens + frame;
            priced.tokens = tokens;
            opened.push(section);
            taken.push(priced);
            misfits = 0;
        } else {
            misfits += 1;
            others.push(priced);
        }
    }
    Ok((taken, others))
}

/// The heading of a section, one level below [`HEADING`].
fn heading(section: Section) -> String {
    match section.closing() {
        Some(_) => section.heading().to_owned(),
        None => format!("###{}", section.heading().trim_start_matches('#')),
    }
}

fn frame(section: Section, style: &PathStyle) -> String {
    let root = match section.closing() {
        Some(closing) if !style.root.is_empty() => format!("{closing}\n- {ROOT}{}\n", style.root),
        Some(closing) => format!("{closing}\n"),
        None => String::new(),
    };
    format!("{}\n{root}", heading(section))
}

/// The text with a section of the facts that its own sections do not hold, and the bytes of each fact in it.
fn with_section(within: &Merged, taken: &[Priced], style: &PathStyle) -> (String, Vec<Range<usize>>) {
    let others: Vec<&Priced> = taken
        .iter()
        .zip(&within.places)
        .filter(|(_, place)| place.is_none())
        .map(|(priced, _)| priced)
        .collect();
    let text = &within.text;
    if others.is_empty() {
        return (text.clone(), within.places.iter().flatten().cloned().collect());
    }
    let separator = match text {
        _ if text.is_empty() => "",
        _ if text.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    let (added, places) = section(&others, style);
    let offset = text.len() + separator.len();
    let mut in_section = places.into_iter().map(|place| place.start + offset..place.end + offset);
    let places =
        within.places.iter().map(|place| place.clone().or_else(|| in_section.next()).unwrap_or(0..0));
    (format!("{text}{separator}{added}"), places.collect())
}

/// The appended section, and the bytes of each fact in it.
fn section(taken: &[&Priced], style: &PathStyle) -> (String, Vec<Range<usize>>) {
    let mut items: Vec<(Section, usize, String, Option<usize>)> = taken
        .iter()
        .enumerate()
        .map(|(i, Priced { fact, .. })| match fact.section.closing() {
            Some(_) => (fact.section, fact.message, style.listed(&fact.text), Some(i)),
            None => (fact.section, fact.message, fact.text.clone(), Some(i)),
        })
        .collect();
    if !style.root.is_empty() && items.iter().any(|(section, ..)| section.closing().is_some()) {
        items.push((Section::Context, 0, format!("{ROOT}{}", style.root), None));
    }
    items.sort();
    let mut places = vec![0..0; taken.len()];
    let mut out = format!("{HEADING}\n");
    for of_section in items.chunk_by(|a, b| a.0 == b.0) {
        let section = of_section[0].0;
        out.push_str(&heading(section));
        out.push('\n');
        for (_, _, text, fact) in of_section {
            let item = section.item(text);
            let start = out.len() + item.find(text.lines().next().unwrap_or_default()).unwrap_or(0);
            let end = out.len() + item.trim_end().len();
            if let Some(place) = fact.and_then(|fact| places.get_mut(fact)) {
                *place = start.min(end)..end;
            }
            out.push_str(&item);
        }
        if let Some(closing) = section.closing() {
            out.push_str(closing);
            out.push('\n');
        }
    }
    (out, places)
}

/// The weightiest facts as bullets, within `max_tokens` by `price`: `- [constraint] Never push to main`.
///
/// # Errors
/// Those of `price`.
pub fn list(evidence: &Evidence, price: &dyn Fn(&str) -> Result<usize>, max_tokens: usize) -> Result<String> {
    let all = weightiest(facts(evidence), 0);
    let files: HashMap<&str, &[(u32, u32)]> =
        evidence.files.iter().map(|file| (file.path.as_str(), file.lines.as_slice())).collect();
    let line = |fact: &Fact| {
        let text = without_label(&fact.text);
        let lines = path_of(fact)
            .and_then(|_| files.get(fact.text.as_str()))
            .map_or(String::new(), |lines| ranges(lines));
        format!("- [{}] {}{lines}\n", fact.kind.label(), one_paragraph(text))
    };
    let mut priced = Vec::with_capacity(all.len());
    for fact in all {
        let tokens = price(&line(&fact))?;
        priced.push(Priced { fact, tokens, place: None });
    }
    let (mut taken, _) = select_plain(priced, max_tokens);
    let mut drops = 1;
    loop {
        let mut lines: Vec<(FactKind, usize, String)> =
            taken.iter().map(|p| (p.fact.kind, p.fact.message, line(&p.fact))).collect();
        lines.sort();
        let text: String = lines.into_iter().map(|(_, _, line)| line).collect();
        if taken.is_empty() || price(&text)? <= max_tokens {
            return Ok(text);
        }
        taken.truncate(taken.len().saturating_sub(drops));
        drops *= 2;
    }
}

fn select_plain(mut facts: Vec<Priced>, room: usize) -> (Vec<Priced>, Vec<Priced>) {
    facts.sort_by_key(|Priced { fact, tokens, .. }| {
        let value_a_token = (u64::from(fact.weight) << 16) / (*tokens as u64 + ITEM_TOKENS as u64);
        std::cmp::Reverse((fact.weight / BAND, value_a_token))
    });
    let mut left = room;
    facts.into_iter().partition(|priced| {
        let fits = priced.tokens <= left;
        left -= if fits { priced.tokens } else { 0 };
        fits
    })
}

/// The text without its label, because bullets name the kind.
fn without_label(text: &str) -> &str {
    [CORRECTION, ASKS, IDENTIFIER, NUMBER, LAST_STATE]
        .iter()
        .find_map(|label| text.strip_prefix(label))
        .unwrap_or(text)
}

/// Line ranges as ` (lines 1-20, 40-60)`, at most four.
fn ranges(lines: &[(u32, u32)]) -> String {
    let shown: Vec<String> = lines.iter().take(4).map(|(first, last)| format!("{first}-{last}")).collect();
    let more = if lines.len() > shown.len() { ", …" } else { "" };
    if shown.is_empty() { String::new() } else { format!(" (lines {}{more})", shown.join(", ")) }
}

fn one_paragraph(text: &str) -> String {
    escape_section_tags(&text.split_whitespace().collect::<Vec<_>>().join(" ")).into_owned()
}
