//! Commands whose exit code is an answer, and commands that go on in the background.

use super::shell_lexer::{Next, Simple, Word};
use super::spelling::plain_words;

/// Commands that others see: a push, a pull request, a deployment.
const PUBLISHING: [&str; 26] = [
    "git push",
    "git merge",
    "git tag",
    "gh pr create",
    "gh pr merge",
    "gh pr close",
    "gh issue create",
    "gh issue close",
    "gh release create",
    "glab mr create",
    "glab mr merge",
    "docker push",
    "npm publish",
    "cargo publish",
    "kubectl apply",
    "kubectl delete",
    "kubectl rollout",
    "helm upgrade",
    "helm install",
    "terraform apply",
    "tofu apply",
    "alembic upgrade",
    "alembic downgrade",
    "prisma migrate deploy",
    "fly deploy",
    "vercel deploy",
];

/// Whether a command with this name, its subcommand included, is seen by others.
pub(in crate::evidence) fn publishes(name: &str) -> bool {
    PUBLISHING.contains(&name)
}

/// Longest line that starts something; in practice a longer one is a here-document.
const MAX_LINE_BYTES: usize = 4 << 10;

/// Whether exit code 1 is an answer.
pub(super) fn asks(words: &[Word]) -> bool {
    let plain = plain_words(words);
    let Some((&program, rest)) = plain.split_first() else { return false };
    let verb = rest.iter().copied().find(|word| !word.starts_with('-')).unwrap_or("");
    let second = rest.iter().copied().filter(|word| !word.starts_with('-')).nth(1).unwrap_or("");
    let has = |flag: &str| rest.contains(&flag);
    match program {
        "grep" | "egrep" | "fgrep" | "rg" | "ag" | "ack" | "zgrep" | "diff" | "cmp" | "comm" | "test"
        | "[" | "[[" | "pgrep" | "which" | "type" | "lsof" | "fuser" | "pidof" | "getent" | "id" | "expr"
        | "false" => true,
        "git" => match verb {
            "diff" => true,
            "grep" | "show-ref" | "check-ignore" | "merge-base" | "ls-remote" | "cat-file" => true,
            "rev-parse" => has("--verify") || has("-q"),
            "config" => true,
            _ => false,
        },
        "gh" | "glab" => matches!(second, "view" | "status" | "checks" | "list" | "diff"),
        "systemctl" => matches!(verb, "is-active" | "is-enabled" | "is-failed" | "status"),
        "npm" | "pnpm" | "yarn" => matches!(verb, "ls" | "list" | "outdated" | "view" | "info" | "why"),
        "pip" => matches!(verb, "show" | "check" | "index"),
        "docker" | "podman" => {
            matches!(verb, "inspect" | "ps" | "images") || (verb == "image" && second == "inspect")
        }
        "kubectl" => matches!(verb, "get" | "describe" | "auth" | "diff"),
        "terraform" | "tofu" => verb == "plan" && has("-detailed-exitcode"),
        "dpkg" | "rpm" => has("-s") || has("-q") || has("-l"),
        "brew" => matches!(verb, "list" | "info" | "ls"),
        "kill" => has("-0"),
        _ => false,
    }
}

/// What a line starts that runs on: a command before `&`, or one that detaches.
pub(super) fn starts(commands: &[Simple], line: &str) -> Option<String> {
    let detaches = |command: &&Simple| {
        let plain = plain_words(&command.words);
        let has = |flag: &str| plain.contains(&flag);
        command.next == Next::Background
            || matches!(plain.as_slice(), ["docker compose", "up", ..] if has("-d") || has("--detach"))
            || matches!(plain.as_slice(), ["docker" | "podman", "run", ..] if has("-d") || has("--detach"))
            || matches!(plain.as_slice(), ["pm2" | "supervisorctl", "start", ..])
            || matches!(plain.as_slice(), ["systemctl" | "brew" | "service", ..] if has("start") || has("restart"))
            || matches!(plain.as_slice(), ["tmux", "new" | "new-session", ..] if has("-d"))
    };
    let started = commands.iter().find(detaches)?;
    let words: Vec<&str> = started.words.iter().map(|word| word.text.as_str()).collect();
    let first = words.iter().position(|word| !matches!(*word, "nohup" | "sudo" | "setsid" | "exec"))?;
    let text = words[first..].join(" ");
    (!text.is_empty() && line.len() < MAX_LINE_BYTES && !matches!(words[first], "sleep" | "cd"))
        .then_some(text)
}
