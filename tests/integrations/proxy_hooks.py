"""The module that the configuration of LiteLLM's proxy names: its hook, and what it did, a line an event in a file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import adapter_checks as checks
from adapter_checks import MARK, Record

import foldline as fl
from foldline.integrations.litellm import FoldHook

_LOG = Path(os.environ["FOLDLINE_PROXY_LOG"])


def log(line: str) -> None:
    with _LOG.open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")


class Logged(Record):
    """A record whose summaries are told to the test, which runs in another process."""

    def summarize(self, messages: Any) -> str:
        log("summary")
        return super().summarize(messages)


def event(each: Any) -> None:
    if isinstance(each, fl.typing.CompactionEvent):
        log("fold")


def pinned(message: Any) -> bool:
    return message["role"] == "user" and MARK in str(message["content"])


fold = FoldHook(compactor=Logged().compactor(), on_event=event, pins=[pinned])
broken = os.environ.get("FOLDLINE_SABOTAGE")
if broken:
    checks.SABOTAGE[broken](fold._chat)
