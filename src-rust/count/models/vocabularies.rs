//! Vocabularies of open models, and the tokenizer files that have them. Nothing is downloaded.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::count::files::folder::{self, file_of};
use crate::error::{Error, Result};

/// The vocabulary that the models of a line share.
pub(super) struct Vocabulary {
    /// Its name in the table, and of its file in the folder that [`FOLDER`] names.
    pub(super) name: &'static str,
    /// Repositories of Hugging Face with its tokenizer; the first is the example in errors.
    repositories: &'static [&'static str],
    /// Whether the package foldline-vocab has it.
    is_packaged: bool,
}

/// Where what counts a model's texts comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The core itself.
    BuiltIn,
    /// The folder of the user's tokenizer files.
    Folder,
    /// The package of vocabularies.
    Package,
    /// The cache of Hugging Face.
    Cache,
    /// The path of a registered model.
    Path,
}

impl Place {
    /// The public name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Place::BuiltIn => "built in",
            Place::Folder => "FOLDLINE_TOKENIZERS",
            Place::Package => "foldline-vocab",
            Place::Cache => "Hugging Face cache",
            Place::Path => "path",
        }
    }
}

/// The environment variable with the folder of a user's tokenizer files.
const FOLDER: &str = "FOLDLINE_TOKENIZERS";

/// The folder of the package of vocabularies, if it is installed.
static PACKAGED: OnceLock<PathBuf> = OnceLock::new();

/// Endings of a file in that folder.
const ENDINGS: [&str; 4] = ["json", "tiktoken", "model", "gguf"];

