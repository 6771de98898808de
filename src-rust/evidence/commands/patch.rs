//! Files named in the patch text of `apply_patch` (`*** Update File: …`).

use crate::evidence::FileOp;

/// The file of a header line, and what the patch does to it: a move names the new path.
fn header(line: &str) -> Option<(FileOp, &str)> {
    const HEADERS: [(&str, FileOp); 4] = [
        ("Update File:", FileOp::Edited),
        ("Add File:", FileOp::Created),
        ("Delete File:", FileOp::Deleted),
        ("Move to:", FileOp::Moved),
    ];
    let header = line.trim().strip_prefix("*** ")?;
    HEADERS.iter().find_map(|(lead, action)| Some((*action, header.strip_prefix(lead)?.trim())))
}

/// The files that a patch touches, in order.
pub(in crate::evidence) fn files_of(patch: &str) -> Vec<(FileOp, String)> {
    let mut files: Vec<(FileOp, String)> = Vec::new();
    for (action, path) in patch.lines().filter_map(header) {
        match (action, files.last_mut()) {
            (FileOp::Moved, source) => {
                // The source of a move is the update directly before it.
                source.into_iter().for_each(|source| source.0 = FileOp::Moved);
                files.push((FileOp::Created, path.to_owned()));
            }
            _ => files.push((action, path.to_owned())),
        }
    }
    files
}

/// The files that a patch writes, each with its lines: the new path of a file that it renames.
pub(in crate::evidence) fn sections(patch: &str) -> Vec<(&str, &str)> {
    let mut found: Vec<(&str, usize, usize)> = Vec::new();
    // Whether the lines belong to the last file found.
    let mut is_open = false;
    let mut at = 0;
    for line in patch.split_inclusive('\n') {
        let end = at + line.len();
        match (header(line), found.last_mut()) {
            (Some((FileOp::Edited | FileOp::Created, path)), _) => {
                found.push((path, end, end));
                is_open = true;
            }
            (Some((FileOp::Moved, path)), Some(last)) => *last = (path, end, end),
            (None, Some(last)) if is_open && !line.starts_with("*** ") => last.2 = end,
            _ => is_open = false,
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
