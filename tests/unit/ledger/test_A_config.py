"""A7, B3, T3: configuration from files and dicts, and the windows of models."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import foldline as fl
from foldline.errors import ConfigError, UnknownModelError
from foldline.triggers import Never
from unit.samples import CANARY, user

BETA = "context-1m-2025-08-07"

needs_yaml = pytest.mark.skipif(find_spec("yaml") is None, reason="needs the extra cli")

SEED = """\
compaction:
  enabled: true           # Default: true
  context_window: 200000  # Tokens in context window (auto-filled from model registry if omitted)
  reserve_tokens: 16384   # Tokens to reserve for response (default: 16384)
  keep_recent_tokens: 20000  # Tokens to keep verbatim (default: 20000)
"""


@needs_yaml
def test_A7_the_configuration_of_the_seed_is_accepted(tmp_path: Path) -> None:
    file = tmp_path / "agent.yaml"
    file.write_text(SEED, encoding="utf-8")
    each = fl.config.load(file).build()
    default = fl.presets.reserve()
    assert repr(each) == repr(default)
    assert repr(fl.config.load({"context_window": 200_000}).build()) == repr(default)


@pytest.mark.parametrize(
    ("section", "top", "model", "window", "source"),
    [
        (50_000, 60_000, "gpt-4o", 50_000, "compaction"),
        (None, 60_000, "gpt-4o", 60_000, "top_level"),
        (None, None, "gpt-4o", 128_000, "model"),
        (None, None, "openai/gpt-4o-2024-11-20", 128_000, "model"),
        (None, None, "no-such-model", 0, "none"),
        (None, None, None, 0, "none"),
        (0, 60_000, "gpt-4o", 0, "compaction"),
        (None, 0, "gpt-4o", 0, "top_level"),
    ],
)
def test_A7_the_window_resolves_in_the_documented_order(
    section: int | None, top: int | None, model: str | None, window: int, source: str
) -> None:
    data: dict[str, Any] = {"compaction": {}}
    if section is not None:
        data["compaction"]["context_window"] = section
    if top is not None:
        data["context_window"] = top
    if model is not None:
        data["model"] = model
    settings = fl.config.load(data)
    assert (settings.window, settings.window_from, settings.model) == (window, source, model)
    trigger = settings.build().trigger
    if window:
        assert repr(trigger) == f"ReserveTokens({window}, 16384)"
    else:
        assert isinstance(trigger, Never)


@pytest.mark.parametrize("preset", ["gent", "reserve", "budgeted", "layer"])
def test_A7_enabled_false_turns_compaction_off(preset: str) -> None:
    settings = fl.config.load({"compaction": {"enabled": False, "preset": preset}, "context_window": 60_000})
    assert settings.enabled is False
    state = fl.ContextState(
        usage=fl.ContextUsage(10**6, 10**6, 0), budget=fl.TokenBudget(1_000, 0, 10**6, 0), message_count=99
    )
    state.stats.incr("iterations", 99)
    state.stats.set_gauge("scratchpad", 99)
    trigger = settings.build().trigger
    assert not trigger.should_compact(state)
    on = fl.config.load({"compaction": {"preset": preset}, "context_window": 60_000}).build().trigger
    assert on.should_compact(state)


@pytest.mark.parametrize(
    ("preset", "key", "field"),
    [("budgeted", "context_limit", "context_window"), ("layer", "model_context_limit", "context_window")],
)
def test_A7_a_preset_accepts_its_own_name_for_the_window(preset: str, key: str, field: str) -> None:
    for name in (key, "context_window"):
        each = fl.config.load({"compaction": {"preset": preset, name: 70_000}}).build()
        assert getattr(each, field) == 70_000
    with pytest.raises(ConfigError) as caught:
        fl.config.load({"compaction": {"preset": preset, key: 1, "context_window": 1}})
    assert (caught.value.code, caught.value.path) == ("two_windows", f"compaction.{key}")


def test_T3_only_the_layer_preset_falls_back_to_128k() -> None:
    unknown = {"model": "no-such-model"}
    layer = fl.config.load({**unknown, "compaction": {"preset": "layer"}})
    assert (layer.window, layer.window_from) == (128_000, "preset")
    assert not isinstance(layer.build().trigger, Never)
    for preset in ("reserve", "budgeted"):
        assert fl.config.load({**unknown, "compaction": {"preset": preset}}).window == 0
    off = fl.config.load({"compaction": {"preset": "layer", "context_window": 0}})
    assert isinstance(off.build().trigger, Never)


def test_A7_every_option_reaches_its_preset() -> None:
    data = {
        "compaction": {
            "preset": "layer",
            "model_context_limit": 100_000,
            "system_reserve": 1_000,
            "output_reserve": 2_000,
            "safety_buffer": 3_000,
            "threshold": 0.5,
            "keep_messages": 4,
            "summary_tokens": 700,
            "on_failure": "clear",
            "timeout_s": 9.5,
            "hysteresis": 0.2,
            "counter": "chars/4",
            "system": "Be brief.",
            "format": "openai_chat",
        }
    }
    each = fl.config.load(data).build(lambda _: "So far.", tools=[])
    assert repr(each.trigger) == "TokenThreshold.at(47000, keep_messages=4)"
    assert each.strategy.keep == fl.KeepMessages(4)  # type: ignore[attr-defined]
    assert each.strategy.strategy.summary_tokens == 700  # type: ignore[attr-defined]
    assert (each.on_failure, each.timeout_s, each.hysteresis, each.system) == ("clear", 9.5, 0.2, "Be brief.")
    assert (each.format, each.reserve_tokens, each.tools) == ("openai_chat", 2_000, [])
    assert each.counter.count("x" * 40) == 10


def test_A7_objects_that_files_cannot_express_are_passed_at_build_time() -> None:
    store, told = fl.stores.MemoryStore(), []
    settings = fl.config.load({"compaction": {"preset": "gent", "keep_recent": 2}})
    each = settings.build(lambda _: "So far.", store=store, hooks={"before": told.append}, trigger=Never())
    ids = store.extend([user("word " * 60) for _ in range(6)])
    assert each.compact(store.messages(), ids=ids, force=True).changed
    assert len(store.messages()) == 3
    assert len(told) == 1


TOML = 'model = "gpt-4o"\n[compaction]\nkeep_recent_tokens = 10_000\n'


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.toml", TOML),
        ("a.json", '{"model": "gpt-4o", "compaction": {"keep_recent_tokens": 10000}}'),
        ("a.JSON", '\ufeff{"model": "gpt-4o", "compaction": {"keep_recent_tokens": 10000}}'),
        pytest.param("a.yaml", "model: gpt-4o\ncompaction: {keep_recent_tokens: 10_000}\n", marks=needs_yaml),
        pytest.param("a.yml", "model: gpt-4o\ncompaction:\n  keep_recent_tokens: 10000\n", marks=needs_yaml),
    ],
)
def test_A7_every_file_format_gives_the_same_configuration(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    as_dict = {"model": "gpt-4o", "compaction": {"keep_recent_tokens": 10_000}}
    for source in (tmp_path / name, str(tmp_path / name)):
        assert fl.config.load(source) == fl.config.load(as_dict)


@needs_yaml
def test_A7_an_empty_file_is_an_empty_configuration(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("# nothing\n", encoding="utf-8")
    assert fl.config.load(tmp_path / "a.yaml") == fl.config.load({})
    assert isinstance(fl.config.load({}).build().trigger, Never)


def of(**section: Any) -> dict[str, Any]:
    return {"compaction": section}


@pytest.mark.parametrize(
    ("data", "path"),
    [
        ({"compactoin": {}}, "compactoin"),
        (of(keep_recent_token=1), "compaction.keep_recent_token"),
        (of(keep_messages=10), "compaction.keep_messages"),  # an option of another preset
        (of(context_limit=10), "compaction.context_limit"),
        (of(preset="reserv"), "compaction.preset"),
        (of(preset=["reserve"]), "compaction.preset"),
        (of(enabled="yes"), "compaction.enabled"),
        (of(enabled=1), "compaction.enabled"),
        ({"compaction": True}, "compaction"),
        ({"compaction": [1]}, "compaction"),
        ({"compaction": {1: 2}}, "compaction"),
        ({"model": 5}, "model"),
        ({"model": ""}, "model"),
        ({"context_window": "200000"}, "context_window"),
        ({"context_window": True}, "context_window"),
        ({"context_window": -1}, "context_window"),
        ({"betas": "context-1m"}, "betas"),
        ({"betas": [1]}, "betas"),
        ({"betas": 1}, "betas"),
        (of(context_window=1.5), "compaction.context_window"),
        (of(context_window=float("nan")), "compaction.context_window"),
        (of(context_window=1_000), "compaction.reserve_tokens"),
        (of(context_window=20_000, reserve_tokens=-1), "compaction.reserve_tokens"),
        (of(context_window=20_000), "compaction.keep_recent_tokens"),
        (of(keep_recent_tokens="20k"), "compaction.keep_recent_tokens"),
        (of(summary_tokens=-1), "compaction.summary_tokens"),
        (of(prompt=5), "compaction.prompt"),
        (of(prompt="no slot"), "compaction.prompt"),
        (of(system=5), "compaction.system"),
        (of(counter="tiktoken"), "compaction.counter"),
        (of(counter=4), "compaction.counter"),
        (of(format="xml"), "compaction.format"),
        (of(on_failure="shrug"), "compaction.on_failure"),
        (of(timeout_s=0), "compaction.timeout_s"),
        (of(timeout_s=float("inf")), "compaction.timeout_s"),
        (of(hysteresis=1.0), "compaction.hysteresis"),
        (of(max_output_tokens=-5), "compaction.max_output_tokens"),
        (of(preset="budgeted", context_window=100_000, threshold=1.5), "compaction.threshold"),
        (of(preset="budgeted", context_window=100_000, critical=0.1), "compaction.critical"),
        (of(preset="budgeted", context_window=100_000, preserve=-0.1), "compaction.preserve"),
        (of(preset="budgeted", context_window=100_000, of="words"), "compaction.of"),
        (of(preset="budgeted", context_window=100_000, prune_recent=1.5), "compaction.prune_recent"),
        (of(preset="layer", context_window=100), "compaction.system_reserve"),
        (of(preset="layer", keep_messages=-1), "compaction.keep_messages"),
        (of(preset="gent", keep_recent=-1), "compaction.keep_recent"),
        (of(preset="gent", enabled=False, keep_recent=-1), "compaction.keep_recent"),
    ],
)
def test_A7_a_wrong_value_is_a_config_error_that_names_its_path(data: Any, path: str) -> None:
    with pytest.raises(ConfigError) as caught:
        fl.config.load(data)
    assert caught.value.path == path


def test_A7_the_settings_of_an_agent_may_share_the_file() -> None:
    data = {"provider": "x", "model": "gpt-4o", "compaction": {}}
    assert fl.config.load(data, others="ignore").window == 128_000
    with pytest.raises(ConfigError):
        fl.config.load({**data, "compaction": {"other": 1}}, others="ignore")
    with pytest.raises(ConfigError):
        fl.config.load(data, others="keep")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("a.toml", b"model = ", "unreadable"),
        ("a.json", b'{"model": ', "unreadable"),
        ("a.json", b"[" * 100_000, "unreadable"),
        ("a.json", b"[1]", "not_a_table"),
        ("a.json", b'{"model": "\xff"}', "unreadable"),
        ("a.ini", b"", "unknown_suffix"),
        pytest.param("a.yaml", b"model: [", "unreadable", marks=needs_yaml),
        pytest.param("a.yaml", b"model: !!python/object/apply:os.system [ls]", "unreadable", marks=needs_yaml),
        pytest.param("a.yaml", b"model: a\nmodel: b\n", "repeated_key", marks=needs_yaml),
        pytest.param("a.yaml", b"compaction:\n  enabled: true\n  enabled: false\n", "repeated_key", marks=needs_yaml),
        pytest.param("a.yaml", b"- 1\n", "not_a_table", marks=needs_yaml),
    ],
)
def test_A7_an_unreadable_file_is_a_config_error(tmp_path: Path, name: str, content: bytes, code: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        fl.config.load(tmp_path / name)
    assert caught.value.code == code


@needs_yaml
def test_A7_errors_contain_no_file_content(tmp_path: Path) -> None:
    for name, text in (("a.yaml", f"model: [{CANARY}"), ("a.json", f'{{"{CANARY}": '), ("a.toml", f"{CANARY} = ")):
        (tmp_path / name).write_text(text, encoding="utf-8")
        with pytest.raises(ConfigError) as caught:
            fl.config.load(tmp_path / name)
        assert CANARY not in repr(caught.value) + str(caught.value)
        assert caught.value.__cause__ is None
        assert caught.value.__suppress_context__


def test_A7_a_missing_file_is_a_config_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        fl.config.load(tmp_path / "none.json")
    assert caught.value.code == "unreadable"


def test_A7_yaml_without_its_extra_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "yaml", None)
    (tmp_path / "a.yaml").write_text("model: a\n", encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        fl.config.load(tmp_path / "a.yaml")
    assert caught.value.code == "missing_extra"
    (tmp_path / "a.json").write_text(json.dumps({"model": "gpt-4o"}), encoding="utf-8")
    assert fl.config.load(tmp_path / "a.json").window == 128_000


# --- B3 ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "betas", "limit"),
    [
        ("claude-sonnet-4-5", [], 200_000),
        ("claude-sonnet-4-5", [BETA], 1_000_000),
        ("claude-sonnet-4-5-20250929", ["other", BETA], 1_000_000),
        ("anthropic/claude-sonnet-4", [BETA], 1_000_000),
        ("claude-sonnet-4-5", ["other"], 200_000),
        ("claude-opus-4-5", [BETA], 200_000),
        ("claude-haiku-4-5", [BETA], 200_000),
        ("claude-3-5-sonnet-20240620", [BETA], 200_000),
        ("claude-3-7-sonnet", [BETA], 200_000),
        ("claude-sonnet-4-6", [BETA], 1_000_000),
        ("claude-sonnet-4-6", [], 1_000_000),
        ("gpt-4o", [BETA], 128_000),
    ],
)
def test_B3_the_beta_flag_gives_sonnet_models_a_million_tokens(model: str, betas: list[str], limit: int) -> None:
    assert fl.models.context_limit(model, betas=betas) == limit


def test_B3_an_unknown_model_is_an_error_or_the_default() -> None:
    with pytest.raises(UnknownModelError):
        fl.models.context_limit("no-such-model", betas=[BETA])
    assert fl.models.context_limit("no-such-model", betas=[BETA], default=200_000) == 200_000
    assert fl.models.context_limit("gpt-4o", default=1) == 128_000


def test_B3_a_registered_model_is_known() -> None:
    fl.models.register("my-sonnet", like="claude-sonnet-4-5", context_window=300_000)
    try:
        assert fl.models.context_limit("my-sonnet-20260101") == 300_000
        assert fl.models.context_limit("my-sonnet", betas=[BETA]) == 1_000_000
    finally:
        fl.models.unregister("my-sonnet")


def test_B3_the_flag_reaches_the_configuration() -> None:
    data = {"model": "claude-sonnet-4-5", "compaction": {"preset": "budgeted"}}
    assert fl.config.load(data).build().context_window == 200_000
    assert fl.config.load({**data, "betas": [BETA]}).build().context_window == 1_000_000


@pytest.mark.parametrize(("options", "path"), [({"default": 0}, "default"), ({"betas": BETA}, "betas")])
def test_B3_a_wrong_option_is_a_config_error(options: Any, path: str) -> None:
    with pytest.raises(ConfigError) as caught:
        fl.models.context_limit("gpt-4o", **options)
    assert caught.value.path == path
