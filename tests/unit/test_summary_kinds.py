"""Pages of short talks: outcomes in many words, look-ups, steps, narrower runs, words that change earlier ones."""

from __future__ import annotations

import json
from typing import Any

import pytest

import foldline as fl

Talk = list[dict[str, Any]]


def user(text: str) -> Talk:
    return [{"role": "user", "content": text}]


def said(text: str) -> Talk:
    return [{"role": "assistant", "content": text}]


def call(name: str, given: dict[str, Any], result: object) -> Talk:
    """A call with its result; the id is that of its place."""
    text = result if isinstance(result, str) else json.dumps(result)
    function = {"name": name, "arguments": json.dumps(given)}
    return [
        {"role": "assistant", "content": None, "tool_calls": [{"id": "", "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": "", "content": text},
    ]


def shell(command: str, result: str) -> Talk:
    return call("bash", {"command": command}, result)


def failed(text: str, code: int = 1) -> str:
    return f"{text}\n\nCommand exited with code {code}"


def page(*parts: Talk) -> str:
    """The page of 500 tokens."""
    messages = [dict(message) for part in parts for message in part]
    for at, message in enumerate(messages):
        if message["role"] == "tool":
            message["tool_call_id"] = f"c{at}"
            messages[at - 1] = {
                **messages[at - 1],
                "tool_calls": [{**messages[at - 1]["tool_calls"][0], "id": f"c{at}"}],
            }
    return written(messages)


def written(messages: Talk) -> str:
    request = fl.typing.SummarizeRequest(
        messages=messages,
        folded=tuple(range(len(messages))),
        format=fl.detect_format(messages).format,
        max_tokens=500,
        count=fl.TokenCounter("o200k_base").count,
    )
    return fl.summarizers.Extractive().summarize(request).text


def section(text: str, title: str) -> str:
    """A section of a page; empty without it."""
    return text.partition(f"## {title}\n")[2].partition("\n## ")[0]


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


@pytest.mark.parametrize(
    ("command", "output", "test"),
    [
        (
            "bundle exec rspec",
            "40 examples, 1 failure\nrspec ./spec/store_spec.rb:31 # Store locks",
            "store_spec.rb:31",
        ),
        ("./gradlew test", "StoreTest > locks() FAILED\n3 tests completed, 1 failed", "StoreTest > locks()"),
        ("mix test", "1) test locks (StoreTest)\n   test/s.exs:31\n40 tests, 1 failure", "test locks (StoreTest)"),
        ("vendor/bin/phpunit", "1) StoreTest::testLocks\nTests: 40, Failures: 1.", "StoreTest::testLocks"),
        ("dotnet test", "Failed Plant.Clock.Rounds [12 ms]\nFailed!  - Failed: 1, Passed: 31", "Plant.Clock.Rounds"),
        ("ctest", "The following tests FAILED:\n  3 - lexer (Failed)\n1 tests failed out of 20", "3 - lexer (Failed)"),
    ],
)
def test_a_failed_run_names_its_first_failed_test(command: str, output: str, test: str) -> None:
    text = page(user("Make the tests pass."), shell(command, failed(output)), said("One fails."))
    assert test in section(text, "Open problems")


def edit(path: str, old: str, new: str) -> Talk:
    return call("edit_file", {"path": path, "old_string": old, "new_string": new}, f"Edited {path}")


@pytest.mark.parametrize(
    "back",
    [
        shell("git checkout -- src/app.ts", "Updated 1 path from the index"),
        shell("cd /w && git restore src/app.ts", ""),
        edit("src/app.ts", "json({ limit: 20 })", "json()"),
    ],
)
def test_a_file_that_was_set_back_is_not_changed(back: Talk) -> None:
    change = edit("src/app.ts", "json()", "json({ limit: 20 })")
    start = [user("The upload fails."), change, edit("nginx.conf", "a", "b")]
    assert "src/app.ts" in page(*start, said("Tried the limit."))
    text = page(*start, back, said("Took it back."))
    assert "src/app.ts" not in text
    assert "nginx.conf" in section(text, "Files")


def test_a_file_that_was_committed_before_it_was_set_back_is_changed() -> None:
    text = page(
        user("Rework it."),
        edit("a.py", "x = 1", "x = 2"),
        shell("git commit -qam 'Set x'", "[main 1a2b3c4] Set x"),
        edit("a.py", "y = 1", "y = 2"),
        shell("git checkout -- a.py", ""),
        said("Only x is set."),
    )
    assert "a.py" in section(text, "Files")


def test_a_cause_that_was_refuted_is_ruled_out() -> None:
    text = page(
        user("Dates are wrong for users in New Zealand."),
        said("Found it: the cause is `toISOString()` in report.ts, which converts to UTC."),
        edit("report.ts", "toISOString()", "toLocaleDateString()"),
        shell("npm test", failed("Tests: 1 failed, 30 passed")),
        said("I was wrong: report.ts gets a date that is wrong already. The cause is the query in `daily.sql`."),
    )
    assert "Ruled out" in text
    assert "the cause is `toISOString()`" not in text


def test_a_hypothesis_is_no_step() -> None:
    text = page(
        user("Find out why search is slow."),
        said("The index is used. Next hypothesis: DNS lookups to the cache hosts."),
        shell("dig cache.internal", "Query time: 1 msec"),
        said("DNS is fast."),
    )
    assert "DNS lookups" not in section(text, "Next steps")


@pytest.mark.parametrize(
    ("words", "steps"),
    [
        ("Chapter 1 is translated. Chapter 2 is next, then 3 to 5.", ["Chapter 2", "3 to 5"]),
        ("Borax had one recall. Imvo is next.", ["Imvo"]),
        (
            "Section 1 is written. Remaining: costs, subsidies, recommendation.",
            ["costs", "subsidies", "recommendation"],
        ),
    ],
)
def test_steps_are_named_in_many_ways(words: str, steps: list[str]) -> None:
    lines = section(page(user("Go through all of them."), said(words)), "Next steps").splitlines()
    assert [line.removeprefix("- ") for line in lines] == steps


@pytest.mark.parametrize(
    "words", ["tax.pl is dead since January, skip it", "drop tax, that is another report", "no tax."]
)
def test_a_step_that_the_user_drops_is_none(words: str) -> None:
    text = page(user("Port the scripts."), said("daily is ported. Next: stock, then tax."), user(words))
    steps = section(text, "Next steps")
    assert "stock" in steps
    assert "- tax" not in steps


def test_the_end_of_a_list_says_that_its_start_is_done() -> None:
    compacted = fl.compact(
        [*user("Port the scripts."), *said("daily is ported. Next: weekly, stock, tax."), *user("go on"), *said("ok")],
        fl.KeepMessages(1),
        summarizer=fl.summarizers.Extractive(),
        counter=fl.TokenCounter("o200k_base"),
        summary_tokens=500,
    )
    messages = [*compacted.messages, *said("weekly is identical too. Next: stock, tax."), *user("fine")]
    steps = section(written([dict(message) for message in messages]), "Next steps")
    assert "stock" in steps
    assert "weekly" not in steps


def test_code_that_was_corrected_is_no_problem() -> None:
    text = page(
        user("Revenue per region, please."),
        call("python", {"code": "df.groupby(['region', 'month']).rev.sum()"}, "KeyError: 'rev'"),
        call("python", {"code": "df.groupby(['region', 'month']).revenue.sum()"}, "region month\nnorth 1 20"),
        said("Here is the table."),
    )
    assert "KeyError" not in section(text, "Open problems")


def test_what_the_user_does_not_want_done_is_no_problem() -> None:
    text = page(
        user("Dispute the charge."),
        call("block_merchant", {"merchant": "STREAMLY"}, {"error": "needs the customer's consent"}),
        said("Shall I also block STREAMLY?"),
        user("no, don't block it, I still use the other one"),
    )
    assert "block_merchant" not in section(text, "Open problems")


def test_the_value_of_a_probe_is_shown() -> None:
    text = page(
        user("The upload returns 413."),
        said("nginx limits the body."),
        edit("nginx.conf", "a", "b"),
        shell("curl -s -o /dev/null -w '%{http_code}' localhost/upload", "201"),
    )
    assert "→ 201" in text


def test_options_in_one_sentence_are_resolved() -> None:
    text = page(
        user("Fix the flaky test."),
        said("Two ways: A. inject the clock B. skip the test. Which?"),
        user("B"),
    )
    assert "skip the test" in section(text, "Rules and decisions")
    assert "B: skip the test" in text


def test_a_number_with_an_article_names_an_option() -> None:
    offer = said("Hay dos: 1) IB-341 a las 08:10, 2) IB-345 a las 17:30. ¿Cuál prefiere?")
    assert "2: IB-345 a las 17:30" in page(user("Quiero cambiar el vuelo."), offer, user("el 2"))


def test_a_rule_of_several_clauses_is_marked_where_one_is_overruled() -> None:
    text = page(
        user("Edit my story. British spelling, keep first person, don't touch the dialogue."),
        said("I would tighten the second scene. Shall I?"),
        user("yes. And change of mind: American spelling, the magazine is in Boston"),
        said("American spelling is back."),
    )
    assert "British spelling [overruled by [2]], keep first person" in text
    assert "British spelling," not in text


@pytest.mark.parametrize("words", ["oui, pour 8, et un repas végétarien", "ja, und bitte auch für Montag"])
def test_an_answer_with_a_wish_is_a_request_in_any_language(words: str) -> None:
    text = page(user("Book a room."), said("Done. Coffee as well?"), user(words))
    assert words in section(text, "Current request")


def test_a_rule_of_several_clauses_stays_when_a_number_in_it_changes() -> None:
    rule = "Keep the tests, never touch the main branch, and use a limit of 50 rows."
    text = page(user("Make it."), said("ok"), user(rule), said("ok"), user("make it a limit of 20 rows"), said("ok"))
    assert "never touch the main branch" in text


def test_a_number_for_another_place_replaces_nothing() -> None:
    rule = "Never spend more than 90 a night in Rome."
    text = page(
        user("Plan it."), said("ok"), user(rule), said("ok"), user("In Paris it should be 120 a night."), said("ok")
    )
    assert rule in text
    assert "overruled" not in text


@pytest.mark.parametrize(
    ("tool", "first", "error", "second"),
    [
        (
            "run_sql",
            {"sql": "DELETE FROM sessions WHERE user_id = 4211 AND expired = true"},
            "ERROR: permission denied for table sessions",
            {"sql": "SELECT * FROM sessions WHERE user_id = 4211 AND expired = true"},
        ),
        (
            "run_sql",
            {"sql": "INSERT INTO invoices (id, amount, owner) VALUES (7, 120, 'Ann')"},
            "ERROR: duplicate key",
            {"sql": "INSERT INTO invoices (id, amount, owner) VALUES (8, 120, 'Ann')"},
        ),
        (
            "run_on_host",
            {"host": "db1", "code": "systemctl restart payments-api.service now"},
            "Error: connection refused",
            {"host": "db2", "code": "systemctl restart payments-api.service now"},
        ),
    ],
)
def test_code_for_another_object_corrects_nothing(tool: str, first: Any, error: str, second: Any) -> None:
    text = page(user("Do both."), call(tool, first, error), call(tool, second, "done"), said("ok"))
    assert tool in section(text, "Open problems")


@pytest.mark.parametrize(
    ("tool", "given", "words"),
    [
        ("cancel_subscription", {"id": "G1"}, "if you don't cancel it by Friday they charge me again"),
        ("book_flight", {"flight": "F7"}, "don't book a hotel, I stay with friends"),
        ("update_booking", {"booking": "B1"}, "ok. And don't update the readme"),
    ],
)
def test_words_about_something_else_close_no_error(tool: str, given: dict[str, Any], words: str) -> None:
    text = page(user("Do it."), call(tool, given, {"error": "unavailable"}), said("It failed."), user(words))
    assert tool in section(text, "Open problems")


def test_a_cause_that_is_confirmed_stays() -> None:
    text = page(
        user("Why is it slow?"),
        said("Found it: the cause is the cache TTL in `store.rs`, which is 0."),
        shell("pytest", "4 passed"),
        said("Confirmed: the cause is the cache TTL in `store.rs`. The proxy is not the cause."),
    )
    assert "the cause is the cache TTL in `store.rs`" in section(text, "State")


@pytest.mark.parametrize("words", ["Let me see what is next.", "Tell me what is next."])
def test_a_question_for_the_next_step_is_none(words: str) -> None:
    text = page(user("Port them."), said("daily is ported. Next: stock, then tax."), said(words), user("fine"))
    assert section(text, "Next steps").count("stock") == 1
    assert "what" not in section(text, "Next steps")


def test_a_run_without_failures_is_none() -> None:
    text = page(user("Test."), shell("mvn test", "Tests: 40 Failures: 0"), said("ok"))
    assert "Open problems" not in text


def test_steps_of_a_script_are_no_failed_tests() -> None:
    output = "1) Checking disk\n2) Checking port 5432\nError: connection to 10.0.0.4 failed: timeout"
    text = page(user("Test."), shell("make test", failed(output)), said("It failed."))
    assert "connection to 10.0.0.4 failed" in section(text, "Open problems")


def test_a_change_taken_back_after_its_commit_is_a_change() -> None:
    text = page(
        user("Set the limit."),
        edit("a.py", "limit = 10", "limit = 20"),
        shell("git commit -qam 'Set limit'", "[main 1a2b3c4] Set limit"),
        shell("pytest", "4 passed"),
        edit("a.py", "limit = 20", "limit = 10"),
        said("Set it back."),
    )
    assert "Not checked since" in text


@pytest.mark.parametrize(
    "command", ["git checkout main a.py", "git checkout --theirs -- a.py", "git restore -s v1.2 a.py"]
)
def test_another_version_of_a_file_is_a_change(command: str) -> None:
    files = section(page(user("Fix."), edit("a.py", "x", "y"), shell(command, ""), said("ok")), "Files")
    assert "a.py" in files
    assert "v1.2" not in files


def test_an_option_is_chosen_by_its_name_before_its_place() -> None:
    text = page(user("Book it."), said("Which plan: A) basic, B) premier?"), user("premier"), said("ok"))
    assert "(A: basic)" not in text


def test_what_is_dropped_is_the_object_of_the_word() -> None:
    text = page(
        user("Build it."),
        shell("make api", failed("error: api.c:3: undeclared x")),
        said("It fails."),
        user("skip the api docs, I write them"),
    )
    assert "make api" in section(text, "Open problems")
    steps = page(user("Port."), said("daily is ported. Next: stock, tax."), user("there is no hurry, skip stock"))
    assert "stock" not in section(steps, "Next steps")


def test_names_in_brackets_are_no_steps() -> None:
    text = page(user("Port."), said("daily is done. Remaining: search (fast, exact), weekly, docs (README, log)."))
    assert "search (fast, exact)" in section(text, "Next steps")
