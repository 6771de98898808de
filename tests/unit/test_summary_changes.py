"""Pages of short talks: failed tests, files set back, causes refuted, steps passed over, rules that change."""

from __future__ import annotations

from typing import Any

import pytest

import foldline as fl
from talks import Talk, call, edit, failed, page, said, section, shell, user, written


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


def test_an_error_is_open_again_when_what_closed_it_is_cancelled() -> None:
    room = {"room": "12", "payment": "voucher"}
    start = [
        user("Book room 12 with my voucher."),
        call("book_room", room, failed("Error: voucher not found")),
        call("book_room", room | {"payment": "card"}, {"booking_id": "B-7", "paid": 90}),
        said("Booked with the card."),
        user("I wanted the voucher. Try again, please."),
    ]
    assert "voucher not found" not in section(page(*start, said("One moment.")), "Open problems")
    cancelled = call("cancel_booking", {"booking_id": "B-7"}, {"booking_id": "B-7"})
    text = page(*start, cancelled, said("Cancelled it."))
    assert "voucher not found" in section(text, "Open problems")
    other = call("book_room", {"room": "14", "payment": "card"}, {"booking_id": "B-8", "paid": 70})
    assert "voucher not found" not in page(*start, cancelled, other, said("Booked another."))
    wish = user("I don't need the room, please cancel it.")
    assert "voucher not found" not in page(*start, wish, cancelled, said("Cancelled it."))


@pytest.mark.parametrize(
    "later",
    [
        "I also wonder why it does not refund gift cards anymore.",
        "I prefer to use a gift card instead.",
        "Change of mind, make it another flight instead.",
    ],
)
def test_a_later_word_on_another_matter_overrules_no_rule(later: str) -> None:
    text = page(
        user("Before you make a change, ask me. Use metric, not imperial. Change my booking, please."),
        said("Of which flight?"),
        user(f"Flight 7. {later}"),
        said("One moment."),
    )
    assert "Use metric, not imperial" in text
    assert "Before you make a change, ask me" in text


def test_a_skill_that_the_user_calls_is_a_request_and_no_task() -> None:
    def skill(name: str) -> Talk:
        return user(f"<command-message>{name}</command-message>\n<command-name>/{name}</command-name>")

    plain = user(
        "<command-name>/model</command-name>\n<command-message>model</command-message>\n<command-args></command-args>"
    )
    text = page(
        skill("brainstorm"),
        said("On what?"),
        user("Add a cache for the tiles."),
        said("Done."),
        plain,
        skill("pr-review"),
    )
    assert '"/pr-review"' in section(text, "Current request")
    assert 'Task [2]: "Add a cache for the tiles."' in text
    assert "/model" not in text


def test_the_answer_to_the_question_of_a_skill_is_the_task() -> None:
    skill = user("<command-message>brainstorm</command-message>\n<command-name>/brainstorm</command-name>")
    wish = "Add a cache for the tiles of the map; keep memory below 200 MB and never write to disk."
    text = page(skill, said("On what?"), user(wish), said("I have read the code."), user("Go on."), said("Working."))
    assert f'"{wish}"' in section(text, "Current request")


SECOND_LIST = "1. Postgres\n2. none\n\nThen:\n1. Add the export to the page\n2. Rename the column total to sum"


def test_only_what_answers_a_question_is_an_answer() -> None:
    asked = said("Before I start:\n\n1. Which database?\n2. Which cache?")
    text = page(user("Build the report service."), asked, user(SECOND_LIST), said("Fine."))
    assert 'Which database? → "Postgres"' in text
    assert 'Which cache? → "none"' in text
    assert "Rename the column total to sum" in section(text, "Current request")
    line = "1. Postgres\n2. redis\nPlease drop phase 1. Add the export to the page."
    text = page(user("Build the report service."), asked, user(line), said("Fine."))
    assert "Please drop phase 1. Add the export to the page." in section(text, "Current request")
