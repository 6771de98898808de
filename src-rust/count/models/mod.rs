//! Models: encoding, family, context window, longest output. A dated table, extended by registered models.
//!
//! A name resolves to the longest known prefix that ends at a version boundary: `gpt-4o-2024-11-20`,
//! `openai/gpt-4o-mini` and `ft:gpt-4o-mini:org::id` are known, `claude-opus-4-9` is not `claude-opus-4`. Nothing is
//! fetched.

mod counter;
mod name;
mod open_names;
mod open_table;
mod source;
mod table;
mod vocabularies;

pub use counter::ModelCounter;

use std::borrow::Cow;
use std::sync::{PoisonError, RwLock};

pub use self::source::{Source, encoding_of};
use self::vocabularies::Vocabulary;
pub use self::vocabularies::{Place, use_package};
use super::bpe::encoding::Encoding;
use super::claude::Generation;
use super::files::load::is_tokenizer_path;
use super::framing::media::PictureRule;
use super::framing::{Accuracy, Family};
use crate::error::{Error, Result};

/// The properties of a model and of the names that begin with its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    /// Its name, or the common prefix of its dated and suffixed names.
    pub name: Cow<'static, str>,
    /// The provider.
    pub provider: Cow<'static, str>,
    /// The family, which determines its framing.
    pub family: Family,
    /// What counts its texts: an encoding (its own, or the one its counts are fitted to), the vocabulary of an open
    /// model, or the path of a tokenizer file.
    pub encoding: Cow<'static, str>,
    /// Tokens of input and output together, if known.
    pub context_window: Option<u32>,
    /// Most tokens of output, if known.
    pub max_output_tokens: Option<u32>,
    /// The price of pictures, if it differs from the family's.
    pub pictures: Option<PictureRule>,
    /// Accuracy of counts of its texts, if it differs from the family's.
    pub accuracy: Option<Accuracy>,
    /// Whether an unknown newer version (`gpt-5.9`) resolves to this model.
    pub covers_versions: bool,
    /// The date of the last check.
    pub checked: Cow<'static, str>,
}

impl Model {
    /// Accuracy of counts of its texts.
    #[must_use]
    pub fn accuracy(&self) -> Accuracy {
        self.accuracy.unwrap_or(self.family.text().1)
    }

    /// Whether its texts are counted by the vocabulary of a file, or may be.
    #[must_use]
    pub fn uses_file(&self) -> bool {
        self.family == Family::Gemini || Vocabulary::get(&self.encoding).is_some()
    }
}

/// Registered models, newest last.
static REGISTERED: RwLock<Vec<Model>> = RwLock::new(Vec::new());

/// Finds a model by its name, a dated or suffixed name, or a name with a provider's prefix.
///
/// The longest match wins; among equals, registered models before the table and newer before older. Of a table's name
/// that is spelled in another way, only the beginning that both spellings share counts against a registered one.
/// O(table).
#[must_use]
pub fn lookup(model: &str) -> Option<Model> {
    let name = name::normalized(model);
    let is_known = |known: &&Model| name::matches(&name, &known.name, known.covers_versions);
    let in_table =
        table::MODELS.iter().chain(open_table::MODELS).filter(is_known).max_by_key(|known| known.name.len());
    let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
    // The last of equals is the newest.
    let own = registered.iter().filter_map(|known| {
        Some((name::matched_registered(model, &known.name, known.covers_versions)?, known))
    });
    let own = own.max_by_key(|(len, _)| *len);
    let is_longer = |known: &&Model| own.is_none_or(|(len, _)| name::shared(model, &known.name) > len);
    in_table.filter(is_longer).or(own.map(|(_, known)| known)).cloned()
}

