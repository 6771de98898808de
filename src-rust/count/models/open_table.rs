//! The open models: their vocabulary, family and context window.
//!
//! Windows are those of the models' configurations, without extensions such as YaRN; unknown where sizes differ. They
//! were compared with those that hosts of the models publish, as LiteLLM 1.110.2 (MIT) lists them: most hosts of each
//! have the same, or fewer. Two models share a vocabulary if their repositories have the same one, but for tokens that
//! are added to it. A distillation has the vocabulary of its base, and a window of its own. What is not listed has a
//! vocabulary that was not seen.

use std::borrow::Cow;

use super::Model;
use crate::count::framing::{Accuracy, Family};

const CHECKED: &str = "2026-11-27";

type Group = (&'static str, Family);

const fn entry(
    (provider, family): Group,
    name: &'static str,
    vocabulary: &'static str,
    context_window: Option<u32>,
    covers_versions: bool,
) -> Model {
    Model {
        name: Cow::Borrowed(name),
        provider: Cow::Borrowed(provider),
        family,
        encoding: Cow::Borrowed(vocabulary),
        context_window,
        max_output_tokens: None,
        pictures: None,
        accuracy: None,
        covers_versions,
        checked: Cow::Borrowed(CHECKED),
    }
}

const fn open(group: Group, name: &'static str, vocabulary: &'static str, window: Option<u32>) -> Model {
    entry(group, name, vocabulary, window, false)
}

/// A model whose vocabulary its unknown newer versions share.
const fn line(group: Group, name: &'static str, vocabulary: &'static str, window: Option<u32>) -> Model {
    entry(group, name, vocabulary, window, true)
}

/// A model whose vocabulary is not published, or was not seen with the tokens added to it: counted by that of its base,
/// or of the open models of its time.
const fn hosted(group: Group, name: &'static str, vocabulary: &'static str, window: Option<u32>) -> Model {
    let mut model = entry(group, name, vocabulary, window, false);
    model.accuracy = Some(Accuracy::ESTIMATED);
    model
}

const QWEN: Group = ("alibaba", Family::ChatMl);
const META: Group = ("meta", Family::Llama);
const META_2: Group = ("meta", Family::Mistral);
const DEEPSEEK: Group = ("deepseek", Family::DeepSeek);
const GOOGLE: Group = ("google", Family::Gemma);
const MISTRAL: Group = ("mistral", Family::Mistral);
const MICROSOFT: Group = ("microsoft", Family::Open);
const ZAI: Group = ("z-ai", Family::Open);
const MOONSHOT: Group = ("moonshot", Family::Open);
const NOUS: Group = ("nousresearch", Family::ChatMl);
const AI2: Group = ("allenai", Family::ChatMl);
const COHERE: Group = ("cohere", Family::Open);

/// Every open model; the order does not matter.
pub(super) static MODELS: &[Model] = &[
    open(QWEN, "qwen2", "qwen2.5", Some(32_768)),
    open(QWEN, "qwen2.5", "qwen2.5", Some(32_768)),
    open(QWEN, "qwen2.5-vl", "qwen2.5", Some(128_000)),
    open(QWEN, "qwen2.5-math", "qwen2.5", Some(4_096)),
    open(QWEN, "qwen2.5-7b-instruct-1m", "qwen2.5", Some(1_010_000)),
    open(QWEN, "qwen2.5-14b-instruct-1m", "qwen2.5", Some(1_010_000)),
    open(QWEN, "qwen3", "qwen3", Some(40_960)),
    // Every size of the release of July 2025.
    open(QWEN, "qwen3-2507", "qwen3", Some(262_144)),
    open(QWEN, "qwen3-vl", "qwen3", Some(262_144)),
    open(QWEN, "qwen3-coder", "qwen3", Some(262_144)),
    open(QWEN, "qwen3-next", "qwen3", Some(262_144)),
    open(QWEN, "qwen3.5", "qwen3.5", Some(262_144)),
    open(QWEN, "qwen3.6", "qwen3.5", Some(262_144)),
    open(QWEN, "qwen3.8-27b", "qwen3.8", Some(262_144)),
    // The model card's window, by YaRN.
    open(QWEN, "qwq", "qwen2.5", Some(131_072)),
    open(QWEN, "qwq-32b-preview", "qwen2.5", Some(32_768)),
    hosted(QWEN, "qwen-max", "qwen2.5", Some(32_768)),
    hosted(QWEN, "qwen-plus", "qwen3", Some(131_072)),
    hosted(QWEN, "qwen-plus-2025-07-28", "qwen3", Some(1_000_000)),
    hosted(QWEN, "qwen-plus-2025-09-11", "qwen3", Some(1_000_000)),
    hosted(QWEN, "qwen-plus-latest", "qwen3", Some(1_000_000)),
    hosted(QWEN, "qwen-turbo", "qwen3", Some(131_072)),
    hosted(QWEN, "qwen-turbo-2024-11-01", "qwen2.5", Some(1_000_000)),
    hosted(QWEN, "qwen-turbo-2025-04-28", "qwen3", Some(1_000_000)),
    hosted(QWEN, "qwen-turbo-latest", "qwen3", Some(1_000_000)),
    hosted(QWEN, "qwen-flash", "qwen3", Some(1_000_000)),
    hosted(QWEN, "qwq-plus", "qwen2.5", Some(131_072)),
    hosted(QWEN, "qwen2.5-max", "qwen2.5", None),
    hosted(QWEN, "qwen3-max", "qwen3", Some(262_144)),
    hosted(QWEN, "qwen3-coder-plus", "qwen3", Some(1_000_000)),
    hosted(QWEN, "qwen3-coder-flash", "qwen3", Some(1_000_000)),
    hosted(QWEN, "qwen3-vl-plus", "qwen3", Some(262_144)),
    hosted(QWEN, "qwen3-vl-flash", "qwen3", None),
    hosted(QWEN, "qwen3.5-plus", "qwen3.5", Some(1_000_000)),
    hosted(QWEN, "qwen3.5-flash", "qwen3.5", Some(1_000_000)),
    hosted(QWEN, "qwen3.6-max", "qwen3.5", Some(262_144)),
    hosted(QWEN, "qwen3.6-plus", "qwen3.5", Some(1_000_000)),
    hosted(QWEN, "qwen3.6-flash", "qwen3.5", Some(1_000_000)),
    hosted(QWEN, "qwen3.7-max", "qwen3.5", Some(1_000_000)),
    hosted(QWEN, "qwen3.7-plus", "qwen3.5", Some(1_000_000)),
    hosted(QWEN, "qwen3.7-flash", "qwen3.5", Some(1_000_000)),
    hosted(QWEN, "qwen3.8-max", "qwen3.5", Some(1_000_000)),
    hosted(QWEN, "qwen3.8-plus", "qwen3.5", None),
    hosted(QWEN, "qwen3.8-flash", "qwen3.5", Some(1_000_000)),
    open(META_2, "llama-2", "llama-2", Some(4_096)),
    open(META_2, "codellama", "llama-2", Some(16_384)),
    open(META, "llama-3", "llama-3", Some(8_192)),
    // Vertex's name: only 3.1 has this size.
    open(META, "llama-3-405b", "llama-3", Some(131_072)),
    open(META, "llama-3.1", "llama-3", Some(131_072)),
    open(META, "llama-3.2", "llama-3", Some(131_072)),
    open(META, "llama-3.3", "llama-3", Some(131_072)),
    // Fine-tuned from Llama 3.1 and 3.2.
    open(META, "llama-guard-3", "llama-3", Some(131_072)),
    hosted(NOUS, "hermes-3", "llama-3", Some(131_072)),
    open(META, "llama-4", "llama-4", None),
    open(META, "llama-4-scout", "llama-4", Some(10_485_760)),
    open(META, "llama-4-maverick", "llama-4", Some(1_048_576)),
    line(DEEPSEEK, "deepseek-v3", "deepseek-v3", Some(163_840)),
    open(DEEPSEEK, "deepseek-r1", "deepseek-v3", Some(163_840)),
    line(DEEPSEEK, "deepseek-v4", "deepseek-v4", Some(1_048_576)),
    open(DEEPSEEK, "deepseek-r1-distill-llama", "llama-3", Some(131_072)),
    open(DEEPSEEK, "deepseek-r1-distill-qwen", "qwen2.5", Some(131_072)),
    open(DEEPSEEK, "deepseek-r1-0528-qwen3", "qwen3", Some(131_072)),
    // The API's older names, of V4 Flash from 2026-04-24 until they were retired on 2026-07-24. The vocabularies of V3
    // and V4 give the same counts.
    open(DEEPSEEK, "deepseek-chat", "deepseek-v4", Some(1_048_576)),
    open(DEEPSEEK, "deepseek-reasoner", "deepseek-v4", Some(1_048_576)),
    open(GOOGLE, "gemma-2", "gemma-2", Some(8_192)),
    open(GOOGLE, "gemma-3", "gemma-3", Some(131_072)),
    open(GOOGLE, "gemma-3-270m", "gemma-3", Some(32_768)),
    open(GOOGLE, "gemma-3-1b", "gemma-3", Some(32_768)),
    open(GOOGLE, "gemma-3n", "gemma-3n", Some(32_768)),
    open(GOOGLE, "gemma-4", "gemma-4", None),
    open(GOOGLE, "gemma-4-e2b", "gemma-4", Some(131_072)),
    open(GOOGLE, "gemma-4-e4b", "gemma-4", Some(131_072)),
    open(GOOGLE, "gemma-4-26b", "gemma-4", Some(262_144)),
    open(GOOGLE, "gemma-4-31b", "gemma-4", Some(262_144)),
    open(MISTRAL, "mistral-nemo", "tekken", Some(131_072)),
    line(MISTRAL, "mistral-small", "tekken", None),
    open(MISTRAL, "mistral-small:22b", "mistral-v3", Some(32_768)),
    open(MISTRAL, "mistral-large:123b", "mistral-v7", Some(131_072)),
    open(MISTRAL, "mistral-medium-2312", "mistral-v1", Some(32_768)),
    open(MISTRAL, "mistral-small-2402", "mistral-v3", Some(32_768)),
    open(MISTRAL, "mistral-small-2409", "mistral-v3", Some(32_768)),
    open(MISTRAL, "mistral-small3", "tekken", Some(32_768)),
    open(MISTRAL, "mistral-small3.1", "tekken", Some(131_072)),
    open(MISTRAL, "mistral-small3.2", "tekken", Some(131_072)),
    line(MISTRAL, "mistral-medium", "tekken", None),
    open(MISTRAL, "mistral-large", "tekken", Some(131_072)),
    open(MISTRAL, "mistral-large-latest", "tekken", Some(262_144)),
    open(MISTRAL, "mistral-large-3", "tekken", Some(262_144)),
    open(MISTRAL, "mistral-large-2512", "tekken", Some(262_144)),
    open(MISTRAL, "mistral-large-2402", "mistral-v3", Some(32_768)),
    open(MISTRAL, "mistral-tiny", "mistral-v1", Some(32_768)),
    open(MISTRAL, "codestral-2405", "mistral-v3", Some(32_768)),
    open(MISTRAL, "codestral-22b", "mistral-v3", Some(32_768)),
    hosted(MISTRAL, "codestral-2501", "tekken", Some(256_000)),
    hosted(MISTRAL, "codestral-2508", "tekken", Some(256_000)),
    hosted(MISTRAL, "codestral-latest", "tekken", Some(256_000)),
    open(MISTRAL, "mathstral", "mistral-v3", Some(32_768)),
    // The model card's window; the configuration's is four times that.
    open(MISTRAL, "voxtral-small", "tekken", Some(32_768)),
    open(MISTRAL, "mistral-large-2407", "mistral-v3", Some(131_072)),
    open(MISTRAL, "mistral-large-2411", "mistral-v7", Some(131_072)),
    line(MISTRAL, "ministral", "tekken", None),
    line(MISTRAL, "magistral", "tekken", None),
    line(MISTRAL, "devstral", "tekken", None),
    open(MISTRAL, "pixtral", "tekken", None),
    open(MISTRAL, "pixtral-12b", "tekken", Some(131_072)),
    open(MISTRAL, "pixtral-large", "mistral-v7", Some(131_072)),
    open(MISTRAL, "mistral-7b", "mistral-v3", Some(32_768)),
    open(MISTRAL, "mistral-7b-v0.1", "mistral-v1", Some(32_768)),
    open(MISTRAL, "mistral-7b-v0.2", "mistral-v1", Some(32_768)),
    open(MISTRAL, "mixtral-8x22b", "mistral-v3", Some(65_536)),
    open(MISTRAL, "mixtral-8x7b", "mistral-v1", Some(32_768)),
    open(MICROSOFT, "phi-4", "phi-4", Some(16_384)),
    open(MICROSOFT, "phi-4-reasoning", "phi-4", Some(32_768)),
    open(MICROSOFT, "phi-4-mini", "phi-4-mini", Some(131_072)),
    open(MICROSOFT, "phi-4-multimodal", "phi-4-mini", Some(131_072)),
    open(MICROSOFT, "phi-3", "phi-3", None),
    open(MICROSOFT, "phi-3-small", "cl100k_base", None),
    open(MICROSOFT, "phi-3.5", "phi-3", Some(131_072)),
    open(ZAI, "glm-4", "glm-4", Some(131_072)),
    open(ZAI, "glm-4.1v", "glm-4", Some(65_536)),
    open(ZAI, "glm-4-32b", "glm-4", Some(32_768)),
    line(ZAI, "glm-4.5", "glm-4.5", Some(131_072)),
    open(ZAI, "glm-4.5v", "glm-4.5", Some(65_536)),
    open(ZAI, "glm-4.6", "glm-4.5", Some(202_752)),
    open(ZAI, "glm-4.6v", "glm-4.5", Some(131_072)),
    open(ZAI, "glm-4.7", "glm-4.5", Some(202_752)),
    open(ZAI, "glm-4.7-flash", "glm-4.7-flash", Some(202_752)),
    open(ZAI, "glm-4.7-flashx", "glm-4.7-flash", Some(202_752)),
    open(ZAI, "glm-4-9b-chat-1m", "glm-4", Some(1_048_576)),
    open(ZAI, "glm-4-32b-0414-128k", "glm-4", Some(131_072)),
    open(MOONSHOT, "kimi-k2", "kimi-k2", Some(131_072)),
    open(MOONSHOT, "kimi-k2-0905", "kimi-k2", Some(262_144)),
    open(MOONSHOT, "kimi-k2-instruct-0905", "kimi-k2", Some(262_144)),
    open(MOONSHOT, "kimi-k2-thinking", "kimi-k2", Some(262_144)),
    open(MOONSHOT, "kimi-k2.5", "kimi-k2", Some(262_144)),
    open(MOONSHOT, "kimi-k2.6", "kimi-k2", Some(262_144)),
    open(MOONSHOT, "kimi-k2.7", "kimi-k2", Some(262_144)),
    // The ranks and the pattern of K2; only special tokens differ.
    open(MOONSHOT, "kimi-k3", "kimi-k2", Some(1_048_576)),
    line(AI2, "olmo-2", "olmo-2", Some(4_096)),
    line(AI2, "olmo-3", "olmo-2", Some(65_536)),
    open(COHERE, "command-r", "command-r", Some(131_072)),
    open(COHERE, "command-r-plus", "command-r", Some(131_072)),
    open(COHERE, "command-a", "command-a", Some(262_144)),
];
