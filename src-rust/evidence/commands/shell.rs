//! Analyzes a shell command: the files it reads and changes, and its kind.

use super::effects::argument_effects;
use super::folders::{joined, program};
use super::patch;
use super::programs::{Act, acts_of};
use super::purpose::{asks, starts};
use super::shell_lexer::{Next, Redirect, Simple, Word, simple_commands};
use crate::evidence::text::head_bytes;
use crate::evidence::{CommandKind, FileOp, lines};

/// Most parts of a line that are compared with others.
const MAX_ACTS: usize = 24;
/// Longest analyzed part of a command; in practice the rest is a here-document.
const MAX_COMMAND_BYTES: usize = 256 << 10;

/// Longest path of a folder; no system has a longer one.
const MAX_PATH_BYTES: usize = 4096;

/// The analysis of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::evidence) struct ShellCommand {
    pub kind: CommandKind,
    /// Program and subcommand of the main part.
    pub stem: String,
    /// The parts that attempt something.
    pub acts: Vec<Act>,
    /// Its exit code does not tell whether every part succeeded: a pipe, `;`, `||`.
    pub is_masked: bool,
    /// It ends with `|| true`, or another part stands in for a failed one.
    pub has_fallback: bool,
    /// Exit code 1 of it is an answer: `grep`, `diff`, `test`, or a question such as `gh pr view`.
    pub asks: bool,
    /// What it starts in the background.
    pub starts: Option<String>,
    /// The folder that the line ends in, if it changes to an absolute one.
    pub ends_in: Option<String>,
    /// The folder that its last part runs in; empty if unknown.
    pub runs_in: String,
    /// The call names the folder, so that a change of it does not last.
    pub folder_is_named: bool,
    pub effects: Vec<(FileOp, String)>,
    /// Line ranges of files that it shows.
    pub lines: Vec<(String, (u32, u32))>,
}

impl ShellCommand {
    /// The folder that it runs in, if it is known in full.
    pub(in crate::evidence) fn folder(&self) -> Option<&str> {
        Some(self.runs_in.as_str()).filter(|folder| folder.starts_with('/'))
    }
}

/// Analyzes a command line. O(bytes).
pub(in crate::evidence) fn analyse(line: &str) -> ShellCommand {
    analyse_in(line, "")
}

/// Analyzes a command line that begins in a folder; empty if that is not known. O(bytes).
pub(in crate::evidence) fn analyse_in(line: &str, folder: &str) -> ShellCommand {
    let mut effects = if patch::is_patch(line) { patch::files_of(line) } else { Vec::new() };
    let mut lines_shown = Vec::new();
    let mut directory = folder.to_owned();
    let mut best: Option<(CommandKind, String)> = None;
    let mut acts: Vec<Act> = Vec::new();
    let commands = simple_commands(head_bytes(line, MAX_COMMAND_BYTES));
    for command in &commands {
        let words = program_words(&command.words);
        let before = effects.len();
        let mut touch = |action: FileOp, word: &Word| {
            if let Some(path) = path_of(word, &directory) {
                effects.push((action, path));
            }
        };
        for (redirect, word) in &command.redirects {
            let action = match redirect {
                Redirect::Read => FileOp::Read,
                Redirect::Write => FileOp::Written,
                Redirect::Append => FileOp::Edited,
            };
            touch(action, word);
        }
        argument_effects(words, &mut touch);
        if let [name, flag, folder, ..] = words
            && (name.text.as_str(), flag.text.as_str()) == ("git", "-C")
            && !folder.is_dynamic
        {
            effects[before..].iter_mut().for_each(|(_, path)| *path = joined(&folder.text, path));
        }
        if let [.., (FileOp::Read, path)] = effects[before..].as_ref()
            && let Some(shown) = lines::of_command(program(words), words)
        {
            lines_shown.push((path.clone(), shown));
        }
        if let [first, target, ..] = words
            && first.text == "cd"
        {
            directory = if target.is_dynamic { String::new() } else { joined(&directory, &target.text) };
            if directory.len() > MAX_PATH_BYTES {
                directory.clear();
            }
        }
        let writes = effects[before..].iter().any(|(action, _)| *action >= FileOp::Restored);
        if acts.len() < MAX_ACTS {
            let found = acts_of(&command.words, &directory);
            acts.extend(found.into_iter().filter(|act| act.is_check() || !is_look(&act.name)));
        }
        let Some(found) = kind_and_stem(words, writes) else { continue };
        // Among equal kinds the first command names the line.
        if best.as_ref().is_none_or(|(kind, _)| found.0 > *kind) {
            best = Some(found);
        }
    }
    let (kind, stem) = best.unwrap_or((CommandKind::Look, String::new()));
    let kind = acts.iter().map(Act::kind).fold(kind, CommandKind::max);
    let last = commands.len().saturating_sub(1);
    let separated = |command: &Simple| matches!(command.next, Next::End | Next::Pipe | Next::Or);
    ShellCommand {
        kind,
        stem,
        effects,
        lines: lines_shown,
        acts,
        is_masked: commands.iter().take(last).any(separated),
        has_fallback: commands.iter().any(|command| command.next == Next::Or),
        asks: commands.last().is_some_and(|command| asks(&command.words)),
        starts: starts(&commands, line),
        runs_in: directory.clone(),
        ends_in: Some(directory).filter(|directory| directory.starts_with('/') && directory != folder),
        folder_is_named: false,
    }
}

