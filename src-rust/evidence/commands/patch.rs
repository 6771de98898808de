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
    }
}