const fn vocabulary(name: &'static str, repositories: &'static [&'static str]) -> Vocabulary {
    Vocabulary { name, repositories, is_packaged: false }
}

/// A vocabulary of the package foldline-vocab.
const fn packaged(name: &'static str, repositories: &'static [&'static str]) -> Vocabulary {
    Vocabulary { name, repositories, is_packaged: true }
}

/// Every vocabulary.
pub(super) static VOCABULARIES: &[Vocabulary] = &[
    packaged(
        "qwen2.5",
        &["Qwen/Qwen2.5-72B-Instruct", "Qwen/Qwen2.5-7B-Instruct", "Qwen/Qwen2.5-Coder-32B-Instruct"],
    ),
    packaged(
        "qwen3",
        &["Qwen/Qwen3-32B", "Qwen/Qwen3-8B", "Qwen/Qwen3-0.6B", "Qwen/Qwen3-Coder-30B-A3B-Instruct"],
    ),
    vocabulary("qwen3.5", &["Qwen/Qwen3.5-27B", "Qwen/Qwen3.5-9B"]),
    vocabulary("qwen3.8", &["Qwen/Qwen3.8-27B"]),
    vocabulary("llama-2", &["meta-llama/Llama-2-7b-chat-hf", "meta-llama/Llama-2-70b-chat-hf"]),
    vocabulary(
        "llama-3",
        &[
            "meta-llama/Llama-3.3-70B-Instruct",
            "meta-llama/Llama-3.1-8B-Instruct",
            "meta-llama/Llama-3.2-1B-Instruct",
            "meta-llama/Meta-Llama-3-8B-Instruct",
        ],
    ),
    vocabulary(
        "llama-4",
        &["meta-llama/Llama-4-Scout-17B-16E-Instruct", "meta-llama/Llama-4-Maverick-17B-128E-Instruct"],
    ),
    packaged(
        "deepseek-v3",
        &["deepseek-ai/DeepSeek-V3", "deepseek-ai/DeepSeek-R1", "deepseek-ai/DeepSeek-V3.1"],
    ),
    packaged("deepseek-v4", &["deepseek-ai/DeepSeek-V4"]),
    vocabulary("gemma-2", &["google/gemma-2-9b-it", "google/gemma-2-27b-it"]),
    vocabulary("gemma-3n", &["google/gemma-3n-E4B-it", "google/gemma-3n-E2B-it"]),
    vocabulary("gemma-3", &["google/gemma-3-27b-it", "google/gemma-3-4b-it", "google/gemma-3-1b-it"]),
    packaged("gemma-4", &["google/gemma-4-31b-it"]),
    packaged(
        "tekken",
        &[
            "mistralai/Mistral-Nemo-Instruct-2407",
            "mistralai/Mistral-Small-24B-Instruct-2501",
            "mistralai/Mistral-Small-3.2-24B-Instruct-2506",
            "mistralai/Devstral-Small-2507",
        ],
    ),
    packaged("mistral-v3", &["mistralai/Mistral-7B-Instruct-v0.3", "mistralai/Mixtral-8x22B-Instruct-v0.1"]),
    packaged(
        "mistral-v7",
        &["mistralai/Mistral-Large-Instruct-2411", "mistralai/Pixtral-Large-Instruct-2411"],
    ),
    packaged("mistral-v1", &["mistralai/Mixtral-8x7B-Instruct-v0.1", "mistralai/Mistral-7B-Instruct-v0.2"]),
    vocabulary("phi-4", &["microsoft/phi-4"]),
    vocabulary("phi-4-mini", &["microsoft/Phi-4-mini-instruct", "microsoft/Phi-4-multimodal-instruct"]),
    vocabulary("phi-3", &["microsoft/Phi-3-mini-4k-instruct", "microsoft/Phi-3.5-mini-instruct"]),
    vocabulary("glm-4.7-flash", &["zai-org/GLM-4.7-Flash"]),
    packaged("glm-4.5", &["zai-org/GLM-4.5", "zai-org/GLM-4.6"]),
    packaged("glm-4", &["THUDM/glm-4-9b-chat"]),
    vocabulary(
        "kimi-k2",
        &["moonshotai/Kimi-K2-Instruct", "moonshotai/Kimi-K2-Instruct-0905", "moonshotai/Kimi-K3"],
    ),
    vocabulary("olmo-2", &["allenai/OLMo-2-1124-13B-Instruct", "allenai/Olmo-3-7B-Instruct"]),
    vocabulary("command-r", &["CohereForAI/c4ai-command-r-08-2024", "CohereForAI/c4ai-command-r-plus"]),
    vocabulary("command-a", &["CohereLabs/c4ai-command-a-03-2025"]),
];

/// Names the folder of the package of vocabularies. Only the first call counts.
pub fn use_package(folder: PathBuf) {
    let _ = PACKAGED.set(folder);
}

impl Vocabulary {
    /// The vocabulary with this name.
    pub(super) fn get(name: &str) -> Option<&'static Vocabulary> {
        VOCABULARIES.iter().find(|vocabulary| vocabulary.name == name)
    }

    /// Its tokenizer file, and where that is: in the user's folder, in the cache of Hugging Face for the repository
    /// that `model` names, in the package of vocabularies, or in the cache for one of the line's own.
    ///
    /// # Errors
    /// `missing_tokenizer`, which says what is looked for and where.
    pub(super) fn find(&self, model: &str) -> Result<(Place, PathBuf)> {
        // Gateways put their own name before that of the repository.
        let (rest, name) = model.trim_end_matches('/').rsplit_once('/').unzip();
        let owner = rest.map(|rest| rest.rsplit('/').next().unwrap_or(rest));
        let own = owner.zip(name).map(|(owner, name)| format!("{owner}/{name}"));
        let in_folder = folder_of_user().and_then(|folder| self.in_folder(&folder));
        let cache = hugging_face_cache();
        let cached = |repository: &str| Some((Place::Cache, in_cache(cache.as_deref()?, repository)?));
        in_folder
            .map(|file| (Place::Folder, file))
            .or_else(|| own.and_then(|own| cached(&own)))
            .or_else(|| Some((Place::Package, self.in_folder(PACKAGED.get()?)?)))
            .or_else(|| self.repositories.iter().find_map(|repository| cached(repository)))
            .ok_or_else(|| Error::config("missing_tokenizer", "model", self.advice()))
    }

    /// Its file in a folder, by its name. A subfolder without a tokenizer is found too, so that opening it says so.
    fn in_folder(&self, folder: &Path) -> Option<PathBuf> {
        let subfolder = Some(folder.join(self.name)).filter(|folder| folder.is_dir());
        subfolder.map(|folder| file_of(&folder).unwrap_or(folder)).or_else(|| {
            let files = ENDINGS.iter().map(|ending| folder.join(format!("{}.{ending}", self.name)));
            files.into_iter().find(|file| file.is_file())
        })
    }

    /// What to give, and where.
    fn advice(&self) -> String {
        let name = self.name;
        let files = ENDINGS.map(|ending| format!("{name}.{ending}")).join(", ");
        let folder = if folder_of_user().is_some() { "" } else { " (not set)" };
        let package = match (self.is_packaged, PACKAGED.get()) {
            (false, _) => "",
            (true, None) => "; in the package foldline-vocab, which has it and is not installed",
            (true, Some(_)) => "; in the package foldline-vocab, whose installed version does not have it",
        };
        let example = self.repositories.first().copied().unwrap_or_default();
        let (repositories, names) = (self.repositories.join(", "), folder::NAMES.join(", "));
        let endings = folder::ENDINGS.map(|ending| format!(".{ending}")).join(" or ");
        format!(
            "the vocabulary {name} is not built in: the tokenizer file of a model that has it, such as {example}, is \
             needed. It is looked for as {files} or a folder {name} in the folder {FOLDER}{folder}{package}; in the \
             cache of Hugging Face (HF_HOME), as {names} or the only {endings} of the model's own repository, or of \
             {repositories}. Nothing is downloaded. TokenCounter(path) and models.register(name, tokenizer=path) take \
             a file from anywhere"
        )
    }
}

/// The folder of the user's tokenizer files.
fn folder_of_user() -> Option<PathBuf> {
    std::env::var_os(FOLDER).filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// The folder of repositories in the cache of Hugging Face.
fn hugging_face_cache() -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from);
    folder("HF_HUB_CACHE")
        .or_else(|| folder("HUGGINGFACE_HUB_CACHE"))
        .or_else(|| Some(folder("HF_HOME")?.join("hub")))
        .or_else(|| Some(folder("XDG_CACHE_HOME")?.join("huggingface/hub")))
        .or_else(|| Some(folder("HOME").or_else(|| folder("USERPROFILE"))?.join(".cache/huggingface/hub")))
}

