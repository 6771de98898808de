"""Pages of short talks: outcomes in many words, look-ups, steps, narrower runs, words that change earlier ones."""

from __future__ import annotations

from typing import Any

import pytest

from talks import call, failed, page, said, section, shell, user, written


@pytest.mark.parametrize(
    ("tool", "result", "reason"),
    [
        ("renew", {"rx": 1, "renewed": False, "reason": "the doctor must approve"}, "the doctor must approve"),
        ("refund", "Payment declined", "Payment declined"),
        ("book_slot", {"state": "rejected"}, "rejected"),
        ("add_item", {"ok": False, "error": "locked by another"}, "locked by another"),
        ("send_form", {"fehler": "Feld fehlt"}, "Feld fehlt"),
        ("order", "Could not reach the warehouse.", "Could not reach the warehouse"),
        ("run_cell", "NameError: name 'rate' is not defined", "name 'rate' is not defined"),
    ],
)
def test_a_call_that_was_refused_is_open_and_not_done(tool: str, result: object, reason: str) -> None:
    text = page(user("Do it."), call(tool, {"id": "7"}, result), said("It did not work."))
    assert reason in section(text, "Open problems")
    assert tool not in section(text, "State")


def test_a_flag_that_is_no_outcome_is_none() -> None:
    text = page(user("Book it."), call("book_room", {"room": "4"}, {"id": "R-1", "cancelled": False}), said("Booked."))
    assert "Open problems" not in text
    assert "book_room" in section(text, "State")


def test_each_look_up_has_its_own_answer() -> None:
    text = page(
        user("Compare the sources."),
        call("fetch_page", {"url": "https://a.example/field"}, "COP 3.1 in 77 houses"),
        call("fetch_page", {"url": "https://b.example/costs"}, "HTTP 403 Forbidden"),
        call("web_search", {"query": "recall"}, "4,000 pumps were recalled"),
        call("web_search", {"query": "subsidy"}, "no results"),
    )
    background = section(text, "Background")
    assert "https://a.example/field → COP 3.1 in 77 houses" in background
    assert "https://b.example/costs →" not in background
    assert "recall → 4,000 pumps were recalled" in background


def test_values_of_a_gemini_response_are_told() -> None:
    def turn(role: str, **part: Any) -> dict[str, Any]:
        return {"role": role, "parts": [part]}

    text = written(
        [
            turn("user", text="Find my table."),
            turn("model", functionCall={"name": "change_delivery", "args": {"order": "9001"}}),
            turn(
                "user",
                functionResponse={
                    "name": "change_delivery",
                    "response": {"notes": [], "ref": "CH-12", "on": {"day": "Fri"}, "n": 2},
                },
            ),
            turn("model", functionCall={"name": "pay", "args": {"order": "9001"}}),
            turn("user", functionResponse={"name": "pay", "response": {"fees": {}, "error": "no card"}}),
            turn("model", text="ok"),
        ]
    )
    assert "change_delivery: order 9001 → ref CH-12, on day Fri, n 2" in text
    assert "no card" in section(text, "Open problems")


def test_steps_of_one_list_differ_however_alike_they_are() -> None:
    listed = "Remaining:\n1. port the login page\n2. port the cart page\n3. port the search page"
    steps = section(page(user("Port."), said(listed)), "Next steps")
    assert all(name in steps for name in ("login", "cart", "search"))
    steps = section(page(user("Port."), said(listed), said("I ported the login page.")), "Next steps")
    assert "login" not in steps
    assert "cart" in steps
    assert "search" in steps


def test_what_comes_next_replaces_what_came_next_before() -> None:
    talk = (user("Convert all tables."), said("daily is identical. Next: weekly."))
    newer = said("weekly is identical too. Next: stock, then tax.")
    steps = section(page(*talk, newer, user("ok")), "Next steps")
    assert "weekly" not in steps
    assert "stock" in steps
    assert "tax" in steps
    dropped = section(page(*talk, newer, user("skip tax, we do not need it"), said("ok")), "Next steps")
    assert "tax" not in dropped
    assert "stock" in dropped


