"""Tokenizer files in the engine: small tokenizers that the test trains, against the package `tokenizers`."""

from __future__ import annotations

import json
import os
import re
import sys
import unicodedata
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

import foldline as fl
from foldline.errors import ConfigError
from unit.small_tokenizers import CORPUS, DEEPSEEK, PATTERNS, digits, reference, save, split, texts, train

tokenizers = pytest.importorskip("tokenizers")


def check(path: Path, more: Iterable[str] = ()) -> None:
    counter, count = fl.TokenCounter(str(path)), reference(path)
    assert counter.kind == "exact"
    wrong = {text: (counter.count(text), count(text)) for text in [*texts(), *more]}
    assert {text: pair for text, pair in wrong.items() if pair[0] != pair[1]} == {}


@pytest.mark.parametrize("name", PATTERNS)
def test_every_split_pattern_counts_like_the_package(name: str, tmp_path: Path) -> None:
    check(save(train(split(PATTERNS[name])), tmp_path))


def test_the_three_patterns_of_deepseek_count_like_the_package(tmp_path: Path) -> None:
    check(save(train(split(*DEEPSEEK)), tmp_path))


def test_what_is_removed_around_the_matches_is_nothing(tmp_path: Path) -> None:
    check(save(train(split(PATTERNS["llama3"], behavior="removed", invert=True)), tmp_path))


@pytest.mark.parametrize("prefix", [False, True])
def test_the_byte_level_pattern_and_its_prefix_space(prefix: bool, tmp_path: Path) -> None:
    check(save(train(tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=prefix)), tmp_path))


@pytest.mark.parametrize("individual", [True, False])
def test_numbers_are_cut_before_the_pattern(individual: bool, tmp_path: Path) -> None:
    numbers = [chr(point) for point in range(sys.maxunicode + 1) if unicodedata.category(chr(point))[0] == "N"]
    more = ["a  12 b", "  1", "1  ", "x1\n\n2y", " 12's", *(f"a {number}{number}b" for number in numbers)]
    check(save(train(digits(individual=individual)), tmp_path), more)


def test_nfc_before_the_split(tmp_path: Path) -> None:
    made = train(split(PATTERNS["qwen2"]), normalizer=tokenizers.normalizers.NFC())
    check(save(made, tmp_path), ["e\u0301" * 50, "a\u0323\u0307", "\u1112\u1161\u11ab", "\u0344", "\u2126"])


def test_every_code_point_is_normalized_as_the_package_does(tmp_path: Path) -> None:
    """Its tables are older than Python's."""
    made = train(split(PATTERNS["qwen2"]), normalizer=tokenizers.normalizers.NFC())
    path = save(made, tmp_path)
    counter, count = fl.TokenCounter(str(path)), reference(path)
    points = [c for c in range(0x80, 0x1F000) if not 0xD800 <= c < 0xE000 and not 0x3400 <= c < 0xA000]
    lines = ["".join(f"e{chr(c)}\u0316\u0301 " for c in points[at : at + 64]) for at in range(0, len(points), 64)]
    assert [counter.count(line) for line in lines] == [count(line) for line in lines]


@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("sides", [{}, {"lstrip": True}, {"rstrip": True}, {"single_word": True}])
def test_added_tokens_match_as_in_the_package(normalized: bool, sides: dict[str, bool], tmp_path: Path) -> None:
    made = train(split(PATTERNS["qwen2"]), normalizer=tokenizers.normalizers.NFC())
    contents = ["<think>", "</think>", "  ", "    ", "word", "é"]
    made.add_tokens([tokenizers.AddedToken(text, normalized=normalized, **sides) for text in contents])
    runs = [" " * 300, f"a{' ' * 99}<think>{' ' * 98}b", "\u2003" * 40 + "word" + "\t \n" * 30]
    more = ["word words sword _word word_ wordé", " <think>  <think>\n\n x", "a<think", "e\u0301", *runs]
    check(save(made, tmp_path), more)


@pytest.mark.parametrize(
    ("added", "named"),
    [
        ([("  ", {"lstrip": True, "rstrip": True})], "on both sides"),
        ([("x" * 513, {})], "more than 512 bytes"),
        ([("x", {}), ("x", {"special": True})], "there twice"),
    ],
    ids=["white space that takes white space", "a long one", "one twice"],
)
def test_added_tokens_that_are_not_understood_are_refused(
    added: list[tuple[str, dict[str, bool]]], named: str, tmp_path: Path
) -> None:
    made = json.loads(train(split(PATTERNS["qwen2"])).to_str())
    last = max(made["model"]["vocab"].values())
    plain = {"lstrip": False, "rstrip": False, "single_word": False, "normalized": False, "special": False}
    made["added_tokens"] = [
        plain | {"id": last + 1 + i, "content": content} | flags for i, (content, flags) in enumerate(added)
    ]
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(made))
    with pytest.raises(ConfigError, match=named) as caught:
        fl.TokenCounter(path)
    assert caught.value.code == "unsupported_tokenizer"


