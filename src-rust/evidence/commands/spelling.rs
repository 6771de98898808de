//! One spelling for programs that are started in several ways: `python -m pytest`, `uv run pytest` and `pytest`.

use std::borrow::Cow;

use super::shell_lexer::{Word, here_documents};

/// A command without the redirection of its errors into its output, which changes nothing.
pub(in crate::evidence) fn without_stderr_redirection(command: &str) -> String {
    command.replace(" 2>&1", "")
}

/// Words before a program that do not change what it does.
const PREFIXES: [&str; 22] = [
    "sudo", "time", "env", "nohup", "command", "exec", "if", "then", "else", "elif", "do", "while", "until",
    "!", "{", "}", "npx", "bunx", "uvx", "xvfb-run", "stdbuf", "setsid",
];
/// Programs with a subcommand that runs another program.
const RUNNERS: [(&str, &str); 16] = [
    ("uv", "run"),
    ("poetry", "run"),
    ("pipenv", "run"),
    ("hatch", "run"),
    ("pdm", "run"),
    ("rye", "run"),
    ("conda", "run"),
    ("pixi", "run"),
    ("bundle", "exec"),
    ("pnpm", "exec"),
    ("pnpm", "dlx"),
    ("yarn", "dlx"),
    ("yarn", "exec"),
    ("npm", "exec"),
    ("mise", "exec"),
    ("devbox", "run"),
];
/// Commands of a package manager that are no scripts of the project.
const OF_PACKAGE_MANAGERS: [&str; 34] = [
    "install",
    "i",
    "ci",
    "add",
    "remove",
    "rm",
    "uninstall",
    "publish",
    "pack",
    "init",
    "create",
    "audit",
    "outdated",
    "ls",
    "list",
    "link",
    "unlink",
    "version",
    "view",
    "info",
    "update",
    "upgrade",
    "why",
    "config",
    "cache",
    "login",
    "logout",
    "whoami",
    "dedupe",
    "prune",
    "rebuild",
    "import",
    "set",
    "help",
];
/// Runners of named targets.
const TARGETS: [&str; 8] = ["make", "gmake", "just", "task", "invoke", "script", "doit", "earthly"];

/// Whether a program runs targets or scripts by name; `script` stands for that of a package manager.
pub(super) fn is_script_runner(program: &str) -> bool {
    TARGETS.contains(&program)
}

/// Most wrappers and assignments that are taken off a command. Each costs time in proportion to the words behind it.
const MAX_WRAPPERS: usize = 64;

/// The words from the program on, in one spelling. Empty for an assignment alone. O(words).
pub(super) fn plain_words(words: &[Word]) -> Vec<&str> {
    let mut rest: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    for _ in 0..MAX_WRAPPERS {
        let Some(&first) = rest.first() else { return rest };
        let name = base(first);
        let is_assignment = first.split_once('=').is_some_and(|(key, _)| {
            !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        });
        let second = rest.get(1).copied().unwrap_or("");
        if is_assignment || PREFIXES.contains(&name) {
            rest.remove(0);
            drop_options(&mut rest, 0);
        } else if matches!(name, "timeout" | "gtimeout" | "nice" | "ionice" | "watch") {
            rest.remove(0);
            drop_options(&mut rest, 0);
            if matches!(name, "timeout" | "gtimeout") && !rest.is_empty() {
                rest.remove(0);
            }
        } else if RUNNERS.contains(&(name, second)) {
            rest.drain(..2);
            drop_options(&mut rest, 1);
        } else if matches!(name, "docker-compose") {
            rest.splice(..1, ["docker", "compose"]);
        } else if name == "docker" && second == "compose" {
            match inner_of_compose(&rest) {
                Some(at) => drop(rest.drain(..at)),
                None => {
                    rest.splice(..2, ["docker compose"]);
                    return compose(rest);
                }
            }
        } else if matches!((name, second), ("docker" | "podman", "exec") | ("kubectl", "exec")) {
            let Some(at) = inner_of_exec(&rest) else { return rest };
            rest.drain(..at);
        } else if name.starts_with("python") && second == "-m" && rest.len() > 2 {
            rest.drain(..2);
        } else if name == "php" && base(second) == "artisan" {
            rest.splice(..2, ["artisan"]);
        } else if matches!(name, "npm" | "pnpm" | "yarn" | "bun") {
            return script(name, rest);
        } else {
            rest[0] = spelled(name);
            return rest;
        }
    }
    rest
}

