//! JSON as pieces `key value` on one line.

use crate::evidence::text::{escape_section_tags, one_line};
use crate::json::{Tape, with_document};
use crate::node::{Kind, Node};

/// Longest value of a member.
const MAX_VALUE_CHARS: usize = 400;

/// A name with as many whole pieces as have room.
pub(super) fn line_of(name: &str, pieces: &[String], max_chars: usize) -> String {
    let mut line = name.to_owned();
    let mut chars = line.chars().count();
    for (i, piece) in pieces.iter().enumerate() {
        chars += piece.chars().count() + 2;
        if chars > max_chars {
            break;
        }
        line.push_str(if i == 0 { ": " } else { ", " });
        line.push_str(piece);
    }
    line
}

/// [`flat`] of a text; empty if it is not JSON.
pub(super) fn flat_json(text: &str) -> Vec<String> {
    flat_json_within(text, usize::MAX)
}

/// The first pieces of [`flat_json`], as far as [`line_of`] shows them in `max_chars` characters.
pub(super) fn flat_json_within(text: &str, max_chars: usize) -> Vec<String> {
    match Tape::parse(text.as_bytes(), &mut || true) {
        Ok(Some(tape)) => Pieces::of(&tape.root(), max_chars),
        _ => with_document(text.as_bytes(), |node| Pieces::of(&node, max_chars)).unwrap_or_default(),
    }
}

/// The members of a JSON object as `key value`, without empty ones; members of a nested object follow its key.
pub(super) fn flat<N: Node>(node: &N) -> Vec<String> {
    Pieces::of(node, usize::MAX)
}

struct Pieces {
    found: Vec<String>,
    /// Characters for which there is room.
    room: usize,
}

impl Pieces {
    fn of<N: Node>(node: &N, room: usize) -> Vec<String> {
        let mut pieces = Pieces { found: Vec::new(), room };
        pieces.add_members(node, "", 0);
        pieces.found
    }

    fn push(&mut self, key: &str, text: &str) {
        let piece = [key, " ", text].concat();
        self.room = self.room.saturating_sub(piece.chars().count() + 2);
        self.found.push(piece);
    }

    fn add_members<N: Node>(&mut self, node: &N, lead: &str, depth: usize) {
        const MAX_PIECES: usize = 60;
        let _ = node.each_member(|key, value| {
            if self.found.len() >= MAX_PIECES || self.room == 0 {
                return Ok(());
            }
            let key = [lead, key].concat();
            match value.kind() {
                Kind::Object if depth < 2 => self.add_members(value, &(key + " "), depth + 1),
                Kind::Array => {
                    let texts: Vec<String> = value.first_items(8).iter().filter_map(scalar).collect();
                    if !texts.is_empty() && depth < 3 {
                        self.push(&key, &texts.join(" + "));
                    } else if depth < 2 {
                        let lead = key + " ";
                        value.first_items(3).iter().for_each(|item| self.add_members(item, &lead, depth + 1));
                    }
                }
                _ => scalar(value).iter().for_each(|text| self.push(&key, text)),
            }
            Ok(())
        });
    }
}

/// A text, number or flag on one line; `None` for what says nothing.
fn scalar<N: Node>(value: &N) -> Option<String> {
    if matches!(value.kind(), Kind::Object | Kind::Array) {
        return None;
    }
    let text = value.with_text(|text, _| one_line(&escape_section_tags(text), MAX_VALUE_CHARS + 1)).or_else(
        || {
            let mut raw = String::new();
            value.write_json(&mut raw).ok()?;
            let is_trimmed = raw.trim().len() == raw.len();
            Some(if is_trimmed { raw } else { raw.trim().to_owned() })
        },
    )?;
    let says_nothing = matches!(text.as_str(), "" | "null" | "n/a" | "N/A" | "none" | "None" | "-");
    (!says_nothing && text.chars().count() <= MAX_VALUE_CHARS).then_some(text)
}
