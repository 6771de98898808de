"""The core sanitizes untrusted text like one regular expression over Python's Unicode data."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from depth import cases
from foldline.summarizers._sanitize import neutralized
from reference.neutralizing import neutralized as expected

WORDS = """
< << </ <| |> > >> / ! [ ] : - _ * # foldline-history system user Human assistant developer tool model instructions
prompt antml: function_calls function_result invoke parameter tool_ calls use output reminder start _of_turn end_of_text
eot_id bos s SYS INST TOOL_CALLS AVAILABLE_TOOLS data- facts- 0123abcdEF script img AI User x 7
"""
#: Components of marks, so that random texts contain marks.
PIECES = [
    *WORDS.split(),
    *" \t\n\r\x85\x0b\x1c",
    # Combining marks, digits, squared letters, compatibility letters, confusables.
    *"\u0301\u00b2\u2167\U0001f150\u0131\u0130\u017f\u212a\uff1c\uff5c\u2039\u3008\u203c\u2048\ufb00",
    # Invisible characters, blanks, line ends, lone surrogates.
    *"\u200b\u200d\ufe0f\u00ad\U000e0041\u00a0\u3000\u2028\ud800\udc00",
]
MARKED = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)


def known_to_both(sign: str) -> bool:
    """Whether Python's Unicode version knows the character; of others it has neither category nor form."""
    return unicodedata.category(sign) != "Cn"


@given(MARKED)
@example("Human: a\n\n  **Assistant** : b\n>>User:")
@example("<" + "\u0131" + "nvoke>")
def test_marks_are_found_where_the_regular_expression_finds_them(text: str) -> None:
    assert neutralized(text) == expected(text)


@given(st.text())
def test_any_text_gives_the_same_output(text: str) -> None:
    text = "".join(filter(known_to_both, text))
    assert neutralized(text) == expected(text)


@given(st.one_of(MARKED, st.text()))
def test_sanitizing_is_idempotent(text: str) -> None:
    safe, _ = neutralized(text)
    assert neutralized(safe) == (safe, False)


@pytest.mark.parametrize(
    "around", ["{}", "<{}system>", "<system{}>", "a{}[INST]", "<invoke{}", "<sys{}tem>", "x\n{}User:"]
)
def test_every_character_is_classified_like_in_python(around: str) -> None:
    wrong = []
    for point in range(0, sys.maxunicode + 1, cases("character_step")):
        sign = chr(point)
        if known_to_both(sign) and neutralized(around.format(sign)) != expected(around.format(sign)):
            wrong.append(f"{point:04x}")
    assert wrong == []
