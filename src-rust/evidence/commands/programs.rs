//! What the parts of a command line attempt, and which success covers which failure.
//!
//! A table lists what programs check: compile, lint, format, test, bundle. A success covers a failure of the same
//! command with the same or a wider selection, and of another check that it includes: tests and bundlers compile what
//! they run, a script that checks everything includes lint and tests.

use super::folders::joined;
use super::kinds::{BUNDLE, COMPILE, FORMAT, LINT, TEST, kinds};
use super::options::{DEPTHS, FLAGS, INTERPRETERS, MAX_OPERANDS, NARROWING, PROBES, TUNING, WITH_VALUE};
use super::shell_lexer::Word;
use super::spelling::{is_script_runner, plain_words};
use crate::evidence::CommandKind;
use crate::evidence::text::head_bytes;

/// The language of scripts and targets, which may check any.
const ANY: &str = "any";

/// Properties that select tests.
const SELECTING_PROPERTIES: [&str; 5] = ["-Dtest", "-Dit.test", "-Dtest-filter", "-Dfilter", "-Dtest_filter"];
/// Programs without operands apply to all of what their operands name.
const SELECTABLE: [&str; 2] = ["docker compose", "docker-compose"];

/// One part of a command line, as an attempt at something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::evidence) struct Act {
    /// The program and its subcommand, in one spelling.
    pub name: String,
    pub(super) language: &'static str,
    /// Classes of the check; 0 for other commands.
    pub classes: u8,
    /// The first class: what a failure is about.
    nature: u8,
    /// What it is applied to: paths for a check, operands for other commands.
    targets: Vec<String>,
    /// Options that select, as `key=value`.
    filters: Vec<String>,
    /// The folder it runs in; empty if unknown.
    root: String,
    /// The host and port that it asks.
    address: Option<String>,
    /// It only prints help or a version.
    is_help: bool,
}

impl Act {
    pub(in crate::evidence) fn is_check(&self) -> bool {
        self.classes != 0
    }

    /// Its kind, as far as it is a check.
    pub(in crate::evidence) fn kind(&self) -> CommandKind {
        match self.nature {
            _ if self.is_help => CommandKind::Look,
            TEST => CommandKind::Test,
            0 => CommandKind::Look,
            _ => CommandKind::Check,
        }
    }

    /// Whether the success of this part shows that the failure of `failed` is overcome.
    pub(in crate::evidence) fn covers(&self, failed: &Act) -> bool {
        if self.is_help || failed.is_help {
            return false;
        }
        if self.address.is_some() && self.address == failed.address {
            return true;
        }
        if !is_within(&failed.root, &self.root) {
            return false;
        }
        if self.name == failed.name {
            return match self.is_check() {
                true => self.selects_all_of(failed),
                false => self.repeats(failed),
            };
        }
        self.includes(failed)
    }

    /// Whether its tests, which ran and failed, show that a compile error is overcome.
    pub(in crate::evidence) fn compiled(&self, failed: &Act) -> bool {
        failed.nature == COMPILE && self.nature == TEST && self.covers(failed)
    }

    /// Whether it asks at an address.
    pub(in crate::evidence) fn asks_at(&self, address: &str) -> bool {
        self.address.as_deref() == Some(address)
    }

    /// A check of another name that includes the failed one.
    fn includes(&self, failed: &Act) -> bool {
        let same_language =
            self.language == failed.language || self.language == ANY || failed.language == ANY;
        if !self.is_check() || !failed.is_check() || !same_language || !self.selects_all_of(failed) {
            return false;
        }
        let needed = match failed.nature {
            COMPILE => COMPILE | TEST | BUNDLE,
            // Linters of a language differ; only a script that runs all of them stands for one.
            LINT | FORMAT if self.language != ANY && failed.language != ANY => 0,
            other => other,
        };
        self.classes & needed != 0
    }

    fn selects_all_of(&self, failed: &Act) -> bool {
        self.filters.iter().all(|filter| failed.filters.contains(filter))
            && (self.targets.is_empty()
                || (!failed.targets.is_empty()
                    && failed
                        .targets
                        .iter()
                        .all(|target| self.targets.iter().any(|own| is_within(target, own)))))
    }

    /// The same attempt by a command that checks nothing: the same operands, and no option with another value.
    fn repeats(&self, failed: &Act) -> bool {
        let key = |pair: &str| pair.split_once('=').map(|(key, _)| key.to_owned());
        let conflicts = failed.filters.iter().any(|pair| {
            let same = self.filters.iter().find(|own| key(own) == key(pair));
            same.is_some_and(|own| own != pair)
        });
        let narrows = self.filters.iter().any(|own| {
            let flag = own.split('=').next().unwrap_or("");
            NARROWING.contains(&flag) && !failed.filters.contains(own)
        });
        // A service of all that were asked for.
        let is_part = SELECTABLE.iter().any(|program| self.name.starts_with(program));
        let shares = (failed.targets.is_empty() && (self.targets.is_empty() || !is_part))
            || self.targets.is_empty()
            || failed.targets.iter().any(|target| self.targets.contains(target));
        !conflicts && !narrows && shares
    }
}

