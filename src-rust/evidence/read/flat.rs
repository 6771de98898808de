//! JSON as pieces `key value` on one line.

use crate::evidence::text::{escape_section_tags, one_line};
use crate::json::{Tape, with_document};
use crate::node::{Kind, Node};

/// Longest value of a member.
const MAX_VALUE_CHARS: usize = 400;

/// A name with as many whole pieces as have room.
pub(super) fn line_of(name: &str, pieces: &[String], max_chars: usize) -> String {
    let mut line = name.to_owned();
    for (i, piece) in pieces.iter().enumerate() {
        if line.chars().count() + piece.chars().count() + 2 > max_chars {
            break;
        }
        line.push_str(if i == 0 { ": " } else { ", " });
        line.push_str(piece);
    }
    line
}

/// [`flat`] of a text; empty if it is not JSON.
pub(super) fn flat_json(text: &str) -> Vec<String> {
    match Tape::parse(text.as_bytes(), &mut || true) {
        Ok(Some(tape)) => flat(&tape.root()),
        _ => with_document(text.as_bytes(), |node| flat(&node)).unwrap_or_default(),
    }
}

/// The members of a JSON object as `key value`, without empty ones; members of a nested object follow its key.
pub(super) fn flat<N: Node>(node: &N) -> Vec<String> {
    let mut found = Vec::new();
    flatten(node, "", 0, &mut found);
    found
}

fn flatten<N: Node>(node: &N, lead: &str, depth: usize, found: &mut Vec<String>) {
    const MAX_PIECES: usize = 60;
    let Ok(members) = node.members() else { return };
    for (key, value) in members {
        if found.len() >= MAX_PIECES {
            return;
        }
        let key = format!("{lead}{}", key.as_str());
        match value.kind() {
            Kind::Object if depth < 2 => flatten(&value, &format!("{key} "), depth + 1, found),
            Kind::Array => {
                let texts: Vec<String> = value.first_items(8).iter().filter_map(scalar).collect();
                if !texts.is_empty() && depth < 3 {
                    found.push(format!("{key} {}", texts.join(" + ")));
                } else if depth < 2 {
                    for item in value.first_items(3) {
                        flatten(&item, &format!("{key} "), depth + 1, found);
                    }
                }
            }
            _ => found.extend(scalar(&value).map(|text| format!("{key} {text}"))),
        }
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
            Some(raw.trim().to_owned())
        },
    )?;
    let says_nothing = matches!(text.as_str(), "" | "null" | "n/a" | "N/A" | "none" | "None" | "-");
    (!says_nothing && text.chars().count() <= MAX_VALUE_CHARS).then_some(text)
}
