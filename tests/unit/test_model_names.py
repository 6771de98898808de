"""Names of open models as hubs, gateways and servers write them: the vocabulary and the context window of each."""

from __future__ import annotations

import pytest

import foldline as fl
from foldline.errors import UnknownModelError

K = 1024

WINDOWS = [
    ("deepseek-r1:32b", "qwen2.5", 128 * K),
    ("deepseek-r1:8b", "qwen3", 128 * K),
    ("deepseek-r1:70b", "llama-3", 128 * K),
    ("deepseek-ai/DeepSeek-R1-Distill-Qwen-32B", "qwen2.5", 128 * K),
    ("deepseek-ai/DeepSeek-R1-0528-Qwen3-8B", "qwen3", 128 * K),
    ("deepseek-r1:671b", "deepseek-v3", 160 * K),
    ("qwq:32b", "qwen2.5", 128 * K),
    ("Qwen/QwQ-32B-AWQ", "qwen2.5", 128 * K),
    ("Qwen/QwQ-32B-Preview", "qwen2.5", 32 * K),
    ("qwq:32b-preview-q8_0", "qwen2.5", 32 * K),
    ("qwen3:30b-a3b-instruct-2507-q8_0", "qwen3", 256 * K),
    ("qwen3:4b-instruct-2507-q4_K_M", "qwen3", 256 * K),
    ("lm_studio/qwen/qwen3-30b-a3b-2507", "qwen3", 256 * K),
    ("Qwen/Qwen3-235B-A22B-Thinking-2507-FP8", "qwen3", 256 * K),
    ("qwen3:30b", "qwen3", 40 * K),
    ("vertex_ai/meta/llama3-405b-instruct-maas", "llama-3", 128 * K),
    ("llama3:70b", "llama-3", 8 * K),
    ("deepseek-chat", "deepseek-v4", 1024 * K),
    ("deepseek-reasoner", "deepseek-v4", 1024 * K),
    ("gemma3:1b", "gemma-3", 32 * K),
    ("gemma3:27b", "gemma-3", 128 * K),
]


@pytest.mark.parametrize(("name", "vocabulary", "window"), WINDOWS)
def test_a_model_has_its_own_context_window(name: str, vocabulary: str, window: int) -> None:
    model = fl.models.lookup(name)
    assert (model.encoding, model.context_window) == (vocabulary, window)


NAMES = [
    ("kimi-k3", "kimi-k2", "exact"),
    ("moonshotai/Kimi-K3", "kimi-k2", "exact"),
    ("qwen3.8-27b", "qwen3.8", "exact"),
    ("Qwen/Qwen3.8-27B-FP8", "qwen3.8", "exact"),
    ("qwen3.8:27b", "qwen3.8", "exact"),
    ("gemma3n:e4b", "gemma-3n", "exact"),
    ("google/gemma-3n-E4B-it", "gemma-3n", "exact"),
    ("codestral-latest", "tekken", "estimated"),
    ("mistralai/codestral-2508", "tekken", "estimated"),
    ("codestral:22b", "mistral-v3", "exact"),
    ("ollama/codestral:latest", "mistral-v3", "exact"),
    ("mathstral", "mistral-v3", "exact"),
    ("mistralai/Mathstral-7B-v0.1", "mistral-v3", "exact"),
    ("voxtral-small", "tekken", "exact"),
    ("mistralai/Voxtral-Small-24B-2507", "tekken", "exact"),
    ("mixtral", "mistral-v1", "exact"),
    ("mixtral:latest", "mistral-v1", "exact"),
    ("mixtral:8x22b", "mistral-v3", "exact"),
    ("meta-llama/Llama-Guard-3-8B", "llama-3", "exact"),
    ("llama-guard3:8b", "llama-3", "exact"),
    ("NousResearch/Hermes-3-Llama-3.1-8B", "llama-3", "estimated"),
    ("hermes3:70b", "llama-3", "estimated"),
    ("bartowski/Qwen_Qwen3-32B-GGUF", "qwen3", "exact"),
    ("bartowski/google_gemma-3-27b-it-GGUF", "gemma-3", "exact"),
    ("bartowski/mistralai_Mistral-Small-3.2-24B-Instruct-2506-GGUF", "tekken", "exact"),
    ("bartowski/Qwen_QwQ-32B-GGUF", "qwen2.5", "exact"),
    ("bartowski/deepseek-ai_DeepSeek-R1-0528-Qwen3-8B-GGUF", "qwen3", "exact"),
    ("Qwen/Qwen3-32B/", "qwen3", "exact"),
    ("glm-4.6v", "glm-4.5", "exact"),
    ("zai-org/GLM-4.6V-Flash", "glm-4.5", "exact"),
    ("zai-org/GLM-4.1V-9B-Thinking", "glm-4", "exact"),
    ("mistral.mistral-7b-instruct-v0:2", "mistral-v1", "exact"),
    ("mistral:7b-instruct-v0.2-q4_K_M", "mistral-v1", "exact"),
    ("mistral:7b-instruct-v0.3-q4_K_M", "mistral-v3", "exact"),
    ("mistral:v0.1", "mistral-v1", "exact"),
    ("mistral:instruct", "mistral-v3", "exact"),
]


@pytest.mark.parametrize(("name", "vocabulary", "kind"), NAMES)
def test_a_name_has_the_vocabulary_of_its_model(name: str, vocabulary: str, kind: str) -> None:
    model = fl.models.lookup(name)
    assert (model.encoding, model.kind) == (vocabulary, kind)


@pytest.mark.parametrize(
    "name",
    ["grok-4", "minimax-m2", "qwen3.7:35b", "qwen3.8-omni-flash", "kimi-k3.1-pro", "glm-4.8", "glm-5", "hermes-2-pro"],
)
def test_a_model_whose_vocabulary_was_not_seen_is_unknown(name: str) -> None:
    with pytest.raises(UnknownModelError):
        fl.models.lookup(name)


@pytest.mark.parametrize(
    ("registered", "given"),
    [
        ("mistral", "mistral"),
        ("mixtral", "ollama/mixtral:latest"),
        ("deepseek-r1:32b", "deepseek-r1:32b-qwen-distill-q4_K_M"),
        ("qwen3:30b-a3b-instruct-2507", "qwen3:30b-a3b-instruct-2507-q8_0"),
        ("Qwen3-32B", "bartowski/Qwen_Qwen3-32B-GGUF"),
    ],
)
def test_a_registered_name_comes_before_the_tables_whatever_its_spelling(registered: str, given: str) -> None:
    fl.models.register(registered, like="gpt-4o", context_window=7)
    try:
        assert fl.models.lookup(given).context_window == 7
    finally:
        fl.models.unregister(registered)
