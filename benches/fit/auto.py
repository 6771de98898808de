"""Fits and judges the estimator `auto`.

    python benches/fit/auto.py fit SHARED/data      # writes build/auto_weights.txt; rebuild after it
    python benches/fit/auto.py report SHARED/data   # the error table, by the built foldline

Needs numpy, tiktoken (with its vocabularies: scripts/tiktoken_cache.py) and django (its translations); `report` needs
foldline too. Both are deterministic.

**The model.** Each character costs the average of its neighbourhood: a weight is the mean number of
o200k tokens that begin at a character of this class, after a character of that class, in that state of the text. It
is a ratio of two sums, so nothing is optimised and no weight is negative: the estimate of a text never decreases when
text is appended. For an ASCII character the neighbourhood is the class before it, the group of the one before
that, and a regime: `foreign` (an accented Latin letter within the 31 characters before), else `mixed` (at least 3 of
the last 16 characters changed from letter to digit or back, or from lower to upper case: hex, base64, ids), else
`plain`. For all others it is the class before, and whether the one before that was ASCII. Rare neighbourhoods are
smoothed by their common parts (additively).

**The columns.** Per kind: median, 90th and 99th percentile of the relative error of a text, its least signed value (1st
percentile: how far it under-counts), and the error of the sum over all texts.
"""

from __future__ import annotations

import argparse
import datetime as dt
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from corpus import Sample, corpus

TABLE = Path(__file__).resolve().parents[2] / "build" / "auto_weights.txt"

# Texts typical of real requests weigh more than scripts and numbers alone.
EMPHASIS = {"prose": 4.0, "code": 3.0, "tool output": 3.0, "json arguments": 3.0, "chinese": 2.0, "json documents": 1.5}
#: A kind with fewer characters than this is not scaled up to the weight of a large one.
ENOUGH_CHARS = 200_000
SMOOTHING = 20.0
#: Texts with fewer tokens than this are not judged: one token would dominate the error.
FEWEST_TOKENS = 16

# ASCII classes from 1 on; 0 is the start of the text. A byte in none of them has the class of "*".
LOWER = [*"abcdefghilmnoprstu", "kvwy", "jqxz"]
UPPER = ["AEIOU", "BCDFGHKLMNPRST", "JQVWXYZ"]
SIGNS = ["_", ".", ",", "-", "/", '"', "'", "()", "[]{}", "<>", "=", ":;", "*#~^|+&%$@!?`\\"]
ASCII_CLASSES = [*LOWER, *UPPER, *SIGNS, "0123456789", "\t", "\n\r", " "]
# Groups of the character two before: punctuation and spaces, vowels, other lower-case letters, all others.
GROUPS = 4