def test_special_tokens_are_plain_text_and_hide_what_overlaps_them(tmp_path: Path) -> None:
    made = train(split(PATTERNS["llama3"]), special=("<s>", "<|end|>"))
    made.add_tokens(["s>x", "|>"])
    check(save(made, tmp_path), ["<s>x", "<|end|>", "s>x|>", "<<s>x>"])


def test_ignore_merges_takes_whole_pieces(tmp_path: Path) -> None:
    def edit(content: dict[str, Any]) -> None:
        content["model"]["ignore_merges"] = True
        # A token that no merge makes.
        vocab = content["model"]["vocab"]
        last = max(vocab.values())
        vocab |= {"zzz": last + 100}

    path = save(train(split(PATTERNS["llama3"])), tmp_path, edit)
    check(path, ["zzz", "azzz", " zzz", "zzz zzz"])


def test_several_merges_for_one_token(tmp_path: Path) -> None:
    """As converters write them: all splits of a token into two tokens, in the order of the tokens."""

    def edit(content: dict[str, Any]) -> None:
        vocab, merges = content["model"]["vocab"], content["model"]["merges"]
        tokens = [left + right for left, right in merges]
        known = {token for token in vocab if len(token) == 1}
        merges.clear()
        for token in tokens:
            merges += [[token[:at], token[at:]] for at in range(1, len(token)) if {token[:at], token[at:]} <= known]
            known.add(token)

    check(save(train(split(PATTERNS["llama3"])), tmp_path, edit))


def test_merges_of_a_space_are_read_in_both_forms(tmp_path: Path) -> None:
    def edit(content: dict[str, Any]) -> None:
        content["model"]["merges"] = [" ".join(merge) for merge in content["model"]["merges"]]

    check(save(train(split(PATTERNS["gpt2"])), tmp_path, edit))


def with_byte_fallback(content: dict[str, Any]) -> None:
    model = content["model"]
    for byte in range(256):
        model["vocab"].setdefault(f"<0x{byte:02X}>", 10_000 + byte)
    model["byte_fallback"] = True
    order = {token: at for at, token in enumerate(model["vocab"])}
    model["vocab"] = order


def on_characters(prefix: str, *, cuts_spaces: bool = False) -> Any:
    """A model whose text is one piece, or one for each space."""
    pre, normalizers = tokenizers.pre_tokenizers, tokenizers.normalizers
    made = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token="<unk>", fuse_unk=True))
    replace = normalizers.Replace(" ", "▁")
    if prefix == "replace":
        made.normalizer = replace
        made.pre_tokenizer = pre.Split(" ", "merged_with_previous")
    elif prefix == "prepend":
        made.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), replace])
    else:
        made.pre_tokenizer = pre.Metaspace(replacement="▁", prepend_scheme=prefix, split=cuts_spaces)
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=600, special_tokens=["<unk>"], show_progress=False)
    words = [word for text in CORPUS for word in text.replace(" ", " ▁").split(" ")]
    words += ["▁▁"] * 99 + ["▁▁▁▁"] * 99 + ["a▁b"] * 99
    trained = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token="<unk>"))
    trained.train_from_iterator([word for word in words if word], trainer)
    saved = json.loads(trained.to_str())["model"]
    merges = [tuple(merge) for merge in saved["merges"]]
    made.model = tokenizers.models.BPE(saved["vocab"], merges, unk_token="<unk>", fuse_unk=True)
    return made


SPACED = ["<think>x<think>", "<think>", " <think> a", "▁ ▁", "\u4e2d\u9999", "a b", "a▁b", "a  b   ", " " * 20]


@pytest.mark.parametrize("cuts_spaces", [False, True])
@pytest.mark.parametrize("prefix", ["replace", "prepend", "never", "always", "first"])
def test_models_on_characters_fall_back_to_bytes(prefix: str, cuts_spaces: bool, tmp_path: Path) -> None:
    """Unknown characters are their bytes."""
    made = on_characters(prefix, cuts_spaces=cuts_spaces)
    made.add_tokens([tokenizers.AddedToken("<think>", normalized=False)])
    check(save(made, tmp_path, with_byte_fallback), SPACED)


def test_metaspace_without_a_scheme_puts_a_space_before_the_text(tmp_path: Path) -> None:
    def without_scheme(content: dict[str, Any]) -> None:
        with_byte_fallback(content)
        content["pre_tokenizer"] = {"type": "Metaspace", "replacement": "▁", "add_prefix_space": True}

    check(save(on_characters("always", cuts_spaces=True), tmp_path, without_scheme), SPACED)


