"""The libraries of the table, foldline first."""

from __future__ import annotations

from . import langchain, litellm, llama_index, microsoft, ours

CONTENDERS = [
    *ours.CONTENDERS,
    *langchain.CONTENDERS,
    *litellm.CONTENDERS,
    *microsoft.CONTENDERS,
    *llama_index.CONTENDERS,
]

#: Libraries outside the table, with the reason: printed with it.
LEFT_OUT = {
    "openai-agents": "its compaction session asks OpenAI's service to compact, and SessionSettings(limit) takes the "
    "newest items as they are: neither shortens to a budget on this machine",
}