/// Whether a path or selection is inside another; an unknown one may be.
fn is_within(inner: &str, outer: &str) -> bool {
    outer.is_empty()
        || inner.is_empty()
        || inner.strip_prefix(outer).is_some_and(|rest| {
            rest.is_empty() || outer.ends_with('/') || rest.starts_with(['/', ':', '.', '#'])
        })
}

/// The attempts of a simple command's words, run in `root`. `make lint test` is two.
pub(super) fn acts_of(words: &[Word], root: &str) -> Vec<Act> {
    let plain = plain_words(words);
    let Some((&program, rest)) = plain.split_first() else { return Vec::new() };
    let mut root = root.to_owned();
    let mut rest: Vec<&str> = rest.iter().copied().filter(|word| !word.starts_with('+')).collect();
    if let Some(at) =
        rest.iter().position(|word| matches!(*word, "-C" | "--prefix" | "--cwd" | "--dir" | "--directory"))
        && matches!(program, "make" | "npm" | "pnpm" | "yarn" | "git" | "go" | "ninja" | "just" | "uv")
        && at + 1 < rest.len()
    {
        root = joined(&root, rest[at + 1]);
        rest.drain(at..at + 2);
    }
    if is_script_runner(program) {
        let names: Vec<&str> = rest
            .iter()
            .copied()
            .take_while(|word| *word != "--")
            .filter(|word| !word.starts_with('-'))
            .collect();
        let named = if program == "script" { names.get(..1).unwrap_or(&[]) } else { &names[..] };
        let options: Vec<&str> = match (program, named.first()) {
            ("script", Some(name)) => rest.iter().skip_while(|word| *word != name).skip(1).copied().collect(),
            _ => Vec::new(),
        };
        // `make test T=parser`: what a variable says may select.
        let is_variable =
            |name: &&str| name.contains('=') && !TUNING.iter().any(|part| name.to_lowercase().contains(part));
        let variables: Vec<&str> = named.iter().copied().filter(is_variable).collect();
        let named = if named.is_empty() { &[""][..] } else { named };
        return named
            .iter()
            .filter(|name| !name.contains('='))
            .map(|name| {
                let first = name.split([':', '.', '-', '_', '/']).next().unwrap_or(name);
                let part = name[first.len()..].trim_start_matches([':', '.', '-', '_', '/']);
                let mut act = checked(program, "=target", first, &options, &root);
                act.name = format!("{program} {first}");
                if !part.is_empty() {
                    act.filters.push(format!("part={part}"));
                }
                act.filters.extend(variables.iter().map(|pair| (*pair).to_owned()));
                act
            })
            .collect();
    }
    if program == "gradle" {
        return gradle_tasks(&rest, &root);
    }
    let verb = rest.iter().copied().find(|word| !word.starts_with('-')).unwrap_or("");
    let flag = rest.iter().copied().find(|word| matches!(*word, "--check" | "--test"));
    let verb = if program == "node" { flag.unwrap_or(verb) } else { verb };
    if kinds().contains_key(&(program, verb)) {
        let at = rest.iter().position(|word| *word == verb).map_or(0, |at| at + 1);
        return vec![checked(program, program, verb, &rest[at..], &root)];
    }
    if kinds().contains_key(&(program, "*")) {
        return vec![checked(program, program, "*", &rest, &root)];
    }
    vec![other(program, &rest, &root)]
}

/// Options of Gradle with a value.
const GRADLE_VALUES: [&str; 9] =
    ["--tests", "-x", "--exclude-task", "-p", "--project-dir", "-b", "-I", "--init-script", "--task"];

/// The tasks of a Gradle command: `:app:testDebugUnitTest` is the check `test` of the module `app`.
fn gradle_tasks(arguments: &[&str], root: &str) -> Vec<Act> {
    let is_help = arguments.iter().any(|word| matches!(*word, "help" | "tasks" | "--version" | "--help"));
    let (mut options, mut tasks) = (Vec::new(), Vec::new());
    let mut words = arguments.iter().copied();
    while let Some(word) = words.next() {
        match word.starts_with('-') {
            true => {
                options.push(word);
                let value = GRADLE_VALUES.contains(&word).then(|| words.next()).flatten();
                options.extend(value);
            }
            false => tasks.push(word),
        }
    }
    let task = |path: &&str| {
        let (module, name) = path.rsplit_once(':').unwrap_or(("", path));
        let stem = name.split(|c: char| c.is_ascii_uppercase()).next().unwrap_or(name);
        let verb = match stem {
            // Tests on a device stand for no others.
            "connected" => "test",
            stem if kinds().contains_key(&("gradle", stem)) => stem,
            _ => "*",
        };
        let mut act = checked("gradle", "gradle", verb, &options, root);
        act.is_help |= is_help;
        if stem == "connected" {
            act.language = "device";
        }
        if verb == "*" || stem == "connected" {
            act.name = format!("gradle {stem}");
        }
        let module = module.trim_start_matches(':').replace(':', "/");
        if !module.is_empty() {
            act.targets.push(module);
        }
        act
    };
    tasks.iter().map(task).collect()
}