REPLACE = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
PREPEND = {"type": "Prepend", "prepend": "▁"}


@pytest.mark.parametrize(
    ("made", "part", "value", "named"),
    [
        ("prepend", "normalizer", {"type": "Sequence", "normalizers": [PREPEND, PREPEND, REPLACE]}, "Prepend"),
        (
            "replace",
            "pre_tokenizer",
            {"type": "Split", "pattern": {"String": " "}, "behavior": "Removed", "invert": True},
            "Split",
        ),
    ],
    ids=["two spaces before the text", "a split that drops the text"],
)
def test_steps_on_characters_that_are_not_understood_are_refused(
    made: str, part: str, value: dict[str, Any], named: str, tmp_path: Path
) -> None:
    def edit(content: dict[str, Any]) -> None:
        with_byte_fallback(content)
        content[part] = value

    with pytest.raises(ConfigError, match=named) as caught:
        fl.TokenCounter(save(on_characters(made), tmp_path, edit))
    assert caught.value.code == "unsupported_tokenizer"


@pytest.mark.parametrize("content", ["a▁b", "a b", "▁▁"])
def test_an_added_token_with_a_space_before_metaspace_is_refused(content: str, tmp_path: Path) -> None:
    """It is searched before the spaces are marked: with ``Replace``, behind it, it counts as the package does."""
    for prefix in ("never", "replace"):
        made = on_characters(prefix)
        made.add_tokens([tokenizers.AddedToken(content, normalized=True)])
        path = save(made, tmp_path, with_byte_fallback)
        if prefix == "replace":
            check(path, SPACED)
            continue
        with pytest.raises(ConfigError, match="before spaces are marked") as caught:
            fl.TokenCounter(path)
        assert caught.value.code == "unsupported_tokenizer"