/// The words from the program name on, without assignments, keywords and wrappers such as `sudo`.
fn program_words(words: &[Word]) -> &[Word] {
    let mut rest = words;
    while let [first, tail @ ..] = rest {
        let is_assignment = first.text.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        });
        match first.text.as_str() {
            "sudo" | "time" | "env" | "nohup" | "command" | "exec" | "if" | "then" | "else" | "elif"
            | "do" | "while" | "!" | "{" | "}" | "npx" | "bunx" => rest = tail,
            "timeout" => rest = tail.get(1..).unwrap_or(&[]),
            "uv" | "poetry" | "pipenv" if tail.first().is_some_and(|word| word.text == "run") => {
                rest = &tail[1..];
            }
            _ if is_assignment => rest = tail,
            _ => break,
        }
    }
    rest
}

/// The path of a word, relative to the directory that the command line changed to.
fn path_of(word: &Word, directory: &str) -> Option<String> {
    let text = word.text.as_str();
    let is_number = text.bytes().all(|b| b.is_ascii_digit());
    // A colon: an address, a pathspec, `HEAD:a.rs`. A quoted wildcard is still one.
    let is_odd = text.contains(['\n', '\0', '=', '|', '"', '\'', ':', '*', '?', '<', '>', '$', ' '])
        || text.len() > 400;
    let is_nowhere = matches!(text, "." | ".." | "-" | "/" | "~") || text.starts_with("/dev/");
    if word.is_dynamic || is_number || is_odd || is_nowhere || text.starts_with('-') || text.ends_with('/') {
        return None;
    }
    Some(joined(directory, text))
}

/// Programs that only show something.
const LOOKING: [&str; 44] = [
    "ls", "cat", "head", "tail", "less", "more", "nl", "wc", "bat", "grep", "egrep", "fgrep", "rg", "ag",
    "find", "fd", "tree", "pwd", "echo", "printf", "which", "whereis", "type", "file", "stat", "du", "df",
    "env", "date", "diff", "cmp", "sort", "uniq", "cut", "tr", "awk", "jq", "yq", "ps", "true", "test",
    "sleep", "xxd", "cd",
];

/// Whether a line says that a look found nothing: `stat: a.json: No such file or directory`, or a pattern of the shell
/// that nothing matches.
pub(in crate::evidence) fn is_failed_look(line: &str) -> bool {
    let is_missing = line.split_once(": ").is_some_and(|(program, rest)| {
        LOOKING.contains(&program) && rest.ends_with("No such file or directory")
    });
    is_missing || line.contains(": no matches found: ")
}

/// Whether a program, with its subcommand, only shows something and so attempts nothing.
fn is_look(name: &str) -> bool {
    let program = name.split(' ').next().unwrap_or("");
    matches!(
        name,
        "git status"
            | "git diff"
            | "git log"
            | "git show"
            | "git blame"
            | "git branch"
            | "git rev-parse"
            | "git ls-files"
            | "git grep"
            | "kubectl get"
            | "kubectl describe"
            | "kubectl logs"
            | "docker ps"
            | "docker logs"
            | "docker images"
            | "gh pr view"
            | "gh pr list"
            | "gh issue view"
            | "gh issue list"
    ) || (program == name || LOOKING.contains(&program))
        && (LOOKING.contains(&program)
            || matches!(
                program,
                "sed"
                    | "set"
                    | "export"
                    | "source"
                    | "."
                    | "for"
                    | "done"
                    | "fi"
                    | "case"
                    | "esac"
                    | "unset"
                    | "wait"
                    | "kill"
                    | "pkill"
                    | "in"
                    | "read"
                    | "local"
                    | "return"
                    | "exit"
                    | "shift"
                    | "mkdir"
            ))
}

