"""Builds a compactor from a configuration: a YAML, TOML or JSON file, or a dict.

.. code-block:: yaml

    model: gpt-5
    compaction:
      enabled: true
      preset: reserve           # or gent, budgeted, layer
      reserve_tokens: 16384
      keep_recent_tokens: 20000

The window resolves in this order: the section ``compaction``, the top level, the model registry, 0. With a window of 0
nothing is compacted, except with the preset ``layer``, which then uses its default window.

Examples:
    >>> import foldline as fl
    >>> settings = fl.config.load({"model": "gpt-4o", "compaction": {"keep_recent_tokens": 10_000}})
    >>> settings.preset, settings.window, settings.window_from
    ('reserve', 128000, 'model')
    >>> settings.build().trigger
    ReserveTokens(128000, 16384)
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from foldline import presets
from foldline._core import FORMATS
from foldline._util.checks import token_number
from foldline.compactor import Compactor
from foldline.counting import models
from foldline.errors import ConfigError, UnknownModelError
from foldline.triggers import Never
from foldline.typing import Completion, Messages

__all__ = ["CompactionConfig", "load"]

Preset: TypeAlias = Literal["gent", "reserve", "budgeted", "layer"]
Window: TypeAlias = Literal["compaction", "top_level", "model", "preset", "none"]

_SECTION = "compaction"
_TOP_LEVEL = frozenset(("model", "betas", "context_window", _SECTION))
_WORDS = ("prompt", "counter", "on_failure", "system", "format")
_COMMON = frozenset(
    (
        *(*_WORDS, "enabled", "mend", "preset", "context_window", "summary_tokens"),
        *("max_output_tokens", "timeout_s", "hysteresis"),
    )
)
_FORMATS = ("auto", *FORMATS)


@dataclass(frozen=True, slots=True)
class _Preset:
    make: Callable[..., Compactor]
    options: frozenset[str]
    #: Name of the preset's window option; None if it has none.
    window: str | None
    #: Window used if none is known.
    default_window: int = 0


_PRESETS: Final[Mapping[Preset, _Preset]] = {
    "gent": _Preset(presets.gent, frozenset(("keep_recent",)), None),
    "reserve": _Preset(presets.reserve, frozenset(("reserve_tokens", "keep_recent_tokens")), "context_window"),
    "budgeted": _Preset(
        presets.budgeted,
        frozenset(("context_limit", "threshold", "critical", "preserve", "of", "prune_recent")),
        "context_limit",
    ),
    "layer": _Preset(
        presets.layer,
        frozenset(
            ("model_context_limit", "system_reserve", "output_reserve", "safety_buffer", "threshold", "keep_messages")
        ),
        "model_context_limit",
        128_000,
    ),
}


@dataclass(frozen=True, slots=True)
class CompactionConfig:
    """A checked configuration.

    Attributes:
        enabled: Whether anything is compacted.
        preset: The preset: ``"gent"``, ``"reserve"``, ``"budgeted"`` or ``"layer"``.
        window: The context window in tokens; 0 if unknown.
        window_from: Source of the window: ``"compaction"``, ``"top_level"``, ``"model"``, ``"preset"``, or ``"none"``.
        options: Further options of the preset.
        model: The model's name.
    """

    enabled: bool = True
    preset: Preset = "reserve"
    window: int = 0
    window_from: Window = "none"
    options: Mapping[str, Any] = field(default_factory=dict)
    model: str | None = None

    def build(self, summarizer: presets.Writer = None, **options: Any) -> Compactor:
        """Builds the compactor. If the configuration is not enabled, its trigger never fires.

        Args:
            summarizer: The summarizer. Default: `summarizers.Extractive`.
            **options: Options that a file cannot express: ``store``, ``hooks``, ``tools``, ``trigger``, ``clock``.
                They override the configuration.

        Raises:
            ConfigError: An option is out of range; ``path`` names it, as ``compaction.keep_recent``.
        """
        known = _PRESETS[self.preset]
        given = {**self.options, **options}
        if known.window is not None:
            given[known.window] = self.window or known.default_window
        try:
            compactor = known.make(summarizer, **given)
        except ConfigError as error:
            path = f"{_SECTION}.{error.path}" if error.path else _SECTION
            raise ConfigError(error.detail, code=error.code, path=path) from None
        if not self.enabled or (known.window is not None and not self.window):
            compactor.trigger = Never()
        return compactor


def load(source: Mapping[str, Any] | str | Path, *, others: Literal["error", "ignore"] = "error") -> CompactionConfig:
    """Reads and checks a configuration.

    Args:
        source: A dict, or the path of a file with the suffix ``.yaml``, ``.yml`` (which needs the extra ``cli``),
            ``.toml`` or ``.json``.
        others: Policy for unknown keys at the top level: ``"ignore"`` if an agent keeps its own settings there. In the
            section ``compaction`` an unknown key is always an error.

    Raises:
        ConfigError: The source cannot be read, a key is unknown, or a value is out of range; ``path`` names it.
    """
    if others not in ("error", "ignore"):
        raise ConfigError("must be error or ignore", code="bad_policy", path="others")
    data = _mapping(source if isinstance(source, Mapping) else _read(Path(source)), "")
    if others == "error":
        _refuse_unknown(data, _TOP_LEVEL, "")
    section = _mapping(data.get(_SECTION), _SECTION)
    name = next((known for known in _PRESETS if known == section.get("preset", "reserve")), None)
    if name is None:
        raise ConfigError(f"must be one of {', '.join(_PRESETS)}", code="unknown_preset", path=f"{_SECTION}.preset")
    preset = _PRESETS[name]
    _refuse_unknown(section, _COMMON | preset.options, f"{_SECTION}.")
    for switch in ("enabled", "mend"):
        if not isinstance(section.get(switch, True), bool):
            raise ConfigError("must be true or false", code="bad_switch", path=f"{_SECTION}.{switch}")
    enabled = section.get("enabled", True)
    model = data.get("model")
    if model is not None and (not isinstance(model, str) or not model):
        raise ConfigError("must be a name", code="bad_model", path="model")
    window, window_from = _window(data, section, preset, model)
    not_options = {"enabled", "preset", "context_window", preset.window}
    options = {key: value for key, value in section.items() if key not in not_options}
    for key in _WORDS:
        if key in options and not isinstance(options[key], str):
            raise ConfigError("must be a string", code="not_a_text", path=f"{_SECTION}.{key}")
    if options.get("format", "auto") not in _FORMATS:
        raise ConfigError(f"must be one of {', '.join(_FORMATS)}", code="unknown_format", path=f"{_SECTION}.format")
    settings = CompactionConfig(enabled, name, window, window_from, options, model)
    settings.build(_Nobody())  # checks every value before any work
    return settings


class _Nobody:
    """Placeholder model for checking values."""

    def complete(self, messages: Messages, *, max_tokens: int, timeout_s: float | None = None) -> Completion:
        raise NotImplementedError


def _window(
    data: Mapping[str, Any], section: Mapping[str, Any], preset: _Preset, model: str | None
) -> tuple[int, Window]:
    """The window and its source, in order: the section, the top level, the registry, 0."""
    own = [key for key in ("context_window", preset.window) if key is not None and key in section]
    if len(set(own)) > 1:
        raise ConfigError(
            "cannot be combined with another name of the window", code="two_windows", path=f"{_SECTION}.{preset.window}"
        )
    found: tuple[int, Window] | None = None
    for key in own:
        found = token_number(section[key], f"{_SECTION}.{key}"), "compaction"
    if "context_window" in data:
        told = token_number(data["context_window"], "context_window")
        found = found or (told, "top_level")
    betas: object = data.get("betas", ())
    if isinstance(betas, str) or not isinstance(betas, Iterable):
        raise ConfigError("must be a list of names", code="bad_beta", path="betas")
    flags = list(betas)
    try:
        known = models.context_limit(model or "", betas=flags)
        found = found or (known, "model")
    except UnknownModelError:  # allowed if the window is configured, or not needed
        pass
    if found is None and preset.default_window:
        found = preset.default_window, "preset"
    return found or (0, "none")


def _mapping(value: object, path: str) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise ConfigError("must be a table with string keys", code="not_a_table", path=path)
    return value


def _refuse_unknown(table: Mapping[str, Any], known: frozenset[str], prefix: str) -> None:
    for key in table:
        if key not in known:
            raise ConfigError(
                f"no such key; known are {', '.join(sorted(known))}", code="unknown_key", path=f"{prefix}{key}"
            )


# --- Files ------------------------------------------------------------------------------------------------


def _read(path: Path) -> object:
    """The parsed content of a file. Errors contain none of it."""
    readers: dict[str, Callable[[str], object]] = {
        ".yaml": _yaml,
        ".yml": _yaml,
        ".toml": tomllib.loads,
        ".json": json.loads,
    }
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise ConfigError("must end in .yaml, .yml, .toml or .json", code="unknown_suffix", path="source")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigError(f"cannot be read: {type(error).__name__}", code="unreadable", path="source") from None
    except UnicodeDecodeError:
        raise ConfigError("is not UTF-8", code="unreadable", path="source") from None
    try:
        return reader(text)
    except (ValueError, RecursionError) as error:  # the parsers of TOML and JSON raise subclasses of ValueError
        line = getattr(error, "lineno", None)
        where = f" in line {line}" if line else ""
        raise ConfigError(f"cannot be read{where}", code="unreadable", path="source") from None


def _yaml(text: str) -> object:
    try:
        import yaml
    except ImportError:
        raise ConfigError("YAML needs the extra cli", code="missing_extra", path="source") from None

    class Loader(yaml.SafeLoader):
        """Rejects duplicate keys, which YAML loaders accept."""

        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
            keys = [self.construct_object(key, deep=True) for key, _ in node.value]
            if len({repr(key) for key in keys}) < len(keys):
                line = node.start_mark.line + 1
                raise ConfigError(f"duplicate key in the table at line {line}", code="repeated_key", path="source")
            return super().construct_mapping(node, deep)

    try:
        return yaml.load(text, Loader=Loader)  # noqa: S506 - a subclass of SafeLoader
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark is not None else ""
        raise ConfigError(f"cannot be read{where}", code="unreadable", path="source") from None