# Classes beyond ASCII, as ranges of code points; in overlaps the later line wins. The first is the rest.
WIDE_CLASSES: list[tuple[str, list[tuple[int, int]]]] = [
    ("other", []),
    ("accented Latin letters", [(0xC0, 0x250), (0x1E00, 0x1F00)]),
    ("Latin-1 signs", [(0x80, 0xC0), (0xD7, 0xD8), (0xF7, 0xF8)]),
    ("combining marks", [(0x300, 0x370)]),
    ("Greek", [(0x370, 0x400), (0x1F00, 0x2000)]),
    ("Cyrillic, rarer", [(0x400, 0x410), (0x450, 0x530)]),
    ("Cyrillic", [(0x410, 0x450)]),
    ("Armenian", [(0x530, 0x590)]),
    ("Georgian", [(0x10A0, 0x1100)]),
    ("Hebrew", [(0x590, 0x600)]),
    ("Arabic, rarer", [(0x64B, 0x700), (0x750, 0x780), (0xFB50, 0xFE00)]),
    ("Arabic", [(0x600, 0x64B)]),
    ("Devanagari", [(0x900, 0x980)]),
    ("other Indic scripts", [(0x980, 0xE00)]),
    ("Thai", [(0xE00, 0xE80)]),
    ("scripts of South East Asia", [(0xE80, 0x10A0), (0x1780, 0x1800)]),
    ("dashes, quotes, dots", [(0x2010, 0x2070)]),
    ("joiners, variation selectors", [(0x200B, 0x2010), (0xFE0F, 0xFE10)]),
    ("signs and arrows", [(0x2070, 0x2500), (0x2580, 0x2E80)]),
    ("box drawing", [(0x2500, 0x2580)]),
    ("CJK punctuation", [(0x3000, 0x3040), (0xFF00, 0xFF61)]),
    ("Hiragana", [(0x3040, 0x30A0)]),
    ("Katakana", [(0x30A0, 0x3100), (0x31F0, 0x3200), (0xFF61, 0xFFA0)]),
    ("Han", [(0x4E00, 0xA000)]),
    ("Han, rarer", [(0x2E80, 0x3000), (0x3400, 0x4E00), (0xF900, 0xFB00), (0x20000, 0x32400)]),
    ("Hangul", [(0xAC00, 0xD7B0), (0x1100, 0x1200), (0x3130, 0x3190)]),
    ("emoji", [(0x1F000, 0x20000)]),
    ("skin tones, flags", [(0x1F1E6, 0x1F200), (0x1F3FB, 0x1F400)]),
]

ASCII = 1 + len(ASCII_CLASSES) + 2  # the start, the ASCII classes, and two for non-ASCII characters
ACCENTED, WIDE = ASCII - 2, ASCII - 1
WIDES = len(WIDE_CLASSES)
#: The possible predecessors of a non-ASCII character: start or another ASCII character, a space, or its own class.
BEFORE_WIDE = 2 + WIDES
ACCENTED_CLASS = 1

Floats = np.ndarray[Any, np.dtype[np.float64]]
Ints = np.ndarray[Any, np.dtype[np.int64]]


def ascii_tables() -> tuple[Ints, Ints, Ints]:
    """Class, group and kind (0 none, 1 digit, 2 lower, 4 upper case) of every ASCII byte."""
    classes = np.zeros(128, np.int64)
    for number, members in enumerate(ASCII_CLASSES, 1):
        classes[[ord(member) for member in members]] = number
    classes[classes == 0] = classes[ord("*")]
    groups, kinds = np.zeros(128, np.int64), np.zeros(128, np.int64)
    for byte in range(128):
        char = chr(byte)
        if char.islower():
            groups[byte], kinds[byte] = (1 if char in "aeiou" else 2), 2
        elif char.isalnum():
            groups[byte], kinds[byte] = 3, (1 if char.isdigit() else 4)
    return classes, groups, kinds


def wide_table() -> Ints:
    """Class of every code point."""
    classes = np.zeros(0x110000, np.int64)
    for number, (_, ranges) in enumerate(WIDE_CLASSES):
        for start, end in ranges:
            classes[start:end] = number
    return classes


CLASSES, GROUP_OF, KINDS = ascii_tables()
WIDE_OF = wide_table()


def cells(points: Ints) -> tuple[Ints, Ints]:
    """The cell of each character in the table, and whether it is in the table of ASCII characters."""
    is_ascii = points < 0x80
    low = np.where(is_ascii, points, 0)
    wide = WIDE_OF[points]
    accented = ~is_ascii & (wide == ACCENTED_CLASS)
    seen = np.where(is_ascii, CLASSES[low], np.where(accented, ACCENTED, WIDE))
    group = np.where(is_ascii, GROUP_OF[low], 3)
    kind = np.where(is_ascii, KINDS[low], 0)
    before, before2, kind_before = _shifted(seen, 1), _shifted(group, 2), _shifted(kind, 1)
    change = (
        ((kind_before == 1) & (kind >= 2)) | ((kind_before >= 2) & (kind == 1)) | ((kind_before == 2) & (kind == 4))
    )
    mixed = _in_last(change, 16) >= 3
    foreign = _in_last(accented, 32) > 0
    regime = np.where(foreign, 2, np.where(mixed, 1, 0))
    ascii_cell = ((regime * GROUPS + before2) * ASCII + before) * ASCII + seen
    wide_before = np.where(is_ascii, np.where(points == 0x20, 1, 0), 2 + wide)
    wide_before2 = _shifted((~is_ascii).astype(np.int64), 2)
    wide_cell = (wide_before2 * BEFORE_WIDE + _shifted(wide_before, 1)) * WIDES + wide
    return np.where(is_ascii, ascii_cell, wide_cell), is_ascii.astype(np.int64)


