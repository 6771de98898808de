"""Checks of a model's answer: refusals, tool calls, language.

An answer is a stranger's text: each check takes linear time, and an answer over its room is not read at all.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from foldline._core import TokenCounter, prose
from foldline.errors import SummaryError
from foldline.summarizers.rendering import pieces_of, role_of, units_of
from foldline.typing import Completion, Messages

__all__ = [
    "is_refusal",
    "is_tool_call",
    "is_within",
    "other_script",
    "refuse_tool_call",
    "script_of",
    "talk_of",
    "usable",
]

#: Longest refusal; a longer answer contains a summary.
_MOST_REFUSAL_CHARS = 400
_CANNOT = r"can(?:no|['\u2019 ]?)t|unable|not[ ]able|won['\u2019]?t"
_HELP = (
    r"help|assist|comply|do[ ]that|do[ ]this|summari[sz]e|provide|continue|fulfil|process|access|create|write|engage"
    r"|discuss|share|answer"
)
_REFUSALS: Final = re.compile(
    rf"""\A\W*(?:
    (?:i[ ]?['\u2019 ]?a?m[ ])?(?:very[ ]|so[ ])?(?:sorry|afraid)\b.{{0,40}}?\b(?:{_CANNOT})\b
    | (?:i|we)[ ](?:can(?:not|['\u2019]?t|[ ]not)|won['\u2019]?t|will[ ]not|am[ ](?:unable|not[ ]able)[ ]to)
      [ ](?:{_HELP})
    | i['\u2019]m[ ](?:unable|not[ ]able)[ ]to[ ](?:{_HELP})
    | i[ ]can(?:not|['\u2019]t)\W*\Z
    | as[ ]an?[ ](?:ai|large[ ]language[ ]model|assistant)\b.{{0,80}}?\b(?:{_CANNOT})\b
    | (?:please|could[ ]you)[ ](?:please[ ])?(?:provide|share|paste|send)\b.{{0,40}}?
      \b(?:text|messages?|conversation|transcript|content)\b
    | (?:抱歉|对不起|對不起|很抱歉|非常抱歉).{{0,12}}?(?:无法|無法|不能)
    | 我(?:无法|無法|不能)(?:帮助|幫助|协助|協助|提供|总结|總結|完成|满足|處理|处理)
    | 申し訳(?:ありません|ございません).{{0,40}}?(?:できません|できかねます|お手伝い)
    | 죄송(?:합니다|하지만).{{0,40}}?(?:수[ ]없|어렵)
    | lo[ ]siento\b.{{0,30}}?\bno[ ]puedo\b
    | (?:je[ ]suis[ ])?d[ée]sol[ée]e?\b.{{0,40}}?\bne[ ](?:peux|puis)\b
    | es[ ]tut[ ]mir[ ]leid\b.{{0,40}}?\b(?:kann|darf)\b
    | извините\b.{{0,40}}?\bне[ ]могу\b
    )""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
#: The first tag of a tool call written as text.
_CALL_TAG = re.compile(
    r"""\A\s*(?:```\w*\s*)?
    <(?:\|?tool_calls?(?:_begin|_start)?\|?|(?:antml:)?(?:function_calls?|invoke)|tool_use)\b[^>]*>""",
    re.IGNORECASE | re.VERBOSE,
)
_CALL_MARK = re.compile(r"\A\s*\[(?:TOOL_CALLS?|Tool: \w+\()", re.IGNORECASE)
_FENCED = re.compile(r"\A\s*```\w*\n(.*?)\n?```\s*\Z", re.DOTALL)

#: Scripts by the first word of their letters' Unicode names; scripts used together in one text share a name.
_SCRIPTS: Final = {
    "CJK": "Han",
    "HIRAGANA": "Kana",
    "KATAKANA": "Kana",
    "HANGUL": "Hangul",
    "LATIN": "Latin",
    "CYRILLIC": "Cyrillic",
    "GREEK": "Greek",
    "ARABIC": "Arabic",
    "HEBREW": "Hebrew",
    "DEVANAGARI": "Devanagari",
    "BENGALI": "Bengali",
    "TAMIL": "Tamil",
    "TELUGU": "Telugu",
    "THAI": "Thai",
    "GEORGIAN": "Georgian",
    "ARMENIAN": "Armenian",
}
#: Weights of characters that carry as much as several letters of an alphabet.
_WEIGHTS: Final = {"Han": 3, "Kana": 2, "Hangul": 2}
#: Least share of another script to count: code, names and paths are Latin in every text.
_SHARE_OF_OTHER = 0.30
_LEAST_LETTERS = 40
#: Sample size in characters: of the conversation, and of one message.
_LOOKED_AT_CHARS, _LOOKED_AT_OF_ONE = 40_000, 1_000


def usable(completion: object) -> Completion:
    """Returns a completion that is complete and contains text.

    Raises:
        SummaryError: It is not text (``not_a_text``), empty (``empty_summary``), or cut off (``incomplete_summary``).
    """
    if not isinstance(completion, Completion) or not isinstance(getattr(completion, "text", None), str):
        raise SummaryError("the summarizer returned no text", code="not_a_text")
    if not completion.text.strip():
        raise SummaryError("the summary is empty", code="empty_summary")
    if completion.finish_reason != "stop":
        raise SummaryError("the summary is incomplete", code="incomplete_summary")
    return completion


def is_within(text: str, max_tokens: int, count: Callable[[str], int]) -> bool:
    """Whether a text has at most so many tokens. The core's counters stop as soon as it has more."""
    counter = getattr(count, "__self__", None)
    return counter.fits(text, max_tokens) if isinstance(counter, TokenCounter) else count(text) <= max_tokens


def refuse_tool_call(text: str) -> None:
    """Refuses an answer that is only a tool call.

    Raises:
        SummaryError: It is one (``tool_call``).
    """
    if is_tool_call(text):
        raise SummaryError("the summary is a tool call", code="tool_call")


def is_refusal(text: str) -> bool:
    r"""Whether an answer is only a refusal: short and without headings. A summary that mentions one does not count.

    Examples:
        >>> is_refusal("I'm sorry, but I can't help with that."), is_refusal("抱歉,我无法总结这段对话。")
        (True, True)
        >>> is_refusal("## Goal\nThe user asked for the key; the agent refused: I cannot help with that.")
        False
    """
    text = text.strip()
    if len(text) > _MOST_REFUSAL_CHARS or any(
        line.lstrip().startswith(("#", "- ", "* ", "1.")) for line in text.split("\n")
    ):
        return False
    return _REFUSALS.match(text) is not None


def is_tool_call(text: str) -> bool:
    """Whether an answer is only a tool call, written as text by a model without tools.

    Examples:
        >>> is_tool_call('{"name": "read_file", "arguments": {"path": "a.py"}}'), is_tool_call("It called read_file().")
        (True, False)
    """
    if _CALL_MARK.match(text) or _is_tagged_call(text):
        return True
    fenced = _FENCED.match(text)
    body = (fenced[1] if fenced else text).strip()
    if not body.startswith(("{", "[")):
        return False
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return False
    calls = value if isinstance(value, list) else [value]
    return bool(calls) and all(isinstance(call, dict) and _is_call(call) for call in calls)


def _is_tagged_call(text: str) -> bool:
    """Whether a text begins with the tag of a call and ends with a tag."""
    first = _CALL_TAG.match(text)
    if first is None:
        return False
    end = text.rstrip().removesuffix("```").rstrip()
    if not end.endswith(">"):
        return False
    return end.rfind("<", first.end()) > end.rfind(">", first.end(), len(end) - 1)


def _is_call(call: dict[str, object]) -> bool:
    if isinstance(call.get("function"), dict) or "tool_calls" in call:
        return True
    has_name = any(isinstance(call.get(key), str) for key in ("name", "tool", "tool_name", "recipient_name"))
    return has_name and any(key in call for key in ("arguments", "args", "parameters", "input"))


def talk_of(messages: Messages, indices: Sequence[int]) -> str:
    """A sample of what users and models wrote in some messages, without results and calls."""
    texts, left = [], _LOOKED_AT_CHARS
    for index in indices:
        for unit in units_of(messages[index]):
            if left <= 0:
                break
            if role_of(unit) not in ("USER", "ASSISTANT"):
                continue
            said = "\n".join(piece.text for piece in pieces_of(unit) if piece.kind == "text")[:_LOOKED_AT_OF_ONE]
            texts.append(said)
            left -= len(said)
    return "\n".join(texts)


def script_of(text: str) -> str | None:
    """The main script of a text, without code; None if it has too few letters.

    Technical text contains Latin letters in every language, so another script wins from `_SHARE_OF_OTHER` on.

    Examples:
        >>> (
        ...     script_of("请把 parser.py 里的函数改名,并运行测试。" * 4),
        ...     script_of("Please rename the function in the parser and run all of the tests."),
        ... )
        ('Han', 'Latin')
    """
    weights: Counter[str] = Counter()
    for letter, times in Counter(prose(text)).items():
        if letter.isalpha():
            script = _SCRIPTS.get(unicodedata.name(letter, "").partition(" ")[0].partition("-")[0], "other")
            weights[script] += times * _WEIGHTS.get(script, 1)
    total = sum(weights.values())
    if total < _LEAST_LETTERS:
        return None
    others = {script: weight for script, weight in weights.items() if script != "Latin"}
    if sum(others.values()) < _SHARE_OF_OTHER * total:
        return "Latin"
    # Japanese mixes Han and Kana.
    return "Kana" if others.get("Kana", 0) > 0.1 * total else max(sorted(others), key=others.__getitem__)


def other_script(summary: str, talk: str) -> bool:
    """Whether a summary is in another script than the conversation; false if either is unclear."""
    told, said = script_of(summary), script_of(talk)
    return told is not None and said is not None and told != said