fn base(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

fn spelled(name: &str) -> &str {
    match name {
        "py.test" => "pytest",
        "gradlew" => "gradle",
        "mvnw" => "mvn",
        "pip3" => "pip",
        "nodejs" => "node",
        "gmake" => "make",
        "cargo-nextest" => "cargo",
        _ if name.starts_with("python") && name[6..].bytes().all(|b| b.is_ascii_digit() || b == b'.') => {
            "python"
        }
        _ => name,
    }
}

/// Drops options at the front, and the values of those that take one.
fn drop_options(rest: &mut Vec<&str>, with_values: usize) {
    let mut end = 0;
    while let Some(option) = rest.get(end).filter(|word| word.starts_with('-')) {
        let has_value =
            with_values > 0 && matches!(*option, "-n" | "--with" | "-p" | "--python" | "--extra" | "--group");
        end += 1 + usize::from(has_value);
    }
    rest.drain(..end.min(rest.len()));
}

/// Where the program begins that `docker compose exec web …` runs.
fn inner_of_compose(rest: &[&str]) -> Option<usize> {
    let verb = rest.iter().position(|word| matches!(*word, "exec" | "run"))?;
    let is_verb = rest[2..verb].iter().all(|word| word.starts_with('-') || word.contains(['.', '/']));
    let service = rest.iter().enumerate().skip(verb + 1).find(|(_, word)| !word.starts_with('-'))?.0;
    (is_verb && service + 1 < rest.len()).then_some(service + 1)
}

/// `docker compose -f x up -d` as one program with its subcommand first.
fn compose(rest: Vec<&str>) -> Vec<&str> {
    let (mut words, mut end) = (rest, 1);
    while end + 1 < words.len() && words[end].starts_with('-') {
        let takes_value =
            matches!(words[end], "-f" | "--file" | "-p" | "--project-name" | "--profile" | "--env-file");
        end += 1 + usize::from(takes_value);
    }
    words.drain(1..end.min(words.len()));
    words
}

/// Where the program begins that `docker exec -it name …` or `kubectl exec pod -- …` runs.
fn inner_of_exec(rest: &[&str]) -> Option<usize> {
    if let Some(dashes) = rest.iter().position(|word| *word == "--") {
        return (dashes + 1 < rest.len()).then_some(dashes + 1);
    }
    let name = rest.iter().enumerate().skip(2).find(|(_, word)| !word.starts_with('-'))?.0;
    (name + 1 < rest.len()).then_some(name + 1)
}

/// `npm test`, `npm run test`, `yarn test` and `pnpm test` as the script `test`; `yarn vitest` as `vitest`.
fn script<'w>(name: &'w str, mut rest: Vec<&'w str>) -> Vec<&'w str> {
    let options_end = rest.iter().skip(1).position(|word| !word.starts_with('-')).map(|at| at + 1);
    let Some(at) = options_end else { return rest };
    let verb = rest[at];
    if matches!(verb, "run" | "run-script") && rest.len() > at + 1 {
        rest.splice(..=at, ["script"]);
        return rest;
    }
    if OF_PACKAGE_MANAGERS.contains(&verb) || (name == "bun" && verb.contains('.')) {
        rest[0] = name;
        return rest;
    }
    if name != "npm" && super::kinds::is_check_program(verb) {
        rest.drain(..at);
        return rest;
    }
    if matches!((name, verb), ("npm", "t" | "tst")) {
        rest[at] = "test";
    }
    match (name, rest[at]) {
        ("bun", "test") => rest,
        ("npm", "test" | "start" | "stop" | "restart") | ("pnpm" | "yarn", _) => {
            rest.splice(..at, ["script"]);
            rest
        }
        _ => rest,
    }
}

/// A command with the first line of each here-document in place of its text: `git commit -m "fix: the title …"`.
pub(in crate::evidence) fn without_heredocs(command: &str) -> Cow<'_, str> {
    if !command.contains("<<") || !command.contains('\n') {
        return Cow::Borrowed(command);
    }
    let (mut out, mut from) = (String::with_capacity(command.len()), 0);
    for body in here_documents(command) {
        let before = command[from..body.start].trim_end();
        let first = command[body.clone()].lines().next().unwrap_or("").trim();
        let after = command[body.end..].trim_start();
        // The document is the text of an argument, which ends with the substitution.
        match (before.rsplit_once("\"$(cat <<"), after.strip_prefix(")\"")) {
            (Some((before, _)), Some(after)) => {
                out.push_str(&format!("{before}\"{} …\"", first.trim_start_matches(['#', ' '])));
                from = command.len() - after.len();
            }
            _ => {
                out.push_str(&format!("{before} {first} …"));
                from = body.end;
            }
        }
    }
    out.push_str(&command[from..]);
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_program_are_one() {
        for (line, expected) in [
            ("python3 -m pytest -q", "pytest -q"),
            ("uv run --with x pytest", "pytest"),
            (".venv/bin/pytest tests", "pytest tests"),
            ("sudo env A=1 docker-compose -f x.yml up -d", "docker compose up -d"),
            ("docker compose exec -T web python manage.py migrate", "python manage.py migrate"),
            ("docker exec -it db psql -c x", "psql -c x"),
            ("kubectl exec pod -- alembic heads", "alembic heads"),
            ("npm t", "script test"),
            ("pnpm run build", "script build"),
            ("yarn vitest run", "vitest run"),
            ("npm ci", "npm ci"),
            ("timeout 60 cargo test", "cargo test"),
            ("bundle exec rspec spec/a_spec.rb", "rspec spec/a_spec.rb"),
        ] {
            let words: Vec<Word> =
                line.split(' ').map(|text| Word { text: text.to_owned(), is_dynamic: false }).collect();
            let found = plain_words(&words).join(" ");
            assert_eq!(found, expected, "{line}");
        }
    }

    #[test]
    fn a_here_document_is_shown_by_its_first_line() {
        let commit =
            "git add a && git commit -m \"$(cat <<'EOF'\nfix: the title\n\nBody.\nEOF\n)\" && git push";
        assert_eq!(without_heredocs(commit), "git add a && git commit -m \"fix: the title …\" && git push");
        let script = "python - <<'PY'\nimport os\nprint(1)\nPY\nmake";
        assert_eq!(without_heredocs(script), "python - <<'PY' import os …\nmake");
        for other in ["a <<EOF\nnever closed", "echo $((1 << 2))\nmake", "cat <<< 'hello'\nmake test"] {
            assert_eq!(without_heredocs(other), other);
        }
    }
}