/// Programs whose first argument is a subcommand.
const WITH_SUBCOMMAND: [&str; 22] = [
    "go", "cargo", "git", "npm", "yarn", "pnpm", "bun", "make", "just", "docker", "kubectl", "gh", "mise",
    "uv", "pip", "python", "python3", "dotnet", "mvn", "gradle", "deno", "poetry",
];

fn kind_and_stem(words: &[Word], writes: bool) -> Option<(CommandKind, String)> {
    let name = program(words);
    if matches!(name, "" | "for" | "done" | "fi" | "case" | "esac" | "cd" | "export" | "source") {
        return None;
    }
    let mut plain = words[1..]
        .iter()
        .map(|word| word.text.as_str())
        .filter(|text| !text.starts_with('-') || *text == "-m");
    let mut stem = name.to_owned();
    let mut subcommand = "";
    if WITH_SUBCOMMAND.contains(&name) {
        subcommand = plain.next().unwrap_or("");
        if matches!(subcommand, "run" | "-m") {
            stem = format!("{name} {subcommand}");
            subcommand = plain.next().unwrap_or("");
        }
        stem = format!("{stem} {}", head_bytes(subcommand, 80));
    }
    let is_one_of = |words: &[&str]| {
        let is_subcommand = |word: &str| {
            subcommand.strip_prefix(word).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
        };
        words.iter().any(|word| name == *word || is_subcommand(word))
    };
    let tests = [
        "test",
        "tests",
        "nextest",
        "pytest",
        "py.test",
        "unittest",
        "jest",
        "vitest",
        "mocha",
        "rspec",
        "phpunit",
        "tox",
        "nox",
        "ctest",
        "check-tests",
    ];
    let checks = [
        "build",
        "clippy",
        "vet",
        "lint",
        "fmt",
        "format",
        "check",
        "typecheck",
        "tsc",
        "eslint",
        "ruff",
        "mypy",
        "golangci-lint",
        "black",
        "prettier",
        "biome",
        "compile",
        "gcc",
        "clang",
        "javac",
        "make",
    ];
    let looks_only = LOOKING.contains(&name) || name == "sed";
    let git_looks = name == "git"
        && matches!(
            subcommand,
            "status" | "diff" | "log" | "show" | "blame" | "branch" | "rev-parse" | "ls-files"
        );
    let kind = if name != "test" && name != "git" && is_one_of(&tests) {
        CommandKind::Test
    } else if name != "git" && is_one_of(&checks) {
        CommandKind::Check
    } else if (looks_only || git_looks) && !writes {
        CommandKind::Look
    } else {
        CommandKind::Change
    };
    if kind == CommandKind::Change && !WITH_SUBCOMMAND.contains(&name) {
        // `bash a.sh` and `bash b.sh` are different attempts.
        stem = format!("{stem} {}", head_bytes(plain.next().unwrap_or(""), 80));
    }
    Some((kind, stem.trim_end().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use FileOp::{Created, Deleted, Edited, Moved, Read, Restored, Searched, Written};

    fn effects(line: &str) -> Vec<(FileOp, String)> {
        analyse(line).effects
    }

    #[test]
    fn commands_name_the_files_they_touch() {
        let cases: [(&str, &[(FileOp, &str)]); 17] = [
            ("cat a.txt | grep x", &[(Read, "a.txt")]),
            ("head -n 50 src/a.rs", &[(Read, "src/a.rs")]),
            ("sed -n '1,5p' a.rs", &[(Read, "a.rs")]),
            ("sed -i 's/a/b/' a.rs b.rs", &[(Edited, "a.rs"), (Edited, "b.rs")]),
            ("sed -i '' 's/a/b/' a.rs", &[(Edited, "a.rs")]),
            ("sed -i -e 's/a/b;c/' a.rs", &[(Edited, "a.rs")]),
            ("rm -rf old.py", &[(Deleted, "old.py")]),
            ("mv a.py b.py", &[(Moved, "a.py"), (Created, "b.py")]),
            (
                "mv a.py b.py lib/",
                &[(Moved, "a.py"), (Created, "lib/a.py"), (Moved, "b.py"), (Created, "lib/b.py")],
            ),
            ("cp a.py b.py", &[(Read, "a.py"), (Created, "b.py")]),
            (
                "git mv a b.md && git rm c && git add d",
                &[(Moved, "a"), (Created, "b.md"), (Deleted, "c"), (Edited, "d")],
            ),
            ("cat > new.go <<'EOF'\npackage x > y\nEOF", &[(Written, "new.go")]),
            ("echo x >> log.md; date | tee -a t.md", &[(Edited, "log.md"), (Edited, "t.md")]),
            ("cd /repo/src && cat ./a.rs ../b.rs", &[(Read, "/repo/src/a.rs"), (Read, "/repo/src/../b.rs")]),
            ("grep -rn -A 5 'a.*b' src/ Makefile", &[(Searched, "Makefile")]),
            ("git diff main -- a.go > /dev/null 2>&1", &[(Read, "a.go")]),
            ("cat $f *.md && git add -A .", &[]),
        ];
        for (line, expected) in cases {
            let expected: Vec<_> = expected.iter().map(|(a, p)| (*a, (*p).to_owned())).collect();
            assert_eq!(effects(line), expected, "{line}");
        }
    }

    #[test]
    fn shown_lines_are_known() {
        let shown = |line: &str| analyse(line).lines;
        assert_eq!(shown("cd /r && sed -n '10,20p' a.rs"), [("/r/a.rs".to_owned(), (10, 20))]);
        assert_eq!(shown("sed -n 7p a.rs | cat"), [("a.rs".to_owned(), (7, 7))]);
        assert_eq!(shown("head -n 30 a.rs"), [("a.rs".to_owned(), (1, 30))]);
        assert_eq!(shown("head -50 a.rs"), [("a.rs".to_owned(), (1, 50))]);
        assert_eq!(shown("sed -i 's/x/y/' a.rs; cat b.rs; tail -n 5 c.rs"), []);
    }

    #[test]
    fn git_changes_files_of_the_working_tree() {
        let cases: [(&str, &[(FileOp, &str)]); 11] = [
            ("git checkout -- a.py b.py", &[(Restored, "a.py"), (Restored, "b.py")]),
            ("git checkout HEAD -- a.py", &[(Restored, "a.py")]),
            ("git checkout src/a.py", &[(Restored, "src/a.py")]),
            ("git checkout v1.2 -- a.py", &[(Edited, "a.py")]),
            ("git checkout -b fix/a.py", &[]),
            ("git restore a.py", &[(Restored, "a.py")]),
            ("git restore --staged a.py", &[]),
            ("git restore --source=v1.2 a.py", &[(Edited, "a.py")]),
            ("git checkout main", &[(Restored, "main")]),
            ("git -C /repo rm a.py", &[(Deleted, "/repo/a.py")]),
            ("git rm -r --cached docs/old.md", &[(Deleted, "docs/old.md")]),
        ];
        for (line, expected) in cases {
            let expected: Vec<_> = expected.iter().map(|(a, p)| (*a, (*p).to_owned())).collect();
            assert_eq!(effects(line), expected, "{line}");
        }
    }

    #[test]
    fn a_patch_in_a_here_document_names_its_files() {
        let line = "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: a.py\n*** End Patch\nEOF";
        assert_eq!(effects(line), [(Edited, "a.py".to_owned())]);
    }

    #[test]
    fn kinds_and_stems() {
        let cases = [
            ("cd x && go test ./... -run Foo 2>&1 | tail -5", CommandKind::Test, "go test"),
            ("mise run fmt && mise run test:ci", CommandKind::Test, "mise run test:ci"),
            ("python -m pytest -q tests", CommandKind::Test, "python -m pytest"),
            ("FOO=1 timeout 60 cargo test", CommandKind::Test, "cargo test"),
            ("npm run build", CommandKind::Check, "npm run build"),
            ("npx tsc --noEmit", CommandKind::Check, "tsc"),
            ("git commit -m x", CommandKind::Change, "git commit"),
            ("git status && ls", CommandKind::Look, "git status"),
            ("sed -n 1p a", CommandKind::Look, "sed"),
            ("sed -i 's/a/b/' a", CommandKind::Change, "sed s/a/b/"),
            ("", CommandKind::Look, ""),
        ];
        for (line, kind, stem) in cases {
            let found = analyse(line);
            assert_eq!((found.kind, found.stem.as_str()), (kind, stem), "{line}");
        }
    }
}
