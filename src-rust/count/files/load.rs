//! Finds, recognises and reads a tokenizer file. Each is read once in a process.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::sync::{PoisonError, RwLock};

use rustc_hash::FxHashMap;
use twox_hash::XxHash3_128;

use super::added::searched;
use super::folder::{self, Configuration};
use super::problem::{bad, unreadable};
use super::stamps::Hashed;
use super::tokenizer::Tokenizer;
use super::vocabulary::{Draft, tables};
use super::{cache, gguf, hf, sentencepiece, stamps, tekken, tiktoken};
use crate::error::{Error, Result};

/// Largest file that is read: twice that of the largest known vocabularies.
const MOST_BYTES: u64 = 64 << 20;

/// Tokenizers by the hash of their file. They stay until the process ends.
static LOADED: RwLock<Option<FxHashMap<u128, &'static Tokenizer>>> = RwLock::new(None);

/// Whether a counter's name is the path of a tokenizer file or a model's folder. Ollama's files have no ending.
#[must_use]
pub fn is_tokenizer_path(name: &str) -> bool {
    let is_named = |end: &str| name.ends_with(end);
    [".json", ".tiktoken", ".model", ".gguf"].into_iter().any(is_named)
        || (name.contains(['/', '\\']) && Path::new(name).exists())
}

/// The tokenizer of a file or of a model's folder.
///
/// # Errors
/// `bad_tokenizer` for a file that cannot be read, is damaged or of another form; `unsupported_tokenizer` for one that
/// the engine does not support, with the part that it does not.
pub(crate) fn load(path: &Path) -> Result<&'static Tokenizer> {
    let file = folder::file_of(path)?;
    let configuration = Configuration::beside(&file);
    let stamp = stamps::of(&file);
    let (hash, size) = match stamp.and_then(stamps::find) {
        Some(hashed) => hashed,
        None => {
            let hashed = hash_of(&file)?;
            if let Some(stamp) = stamp {
                stamps::keep(stamp, hashed);
            }
            hashed
        }
    };
    let hash = configuration.hash(hash);
    let known = LOADED.read().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = known.as_ref().and_then(|loaded| loaded.get(&hash)) {
        return Ok(known);
    }
    drop(known);
    let (hash, tokenizer) = match cache::find(hash, size) {
        Some(tokenizer) => (hash, tokenizer),
        None => {
            let bytes = if is_large(&file)? {
                gguf_metadata(&file)?
            } else {
                std::fs::read(&file).map_err(|error| unreadable(&file, &error))?
            };
            // The file may have changed since.
            let hash = configuration.hash(XxHash3_128::oneshot(&bytes));
            let compiled = draft(&bytes, &configuration)?.finish()?;
            cache::keep(hash, bytes.len(), &compiled);
            (hash, compiled.tokenizer()?)
        }
    };
    let mut loaded = LOADED.write().unwrap_or_else(PoisonError::into_inner);
    Ok(loaded.get_or_insert_default().entry(hash).or_insert_with(|| Box::leak(Box::new(tokenizer))))
}

/// Whether a file can only be one of a whole model, of which the metadata count.
fn is_large(file: &Path) -> Result<bool> {
    Ok(std::fs::metadata(file).map_err(|error| unreadable(file, &error))?.len() > MOST_BYTES)
}

fn too_large() -> Error {
    bad("the file has more than 64 MB, and is not the GGUF file of a model")
}

/// Bytes of a model's file that are read at first: enough for the metadata of most.
const FIRST_BYTES: u64 = 16 << 20;

/// The metadata of the GGUF file of a whole model. The tensors behind them, which are nearly all of the file, are not
/// read.
///
/// # Errors
/// `bad_tokenizer` for another file, and for metadata that are damaged or more than [`MOST_BYTES`].
fn gguf_metadata(path: &Path) -> Result<Vec<u8>> {
    let unreadable = |error| unreadable(path, &error);
    let mut file = File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    let mut most = FIRST_BYTES;
    while most <= MOST_BYTES {
        let before = bytes.len() as u64;
        (&mut file).take(most - before).read_to_end(&mut bytes).map_err(unreadable)?;
        if !bytes.starts_with(gguf::MAGIC) {
            break;
        }
        if let Some(end) = gguf::end_of_metadata(&bytes) {
            bytes.truncate(end);
            return Ok(bytes);
        }
        most *= 2;
    }
    Err(too_large())
}

/// Bytes that are read and hashed at once: few enough to stay in the processor's caches.
const CHUNK: usize = 128 << 10;

/// The hash of what is read of a file, and its size. The content is not kept: if the cache has its tables, they are
/// enough.
fn hash_of(path: &Path) -> Result<Hashed> {
    if is_large(path)? {
        let metadata = gguf_metadata(path)?;
        return Ok((XxHash3_128::oneshot(&metadata), metadata.len()));
    }
    let unreadable = |error| unreadable(path, &error);
    let file = File::open(path).map_err(unreadable)?;
    let (mut file, mut hash, mut size) = (file.take(MOST_BYTES + 1), XxHash3_128::new(), 0);
    let mut chunk = vec![0; CHUNK];
    loop {
        match file.read(&mut chunk) {
            // It has grown since.
            Ok(0) if size as u64 > MOST_BYTES => return Err(too_large()),
            Ok(0) => return Ok((hash.finish_128(), size)),
            Ok(len) => {
                hash.write(&chunk[..len]);
                size += len;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(unreadable(error)),
        }
    }
}

/// Checks a file as loading it does, without keeping its tables. For tests with files of strangers.
///
/// # Errors
/// Those of loading it.
pub fn check(bytes: &[u8]) -> Result<()> {
    let draft = draft(bytes, &Configuration::default())?;
    tables(&draft.tokens)?;
    searched(draft.raw)?;
    searched(draft.normalized)?;
    Ok(())
}

/// Recognises a file by its content and reads it.
fn draft(bytes: &[u8], configuration: &Configuration) -> Result<Draft> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    if bytes.trim_ascii_start().starts_with(b"{") {
        return if tekken::is_tekken(bytes) { tekken::read(bytes) } else { hf::read(bytes) };
    }
    if bytes.starts_with(gguf::MAGIC) {
        return gguf::read(bytes);
    }
    // A message that begins with its first piece.
    if bytes.first() == Some(&0x0a) {
        return sentencepiece::read(bytes);
    }
    if tiktoken::is_ranked(bytes) {
        return configuration.tokenizer(tiktoken::tokens(bytes)?);
    }
    Err(bad("the file is not a tokenizer"))
}
