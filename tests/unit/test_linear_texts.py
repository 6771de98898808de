"""A stranger's text costs linear time: every regular expression of the package, and every check of an answer.

Each is run on texts that grow 64-fold, see `tests/growth.py`.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import foldline as fl
from foldline import presets
from foldline._util import overflow
from foldline._util.overflow import overflow_kind
from foldline.strategies import StrategyRequest, TruncateOldest
from foldline.summarizers import _checks
from foldline.summarizers._prompt.fencing import escaped
from foldline.summarizers._prompt.prompts import filled
from foldline.summarizers._remote.failures import of_status, wait_asked_for
from foldline.summarizers._sanitize import neutralized
from foldline.typing import Completion
from growth import MOST_GROWTH, growth

PACKAGE = Path(fl.__file__).parent

#: Pieces of the smaller text.
SMALL = 100

#: Heads, repeated pieces and ends of the texts. Every text is a head, many pieces, and an end.
PIECES = (
    *("e", "1", " ", "\t", "\n", "_", ".", "/", ":", "!", "`", "```", "```\n", "``` ", "` `\n", "a("),
    *("a(\n", "{a", "[", "]", "<", "<a", "<>", "< ", ">", "</a> ", "e.", "e e", "#", "# ", "\\", '"', "[{", "\ud800"),
)  # fmt: skip
ENDS = ("", "!", "]", "\n```")

#: Every expression of the package: how it is used, and further texts for it as heads and pieces.
EXPRESSIONS: dict[str, tuple[str, dict[str, tuple[str, ...]]]] = {
    "_html:_HIDDEN": ("sub", {"": ("\u202e", "\u200b")}),
    "_util.overflow:_BARE": ("search", {"": ("4", "400 "), "400": (" ",), "400 status code": (" ",)}),
    "_util.overflow:_patterns.context": (
        "search",
        {
            "": (
                *("prompt contains 1 tokens ", "input token count ", "prompt token count of 1 ", "exceeds the "),
                *("size limit exceeded by 1", "prompt (total length 1", "maximum prompt length is "),
            ),
            "prompt contains ": ("1",),
            "input token count is ": ("1",),
        },
    ),
    "_util.overflow:_RATE": ("search", {"": ("rate_", "try again in ", "per ")}),
    "_util.overflow:_patterns.request_size": ("search", {"": ("request size ", "request ", "payload too ")}),
    "_util.overflow:_TOKENS_IN_A_PERIOD": (
        "search",
        {"": ("tokens per min ", "limit: 1", "requested: 1"), "tokens per min limit: ": ("1", "1,"), "limit 1": (" ",)},
    ),
    "_util.overflow:_WAIT": ("search", {"": ("try again in ", "retry after ")}),
    "batch.ray:_OURS": ("fullmatch", {"part-" + "0" * 64: ("-1", "1")}),
    "presets:_SessionSummary.HEADING": ("sub", {"## Session Summary": ("e", " Session Summary")}),
    "report._sections:_CITED": ("findall", {"": ("[1", "[1]"), "[": ("1",)}),
    "report._texts:_SPACES": ("sub", {"": (" \t", "\n "), "a": (" ",)}),
    "report.page:_UUID": ("fullmatch", {"0" * 8 + "-": ("0", "-", "0-")}),
    "stores.sql:_OURS": ("fullmatch", {"": ("m1", "c1", "c1."), "c": ("1", "1."), "m": ("1",)}),
    "strategies.truncate:_EARLIER": (
        "search",
        {
            "": ("[Context truncated. Earlier conversation contained 1 messages about: ", "[Context truncated. "),
            "[Context truncated. Earlier conversation contained ": ("1",),
        },
    ),
    "summarizers._checks:_CALL_MARK": ("match", {"[Tool: ": ("e",), " ": ("[TOOL_CALL",)}),
    "summarizers._checks:_CALL_TAG": (
        "match",
        {"": ("<tool_call", "<invoke "), "<tool_call": (">", " ", "e"), "```": ("e", " ", "\n<"), "<tool_use>": ("<",)},
    ),
    "summarizers._checks:_FENCED": ("match", {"```\n": ("``` ", "\n```", " ", "\n", "`"), "```": ("e",)}),
    "summarizers._prompt.fencing:_BRACKETS": ("sub", {"": ("[INST", "[ ", "[/"), "[INST": (" ",), "[": (" ",)}),
    "summarizers._prompt.fencing:_LINE_START": (
        "sub",
        {"": ("Human", "Human ", " Human", "[1", "[1] A", "\n[1] "), "[": ("1",), "[1] ": ("A",), "Human": (" ",)},
    ),
    "summarizers._prompt.prompts:_SLOT": ("sub", {"": ("{", "{a", "{a}"), "{": ("a", "_")}),
    "summarizers._remote.answers:_LONE_SURROGATES": ("sub", {"": ("\udfff",)}),
    "summarizers._remote.failures:_CODE": ("fullmatch", {"": ("a_", "_", "A_", "aA"), "a": ("_a",)}),
}
#: Read only as far as a constant number of characters.
BOUNDED = {"summarizers._checks:_REFUSALS": _checks.is_refusal}


def growth_of_text(work: Callable[[str], object], head: str, piece: str, end: str) -> float:
    def of(count: int) -> Callable[[], object]:
        text = head + piece * count + end
        return lambda: work(text)

    return growth(of, SMALL)


def texts(more: dict[str, tuple[str, ...]] | None = None) -> Iterator[tuple[str, str, str]]:
    """The heads, pieces and ends."""
    for head, pieces in ({"": PIECES} | {head: (*pieces, *PIECES) for head, pieces in (more or {}).items()}).items():
        yield from ((head, piece, end) for piece in pieces for end in ENDS)


def assert_linear(work: Callable[[str], object], more: dict[str, tuple[str, ...]] | None = None) -> None:
    for head, piece, end in texts(more):
        assert growth_of_text(work, head, piece, end) < MOST_GROWTH, (head, piece, end)


def test_work_beyond_linear_exceeds_the_limit() -> None:
    assert growth(lambda size: lambda: [sum(range(size)) for _ in range(size)], SMALL) > MOST_GROWTH
    assert growth(lambda size: lambda: sum(range(int(size**1.5))), 10 * SMALL) > MOST_GROWTH


# --- Every expression -----------------------------------------------------------------------------------


def expressions() -> dict[str, Any]:
    """The compiled expressions of the package, by module and name. No other function of `re` is used."""
    found: dict[str, Any] = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        module = ".".join(file.relative_to(PACKAGE).with_suffix("").parts)
        tree = ast.parse(file.read_text("utf-8"))
        compiled = 0
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                assert node.module != "re", file
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "re":
                assert node.attr in ("compile", "Pattern", "Match") or node.attr.isupper(), file
                compiled += node.attr == "compile"
        if compiled:
            held = patterns(importlib.import_module(f"foldline.{module}"))
            if module == "_util.overflow":  # from its table, at the first use
                held |= dict(zip(("_patterns.context", "_patterns.request_size"), overflow._patterns(), strict=True))
                compiled += 1  # one call for both
            assert len(held) == compiled, f"{file}: an expression is not the value of a module or class"
            found |= {f"{module}:{name}": pattern for name, pattern in held.items()}
    return found


def patterns(holder: Any) -> dict[str, re.Pattern[str]]:
    held = {}
    for name, value in vars(holder).items():
        if isinstance(value, re.Pattern):
            held[name] = value
        elif isinstance(value, type) and value.__module__ == holder.__name__:
            inside = {each: known for each, known in vars(value).items() if isinstance(known, re.Pattern)}
            held |= {f"{name}.{each}": known for each, known in inside.items()}
    return held


def test_every_expression_is_listed_here() -> None:
    assert sorted(expressions()) == sorted((*EXPRESSIONS, *BOUNDED))


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_an_expression_is_linear(name: str) -> None:
    how, more = EXPRESSIONS[name]
    pattern = expressions()[name]
    use = getattr(pattern, how)
    assert_linear((lambda text: use("", text)) if how == "sub" else use, more)


@pytest.mark.parametrize("name", BOUNDED)
def test_an_expression_reads_a_bounded_text(name: str) -> None:
    heads = ("I'm sorry, ", "as an AI ", "please share ", "!", "抱歉", "lo siento ")
    assert_linear(BOUNDED[name], dict.fromkeys(heads, ("e", "e ", "!")))


# --- Every reader of a foreign text ---------------------------------------------------------------------


def truncated(text: str) -> object:
    """Drops messages with a summary of an earlier compaction."""
    summary = {"role": "user", "content": f"[Conversation summary: messages 0-1]\n{text}"}
    messages = [summary, {"role": "user", "content": text}, {"role": "assistant", "content": "Done."}] * 2
    return TruncateOldest(fl.KeepMessages(1)).run(messages, StrategyRequest())


def in_a_session_summary(text: str) -> object:
    shape = presets._SessionSummary()
    return shape.messages(f"## Session Summary {text}", StrategyRequest(), None)


READERS: dict[str, tuple[Callable[[str], object], dict[str, tuple[str, ...]]]] = {
    "is_tool_call": (
        _checks.is_tool_call,
        {
            "<tool_call>": ("<", "< ", "<> ", " ", "</"),
            "<tool_call><a>": (" ", "``` "),
            "```\n<tool_use>": (">", "</a> "),
            "```\n": ("``` ",),
            "[": ("{}, ", "[", "1"),
            '{"name": "': ("\\u0041", "\\"),
            "{": ('"a": 1, ',),
        },
    ),
    "is_refusal": (_checks.is_refusal, {"": ("- ",)}),
    "script_of": (
        _checks.script_of,
        {"": ("a(", "http:", "http://", "a.b-", "x(\n", "`a\n", "`` ", "é_"), "```": ("``",)},
    ),
    "usable": (lambda text: _checks.usable(Completion(f"{text}e")), {}),
    "neutralized": (neutralized, {"": ("<|", "[INST", "Human: ", "\u200b")}),
    "escaped": (escaped, {"": ("&", "[INST", "Human ")}),
    "filled": (lambda text: filled(f"{{a}}{text}", {"a": text}), {}),
    "overflow_kind": (overflow_kind, {}),
    "wait_asked_for": (lambda text: wait_asked_for({"retry-after": text}), {"Thu, ": ("1 ", "(", "Jan ", ",", ":")}),
    "of_status": (lambda text: of_status(500, {}, {"error": {"code": text, "message": text}}), {}),
    "TruncateOldest": (
        truncated,
        {"[Context truncated. Earlier conversation contained ": ("1", "1 messages about: ")},
    ),
    "session summary": (in_a_session_summary, {}),
}  # fmt: skip


@pytest.mark.parametrize("name", READERS)
def test_a_reader_of_foreign_text_is_linear(name: str) -> None:
    assert_linear(*READERS[name])


# --- An answer over its room ----------------------------------------------------------------------------


MESSAGES = [{"role": ("user", "assistant")[i % 2], "content": f"Step {i}. " + "word " * 400} for i in range(8)]
ANSWERS = {
    "larger than its room": ("and so on " * 250, "summary_over_limit"),
    "larger than what it replaces": ("and so on " * 5_000, "summary_too_long"),
    "a tool call": ('{"name": "f", "arguments": {"a": "' + "b " * 5_000 + '"}}', "summary_too_long"),
}


class Model:
    """A model that always gives the same answer."""

    def __init__(self, answer: str) -> None:
        self.answer = answer

    def complete(self, messages: Any, *, max_tokens: int, timeout_s: float | None = None) -> Completion:
        del messages, max_tokens, timeout_s
        return Completion(self.answer)


def model(answer: str) -> Any:
    return Model(answer)


def function(answer: str) -> Any:
    return lambda _: answer


@pytest.mark.parametrize("writer", [function, model])
@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_over_its_room_is_refused_before_anything_reads_it(
    name: str, writer: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    answer, code = ANSWERS[name]

    def unread(text: str, *_: object) -> Any:
        raise AssertionError(f"{len(text)} characters were read")

    for module in ("foldline.folding._ask", "foldline.summarizers.prompted"):
        for reader in ("refuse_tool_call", "is_refusal"):
            monkeypatch.setattr(f"{module}.{reader}", unread)
    for module in ("foldline.folding._finish", "foldline.summarizers.prompted"):
        monkeypatch.setattr(f"{module}.other_script", unread)
    seen: list[str] = []

    def redact(text: str) -> str:
        seen.append(text)
        return text

    with pytest.warns(fl.errors.FoldlineWarning, match=code):
        result = fl.compact(MESSAGES, fl.KeepMessages(1), summarizer=writer(answer), summary_tokens=400, redact=redact)
    assert result.error is not None
    assert (result.error.code, result.messages) == (code, MESSAGES)
    assert seen
    assert not any("so on" in text or "arguments" in text for text in seen)
