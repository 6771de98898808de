//! Puts missing facts under the headings of a text, where it has one for them.

use std::ops::Range;

use super::facts::Fact;
use crate::evidence::read::foreign::{Class, class_of, title_of};
use crate::evidence::write::document::Section;

/// The heading of the facts for which the text has no section.
pub(super) const HEADING: &str = "## Kept from the originals";

/// A text with facts among its items.
pub(super) struct Merged {
    pub text: String,
    /// For each fact its bytes in the text; `None` if the text has no section for it.
    pub places: Vec<Option<Range<usize>>>,
    /// Where bytes were inserted, ascending: the offset in the original text, and how many.
    inserted: Vec<(usize, usize)>,
}

impl Merged {
    /// A range of the original text in the new one.
    pub(super) fn moved(&self, (start, end): (usize, usize)) -> (usize, usize) {
        let before = |limit: usize| {
            self.inserted.iter().take_while(|(at, _)| *at < limit).map(|(_, n)| n).sum::<usize>()
        };
        (start + before(start + 1), end + before(end))
    }
}

/// Inserts each fact behind the last item of the section for it. O(bytes of the text + facts * sections).
pub(super) fn merged(text: &str, facts: &[&Fact]) -> Merged {
    let ends = section_ends(text);
    let mut items: Vec<(usize, usize, String)> = Vec::new();
    for (i, fact) in facts.iter().enumerate() {
        if let Some((at, item)) = item_for(fact, &ends) {
            items.push((at, i, item));
        }
    }
    items.sort_by_key(|(at, i, _)| (*at, facts.get(*i).map(|fact| (fact.section, fact.message))));
    let mut found = Merged { text: String::new(), places: vec![None; facts.len()], inserted: Vec::new() };
    let mut copied = 0;
    for (at, i, item) in items {
        found.text.push_str(text.get(copied..at).unwrap_or_default());
        copied = at;
        let before = found.text.len();
        if !found.text.is_empty() && !found.text.ends_with('\n') {
            found.text.push('\n');
        }
        let start = found.text.len();
        found.text.push_str(&item);
        if let Some(place) = found.places.get_mut(i) {
            *place = Some(start..start + item.trim_end().len());
        }
        found.inserted.push((at, found.text.len() - before));
    }
    found.text.push_str(text.get(copied..).unwrap_or_default());
    found
}

/// The end of a section: the offset behind its last line that is not blank.
struct End {
    under: Under,
    at: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Under {
    Class(Class),
    /// A list of paths, whose end is its closing line.
    List(Section),
}

/// The ends of the sections, in order.
fn section_ends(text: &str) -> Vec<End> {
    let lists = [Section::ReadFiles, Section::ModifiedFiles];
    let mut ends: Vec<End> = Vec::new();
    let mut list: Option<Section> = None;
    let mut is_under_heading = false;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let (start, bare) = (at, line.trim_end());
        at += line.len();
        if let Some(open) = list {
            if open.closing() == Some(bare) {
                ends.push(End { under: Under::List(open), at: start });
                list = None;
            }
        } else if let Some(opened) = lists.into_iter().find(|list| list.heading() == bare) {
            (list, is_under_heading) = (Some(opened), false);
        } else if let Some((title, _)) = title_of(line) {
            let class = class_of(title).filter(|_| bare != HEADING);
            is_under_heading = class.is_some();
            ends.extend(class.map(|class| End { under: Under::Class(class), at }));
        } else if is_under_heading
            && !bare.is_empty()
            && let Some(end) = ends.last_mut()
        {
            end.at = at;
        }
    }
    ends
}

