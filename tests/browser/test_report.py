"""The report of a fold in a real browser: what it shows, how it is used, and that it does nothing else."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import foldline as fl
from browser.folds import HOSTILE, conversation, hostile, long_one, summarize, usual

pytestmark = pytest.mark.browser

Opened = Callable[..., Any]


def violations(page: Any) -> list[tuple[str, str]]:
    """What axe finds."""
    from axe_playwright_python.sync_playwright import Axe

    return [(each["id"], each["nodes"][0]["html"][:120]) for each in Axe().run(page).response["violations"]]


def page_of(result: fl.FoldResult, **more: Any) -> str:
    return fl.report.html(result, prices=fl.report.Prices(5, 0.5, 25, 6.25), **more)


def text(page: Any, selector: str) -> str:
    return str(page.locator(selector).inner_text())


def wait_for_message(page: Any, number: int) -> None:
    """Waits until the message is shown: a link changes the address, and the page follows in an event of its own."""
    page.locator("#side h2", has_text=re.compile(rf"^\s*Message {number}(?!\d)")).wait_for(timeout=10_000)


def figure(words: str) -> int:
    """The first number of a text."""
    found = re.search(r"\d[\d,]*", words)
    assert found is not None, words
    return int(found[0].replace(",", ""))


def after_cut(page: Any) -> tuple[int, int]:
    """Messages that fold and tokens that stay, as the page says for the cut of the slider."""
    found = re.search(r": ([\d,]+) messages fold, ([\d,]+) tokens stay", text(page, "#cutlab"))
    assert found is not None, text(page, "#cutlab")
    return figure(found[1]), figure(found[2])


def planned_at(messages: list[Any], cut: int, result: fl.FoldResult) -> fl.Plan:
    """The plan whose cut is this one: as many messages that count stay as stand behind it."""
    plan = result.plan
    assert isinstance(plan, fl.Plan)
    pins = [i for i, reason in enumerate(plan.reasons) if reason == "pinned"]
    counting = sum(reason not in ("head", "pinned", "pinned_group", "open_call") for reason in plan.reasons[cut:])
    found = fl.plan(
        messages,
        fl.KeepMessages(counting),
        counter=result.given.counter if result.given else None,
        pins=pins,
        summary_tokens=plan.summary_tokens,
    )
    assert isinstance(found, fl.Plan)
    return found


def test_the_page_says_what_the_result_says(opened: Opened) -> None:
    result = usual()
    page = opened(page_of(result))
    assert text(page, "h1").replace("\n", "").startswith(f"{result.tokens_before:,}→{result.tokens_after:,}")
    facts = result.facts
    assert page.locator(".sq .fk").count() == len(facts.kept)
    assert page.locator(".sq .fa").count() == len(facts.added) > 0
    assert page.locator(".sq .fd").count() == len(facts.dropped) > 0
    verdicts = text(page, ".chips")
    assert "Within the budget" in verdicts
    assert "Every message accounted for" in verdicts
    assert f"{len(facts.dropped)} of {len(facts.kept + facts.added + facts.dropped)} facts" in verdicts
    assert "No call parted from its result" in text(page, ".checks")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_and_the_page_is_kept_as_a_picture(opened: Opened, shots: Path, scheme: str) -> None:
    for name, result in {
        "usual": usual(),
        "hostile": hostile(),
        "unchanged": unchanged(),
        "cleared": cleared(),
    }.items():
        page = opened(page_of(result), scheme=scheme)
        page.screenshot(path=shots / f"{name}-{scheme}.png", full_page=True)
        assert violations(page) == [], name


def unchanged() -> fl.FoldResult:
    return fl.compact(conversation(2), fl.FitTokens(50_000), counter="chars/4")


def cleared() -> fl.FoldResult:
    big = conversation(3, size=400)
    return fl.compact(big, fl.FitTokens(1_400), counter="chars/4", summary_tokens=100)


def refused() -> fl.FoldResult:
    def fail(_: list[Any]) -> str:
        raise fl.errors.SummaryError("no", code="refused")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fl.errors.FoldlineWarning)
        return fl.compact(conversation(4), fl.KeepMessages(4), summarizer=fail, counter="chars/4")


def impossible() -> fl.FoldResult:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fl.errors.FoldlineWarning)
        return fl.compact(conversation(4), fl.FitTokens(10), counter="chars/4")


def test_a_failed_fold_has_its_code_as_the_one_verdict(opened: Opened, shots: Path) -> None:
    page = opened(page_of(refused()))
    page.screenshot(path=shots / "failed-light.png", full_page=True)
    (verdict,) = page.locator(".chips li").all()
    assert " ".join(verdict.inner_text().split()) == "× The summary failed, the messages are unchanged refused"
    # The list is as it was: nothing is folded in the picture, and there is no other cut to try.
    assert page.locator("#slide, #cut").count() == 0
    assert str(page.locator("#aftertext").text_content()).endswith("tokens: 16 kept")
    assert "tokens free" not in text(page, "main")
    assert violations(page) == []
    page.locator("#m0").click()
    assert "before_cut" not in text(page, "#side")


def test_an_infeasible_budget_has_its_floor_as_the_one_verdict(opened: Opened) -> None:
    result = impossible()
    page = opened(page_of(result))
    assert page.locator(".chips li").count() == 1
    verdict = text(page, ".chips")
    assert isinstance(result.plan, fl.Infeasible)
    assert verdict.count(f"{result.plan.floor}") == 1
    assert page.locator("#sum").count() == 0
    assert violations(page) == []


def test_a_short_list_is_as_high_as_its_rows(opened: Opened) -> None:
    page = opened(page_of(unchanged()))
    assert page.evaluate("document.getElementById('list').clientHeight") == 8 * 27


def test_the_button_changes_between_light_and_dark(opened: Opened) -> None:
    page = opened(page_of(usual()))
    color = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(color)
    page.click("#theme")
    assert page.evaluate(color) != light
    assert violations(page) == []
    page.click("#theme")
    assert page.evaluate(color) == light


def test_every_legal_cut_has_the_figures_of_a_plan(opened: Opened) -> None:
    result = usual()
    messages = list(result.given.messages) if result.given else []
    page = opened(page_of(result))
    cuts = json.loads(page.locator("#data").text_content())["cuts"]
    assert len(cuts) > 20
    page.focus("#cut")
    page.keyboard.press("Home")
    for cut in cuts:
        expected = planned_at(messages, cut, result)
        folded, tokens = after_cut(page)
        assert folded == expected.actions.count("summarize"), cut
        if cut == result.plan.cut:  # type: ignore[union-attr]
            assert tokens == result.tokens_after
        else:
            assert tokens == expected.tokens_after, cut
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Escape")
    assert after_cut(page)[1] == result.tokens_after


def test_the_buttons_take_the_cuts_that_the_plan_names(opened: Opened) -> None:
    result = usual()
    page = opened(page_of(result))
    assert isinstance(result.plan, fl.Plan)
    for other in result.plan.alternatives:
        page.click(f'#stops button[data-cut="{other.cut}"]')
        assert after_cut(page) == (other.folded, other.tokens_after)
        assert page.get_attribute(f'#stops button[data-cut="{other.cut}"]', "aria-pressed") == "true"
    page.keyboard.press("Escape")
    assert page.get_attribute(f'#stops button[data-cut="{result.plan.cut}"]', "aria-pressed") == "true"


def test_the_slider_is_dragged_to_the_nearest_legal_cut(opened: Opened) -> None:
    page = opened(page_of(usual()))
    box = page.locator("#cut").bounding_box()
    page.mouse.click(box["x"] + box["width"] * 0.4, box["y"] + box["height"] / 2)
    said = page.get_attribute("#cut", "aria-valuetext")
    assert re.fullmatch(r"cut before message \d+, \d+ folded, [\d,]+ tokens after", said)
    cuts = json.loads(page.locator("#data").text_content())["cuts"]
    assert figure(said) in cuts
    assert not page.locator("#at").is_hidden()


def test_filters_and_search_choose_the_rows(opened: Opened) -> None:
    result = usual()
    page = opened(page_of(result))
    plan = result.plan
    assert isinstance(plan, fl.Plan)
    for key, action in (("f", "summarize"), ("p", "pin"), ("k", "keep")):
        page.click(f'#filters button[data-f="{key}"]')
        assert figure(text(page, "#count")) == plan.actions.count(action)
    page.click('#filters button[data-f="e"]')
    facts = result.facts
    told = {fact.message for fact in facts.kept + facts.added + facts.dropped}
    assert figure(text(page, "#count")) == len(told)
    page.click('#filters button[data-f="all"]')
    page.keyboard.press("/")
    page.keyboard.type("part 7:")
    assert figure(text(page, "#count")) == 1
    assert "part 7" in text(page, "#list")
    page.keyboard.press("Escape")
    assert figure(text(page, "#count")) == len(plan)


def test_the_list_is_walked_by_keyboard(opened: Opened) -> None:
    page = opened(page_of(usual()))
    page.focus("#list")
    page.keyboard.press("Home")
    assert text(page, "#side h2").startswith("Message 0")
    page.keyboard.press("ArrowDown")
    assert text(page, "#side h2").startswith("Message 1")
    page.keyboard.press("PageDown")
    assert text(page, "#side h2").startswith("Message 15")
    page.keyboard.press("End")
    assert text(page, "#side h2").startswith("Message 63")
    assert page.get_attribute("#list", "aria-activedescendant") == "m63"
    assert page.locator("#m63").get_attribute("aria-selected") == "true"


def test_everything_is_reached_by_the_tab_key(opened: Opened) -> None:
    page = opened(page_of(usual()))
    reached = set()
    for _ in range(400):
        page.keyboard.press("Tab")
        where = page.evaluate("(({ id, className, tagName }) => id || className || tagName)(document.activeElement)")
        if where == "BODY":
            break
        reached.add(where.split(" ")[0])
    assert {"theme", "cut", "sum", "q", "list"} <= reached
    assert {"fk", "fa", "fd"} <= reached


def test_a_fact_leads_to_its_message_and_its_place(opened: Opened) -> None:
    page = opened(page_of(usual()))
    square = page.locator(".sq .fa").first
    number = square.get_attribute("data-fact")
    square.click()
    message = page.evaluate(f"JSON.parse(document.getElementById('data').textContent).facts.message[{number}]")
    assert text(page, "#side h2").startswith(f"Message {message}")
    assert page.locator(f'#sum mark[data-fact="{number}"]').get_attribute("class") == "a on"
    assert page.locator(f"#m{message}").get_attribute("aria-selected") == "true"
    mark = page.locator("#sum mark.k").first
    mark.focus()
    page.keyboard.press("Enter")
    kept = mark.get_attribute("data-fact")
    assert page.locator(f'.sq [data-fact="{kept}"]').get_attribute("aria-pressed") == "true"


def test_a_link_and_a_citation_lead_to_a_message(opened: Opened) -> None:
    page = opened(page_of(usual()), anchor="#m21")
    assert text(page, "#side h2").startswith("Message 21")
    page.locator("#sum a", has_text="[8]").click()
    wait_for_message(page, 8)
    last = page.locator("#sum sup a").last
    last.click()
    wait_for_message(page, int(last.inner_text()))


def test_hovering_shows_the_message_under_the_pointer(opened: Opened) -> None:
    page = opened(page_of(usual()))
    box = page.locator("#pic").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 20)
    assert re.match(r"message \d+, ", text(page, "#tip"))
    page.mouse.move(box["x"] + 5, box["y"] + box["height"] - 3)
    assert page.locator("#tip").is_hidden()


def test_hostile_text_is_shown_and_does_nothing(opened: Opened) -> None:
    page = opened(page_of(hostile(), full=True))
    assert page.title() != "broken"
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 2
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    for selector in ("#side", "#sum", "#list", ".cards .card", ".checks .card"):
        assert page.evaluate(
            f"[...document.querySelectorAll('{selector}')].every((e) => e.scrollWidth <= e.clientWidth + 1)"
        ), selector
    shown = page.content()
    assert "\u202e" not in shown
    assert "‹202e›" in shown
    for i in range(0, 30, 3):  # the chosen message shows every kind of text
        page.evaluate(f"location.hash = 'm{i}'")
        wait_for_message(page, i)
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


@pytest.mark.parametrize("width", [320, 390, 768, 1_100])
def test_nothing_is_wider_than_a_narrow_screen(opened: Opened, shots: Path, width: int) -> None:
    for name, result in {"usual": usual(), "unchanged": unchanged(), "cleared": cleared()}.items():
        page = opened(page_of(result), viewport={"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"), name
        if width == 390:
            page.screenshot(path=shots / f"{name}-narrow.png", full_page=True)


def test_the_strip_says_only_what_there_is(opened: Opened) -> None:
    result = fl.compact(conversation(6), fl.KeepMessages(4), counter="chars/4", summary_tokens=300)
    page = opened(page_of(result))
    assert str(page.locator("#aftertext").text_content()) == f"{result.tokens_after:,} tokens: the summary, 4 kept"
    page.focus("#cut")
    page.keyboard.press("End")
    assert re.fullmatch(r"[\d,]+ tokens: the summary", str(page.locator("#aftertext").text_content()))


def test_what_the_fold_saves_is_marked_in_the_chart(opened: Opened) -> None:
    page = opened(page_of(long_one(400)))
    assert page.locator("#chart .sv").count() == 1
    assert re.search(r"\$[\d.]+ saved", str(page.locator("#chart").text_content()))


def test_a_planted_violation_of_the_policy_is_caught(opened: Opened) -> None:
    html = page_of(usual())
    planted = html.replace(
        "</main>", "<script>document.title='broken'</script><img src='https://a.invalid/x.png'></main>"
    )
    assert planted != html
    page = opened(planted)
    assert page.title() != "broken"
    assert sum("Content Security Policy" in each for each in page.said) >= 2
    assert not any(each.startswith("asked: ") and "failed" not in each for each in page.said if "a.invalid" not in each)
    page.said.clear()
    # A script that differs by one letter does not run either.
    page = opened(html.replace('"use strict";', '"use strict" ;', 1))
    assert page.locator("#list").is_hidden()
    assert any("Content Security Policy" in each for each in page.said)
    page.said.clear()


def test_without_script_hero_cards_checks_and_picture_stand(opened: Opened, shots: Path) -> None:
    page = opened(page_of(usual()), script=False)
    for selector in ("h1", ".chips", "#pic", ".comp", ".ev", "#chart", "#sum", ".checks"):
        assert page.locator(selector).first.is_visible(), selector
    assert page.locator("#pic path[d^=M]").count() > 5
    assert page.locator("#list").is_hidden()
    assert page.locator("#cut").is_hidden()
    page.screenshot(path=shots / "without-script.png", full_page=True)


def test_long_sessions_stay_quick(opened: Opened) -> None:
    result = long_one(10_000)
    page = opened(page_of(result))
    assert page.evaluate("document.querySelectorAll('*').length") <= 1_000
    took = page.evaluate("""() => {
        const slider = document.getElementById("cut"), times = [];
        for (let k = 1; k <= 20; k++) {
            const begun = performance.now();
            slider.value = Math.round(slider.max * k / 21);
            slider.dispatchEvent(new Event("input"));
            document.getElementById("pic").getBoundingClientRect();
            times.push(performance.now() - begun);
        }
        return times.sort((a, b) => a - b)[5];
    }""")
    assert took <= 50  # the quarter least disturbed by other processes
    assert page.evaluate("document.querySelectorAll('*').length") <= 1_000


def test_a_page_of_a_thousand_messages_is_small() -> None:
    html = page_of(long_one(1_000))
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)
    assert data is not None
    assert len(html.encode()) - len(data[1].encode()) <= 150_000
    own = re.findall(r"<style>(.*?)</style>|<script>(.*?)</script>", html, re.DOTALL)
    assert sum(len("".join(each).encode()) for each in own) <= 40_000


def test_print_shows_the_whole_summary_and_no_controls(opened: Opened) -> None:
    page = opened(page_of(usual()))
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("#theme").is_hidden()
    assert page.locator("#filters").is_hidden()
    assert page.locator(".row").count() == 64
    assert page.evaluate(
        "document.getElementById('sum').scrollHeight <= document.getElementById('sum').clientHeight + 1"
    )


def test_the_hostile_texts_reach_the_page() -> None:
    html = page_of(hostile(), full=True)
    assert all(needle in html for needle in ("onerror", "gnp.exe", "x" * 1_000))
    assert HOSTILE[0] not in html
    assert summarize([]) not in html


def test_every_legal_cut_of_recorded_sessions_has_the_figures_of_a_plan(opened: Opened, shared: Path) -> None:
    walked = 0
    files = sorted((shared / "claude-code-entire").glob("*.jsonl"), key=lambda file: file.stat().st_size)
    for file in [each for each in files if each.stat().st_size > 100_000][:10]:
        messages = next(iter(fl.read(file))).messages[:400]
        live = fl.Transcript(messages, counter="chars/4")
        pins = [len(messages) // 3]
        keep = fl.FitTokens(live.total_tokens // 2)
        result = fl.compact(live, keep, pins=pins, summary_tokens=1_000)
        assert isinstance(result.plan, fl.Plan)
        page = opened(page_of(result, content=False))
        cuts = json.loads(page.locator("#data").text_content())["cuts"]
        said = page.evaluate(
            """(cuts) => {
            const P = [0], slider = document.getElementById("cut");
            JSON.parse(document.getElementById("data").textContent).tokens.forEach((t) => P.push(P[P.length - 1] + t));
            return cuts.map((cut) => {
                slider.value = P[cut];
                slider.dispatchEvent(new Event("input"));
                return [slider.getAttribute("aria-valuetext"), document.getElementById("cutlab").textContent];
            });
        }""",
            cuts,
        )
        fixed = ("head", "compaction", "pinned", "pinned_group", "open_call")
        for cut, (_, label) in zip(cuts, said):
            counting = sum(reason not in fixed for reason in result.plan.reasons[cut:])
            plan = live.plan(fl.KeepMessages(counting), pins=pins, summary_tokens=result.plan.summary_tokens)
            found = re.search(r": ([\d,]+) messages fold, ([\d,]+) tokens stay", label)
            assert found is not None
            folded = plan.actions.count("summarize")
            if folded == 0 or cut == result.plan.cut:
                continue
            assert (figure(found[1]), figure(found[2])) == (folded, plan.tokens_after), (file.name, cut)
            walked += 1
    assert walked > 500
