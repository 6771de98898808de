"""What stands beside the messages of a stored transcript, and how it goes into a plan."""

from __future__ import annotations

from typing import Any

from foldline.typing import StoredTranscript

__all__ = ["beside_arguments", "system_beside", "tools_beside"]


def system_beside(transcript: StoredTranscript) -> list[dict[str, Any]]:
    """The system text that stood beside the messages, as a leading message of their dialect; empty without one."""
    meta = transcript.meta
    if transcript.format == "gemini":
        given = meta.get("systemInstruction", meta.get("system_instruction"))
        parts = given.get("parts") if isinstance(given, dict) else given
        return [{"role": "system", "parts": parts}] if isinstance(parts, (str, list)) and parts else []
    text = meta.get("instructions" if transcript.format == "openai_responses" else "system")
    return [{"role": "system", "content": text}] if isinstance(text, (str, list)) and text else []


def tools_beside(transcript: StoredTranscript) -> list[Any]:
    """The tool schemas that stood beside the messages."""
    tools = transcript.meta.get("tools")
    return [tools] if isinstance(tools, dict) else list(tools) if isinstance(tools, list) else []


def beside_arguments(transcript: StoredTranscript) -> dict[str, Any]:
    """``tools`` and ``origins`` for `plan` and `compact`.

    Tool schemas and a system text that stand beside the messages are sent with them, so they count as overhead;
    summaries that an agent's own compaction left are earlier summaries.
    """
    count = len(transcript.messages)
    beside = tools_beside(transcript)
    beside += [{"system": message.get("content", message.get("parts"))} for message in system_beside(transcript)]
    summaries = transcript.meta.get("summaries")
    earlier = [i for i in summaries if isinstance(i, int) and 0 <= i < count] if isinstance(summaries, list) else []
    return {"tools": beside or None, "origins": dict.fromkeys(earlier, "compacted_synthetic")}
