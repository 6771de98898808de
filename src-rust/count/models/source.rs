//! What counts a model's texts on this machine: a built-in encoding or a tokenizer file, and where the file is.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use super::vocabularies::{Place, Vocabulary};
use super::{Model, is_path};
use crate::count::files::counter::FileCounter;
use crate::count::files::folder::file_of;
use crate::count::framing::Family;
use crate::error::{Error, Result};

/// What counts a model's texts.
#[derive(Clone, Debug)]
pub struct Source {
    /// Where it comes from.
    pub place: Place,
    /// The encoding, vocabulary or path. That of a Gemini model is Gemma's, if the user has it.
    pub encoding: Cow<'static, str>,
    /// The family, which determines the framing.
    pub family: Family,
    /// The tokenizer file, if one is needed.
    pub file: Option<PathBuf>,
}

impl Source {
    /// The source of a model. `name` is the model's name as given, which may be a repository of Hugging Face.
    ///
    /// # Errors
    /// `missing_tokenizer` if its tokenizer file is not found.
    pub fn of(model: &Model, name: &str) -> Result<Source> {
        let (encoding, family) = (model.encoding.clone(), model.family);
        if let Some(gemma) = gemma_of(model)
            && let Ok((place, file)) = gemma.find(name)
        {
            let encoding = Cow::Borrowed(gemma.name);
            return Ok(Source { place, encoding, family: Family::GeminiLocal, file: Some(file) });
        }
        let (place, file) = if let Some(vocabulary) = Vocabulary::get(&encoding) {
            let (place, file) = vocabulary.find(name)?;
            (place, Some(file))
        } else if is_path(&encoding) {
            (Place::Path, Some(PathBuf::from(&*encoding)))
        } else {
            (Place::BuiltIn, None)
        };
        Ok(Source { place, encoding, family, file })
    }

    /// The counter of its tokenizer file, if it has one.
    ///
    /// # Errors
    /// Those of [`FileCounter::open`], with the file's path.
    pub(super) fn open(&self) -> Result<Option<FileCounter>> {
        let Some(file) = &self.file else { return Ok(None) };
        let named = |error| about(file, "model", error);
        FileCounter::open(file).map(Some).map_err(named)
    }
}

impl Model {
    /// What is missing to count its texts, and where it is looked for, or what is wrong with its tokenizer file; `None`
    /// if it can be counted. `name` is its name as given. The file is read, as counting would.
    #[must_use]
    pub fn missing(&self, name: &str) -> Option<String> {
        Source::of(self, name).and_then(|source| source.open()).err().map(|error| error.detail)
    }
}

/// The vocabulary of a Gemini model: that of Gemma 4 from 3.1 on, of Gemma 3 before. Google's own program counts with
/// these on a user's machine (google-genai 3.6.1, 2026-11).
fn gemma_of(model: &Model) -> Option<&'static Vocabulary> {
    let is_older = ["gemini-1", "gemini-2", "gemini-3-"].iter().any(|old| model.name.starts_with(old));
    let name = if is_older { "gemma-3" } else { "gemma-4" };
    (model.family == Family::Gemini).then(|| Vocabulary::get(name))?
}

/// The encoding of a model with this tokenizer file or model's folder: the absolute path.
///
/// # Errors
/// `bad_tokenizer` if there is no such file, or the folder has no tokenizer.
pub fn encoding_of(path: &Path) -> Result<String> {
    let bad = |what: &str| about(path, "tokenizer", Error::config("bad_tokenizer", "", what));
    file_of(path).map_err(|error| about(path, "tokenizer", error))?;
    let path = std::path::absolute(path).map_err(|_| bad("the path cannot be made absolute"))?;
    path.into_os_string().into_string().map_err(|_| bad("the path is not UTF-8"))
}

/// An error of a tokenizer file, with its path.
fn about(file: &Path, field: &str, error: Error) -> Error {
    let name = file.display().to_string();
    let is_named = !name.is_empty() && error.detail.starts_with(&name);
    let detail = if is_named { error.detail } else { format!("{name}: {}", error.detail) };
    Error { path: field.to_owned(), detail, ..error }
}