/// The family of models that count with this encoding, vocabulary or tokenizer file, if none is named: for an encoding
/// of OpenAI that of the messages' dialect.
///
/// # Errors
/// `unknown_encoding`.
pub fn family_of(encoding: &str) -> Result<Family> {
    if let Some(generation) = Generation::from_name(encoding) {
        return Ok(match generation {
            Generation::V3 => Family::Claude,
            Generation::V47 => Family::Claude47,
            Generation::V48 => Family::Claude48,
        });
    }
    if Encoding::get(encoding).is_some() {
        return Ok(Family::Plain);
    }
    if Vocabulary::get(encoding).is_some() {
        let known = open_table::MODELS.iter().find(|model| model.encoding == encoding);
        return Ok(known.map_or(Family::Open, |model| model.family));
    }
    if is_path(encoding) {
        return Ok(Family::Open);
    }
    let known = Encoding::names().join(", ");
    Err(Error::config("unknown_encoding", "encoding", format!("not one of {known}")))
}

/// Whether a model's encoding is the path of a tokenizer file or a model's folder.
fn is_path(encoding: &str) -> bool {
    is_tokenizer_path(encoding) || std::path::Path::new(encoding).is_absolute()
}

/// Registers a model, or replaces a registered one with the same name. It covers dated and suffixed names, like the
/// models of the table.
///
/// # Errors
/// `empty_name`, `unknown_encoding`.
pub fn register(mut model: Model) -> Result<()> {
    let name = name::lowered(&model.name);
    if name.rsplit('/').next().is_none_or(str::is_empty) {
        return Err(Error::config("empty_name", "name", "must not be empty"));
    }
    family_of(&model.encoding)?;
    model.name = Cow::Owned(name);
    let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
    registered.retain(|known| known.name != model.name);
    registered.push(model);
    Ok(())
}

/// Removes the registered model with this name. Returns whether there was one.
pub fn unregister(model: &str) -> bool {
    let name = name::lowered(model);
    let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
    let before = registered.len();
    registered.retain(|known| known.name != name);
    registered.len() < before
}

