//! What the fuzz targets share: how an input is divided, and how a node is written down.

use foldline::node::{Kind, Node, Unit};

/// The first byte, as a choice of `count`, and the rest. `None` for an empty input.
pub fn choice(data: &[u8], count: usize) -> Option<(usize, &[u8])> {
    let (first, rest) = data.split_first()?;
    Some((usize::from(*first) % count, rest))
}

/// Four characters a token.
///
/// # Errors
/// Never.
pub fn quarter(text: &str) -> foldline::error::Result<usize> {
    Ok(text.chars().count().div_ceil(4))
}

/// Everything a node says about itself, each length beside the text that it must be the length of.
pub fn write_facts<N: Node>(node: &N, out: &mut String) {
    let kind = node.kind();
    out.push_str(&format!("{kind:?}"));
    match kind {
        Kind::String => {
            let Some(text) = node.text() else { panic!("a string without a text") };
            out.push_str(&format!("{:?}", &*text));
            for unit in [Unit::Bytes, Unit::Points, Unit::Utf16] {
                assert_eq!(node.text_length(unit), Some(unit.of(&text)), "length of {:?}", &*text);
                out.push_str(&format!("{:?}", node.quoted_length(unit)));
            }
        }
        Kind::Array => {
            let mut count = 0;
            let walked = node.each_item(|i, item| {
                assert_eq!(i, count);
                count += 1;
                write_facts(item, out);
                Ok(())
            });
            assert!(walked.is_ok());
            assert_eq!(count, node.len());
        }
        Kind::Object => {
            let Ok(members) = node.members() else { panic!("a key that is not a string") };
            for (key, value) in members {
                out.push_str(&key);
                write_facts(&value, out);
            }
        }
        _ => {
            let written = node.write_json(out);
            assert!(written.is_ok());
        }
    }
    out.push(';');
}