def _shifted(values: Ints, by: int) -> Ints:
    return np.concatenate([np.zeros(min(by, len(values)), values.dtype), values[:-by]])


def _in_last(marks: Any, window: int) -> Ints:
    """The number of marked characters among the last `window`, this one included."""
    sums = np.concatenate([[0], np.cumsum(marks)])
    at = np.arange(len(marks))
    return np.asarray(sums[at + 1] - sums[np.maximum(at + 1 - window, 0)])


def code_points(text: str) -> Ints:
    """The characters of a text."""
    return np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32).astype(np.int64)


def token_starts() -> Callable[[str], Ints]:
    """A function that returns the number of tokens that begin within each character."""
    import tiktoken

    encoding = tiktoken.get_encoding("o200k_base")
    lengths = np.array([len(encoding.decode_single_token_bytes(i)) for i in range(199_998)], dtype=np.int64)

    def starts(text: str) -> Ints:
        ids = encoding.encode_ordinary(text)
        points = code_points(text)
        char_ends = np.cumsum(1 + (points >= 0x80) + (points >= 0x800) + (points >= 0x10000))
        token_begins = np.cumsum(lengths[ids]) - lengths[ids]
        return np.bincount(np.searchsorted(char_ends, token_begins, side="right"), minlength=len(points))

    return starts


def fit(samples: list[Sample]) -> tuple[Ints, Ints]:
    """The two tables of weights, in 1/256 tokens."""
    starts = token_starts()
    fitted = [sample for sample in samples if not sample.held_out]
    chars: dict[str, int] = {}
    for sample in fitted:
        chars[sample.kind] = chars.get(sample.kind, 0) + len(sample.text)
    sizes = [3 * GROUPS * ASCII * ASCII, 2 * BEFORE_WIDE * WIDES]
    begun, seen = [np.zeros(size) for size in sizes], [np.zeros(size) for size in sizes]
    for sample in fitted:
        weight = EMPHASIS.get(sample.kind, 1.0) * 1e6 / max(chars[sample.kind], ENOUGH_CHARS)
        cell, is_ascii = cells(code_points(sample.text))
        counts = starts(sample.text)
        for table, size in enumerate(sizes):
            of = is_ascii == 1 - table
            begun[table] += np.bincount(cell[of], counts[of] * weight, minlength=size)
            seen[table] += np.bincount(cell[of], np.full(of.sum(), weight), minlength=size)
    ascii_weights = _smoothed(begun[0], seen[0], (3, GROUPS, ASCII, ASCII), lean=(1, 0))
    wide_weights = _smoothed(begun[1], seen[1], (2, BEFORE_WIDE, WIDES), lean=(0,))
    return (
        np.minimum(np.rint(ascii_weights * 256), 255).astype(np.int64),
        np.minimum(np.rint(wide_weights * 256), 4 * 256).astype(np.int64),
    )