/// The tokenizer file of a repository in the cache: of the revision `main`, else of the last by name.
fn in_cache(cache: &Path, repository: &str) -> Option<PathBuf> {
    if repository.split('/').any(|part| part.is_empty() || part.starts_with('.')) {
        return None;
    }
    let folder = cache.join(format!("models--{}", repository.replace('/', "--")));
    let snapshots = folder.join("snapshots");
    let file = |snapshot: &PathBuf| file_of(snapshot).ok().filter(|file| file.is_file());
    let main = std::fs::read_to_string(folder.join("refs/main")).ok();
    let of_main = main.map(|revision| snapshots.join(revision.trim())).as_ref().and_then(file);
    of_main.or_else(|| {
        let revisions = std::fs::read_dir(snapshots).ok()?;
        let mut revisions: Vec<PathBuf> = revisions.filter_map(|entry| Some(entry.ok()?.path())).collect();
        revisions.retain(|revision| revision.is_dir());
        revisions.sort();
        revisions.iter().rev().find_map(file)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("foldline-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn the_revision_main_comes_before_others() {
        let cache = folder("cache");
        let repository = cache.join("models--Qwen--Qwen3-32B");
        for revision in ["aaa", "bbb"] {
            std::fs::create_dir_all(repository.join("snapshots").join(revision)).unwrap();
            std::fs::write(repository.join("snapshots").join(revision).join("tokenizer.json"), "{}").unwrap();
        }
        let found = || in_cache(&cache, "Qwen/Qwen3-32B").unwrap();
        assert!(found().ends_with("bbb/tokenizer.json"));
        std::fs::create_dir_all(repository.join("refs")).unwrap();
        std::fs::write(repository.join("refs/main"), "aaa\n").unwrap();
        assert!(found().ends_with("aaa/tokenizer.json"));
        assert_eq!(in_cache(&cache, "Qwen/Qwen3-8B"), None);
        assert_eq!(in_cache(&cache, "../x"), None);
        std::fs::remove_dir_all(cache).unwrap();
    }

    #[test]
    fn a_users_folder_has_files_or_folders_by_the_vocabularys_name() {
        let folder = folder("tokenizers");
        let qwen = Vocabulary::get("qwen3").unwrap();
        assert_eq!(qwen.in_folder(&folder), None);
        std::fs::write(folder.join("qwen3.gguf"), "").unwrap();
        assert!(qwen.in_folder(&folder).unwrap().ends_with("qwen3.gguf"));
        std::fs::create_dir(folder.join("qwen3")).unwrap();
        assert!(qwen.in_folder(&folder).unwrap().ends_with("qwen3"));
        std::fs::remove_dir_all(folder).unwrap();
    }
}
