//! For tests: a description of a node; nodes with equal descriptions are equal to every reader.

use super::{Fields, Key, KeySet, Node, Unit};

/// Appends everything that can be read from a node, as text.
pub fn describe<N: Node>(node: &N, out: &mut String) {
    const UNITS: [Unit; 3] = [Unit::Bytes, Unit::Points, Unit::Utf16];
    out.push_str(&format!("{:?} {} {:?};", node.kind(), node.len(), node.as_bool()));
    let mut json = String::new();
    let written = node.write_json(&mut json).map_err(|error| error.code);
    out.push_str(&format!("{:?} {:?};", written.is_ok(), json));
    for unit in UNITS {
        let length = node.json_length(unit).map_err(|error| error.code);
        assert_eq!(length, written.map(|_| unit.of(&json)), "{json}");
        out.push_str(&format!("{:?} {:?};", node.text_length(unit), node.quoted_length(unit)));
        assert_eq!(node.text_length(unit), node.with_text(|text, _| unit.of(text)));
    }
    out.push_str(&format!("{:?};", node.text().map(|text| text.to_owned())));
    let keys = [Key::ROLE, Key::CONTENT, Key::TYPE, Key::TEXT];
    let wanted = KeySet::new(keys);
    let mut found = Fields::nothing();
    node.find(&wanted, &mut found);
    for key in keys {
        let value = node.get(key);
        assert_eq!(found.under(&wanted, key).map(json_of), value.as_ref().map(json_of));
        if let Some(value) = value {
            out.push_str(key.as_str());
            describe(&value, out);
        }
    }
    for (a, b) in [(0, 1), (1, 0), (2, 3)] {
        let Some(pair) = node.pair([keys[a], keys[b]]) else { continue };
        assert!(node.members().is_ok_and(|members| members.len() == 2));
        let sought = [a, b].map(|i| found.under(&wanted, keys[i]).map(json_of));
        assert_eq!(pair.map(|value| Some(json_of(&value))), sought);
    }
    let items = node.items();
    assert_eq!((items.len(), node.first().as_ref().map(json_of)), (node.len(), items.first().map(json_of)));
    for (i, item) in items.iter().enumerate() {
        out.push_str(&format!("[{i}]"));
        describe(item, out);
    }
    for (key, value) in node.members().unwrap_or_default() {
        out.push_str(&format!("{key:?}:"));
        describe(&value, out);
    }
}

fn json_of<N: Node>(node: &N) -> (bool, String) {
    let mut json = String::new();
    (node.write_json(&mut json).is_ok(), json)
}
