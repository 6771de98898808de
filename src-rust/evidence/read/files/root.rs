//! The one root of the listed paths, and the paths below it.

use std::collections::HashMap;

use super::{common_root, is_scratch};
use crate::evidence::{Evidence, FileTouched};

/// The one root of the paths: that of an earlier summary, the folder that most calls ran in, or the one most files are
/// in.
pub(in crate::evidence::read) fn root_of(
    earlier: Option<String>,
    folders: &HashMap<String, usize>,
    files: &[FileTouched],
) -> Option<String> {
    let absolute: Vec<&str> = files
        .iter()
        .map(|file| file.path.as_str())
        .filter(|path| path.starts_with('/') && !is_scratch(path))
        .collect();
    let inside = |folder: &str| absolute.iter().filter(|path| path.starts_with(folder)).count();
    let with_slash = |folder: &str| format!("{}/", folder.trim_end_matches('/'));
    if let Some(earlier) = earlier
        && (absolute.is_empty() || 2 * inside(&earlier) >= absolute.len())
    {
        return Some(earlier);
    }
    let ran = folders
        .iter()
        .filter(|(folder, _)| !is_scratch(folder) && folder.len() > 1)
        .map(|(folder, count)| (inside(&with_slash(folder)), *count, std::cmp::Reverse(folder.as_str())))
        .max()
        .filter(|(inside, ..)| absolute.is_empty() || 2 * inside >= absolute.len())
        .map(|(_, _, folder)| with_slash(folder.0));
    ran.or_else(|| common_root(absolute.iter().copied()))
}

/// Relative paths are in the root; one file under two paths is one.
pub(in crate::evidence::read) fn below_root(found: &mut Evidence) {
    let Some(root) = found.root.clone() else { return };
    if let Some(step) = &mut found.last_step {
        step.text = step.text.replace(&root, "");
    }
    let mut by_path: HashMap<String, usize> =
        found.files.iter().enumerate().map(|(at, file)| (file.path.clone(), at)).collect();
    let mut gone = vec![false; found.files.len()];
    for (at, is_gone) in gone.iter_mut().enumerate() {
        let path = found.files[at].path.clone();
        if path.starts_with(['/', '~']) || path.starts_with("../") || path.contains(":\\") {
            continue;
        }
        let whole = format!("{root}{path}");
        let whole =
            if by_path.contains_key(&whole) { whole } else { overlapping(&root, &path).unwrap_or(whole) };
        match by_path.get(&whole).copied() {
            Some(other) if other != at => {
                let file = found.files[at].clone();
                found.files[other].merge(&file);
                *is_gone = true;
            }
            _ => {
                by_path.insert(whole.clone(), at);
                found.files[at].path = whole;
            }
        }
    }
    let mut gone = gone.into_iter();
    found.files.retain(|_| !gone.next().unwrap_or(false));
    found.files.sort_by_key(|file| file.message);
}

/// The path of a file that is named from a folder above the root: `/r/cmd/cli/` and `cmd/cli/a.go` are one file's. A
/// single folder may well have the name of its parent.
fn overlapping(root: &str, path: &str) -> Option<String> {
    let ends = path.match_indices('/').skip(1).map(|(at, _)| &path[..=at]);
    let shared = ends.filter(|lead| root.ends_with(&format!("/{lead}"))).last()?;
    Some(format!("{}{path}", &root[..root.len() - shared.len()]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_from_above_the_root_is_in_it() {
        assert_eq!(overlapping("/r/cmd/cli/", "cmd/cli/a.go").as_deref(), Some("/r/cmd/cli/a.go"));
        assert_eq!(overlapping("/r/index/", "index/a.py"), None);
        assert_eq!(overlapping("/r/cmd/cli/", "cli/cmd/a.go"), None);
    }
}
