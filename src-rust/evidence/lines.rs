//! Line ranges of files, as read from calls and commands.

use super::commands::shell_lexer::Word;
use crate::node::Node;

/// Most ranges of one file.
const MAX_RANGES: usize = 32;

/// The lines named by the arguments of a reading tool: `offset` and `limit`, `start_line` and `end_line`, `view_range`.
pub(super) fn of_call<N: Node>(members: &[(String, N)]) -> Option<(u32, u32)> {
    let number = |names: &[&str]| {
        let named = names.iter().find_map(|name| members.iter().find(|(key, _)| key == name))?;
        number_of(&named.1)
    };
    if let Some((_, range)) = members.iter().find(|(key, _)| key == "view_range") {
        let [first, last] = <[N; 2]>::try_from(range.first_items(2)).ok()?;
        return range_of(number_of(&first)?, number_of(&last)?);
    }
    let start = number(&["start_line", "startLine", "line_start", "start_line_one_indexed"]);
    let end = number(&["end_line", "endLine", "line_end", "end_line_one_indexed_inclusive"]);
    if let (Some(start), Some(end)) = (start, end) {
        return range_of(start, end);
    }
    let limit = number(&["limit"]).filter(|limit| *limit > 0)?;
    let start = number(&["offset"]).unwrap_or(1).max(1);
    range_of(start, start.saturating_add(limit - 1))
}

fn number_of<N: Node>(node: &N) -> Option<u32> {
    let mut text = String::new();
    node.write_json(&mut text).ok()?;
    text.trim_matches('"').parse().ok()
}

fn range_of(first: u32, last: u32) -> Option<(u32, u32)> {
    (first >= 1 && last >= first).then_some((first, last))
}

/// The lines that `sed -n '10,20p'` and `head -n 20` show.
pub(super) fn of_command(program: &str, arguments: &[Word]) -> Option<(u32, u32)> {
    let texts = || arguments.iter().map(|word| word.text.as_str());
    match program {
        "sed" if texts().any(|text| text == "-n") => texts().find_map(|text| {
            let range = text.strip_suffix('p')?;
            let (first, last) = range.split_once(',').unwrap_or((range, range));
            range_of(first.trim().parse().ok()?, last.trim().parse().ok()?)
        }),
        "head" => {
            let attached = texts()
                .find_map(|text| text.strip_prefix("-n").or_else(|| text.strip_prefix('-'))?.parse().ok());
            let apart = || texts().skip_while(|text| *text != "-n").nth(1)?.parse().ok();
            range_of(1, attached.or_else(apart)?)
        }
        _ => None,
    }
}

/// Adds a range and merges adjacent ranges.
pub(super) fn add(ranges: &mut Vec<(u32, u32)>, range: (u32, u32)) {
    if ranges.len() >= MAX_RANGES && !ranges.iter().any(|known| touch(*known, range)) {
        return;
    }
    let mut merged = range;
    ranges.retain(|known| {
        let apart = !touch(*known, merged);
        if !apart {
            merged = (merged.0.min(known.0), merged.1.max(known.1));
        }
        apart
    });
    let at = ranges.partition_point(|known| known.0 < merged.0);
    ranges.insert(at, merged);
}

fn touch(a: (u32, u32), b: (u32, u32)) -> bool {
    a.0 <= b.1.saturating_add(1) && b.0 <= a.1.saturating_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::with_document;

    #[test]
    fn every_agents_way_to_name_lines_is_read() {
        for (arguments, lines) in [
            (r#"{"file_path":"a","offset":10,"limit":5}"#, Some((10, 14))),
            (r#"{"path":"a","limit":20}"#, Some((1, 20))),
            (r#"{"path":"a","offset":"3","limit":"2"}"#, Some((3, 4))),
            (r#"{"path":"a","start_line":3,"end_line":9}"#, Some((3, 9))),
            (r#"{"path":"a","view_range":[1,40]}"#, Some((1, 40))),
            (r#"{"path":"a","view_range":[10,-1]}"#, None),
            (r#"{"path":"a"}"#, None),
            (r#"{"path":"a","limit":0}"#, None),
            ("not json", None),
        ] {
            let found =
                with_document(arguments.as_bytes(), |node| of_call(&node.members().unwrap_or_default()));
            assert_eq!(found.ok().flatten(), lines, "{arguments}");
        }
    }

    #[test]
    fn ranges_that_touch_become_one() {
        let mut ranges = Vec::new();
        for range in [(10, 20), (40, 50), (21, 25), (1, 2), (24, 41)] {
            add(&mut ranges, range);
        }
        assert_eq!(ranges, [(1, 2), (10, 50)]);
        (0..100).for_each(|i| add(&mut ranges, (1_000 + 10 * i, 1_001 + 10 * i)));
        assert_eq!(ranges.len(), MAX_RANGES);
    }
}
