"""The options that all adapters share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from foldline._core import TokenCounter
from foldline.compactor import Compactor
from foldline.compactor._options import CompactorOptions
from foldline.compactor.events import Event
from foldline.errors import ConfigError
from foldline.planning import Keep
from foldline.strategies import Strategy
from foldline.triggers import Trigger
from foldline.typing import AsyncSummarizer, ChatModel, FoldStore, Summarizer, SummaryFunction

__all__ = ["AdapterOptions", "Pins", "Writer", "compactor_for", "pins_for"]

#: A summarizer, or what is made into one.
Writer: TypeAlias = "Summarizer | AsyncSummarizer | ChatModel | SummaryFunction | None"

#: Predicates over the framework's own messages.
Pins: TypeAlias = "Iterable[Callable[[Any], bool]] | Callable[[Any], bool]"


class ModelOptions(CompactorOptions, total=False):
    """The choices of `Compactor.for_model` that a keyword overrides."""

    trigger: Trigger | None
    strategy: Strategy | None
    counter: TokenCounter | str | Callable[[str], int] | None
    context_window: int | None
    reserve_tokens: int | None
    keep: Keep | None
    summary_tokens: int | None


class AdapterOptions(ModelOptions, total=False):
    """Options of every adapter, and those of `Compactor.for_model`.

    Attributes:
        model: Name of the model that the requests are for; then `Compactor.for_model` chooses.
        compactor: A compactor, instead of ``model`` and of its options.
        pins: Predicates over the framework's own messages: those for which one is true stay, with their groups.
        summarizer: The summarizer. Default: `summarizers.Extractive`.
        store: Stores folds, so that a restart finds them.
        on_event: Called with every event of the compactor.
    """

    model: str | None
    compactor: Compactor | None
    pins: Pins
    summarizer: Writer
    store: FoldStore | None
    on_event: Callable[[Event], Any] | None


def compactor_for(
    *,
    model: str | None = None,
    compactor: Compactor | None = None,
    summarizer: Writer = None,
    store: FoldStore | None = None,
    on_event: Callable[[Event], Any] | None = None,
    **options: Any,
) -> Compactor:
    """The compactor of an adapter.

    Raises:
        ConfigError: Neither a model nor a compactor is given, or a compactor with what only makes another one.
        UnknownModelError: The model is unknown, and window and counter are not both given.
    """
    if compactor is None:
        if model is None:
            raise ConfigError("give a model or a compactor", code="missing_compactor", path="model")
        compactor = Compactor.for_model(model, summarizer=summarizer, store=store, **options)
    else:
        others = {"model": model, "summarizer": summarizer, "store": store, **options}
        for name, value in others.items():
            if value is not None:
                raise ConfigError("cannot be combined with compactor", code="conflicting_options", path=name)
        if not isinstance(compactor, Compactor):
            raise ConfigError("must be a Compactor", code="bad_compactor", path="compactor")
    if compactor.store is not None and not isinstance(compactor.store, FoldStore):
        detail = "must have save_fold and load_folds to serve an adapter"
        raise ConfigError(detail, code="store_without_folds", path="store")
    if on_event is not None:
        compactor.subscribe(on_event)
    return compactor


def pins_for(pins: object) -> tuple[Callable[[Any], bool], ...]:
    """The predicates of an adapter.

    Raises:
        ConfigError: One is not a predicate.
    """
    given = (pins,) if callable(pins) else pins
    found: tuple[Any, ...] = tuple(given) if isinstance(given, Iterable) else (None,)
    if not all(callable(each) for each in found):
        raise ConfigError("must be predicates over messages", code="bad_pin", path="pins")
    return found