/// All known models: the table, then the registered ones.
#[must_use]
pub fn all() -> Vec<Model> {
    let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
    table::MODELS.iter().chain(open_table::MODELS).chain(registered.iter()).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dated_and_suffixed_names_resolve_to_their_family() {
        let cases = [
            ("gpt-4o-mini-2024-07-18", Some(("gpt-4o-mini", "o200k_base"))),
            ("gpt-4-0613", Some(("gpt-4", "cl100k_base"))),
            ("gpt-4.1-nano", Some(("gpt-4.1-nano", "o200k_base"))),
            ("openai/gpt-5", Some(("gpt-5", "o200k_base"))),
            ("ft:gpt-3.5-turbo:org::id", Some(("gpt-3.5-turbo", "cl100k_base"))),
            ("azure:gpt-35-turbo", Some(("gpt-35", "cl100k_base"))),
            ("o3-mini", Some(("o3-mini", "o200k_base"))),
            ("gpt-5.1-codex", Some(("gpt-5.1", "o200k_base"))),
            ("gpt-5.9-preview", Some(("gpt-5", "o200k_base"))),
            ("openai.gpt-5.6-luna", Some(("gpt-5.6", "o200k_base"))),
            ("claude-sonnet-4-5", Some(("claude-sonnet-4-5", "claude-3"))),
            ("claude-sonnet-4-5-20250929", Some(("claude-sonnet-4-5", "claude-3"))),
            ("anthropic/claude-sonnet-4.5", Some(("claude-sonnet-4-5", "claude-3"))),
            ("us.anthropic.claude-3-5-sonnet-20241022-v2:0", Some(("claude-3-5-sonnet", "claude-3"))),
            ("claude-opus-4@20250514", Some(("claude-opus-4", "claude-3"))),
            ("claude-opus-4-9", None),
            ("claude-opus-4-7", Some(("claude-opus-4-7", "claude-4.7"))),
            ("claude-opus-4-8[1m]", Some(("claude-opus-4-8", "claude-4.8"))),
            ("models/gemini-2.5-pro-preview-03-25", Some(("gemini-2.5-pro", "o200k_base"))),
            ("google/gemini-2.0-flash-exp:free", Some(("gemini-2.0-flash", "o200k_base"))),
            ("GPT-4o", Some(("gpt-4o", "o200k_base"))),
            ("databricks-gpt-5-4", Some(("gpt-5.4", "o200k_base"))),
            ("databricks-claude-sonnet-4-5", Some(("claude-sonnet-4-5", "claude-3"))),
            ("databricks-gemini-2-5-pro", Some(("gemini-2.5-pro", "o200k_base"))),
            ("openai-gpt-4o-mini", Some(("gpt-4o-mini", "o200k_base"))),
            ("anthropic-claude-3.5-sonnet", Some(("claude-3-5-sonnet", "claude-3"))),
            ("o1000", None),
            ("gpt-4omni", None),
            ("", None),
            ("/", None),
        ];
        for (model, expected) in cases {
            let found = lookup(model);
            let found = found.as_ref().map(|model| (&*model.name, &*model.encoding));
            assert_eq!(found, expected, "{model}");
        }
    }

    #[test]
    fn every_name_finds_itself_and_its_encoding_exists() {
        for model in all() {
            assert_eq!(lookup(&model.name).map(|found| found.name), Some(model.name.clone()));
            let counts =
                Encoding::get(&model.encoding).is_some() || Vocabulary::get(&model.encoding).is_some();
            let counts = counts || Generation::from_name(&model.encoding).is_some();
            assert!(counts, "{}", model.name);
            assert_eq!(name::normalized(&model.name), model.name);
        }
    }

    #[test]
    fn open_models_are_found_as_hubs_gateways_and_servers_write_them() {
        for (written, expected) in [
            ("qwen3:32b", Some(("qwen3", "qwen3"))),
            ("hosted_vllm/Qwen/Qwen3-32B", Some(("qwen3", "qwen3"))),
            ("Qwen/Qwen3-32B-FP8", Some(("qwen3", "qwen3"))),
            ("qwen/qwen3-32b:free", Some(("qwen3", "qwen3"))),
            ("qwen/qwen-2.5-72b-instruct", Some(("qwen2.5", "qwen2.5"))),
            ("Qwen/Qwen2.5-Coder-32B-Instruct-AWQ", Some(("qwen2.5", "qwen2.5"))),
            ("qwen3.5:27b", Some(("qwen3.5", "qwen3.5"))),
            ("dashscope/qwen3-max-2026-01-23", Some(("qwen3-max", "qwen3"))),
            ("fireworks_ai/accounts/fireworks/models/qwen3p7-plus", Some(("qwen3.7-plus", "qwen3.5"))),
            ("kyma/qwen-3.8-max", Some(("qwen3.8-max", "qwen3.5"))),
            ("empiriolabs/qwen3-6-flash:variant1", Some(("qwen3.6-flash", "qwen3.5"))),
            ("dashscope/qwen-plus-2025-09-11", Some(("qwen-plus-2025-09-11", "qwen3"))),
            ("dashscope/qwen-max-latest", Some(("qwen-max", "qwen2.5"))),
            ("dashscope/qwq-plus", Some(("qwq-plus", "qwen2.5"))),
            ("ollama/llama3.3:70b-instruct-q4_K_M", Some(("llama-3.3", "llama-3"))),
            ("bedrock/us.meta.llama3-3-70b-instruct-v1:0", Some(("llama-3.3", "llama-3"))),
            ("meta-llama/Llama-3.1-8B-Instruct", Some(("llama-3.1", "llama-3"))),
            ("llama-3.3-70b-instruct-maas", Some(("llama-3.3", "llama-3"))),
            ("llama-3.3-70b", Some(("llama-3.3", "llama-3"))),
            ("meta-llama/llama-4-scout:free", Some(("llama-4-scout", "llama-4"))),
            ("deepseek-r1:70b", Some(("deepseek-r1-distill-llama", "llama-3"))),
            ("deepseek-r1:671b", Some(("deepseek-r1", "deepseek-v3"))),
            ("deepseek-r1:32b", Some(("deepseek-r1-distill-qwen", "qwen2.5"))),
            ("deepseek-ai/DeepSeek-R1-Distill-Llama-70B", Some(("deepseek-r1-distill-llama", "llama-3"))),
            ("deepseek/deepseek-chat-v3.1", Some(("deepseek-v3", "deepseek-v3"))),
            ("us.deepseek.r1-v1:0", Some(("deepseek-r1", "deepseek-v3"))),
            ("deepseek-v3.2", Some(("deepseek-v3", "deepseek-v3"))),
            ("deepseek-v4", Some(("deepseek-v4", "deepseek-v4"))),
            ("gemma3:27b-it-qat", Some(("gemma-3", "gemma-3"))),
            ("google/gemma-3-27b-it", Some(("gemma-3", "gemma-3"))),
            ("mistralai/Mistral-Nemo-Instruct-2407", Some(("mistral-nemo", "tekken"))),
            ("mistral-small3.1:24b", Some(("mistral-small3.1", "tekken"))),
            ("mistral:7b", Some(("mistral-7b", "mistral-v3"))),
            ("mistralai/Mistral-7B-Instruct-v0.1", Some(("mistral-7b-v0.1", "mistral-v1"))),
            ("mistralai/Mistral-Small-Instruct-2409", Some(("mistral-small-2409", "mistral-v3"))),
            ("mistralai/Mistral-Small-24B-Instruct-2501", Some(("mistral-small", "tekken"))),
            ("eu.mistral.pixtral-large-2502-v1:0", Some(("pixtral-large", "mistral-v7"))),
            ("mistral-small:22b", Some(("mistral-small:22b", "mistral-v3"))),
            ("mistral-small:24b", Some(("mistral-small", "tekken"))),
            ("azure_ai/Phi-4-mini-instruct", Some(("phi-4-mini", "phi-4-mini"))),
            ("phi4-mini:3.8b", Some(("phi-4-mini", "phi-4-mini"))),
            ("microsoft/Phi-3-small-8k-instruct", Some(("phi-3-small", "cl100k_base"))),
            ("mistral.mistral-large-2402-v1:0", Some(("mistral-large-2402", "mistral-v3"))),
            ("mistralai/Mistral-Large-3-675B-Instruct-2512", Some(("mistral-large-3", "tekken"))),
            ("mistral", Some(("mistral-7b", "mistral-v3"))),
            ("deepseek/deepseek-chat", Some(("deepseek-chat", "deepseek-v4"))),
            ("us.deepseek.v3.2", Some(("deepseek-v3", "deepseek-v3"))),
            ("fireworks_ai/accounts/fireworks/models/llama-v3p1-8b-instruct", Some(("llama-3.1", "llama-3"))),
            ("databricks/databricks-meta-llama-3-3-70b-instruct", Some(("llama-3.3", "llama-3"))),
            ("bedrock/moonshotai.kimi-k2-thinking", Some(("kimi-k2-thinking", "kimi-k2"))),
            ("Qwen/Qwen3-30B-A3B-Instruct-2507-FP8", Some(("qwen3-2507", "qwen3"))),
            ("zai.glm-4.7", Some(("glm-4.7", "glm-4.5"))),
            ("zai-org/GLM-4.5-Air", Some(("glm-4.5", "glm-4.5"))),
            ("THUDM/glm-4-9b-chat-1m", Some(("glm-4-9b-chat-1m", "glm-4"))),
            ("zai-org/GLM-5", None),
            ("cohere.command-r-08-2024", Some(("command-r", "command-r"))),
            ("cohere/command-a-03-2025", Some(("command-a", "command-a"))),
            ("codellama:34b", Some(("codellama", "llama-2"))),
            ("mistralai/Mistral-Large-Instruct-2407", Some(("mistral-large-2407", "mistral-v3"))),
            ("mistralai/Mistral-Large-Instruct-2411", Some(("mistral-large-2411", "mistral-v7"))),
            ("mistralai/Pixtral-Large-Instruct-2411", Some(("pixtral-large", "mistral-v7"))),
            ("vertex_ai/mistral-large@2407", Some(("mistral-large-2407", "mistral-v3"))),
            ("vertex_ai/mistral-large@2411-001", Some(("mistral-large-2411", "mistral-v7"))),
            ("ollama/mistral-large:latest", Some(("mistral-large:123b", "mistral-v7"))),
            ("github_copilot/gpt-4-o-preview", Some(("gpt-4o", "o200k_base"))),
            ("zai-org/GLM-4.7-Flash", Some(("glm-4.7-flash", "glm-4.7-flash"))),
            ("qwen2.5vl:7b", Some(("qwen2.5-vl", "qwen2.5"))),
            ("mistral-large-2512", Some(("mistral-large-2512", "tekken"))),
            ("mistral.mixtral-8x7b-instruct-v0:1", Some(("mixtral-8x7b", "mistral-v1"))),
            ("phi4:14b", Some(("phi-4", "phi-4"))),
            ("z-ai/glm-4.5-air", Some(("glm-4.5", "glm-4.5"))),
            ("moonshotai/kimi-k2-0905", Some(("kimi-k2-0905", "kimi-k2"))),
            ("gpt-oss:20b", Some(("gpt-oss", "o200k_harmony"))),
            ("llamafile", None),
            ("grok-4", None),
        ] {
            let found = lookup(written);
            let found = found.as_ref().map(|model| (&*model.name, &*model.encoding));
            assert_eq!(found, expected, "{written}");
        }
    }

    #[test]
    fn a_model_without_a_published_vocabulary_is_estimated() {
        for name in ["qwen3-max", "qwen3-coder-plus", "qwen-plus", "qwen3.8-flash"] {
            assert_eq!(lookup(name).map(|model| model.accuracy()), Some(Accuracy::ESTIMATED), "{name}");
        }
        for name in ["qwen3:32b", "qwen3-coder:30b", "qwen3.6-27b"] {
            assert_eq!(lookup(name).map(|model| model.accuracy()), Some(Accuracy::EXACT), "{name}");
        }
    }

    #[test]
    fn what_is_registered_comes_first() {
        let model = |name: &'static str, window| Model {
            name: name.into(),
            provider: "me".into(),
            context_window: Some(window),
            ..lookup("gpt-4o").unwrap()
        };
        register(model("x-tests/gpt-4o-mine", 7)).unwrap();
        assert_eq!(lookup("gpt-4o-mine-2026-01-01").and_then(|model| model.context_window), Some(7));
        register(model("gpt-4o-mine", 8)).unwrap();
        assert_eq!(lookup("gpt-4o-mine").and_then(|model| model.context_window), Some(8));
        assert_eq!(lookup("gpt-4o").and_then(|model| model.context_window), Some(128_000));
        assert_eq!(lookup("gateway/x-tests/gpt-4o-mine").and_then(|model| model.context_window), Some(7));
        assert!(unregister("gpt-4o-mine") && !unregister("gpt-4o-mine") && unregister("X-tests/gpt-4o-mine"));
        assert_eq!(lookup("gpt-4o-mine").map(|model| model.name), Some("gpt-4o".into()));
        register(model("deepseek-r1:70b", 9)).unwrap();
        assert_eq!(lookup("ollama/deepseek-r1:70b").and_then(|model| model.context_window), Some(9));
        assert_eq!(lookup("llama-3.3-70b").and_then(|model| model.context_window), Some(131_072));
        assert!(unregister("deepseek-r1:70b"));
        let bad = Model { encoding: "none".into(), ..model("x", 1) };
        assert_eq!(register(bad).unwrap_err().code, "unknown_encoding");
        assert_eq!(register(model("", 1)).unwrap_err().code, "empty_name");
    }
}
