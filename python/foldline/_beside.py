"""The context of a stored transcript's messages: tools, system text and earlier summaries."""

from __future__ import annotations

from typing import Any

from foldline import _core
from foldline.typing import StoredTranscript

__all__ = ["beside_arguments", "system_beside", "tools_beside"]


def system_beside(transcript: StoredTranscript) -> list[dict[str, Any]]:
    """The system text as a leading message of the transcript's dialect, if present."""
    _, system, _ = _context(transcript)
    key = "parts" if transcript.format in ("gemini", "ai_sdk_ui") else "content"
    return [] if system is None else [{"role": "system", key: system}]


def tools_beside(transcript: StoredTranscript) -> list[Any]:
    """The tool schemas that were sent with the messages."""
    tools, _, _ = _context(transcript)
    return tools


def beside_arguments(transcript: StoredTranscript) -> dict[str, Any]:
    """``tools`` and ``origins`` for `plan` and `compact`.

    Tool schemas and a system text outside the messages are sent with them, so they count as overhead. Summaries by an
    agent's own compaction get the origin of earlier summaries.
    """
    tools, system, summaries = _context(transcript)
    if system is not None:
        tools = [*tools, {"system": system}]
    return {"tools": tools or None, "origins": dict.fromkeys(summaries, "compacted_synthetic")}


def _context(transcript: StoredTranscript) -> tuple[list[Any], Any | None, list[int]]:
    return _core.request_context(dict(transcript.meta), transcript.format, len(transcript.messages))