def test_a_megabyte_without_cuts_is_counted_in_linear_time(tmp_path: Path) -> None:
    counter = fl.TokenCounter(str(save(train(split(PATTERNS["llama3"])), tmp_path)))
    for unit in ("a", " ", "中", "\u0301", "ab"):
        once, twice = (counter.count(unit * (size // len(unit.encode()))) for size in (1 << 19, 1 << 20))
        assert 2 * once - 8 <= twice <= 2 * once + 8


def test_a_file_is_given_by_path_folder_or_pathlike(tmp_path: Path) -> None:
    path = save(train(split(PATTERNS["llama3"])), tmp_path)
    expected = fl.TokenCounter(str(path)).count(CORPUS[0])
    for spec in (path, tmp_path, str(tmp_path), os.fspath(path)):
        assert fl.TokenCounter(spec).count(CORPUS[0]) == expected
    assert fl.TokenCounter(path).fits(CORPUS[0], expected)
    assert not fl.TokenCounter(path).fits(CORPUS[0], expected - 1)


def test_counts_of_messages_are_estimated(tmp_path: Path) -> None:
    counter = fl.TokenCounter(save(train(split(PATTERNS["llama3"])), tmp_path))
    counts = counter.count_messages([{"role": "user", "content": CORPUS[0]}])
    assert (counts.kind, counts.total) == ("estimated", counter.count(CORPUS[0]))


def set_at(*path: str, value: object) -> Callable[[dict[str, Any]], None]:
    def edit(content: dict[str, Any]) -> None:
        for name in path[:-1]:
            content = content[name]
        content[path[-1]] = value

    return edit


#: Splits that are not known, and how an error names them.
LATER = PATTERNS["llama3"].replace("{1,3}", "{1,2}")
SPLITS = [
    (split(r"\w+|\W+"), r"the split pattern \\w\+\|\\W\+ is"),
    (split(LATER), re.escape(f"the split pattern {LATER} is")),
    (split(r"\d", r"\w+"), r"the split pattern \\d then \\w\+ is"),
    (split(PATTERNS["llama3"], behavior="merged_with_next"), 'the split behavior "MergedWithNext" is'),
    (split(PATTERNS["llama3"], invert=True), 'the split behavior "Isolated", inverted is'),
]


@pytest.mark.parametrize(
    ("edit", "named"),
    [
        (set_at("model", "dropout", value=0.1), "dropout"),
        (set_at("model", "continuing_subword_prefix", value="##"), "continuing_subword_prefix"),
        (set_at("model", "end_of_word_suffix", value="</w>"), "end_of_word_suffix"),
        (set_at("model", "something_new", value=True), "something_new"),
        (set_at("normalizer", value={"type": "Lowercase"}), "Lowercase"),
        (set_at("pre_tokenizer", value={"type": "Whitespace"}), "Whitespace"),
        (set_at("pre_tokenizer", value=None), "bytes"),
        *((set_at("pre_tokenizer", value=json.loads(made.__getstate__())), named) for made, named in SPLITS),
    ],
)
def test_what_is_not_understood_is_an_error_that_names_it(
    edit: Callable[[dict[str, Any]], None], named: str, tmp_path: Path
) -> None:
    path = save(train(split(PATTERNS["llama3"])), tmp_path, edit)
    with pytest.raises(ConfigError, match=named) as caught:
        fl.TokenCounter(path)
    assert (caught.value.code, caught.value.path) == ("unsupported_tokenizer", "counter")
    assert 'engine="hf"' in str(caught.value)


@pytest.mark.parametrize("kind", ["Unigram", "WordPiece", "WordLevel"])
def test_other_models_are_refused_by_name_and_counted_by_the_package(kind: str, tmp_path: Path) -> None:
    models: dict[str, dict[str, Any]] = {
        "Unigram": {"type": "Unigram", "unk_id": 0, "vocab": [["?", 0.0], ["a", -1.0]], "byte_fallback": False},
        "WordPiece": {
            "type": "WordPiece",
            "unk_token": "?",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": {"?": 0, "a": 1},
        },
        "WordLevel": {"type": "WordLevel", "vocab": {"?": 0, "a": 1}, "unk_token": "?"},
    }
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps({"added_tokens": [], "model": models[kind]}))
    with pytest.raises(ConfigError, match=kind):
        fl.TokenCounter(path)
    assert fl.TokenCounter(path, engine="hf").count("a") == 1
    assert fl.TokenCounter(tmp_path, engine="hf").count("a") == 1


def test_damaged_files_are_typed_errors(tmp_path: Path) -> None:
    whole = save(train(split(PATTERNS["llama3"])), tmp_path).read_bytes()
    path = tmp_path / "damaged.json"
    for damaged in (
        b"",
        b"{}",
        b"[]",
        b"{" * 10_000,
        b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
        b"GGUF",
        b"IQ== x\n",
    ):
        path.write_bytes(damaged)
        with pytest.raises(ConfigError):
            fl.TokenCounter(path)
    for size in range(0, len(whole), len(whole) // 40):
        path.write_bytes(whole[:size])
        with pytest.raises(ConfigError):
            fl.TokenCounter(path)
    absent = tmp_path / "absent.json"
    with pytest.raises(ConfigError, match=re.escape(f"{absent} cannot be read")) as caught:
        fl.TokenCounter(absent)
    assert caught.value.code == "bad_tokenizer"


def test_a_file_without_a_known_ending_is_read_by_its_content(tmp_path: Path) -> None:
    path = save(train(split(PATTERNS["llama3"])), tmp_path)
    expected = fl.TokenCounter(path).count(CORPUS[0])
    plain = path.rename(tmp_path / "tokenizer")
    assert fl.TokenCounter(str(plain)).count(CORPUS[0]) == expected
    plain.write_bytes(b"\xef\xbb\xbf" + plain.read_bytes())
    assert fl.TokenCounter(plain).count(CORPUS[0]) == expected


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with a name here")
def test_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    pipe = tmp_path / "tokenizer.json"
    os.mkfifo(pipe)
    for spec in (pipe, str(pipe)):
        with pytest.raises(ConfigError, match="not a regular file") as caught:
            fl.TokenCounter(spec)
        assert caught.value.code == "bad_tokenizer"


@pytest.mark.parametrize(
    ("part", "named"),
    [
        ("vocab", "half a million tokens"),
        ("merges", "two million merges"),
        ("added", "a megabyte of added tokens"),
        ("long", "long"),
    ],
)
def test_a_file_that_would_take_much_memory_or_time_is_refused(part: str, named: str, tmp_path: Path) -> None:
    def edit(content: dict[str, Any]) -> None:
        model = content["model"]
        if part == "vocab":
            model["vocab"] |= {f"{number:x}x": 1_000 + number for number in range(600_000)}
        elif part == "merges":
            model["merges"] = [["a", "b"]] * (1 << 21 | 1)
        elif part == "long":
            model["vocab"] |= {"a" * 900 + f"{number:03}": 1_000 + number for number in range(400)}
        else:
            plain = {"lstrip": False, "rstrip": False, "single_word": False, "normalized": False, "special": False}
            content["added_tokens"] += [plain | {"id": n, "content": f"{n:0500}"} for n in range(3_000)]

    with pytest.raises(ConfigError, match=named) as caught:
        fl.TokenCounter(save(train(split(PATTERNS["llama3"])), tmp_path, edit))
    assert caught.value.code == "unsupported_tokenizer"


def test_an_unknown_engine_is_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        fl.TokenCounter("o200k_base", engine="other")  # type: ignore[arg-type]
    assert (caught.value.code, caught.value.path) == ("unknown_engine", "engine")
