"""A short session that holds twelve facts which the next turn may need, and where to look for them in a summary."""

from __future__ import annotations

from typing import Any

__all__ = ["FACTS", "session_with_facts"]

#: As they must be found in a summary, letter by letter.
FACTS = (
    "Never touch src/legacy/auth.py",
    "port 8443",
    "https://status.example.net/health",
    "750 ms",
    "/app/config/settings.toml",
    "old token format",
    "/app/src/server/routes.py",
    "/app/tests/test_routes.py",
    "pytest -q tests/test_routes.py",
    "expected 200, got 503",
    "9f3c2ab",
    "Write the migration guide",
)


def _call(id: str, name: str, **given: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": name, "input": given}]}


def _result(id: str, text: str, *, is_error: bool = False) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": id, "content": text, "is_error": is_error}
    return {"role": "user", "content": [block]}


def session_with_facts() -> list[dict[str, Any]]:
    """Messages of Anthropic's dialect; the last one is the turn to come."""
    task = (
        "Make the health route answer again. Never touch src/legacy/auth.py. The service listens on port 8443 and "
        "reports to https://status.example.net/health, please keep its timeout of 750 ms."
    )
    decision = "I decided to keep the old token format, because the mobile clients still send it."
    failure = "Exit code 1\nE   AssertionError: expected 200, got 503\n1 failed in 0.31s"
    todo = {"content": "Write the migration guide", "status": "pending", "activeForm": "Writing"}
    return [
        {"role": "user", "content": task},
        _call("a", "Read", file_path="/app/config/settings.toml"),
        _result("a", 'version = "2.14.3"\n'),
        {"role": "assistant", "content": [{"type": "text", "text": decision}]},
        _call("b", "Edit", file_path="/app/src/server/routes.py", old_string="a", new_string="b"),
        _result("b", "The file has been updated."),
        _call("c", "Write", file_path="/app/tests/test_routes.py", content="def test(): ..."),
        _result("c", "File created successfully."),
        _call("d", "Bash", command="pytest -q tests/test_routes.py"),
        _result("d", failure, is_error=True),
        _call("e", "Bash", command="git commit -am 'Routes'"),
        _result("e", "[main 9f3c2ab] Routes\n 2 files changed"),
        _call("f", "TodoWrite", todos=[todo]),
        _result("f", "Todos have been modified successfully."),
        {"role": "user", "content": "Go on."},
    ]