fn checked(program: &str, key: &str, verb: &str, arguments: &[&str], root: &str) -> Act {
    let kind = kinds().get(&(key, verb)).copied().unwrap_or(("any", 0, 0));
    let (language, classes, nature) = kind;
    let mut act = Act {
        name: format!("{program} {}", if verb == "*" { "" } else { verb }).trim_end().to_owned(),
        language,
        classes,
        nature,
        root: root.to_owned(),
        ..Act::default()
    };
    let mut words = arguments.iter().copied().peekable();
    while let Some(word) = words.next().filter(|_| act.targets.len() < MAX_OPERANDS) {
        if matches!(word, "--help" | "--version") {
            act.is_help = true;
        } else if word.starts_with('-') {
            let key = word.split('=').next().unwrap_or(word);
            let narrows = NARROWING.contains(&key)
                || SELECTING_PROPERTIES.contains(&key)
                || (key == "-p" && program != "pytest" && program != "tsc")
                || (matches!(key, "-w" | "--workspace" | "-e" | "-s" | "-m")
                    && matches!(program, "script" | "tox" | "nox" | "pytest")
                    && key != "-s");
            if narrows && FLAGS.contains(&key) {
                act.filters.push(key.to_owned());
            } else if narrows {
                let value = match word.split_once('=') {
                    Some((_, value)) => value,
                    None => words.next().unwrap_or(""),
                };
                act.filters.push(format!("{key}={value}"));
            } else if WITH_VALUE.contains(&word) || (key == "-p" && word == "-p") {
                words.next();
            }
        } else if word.bytes().all(|b| b.is_ascii_digit())
            || matches!(word, "run" | "." | "./..." | "..." | "//..." | "help" | "version")
            || word.ends_with(".sln")
        {
            act.is_help |= matches!(word, "help" | "version");
        } else if program == "cargo" && classes & TEST != 0 {
            act.filters.push(head_bytes(word, 200).to_owned());
        } else {
            let target =
                head_bytes(word, 200).trim_start_matches("./").trim_end_matches("...").trim_end_matches('/');
            if !target.is_empty() {
                act.targets.push(joined(root, target));
            }
        }
    }
    act
}

/// A command that checks nothing.
fn other(program: &str, arguments: &[&str], root: &str) -> Act {
    let is_interpreter = INTERPRETERS.contains(&program);
    let depth = if is_interpreter {
        1
    } else {
        DEPTHS.iter().find(|(name, _)| *name == program).map_or(0, |(_, depth)| *depth)
    };
    let inline =
        is_interpreter && arguments.first().is_none_or(|word| matches!(*word, "-c" | "-e" | "-" | "-lc"));
    let mut act = Act { name: program.to_owned(), root: root.to_owned(), ..Act::default() };
    act.is_help = arguments.iter().any(|word| matches!(*word, "--help" | "--version"))
        || matches!(arguments, ["help" | "version", ..]);
    if inline {
        return act;
    }
    let (mut named, mut words) = (0, arguments.iter().copied().peekable());
    while let Some(word) = words.next().filter(|_| act.targets.len() < MAX_OPERANDS) {
        if word.starts_with('-') {
            let (key, value) = match word.split_once('=') {
                Some((key, value)) => (key, value),
                None => (
                    word,
                    words.next_if(|next| !next.starts_with('-') && word.starts_with("--")).unwrap_or(""),
                ),
            };
            let is_tuning = TUNING.iter().any(|part| key.contains(part));
            if !is_tuning && (!value.is_empty() || NARROWING.contains(&key)) {
                act.filters.push(format!("{key}={}", head_bytes(value, 120)));
            }
        } else if named < depth {
            named += 1;
            act.name.push(' ');
            act.name.push_str(head_bytes(word, 80));
        } else {
            act.targets.push(head_bytes(word, 120).to_owned());
        }
    }
    if PROBES.contains(&program) {
        act.address = arguments.iter().find_map(|word| address_of(word));
    }
    act
}

/// Host and port of an address: `localhost:8081` of `http://localhost:8081/healthz`.
pub(in crate::evidence) fn address_of(word: &str) -> Option<String> {
    let (scheme, rest) = word.split_once("://").unwrap_or(("", word));
    let host = rest.split(['/', '?', '#']).next()?;
    let host = host.rsplit('@').next()?;
    if host.is_empty()
        || host.starts_with('-')
        || (scheme.is_empty() && !host.contains(['.', ':']) && host != "localhost")
    {
        return None;
    }
    let host = host.replace("127.0.0.1", "localhost").replace("0.0.0.0", "localhost");
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.bytes().all(|b| b.is_ascii_digit()));
    Some(match (has_port, scheme) {
        (true, _) => host,
        (false, "https") => format!("{host}:443"),
        _ => format!("{host}:80"),
    })
}
