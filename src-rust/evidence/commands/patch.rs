//! Files named in the patch text of `apply_patch` (`*** Update File: …`).

use crate::evidence::FileOp;

/// The files that a patch touches, in order.
pub(in crate::evidence) fn files_of(patch: &str) -> Vec<(FileOp, String)> {
    let mut files: Vec<(FileOp, String)> = Vec::new();
    for line in patch.lines() {
        let Some(header) = line.trim_start().strip_prefix("*** ") else { continue };
        let named = |prefix: &str| header.strip_prefix(prefix).map(|path| path.trim().to_owned());
        if let Some(path) = named("Update File:") {
            files.push((FileOp::Edited, path));
        } else if let Some(path) = named("Add File:") {
            files.push((FileOp::Created, path));
        } else if let Some(path) = named("Delete File:") {
            files.push((FileOp::Deleted, path));
        } else if let Some(path) = named("Move to:") {
            // The source of a move is the update directly before it.
            if let Some(source) = files.last_mut() {
                source.0 = FileOp::Moved;
            }
            files.push((FileOp::Created, path));
        }
    }
    files
}

/// The files that a patch writes, each with its lines: the new path of a file that it renames.
pub(in crate::evidence) fn sections(patch: &str) -> Vec<(&str, &str)> {
    let mut found: Vec<(&str, usize, usize)> = Vec::new();
    let mut at = 0;
    for line in patch.split_inclusive('\n') {
        let end = at + line.len();
        let header = line.trim().strip_prefix("*** ").unwrap_or("");
        let named = ["Update File:", "Add File:"].iter().find_map(|lead| header.strip_prefix(lead));
        match (named, header.strip_prefix("Move to:"), found.last_mut()) {
            (Some(path), ..) => found.push((path.trim(), end, end)),
            (_, Some(path), Some(last)) => *last = (path.trim(), end, end),
            (_, _, Some(last)) if header.is_empty() && last.2 == at => last.2 = end,
            _ => {}
        }
        at = end;
    }
    found.into_iter().map(|(path, from, to)| (path, &patch[from..to])).collect()
}

/// Whether a text contains such a patch.
pub(in crate::evidence) fn is_patch(text: &str) -> bool {
    text.contains("*** Begin Patch")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_header_names_a_file() {
        let patch = "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y\n*** Add File: b.py\n+z\n\
                     *** Delete File: c.py\n*** Update File: d.py\n*** Move to: e/d.py\n*** End Patch";
        let expected = [
            (FileOp::Edited, "a.py"),
            (FileOp::Created, "b.py"),
            (FileOp::Deleted, "c.py"),
            (FileOp::Moved, "d.py"),
            (FileOp::Created, "e/d.py"),
        ];
        let found = files_of(patch);
        assert!(is_patch(patch));
        assert_eq!(found.iter().map(|(a, p)| (*a, p.as_str())).collect::<Vec<_>>(), expected);
        assert_eq!(sections(patch), [("a.py", "@@\n-x\n+y\n"), ("b.py", "+z\n"), ("e/d.py", "")]);
    }
}
