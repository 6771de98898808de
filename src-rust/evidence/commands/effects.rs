//! The files that the arguments of a program name, with what it does to them.

use super::folders::program;
use super::shell_lexer::Word;
use crate::evidence::FileOp;

/// The files that a command's arguments name.
pub(super) fn argument_effects(words: &[Word], touch: &mut impl FnMut(FileOp, &Word)) {
    let [_, arguments @ ..] = words else { return };
    let operands: Vec<&Word> = words
        .windows(2)
        .filter(|pair| {
            // `-A 5`: the number belongs to the option.
            let is_value = pair[0].text.starts_with('-') && pair[1].text.bytes().all(|b| b.is_ascii_digit());
            !pair[1].text.starts_with('-') && (pair[1].text.is_empty() || !is_value)
        })
        .map(|pair| &pair[1])
        .collect();
    let has = |flag: &str| arguments.iter().any(|word| word.text.starts_with(flag));
    let mut all = |action: FileOp, operands: &[&Word]| operands.iter().for_each(|word| touch(action, word));
    let skip = |n: usize| operands.get(n..).unwrap_or(&[]);
    match program(words) {
        "cat" | "head" | "tail" | "less" | "more" | "nl" | "wc" | "bat" | "diff" | "cmp" | "md5sum"
        | "sha256sum" | "od" | "xxd" | "strings" => all(FileOp::Read, &operands),
        "sed" => {
            let has_script_flag = arguments.iter().any(|word| matches!(word.text.as_str(), "-e" | "-f"));
            // macOS takes the backup suffix as a separate word, often empty.
            let suffix = usize::from(operands.first().is_some_and(|word| word.text.is_empty()));
            // With -e the scripts are operands that do not look like files.
            let first_file = if has_script_flag { 0 } else { 1 + suffix };
            let in_place = has("-i") || has("--in-place");
            let files: Vec<&Word> =
                skip(first_file).iter().copied().filter(|word| !has_script_flag || is_plain(word)).collect();
            all(if in_place { FileOp::Edited } else { FileOp::Read }, &files);
        }
        "perl" if has("-i") || has("-pi") => all(FileOp::Edited, skip(1)),
        "awk" | "jq" | "yq" => all(FileOp::Read, skip(1)),
        "grep" | "egrep" | "fgrep" | "rg" | "ag" => {
            let files: Vec<&Word> = skip(1).iter().copied().filter(|word| is_plain(word)).collect();
            all(FileOp::Searched, &files);
        }
        "rm" | "rmdir" | "unlink" | "trash" => all(FileOp::Deleted, &operands),
        "mv" => move_or_copy(&operands, FileOp::Moved, &mut all),
        "cp" => move_or_copy(&operands, FileOp::Read, &mut all),
        "tee" => all(if has("-a") { FileOp::Edited } else { FileOp::Written }, &operands),
        "touch" | "truncate" => all(FileOp::Written, &operands),
        "chmod" | "chown" => all(FileOp::Edited, skip(1)),
        "git" => git_effects(&operands, arguments, &mut all),
        _ => {}
    }
}

fn git_effects(operands: &[&Word], arguments: &[Word], all: &mut impl FnMut(FileOp, &[&Word])) {
    // `git -C folder rm a`
    let operands = if arguments.first().is_some_and(|word| word.text == "-C") {
        operands.get(1..).unwrap_or(&[])
    } else {
        operands
    };
    let [verb, rest @ ..] = operands else { return };
    let after_dashes: Vec<&Word> = arguments.iter().skip_while(|word| word.text != "--").skip(1).collect();
    match verb.text.as_str() {
        "add" => all(FileOp::Edited, rest),
        "restore" => restored(arguments, rest, all),
        "mv" => move_or_copy(rest, FileOp::Moved, all),
        "rm" => all(FileOp::Deleted, rest),
        "checkout" => checked_out(arguments, rest, &after_dashes, all),
        "diff" | "log" | "blame" | "show" => all(FileOp::Read, &after_dashes),
        _ => {}
    }
}

/// `git restore a` sets the file back to what was committed; with `--source` it takes another version.
fn restored(arguments: &[Word], files: &[&Word], all: &mut impl FnMut(FileOp, &[&Word])) {
    let is_given = |flags: &[&str]| arguments.iter().any(|word| flags.contains(&word.text.as_str()));
    if is_given(&["--staged", "-S"]) && !is_given(&["--worktree", "-W"]) {
        return;
    }
    let source = arguments.iter().position(|word| matches!(word.text.as_str(), "-s" | "--source"));
    let version = source.and_then(|at| arguments.get(at + 1)).map(|word| word.text.as_str());
    let has_source = source.is_some() || arguments.iter().any(|word| word.text.starts_with("--source="));
    let files: Vec<&Word> =
        files.iter().copied().filter(|word| Some(word.text.as_str()) != version).collect();
    all(if has_source { FileOp::Edited } else { FileOp::Restored }, &files);
}

/// `git checkout -- a` and `git checkout a` set the file back; `git checkout v1 -- a` takes another version. A branch
/// looks like a file here; what is no known file is not listed.
fn checked_out(
    arguments: &[Word],
    rest: &[&Word],
    after_dashes: &[&Word],
    all: &mut impl FnMut(FileOp, &[&Word]),
) {
    let before = &rest[..rest.len().saturating_sub(after_dashes.len())];
    let makes_branch =
        arguments.iter().any(|word| matches!(word.text.as_str(), "-b" | "-B" | "--orphan" | "--detach"));
    let is_head = |word: &&Word| matches!(word.text.as_str(), "HEAD" | "@");
    let takes_side = arguments.iter().any(|word| {
        matches!(word.text.as_str(), "--theirs" | "--ours" | "--merge" | "-m")
            || word.text.starts_with("--conflict")
    });
    let (versions, files) = match (before, after_dashes) {
        (_, []) if makes_branch => return,
        ([file], []) => (&[][..], std::slice::from_ref(file)),
        ([version, files @ ..], []) => (std::slice::from_ref(version), files),
        (versions, files) => (versions, files),
    };
    let is_restored = !takes_side && versions.iter().all(is_head);
    all(if is_restored { FileOp::Restored } else { FileOp::Edited }, files);
}

/// `mv a b` and `cp a b`, and into a directory `mv a b lib/`, where each keeps its name.
fn move_or_copy(operands: &[&Word], source: FileOp, all: &mut impl FnMut(FileOp, &[&Word])) {
    match operands {
        [from, to] if !to.text.ends_with(['/', '.']) => {
            all(source, &[from]);
            all(FileOp::Created, &[to]);
        }
        [from @ .., folder] => {
            for file in from {
                let name = file.text.trim_end_matches('/').rsplit('/').next().unwrap_or("");
                let text = format!("{}/{name}", folder.text.trim_end_matches('/'));
                all(source, &[file]);
                // What is copied without an ending may be a folder.
                if source == FileOp::Moved || name.contains('.') {
                    let is_dynamic = file.is_dynamic || folder.is_dynamic;
                    all(FileOp::Created, &[&Word { text, is_dynamic }]);
                }
            }
        }
        [] => {}
    }
}

fn is_plain(word: &Word) -> bool {
    !word.text.is_empty() && word.text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-/+@~".contains(&b))
}