def _smoothed(begun: Floats, seen: Floats, shape: tuple[int, ...], lean: tuple[int, ...]) -> Floats:
    """Ratios smoothed by those without the axes of `lean`, in order, and finally by those of the class."""
    begun, seen = begun.reshape(shape), seen.reshape(shape)
    levels = [(begun, seen)]
    for axis in lean:
        levels.append(tuple(part.sum(axis, keepdims=True) for part in levels[-1]))
    class_axes = tuple(range(len(shape) - 1))
    mean = (begun.sum(class_axes, keepdims=True) + 1) / (seen.sum(class_axes, keepdims=True) + 2)
    for tokens, characters in reversed(levels):
        mean = (tokens + SMOOTHING * mean) / (characters + SMOOTHING)
    return np.asarray(mean).reshape(-1)


def estimator(ascii_weights: Ints, wide_weights: Ints) -> Callable[[str], int]:
    """The Rust code's use of the tables."""

    def estimate(text: str) -> int:
        cell, is_ascii = cells(code_points(text))
        total = ascii_weights[cell[is_ascii == 1]].sum() + wide_weights[cell[is_ascii == 0]].sum()
        return max(1, (int(total) + 128) >> 8)

    return estimate


def judge(
    samples: list[Sample], exact: Callable[[str], int], estimates: dict[str, Callable[[str], int]]
) -> dict[str, Floats]:
    """Prints the errors by kind on held-out texts; returns all relative errors of each estimator."""
    print(f"relative error of a text against o200k_base, held-out texts of {FEWEST_TOKENS} tokens or more")
    columns = "".join(f"{name:>10}: median    p90    p99  least    sum" for name in estimates)
    print(f"{'kind':24}{'texts':>6}  {columns}")
    errors: dict[str, dict[str, Floats]] = {name: {} for name in estimates}
    by_kind: dict[str, list[str]] = {}
    for sample in samples:
        if sample.held_out:
            by_kind.setdefault(sample.kind, []).append(sample.text)
    totals: dict[str, list[int]] = {}
    for kind, texts in by_kind.items():
        tokens = np.array([exact(text) for text in texts])
        texts = [text for text, count in zip(texts, tokens) if count >= FEWEST_TOKENS]
        tokens = tokens[tokens >= FEWEST_TOKENS]
        line = f"{kind:24}{len(texts):6}  "
        for name, estimate in estimates.items():
            guessed = np.array([estimate(text) for text in texts])
            errors[name][kind] = signed = (guessed - tokens) / tokens
            totals.setdefault(name, []).append(guessed.sum())
            line += _row(signed, guessed.sum() / tokens.sum() - 1)
        print(line)
    every = {name: np.concatenate(list(of.values())) for name, of in errors.items()}
    print(f"{'all texts':24}{len(every['auto']):6}  " + "".join(_row(signed, None) for signed in every.values()))
    return every


def speed(samples: list[Sample], kind: str, estimate: Callable[[str], int]) -> float:
    """MB/s on a text of 1 MB of that kind."""
    text = "\n".join(sample.text for sample in samples if sample.kind == kind)
    if kind != "chinese":
        text = text.encode("ascii", "ignore").decode()
    size = len(text.encode()) / len(text)
    text = (text * int(1e6 / len(text) / size + 1))[: int(1e6 / size)]
    times = []
    for _ in range(9):
        start = time.perf_counter()
        estimate(text)
        times.append(time.perf_counter() - start)
    return len(text.encode()) / 1e6 / min(times)


def _row(signed: Floats, total: float | None) -> str:
    median, p90, p99 = np.quantile(np.abs(signed), [0.5, 0.9, 0.99])
    sums = "" if total is None else f"{total:+7.1%}"
    return f"{'':12}{median:6.1%} {p90:6.1%} {p99:6.1%} {np.quantile(signed, 0.01):+6.0%}{sums:>7}"