def test_prose_with_a_colon_names_no_steps() -> None:
    text = page(
        user("clean up staging"), said("The plan destroys 2 resources: aws_vpc.a and aws_subnet.b."), user("only b")
    )
    assert "aws_vpc" not in section(text, "Next steps")
    assert section(page(user("Speed it up."), said("The rest is allocation in `Token::new`.")), "Next steps") == ""


def test_boxes_of_a_foreign_summary_tell_done_from_open() -> None:
    foreign = (
        "<summary>\n## Goal\nShip the scanner.\n\n## Progress\n- [x] Camera preview\n- [ ] Batch mode\n"
        "- [ ] Vibration on error\n</summary>"
    )
    text = page(user(foreign), said("I start with it."), user("go on"))
    assert "Camera preview" in section(text, "State")
    assert "Batch mode" in section(text, "Next steps")
    assert "Vibration on error" in section(text, "Next steps")


@pytest.mark.parametrize(
    ("whole", "part"),
    [
        ("ctest --test-dir build", "ctest --test-dir build -R parser"),
        ("mvn test", "mvn test -Dtest=ParserTest"),
        ("make test", "make test T=parser"),
        ("docker compose build", "docker compose build api"),
        ("terraform apply", "terraform apply -target=module.a"),
    ],
)
def test_a_narrower_run_closes_nothing(whole: str, part: str) -> None:
    talk = (user("Make it pass."), shell(whole, failed("Error: 1 of 20 failed", 8)))
    assert f"[open] $ {whole}" in page(*talk, shell(part, "passed"), said("Part of it passes."))
    assert "Open problems" not in page(*talk, shell(whole, "passed"), said("It passes."))


def test_the_report_is_left_only_if_nothing_is_open() -> None:
    edit = call("edit_file", {"path": "store.rb", "old_string": "a", "new_string": "b"}, "Edited store.rb")
    text = page(
        user("Rewrite the lock."),
        edit,
        shell("bundle exec rspec", failed("40 examples, 1 failure")),
        shell("bundle exec rspec spec/api_spec.rb", "3 examples, 0 failures"),
    )
    assert "[open] $ bundle exec rspec" in text
    assert "Remaining: the report" not in text


def test_a_failure_that_is_overcome_is_no_state() -> None:
    text = page(
        user("Add events."),
        shell("./gradlew compileJava", failed("A.java:2: error: cannot find symbol")),
        call("edit_file", {"path": "A.java", "old_string": "b", "new_string": "c"}, "Edited A.java"),
        shell("./gradlew test", "BUILD SUCCESSFUL in 21s"),
    )
    assert "compileJava" not in section(text, "State")


def test_a_killed_shell_runs_no_more() -> None:
    start = {"command": "./gateway --port 7001", "run_in_background": True}
    started = call("Bash", start, "Command running in background with ID: bash_1")
    assert "Running since" in page(user("Measure."), started, said("It is up."))
    killed = call("KillShell", {"shell_id": "bash_1"}, "Successfully killed shell: bash_1")
    assert "7001" not in section(page(user("Measure."), started, killed, said("Done.")), "State")
    again = call("KillShell", {"shell_id": "bash_1"}, "Error: No shell found with ID: bash_1")
    assert "Open problems" not in page(user("Measure."), started, killed, again, said("Done."))


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("British spelling.", "change of mind: American spelling."),
        ("Photos only over wifi.", "photos may go over cellular too now."),
        ("Don't touch the tests.", "you may touch the tests now"),
    ],
)
def test_a_word_that_changes_an_earlier_one_marks_it(earlier: str, later: str) -> None:
    text = page(user(f"Build the album page. {earlier}"), said("The first part is done."), user(later), said("ok"))
    assert f"{earlier} [overruled by [2]]" in text
    assert "album page. [overruled" not in text