/// Where a fact is inserted, and the line.
fn item_for(fact: &Fact, ends: &[End]) -> Option<(usize, String)> {
    // The last one counts: the sections of an analysis come before those of the summary.
    let end_of = |under: Under| ends.iter().rev().find(|end| end.under == under).map(|end| end.at);
    if fact.section.closing().is_some() {
        return match end_of(Under::List(fact.section)) {
            Some(at) => Some((at, fact.section.item(&fact.text))),
            None => {
                let at = classes(fact).iter().find_map(|class| end_of(Under::Class(*class)))?;
                Some((at, format!("- {}\n", fact.text)))
            }
        };
    }
    let at = classes(fact).iter().find_map(|class| end_of(Under::Class(*class)))?;
    Some((at, fact.section.item(&fact.text)))
}

/// The classes of sections that a fact belongs to, the best one first.
fn classes(fact: &Fact) -> &'static [Class] {
    match fact.section {
        Section::Goal => &[Class::Request],
        Section::Constraints => &[Class::Rules],
        Section::Done => &[Class::Done],
        Section::InProgress => &[Class::Doing, Class::Next],
        Section::Blocked => &[Class::Blocked, Class::Open],
        Section::Decisions => &[Class::Agent],
        Section::Errors if fact.text.starts_with("[open]") => &[Class::Open, Class::Findings],
        Section::Errors => &[Class::Findings],
        Section::Commands => &[Class::Commands],
        Section::NextSteps => &[Class::Next],
        Section::Context => &[Class::Names, Class::Context],
        Section::ReadFiles => &[Class::Read, Class::Files],
        Section::ModifiedFiles => &[Class::Changed, Class::Files],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::check::facts::FactKind;
    use crate::evidence::check::presence::Key;

    fn fact(section: Section, text: &str) -> Fact {
        let key = Key::phrase(text);
        Fact { kind: FactKind::Constraint, text: text.into(), message: 3, weight: 900, section, key }
    }

    #[test]
    fn a_fact_stands_behind_the_last_item_of_its_section() {
        let text = "## Rules\n- Be brief.\n\n## Next steps\n1. Go on.";
        let facts = [fact(Section::NextSteps, "Run it."), fact(Section::Constraints, "Never push.")];
        let found = merged(text, &[&facts[0], &facts[1]]);
        assert_eq!(
            found.text,
            "## Rules\n- Be brief.\n- Never push.\n\n## Next steps\n1. Go on.\n1. Run it.\n"
        );
        let written: Vec<&str> =
            found.places.iter().flatten().map(|place| &found.text[place.clone()]).collect();
        assert_eq!(written, ["1. Run it.", "- Never push."]);
    }

    #[test]
    fn ranges_of_the_text_move_with_what_is_inserted_before_them() {
        let text = "## Rules\n- Be brief.\n\n## Next steps\n1. Go on.\n";
        let found = merged(text, &[&fact(Section::Constraints, "Never push.")]);
        for words in ["Be brief.", "Go on."] {
            let start = text.find(words).unwrap();
            let (start, end) = found.moved((start, start + words.len()));
            assert_eq!(&found.text[start..end], words);
        }
    }

    #[test]
    fn paths_go_into_the_list_of_files_or_under_their_heading() {
        let path = fact(Section::ModifiedFiles, "src/a.rs");
        let list = "## Files\n- b.rs: read\n\n<modified-files>\nsrc/b.rs\n</modified-files>\n";
        let found = merged(list, &[&path]);
        assert!(found.text.ends_with("<modified-files>\nsrc/b.rs\nsrc/a.rs\n</modified-files>\n"));
        assert_eq!(merged("## Files\n- b.rs: read\n", &[&path]).text, "## Files\n- b.rs: read\n- src/a.rs\n");
    }

    #[test]
    fn a_text_without_a_section_for_a_fact_stays_as_it_is() {
        for text in ["", "So far, so good.", "## Rules\n- Be brief.", "## Kept from the originals\n- Port 1"]
        {
            let found = merged(text, &[&fact(Section::Commands, "`make`: passed")]);
            assert_eq!((found.text.as_str(), found.places), (text, vec![None]));
        }
    }
}