def write(ascii_weights: Ints, wide_weights: Ints, error_bound: float, data: str) -> None:
    """Writes the table: comment paragraphs, a name with its type, and numbers."""
    entries = [CLASSES[byte] | GROUP_OF[byte] << 8 | KINDS[byte] << 16 for byte in range(128)]
    ranges, start = [], 0x80
    for end in [*(np.flatnonzero(np.diff(WIDE_OF)) + 1), 0x110000]:
        if end > start:  # the last ASCII class ends at 0x80
            ranges.append((f"{end:#x}", int(WIDE_OF[start])))
            start = end
    names = "\n".join(f"#   {number:2} {name}" for number, (name, _) in enumerate(WIDE_CLASSES))
    groups = "\n".join(f"#   {number:2} {members!r}" for number, members in enumerate(ASCII_CLASSES, 1))
    data = data.replace("\n", "\n# ")
    TABLE.write_text(
        f"""\
# Written by benches/fit/auto.py on {dt.datetime.now(tz=dt.UTC):%Y-%m-%d}; do not edit. build/auto.rs makes Rust of it.
# Fitted to o200k_base on {data}.
# ASCII classes, 0 being the beginning of the text and {ACCENTED}, {WIDE} accented letters and all else beyond ASCII:
{groups}
# Classes beyond ASCII:
{names}

# 90th percentile of the relative error of a text, on texts that were not fitted
ERROR_BOUND f64
{error_bound:.3f}

# Number of classes of what stands at and before an ASCII character
ASCII usize
{ASCII}

# The class of an accented Latin letter before an ASCII character
ACCENTED usize
{ACCENTED}

# The class of any other character beyond ASCII before an ASCII character
WIDE usize
{WIDE}

# Number of classes beyond ASCII
WIDES usize
{WIDES}

# The class of accented Latin letters among those
ACCENTED_CLASS usize
{ACCENTED_CLASS}

# Class | group << 8 | kind (1 digit, 2 lower, 4 upper case) << 16 of ASCII bytes
ASCII_CLASSES [u32]
{_wrapped(entries)}

# Where ranges of code points end, ascending from 0x80
RANGE_ENDS [u32]
{_wrapped([end for end, _ in ranges])}

# Their classes
RANGE_CLASSES [u8]
{_wrapped([number for _, number in ranges])}

# By regime, group two before, class before, class: 1/256 tokens
ASCII_WEIGHTS [u8]
{_rows(ascii_weights, ASCII)}

# By whether two before was beyond ASCII, class before (other, space, then as the class), class: 1/256 tokens
WIDE_WEIGHTS [u16]
{_rows(wide_weights, WIDES)}
"""
    )


def _wrapped(values: list[Any]) -> str:
    return textwrap.fill(" ".join(map(str, values)), 110)


def _rows(weights: Ints, width: int) -> str:
    """One line for each preceding class."""
    return "\n".join(" ".join(map(str, row)) for row in weights.reshape(-1, width))


def main() -> int:
    """Fit or report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["fit", "report"])
    parser.add_argument("shared", type=Path, help="the folder with the shared transcripts")
    arguments = parser.parse_args()
    samples = corpus(arguments.shared)
    chars4 = lambda text: -(-len(text) // 4)  # noqa: E731
    if arguments.what == "fit":
        tables = fit(samples)
        starts = token_starts()
        every = judge(samples, lambda text: int(starts(text).sum()), {"auto": estimator(*tables), "chars/4": chars4})
        fitted = [sample for sample in samples if not sample.held_out]
        kinds = ", ".join(sorted({sample.kind for sample in samples}))
        data = textwrap.fill(f"{len(fitted)} texts, {sum(len(s.text) for s in fitted)} characters: {kinds}", 84)
        write(*tables, float(np.quantile(np.abs(every["auto"]), 0.9)), data)
    else:
        import foldline as fl

        auto, exact = fl.TokenCounter("auto"), fl.TokenCounter("o200k_base")
        judge(samples, exact.count, {"auto": auto.count, "chars/4": fl.TokenCounter("chars/4").count})
        speeds = [f"{kind} {speed(samples, kind, auto.count):.0f}" for kind in ("prose", "code", "hex", "chinese")]
        print("MB/s, texts of 1 MB, best of 9: " + ", ".join(speeds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
