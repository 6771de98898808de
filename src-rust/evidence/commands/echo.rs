//! Commands that an output shows being run.

use super::kinds::is_check_program;
use super::programs::Act;
use super::shell::analyse_in;

/// The checks that an output shows being run: `> tsc -p . && vite build`, or a target's lines as `make` prints them.
pub(in crate::evidence) fn echoed(output: &str, root: &str) -> Vec<Act> {
    let mut found = Vec::new();
    for line in output.lines().take(40) {
        let line = line.trim();
        if let Some(task) = line.strip_prefix("> Task ").filter(|task| !task.ends_with("FAILED")) {
            let task = task.split(' ').next().unwrap_or(task);
            found.extend(analyse_in(&format!("gradle {task}"), root).acts.into_iter().filter(Act::is_check));
            continue;
        }
        let shown = line.strip_prefix("> ").or_else(|| line.strip_prefix("$ ")).unwrap_or(line);
        let first = shown.split_whitespace().next().unwrap_or("");
        let program = first.rsplit('/').next().unwrap_or(first);
        let is_command = shown.len() < 300
            && (is_check_program(program)
                || matches!(program, "npx" | "uv" | "poetry" | "python" | "python3"));
        if is_command && found.len() < 16 && shown.contains(' ') {
            let acts = analyse_in(shown, root).acts;
            found.extend(acts.into_iter().filter(Act::is_check));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use crate::evidence::commands::kinds::{TABLE, class};
    use crate::evidence::commands::programs::Act;
    use crate::evidence::commands::shell::analyse;

    fn act(line: &str) -> Act {
        analyse(line).acts.into_iter().next_back().unwrap_or_default()
    }

    #[test]
    fn every_row_of_the_table_has_an_example_that_it_classifies() {
        for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
            let cells: Vec<&str> = line.split('\t').collect();
            let [_, _, language, classes, example] = cells[..] else { panic!("{line}") };
            let wanted = classes.split(' ').map(class).fold(0, |sum, bit| sum | bit);
            let found = act(example);
            assert_eq!((found.classes, found.language), (wanted, language), "{example}: {found:?}");
        }
    }

    #[test]
    fn a_success_covers_what_it_includes() {
        for (success, failure) in [
            ("go test ./...", "go build ./..."),
            ("go test ./... -count=1", "go test ./internal/ledger/... -run Refund -count=1"),
            ("python3 -m pytest -q tools", "pytest tools/rates"),
            ("uv run pytest", "pytest tests/test_a.py::test_b"),
            ("docker compose up -d", "docker-compose up"),
            ("npm test", "npm test -- render"),
            ("npm run build", "npx tsc --noEmit"),
            ("cargo test", "cargo check"),
            ("make check", "ruff check ."),
            ("make check", "pytest tests/test_a.py"),
            ("./gradlew build", "gradle compileKotlin"),
            ("./gradlew :app:testDebugUnitTest", "./gradlew :app:compileDebugKotlin"),
            ("./gradlew --offline -x lint :app:test", "./gradlew :app:compileJava"),
            ("dotnet test Facturo.sln", "dotnet build -v q"),
            ("git push -u origin x", "git push"),
            ("curl -s http://127.0.0.1:8080/", "curl localhost:8080/health"),
            ("cargo test -p core", "cargo test -p core parser"),
            ("cd /r && go test ./...", "cd /r/internal && go vet ./..."),
            ("docker compose exec web alembic upgrade head", "docker compose exec web alembic upgrade head"),
        ] {
            assert!(act(success).covers(&act(failure)), "{success} | {failure}");
        }
    }

    #[test]
    fn tasks_that_gradle_shows_are_run() {
        let shown = super::echoed("> Task :app:compileDebugKotlin\n> Task :app:lintDebug FAILED\n", "/r");
        assert_eq!(shown.len(), 1);
        assert!(shown[0].covers(&act("cd /r && ./gradlew :app:compileDebugKotlin")));
    }

    #[test]
    fn a_success_does_not_cover_what_is_wider_or_other() {
        for (success, failure) in [
            ("pytest tests/test_queue.py", "pytest tests/test_import.py"),
            ("pytest tests/test_a.py", "pytest"),
            ("go test ./internal/a -run X", "go test ./internal/a"),
            ("docker compose exec web alembic heads", "docker compose exec web alembic upgrade head"),
            ("docker compose --help", "docker compose up"),
            ("pytest --version", "pytest"),
            ("cargo build", "cargo test"),
            ("cargo test", "cargo clippy"),
            ("npm run lint", "npm test"),
            ("pytest", "npx tsc --noEmit"),
            ("cd /r/web && npm test", "cd /r/api && npm test"),
            ("python tools/flash.py --device B", "python tools/flash.py --device A"),
            ("python load.py --dry-run", "python load.py"),
            ("kubectl apply -f b.yaml", "kubectl apply -f a.yaml"),
            ("git status", "git push"),
            ("curl localhost:8081", "curl localhost:8080"),
            ("npm run test:unit", "npm test"),
            ("./gradlew :app:testDebugUnitTest", "./gradlew :app:connectedDebugAndroidTest"),
            ("./gradlew :app:testDebugUnitTest", "./gradlew :lib:compileDebugKotlin"),
            ("./gradlew test --tests QueueTest", "./gradlew test"),
            ("./gradlew help --task :app:lintDebug", "./gradlew :app:lintDebug"),
        ] {
            assert!(!act(success).covers(&act(failure)), "{success} | {failure}");
        }
    }
}
