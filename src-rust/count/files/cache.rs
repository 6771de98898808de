//! The cache of compiled tables: a second process reads them instead of making them from the file again.
//!
//! An entry is keyed by the hash of the tokenizer file's content, so that a changed file never finds the tables of the
//! old one. It has a head, whose form is that of this version, the characters of a model on characters, the tables, and
//! a checksum. An entry that does not fit is made again; an entry that cannot be written is done without.
//!
//! An entry is read once, to where its tables stay: the tables begin at a multiple of a cache line. It is not mapped,
//! since the counts of a mapped file would change with it after the checksum was verified. The checksum finds damage, not
//! intent: who can write to the cache can make counts wrong, but every access to a table is checked.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_64;

use super::added::{AddedToken, AddedTokens};
use super::tokenizer::{Cuts, Prefix, Tokenizer};
use super::vocabulary::{Compiled, next_number};
use super::words::Characters;
use crate::count::pretokenize::Pattern;
use crate::count::pretokenize::digits::Digits;
use crate::count::tables::file::Layout;
use crate::count::tables::vocab::{LINE, Lines, Vocab};

/// The environment variable with the folder; empty for no cache.
const FOLDER: &str = "FOLDLINE_CACHE";

/// Changes with the form of an entry or of the tables.
const MAGIC: &[u8; 8] = b"FLTOKEN5";

/// Files below this size are read as fast as an entry of the cache.
pub(super) const SHORTEST: usize = 512 << 10;

/// Largest entry that is read: some times those of the largest vocabularies.
const MOST_BYTES: u64 = 64 << 20;

/// What an entry says before its tables.
#[derive(Serialize, Deserialize)]
struct Head {
    version: String,
    layout: [(usize, usize); 9],
    seeds: [u64; 3],
    longest: usize,
    /// The split pattern; without one, the characters follow.
    pattern: Option<String>,
    digits: String,
    prefix: String,
    is_composed: bool,
    raw: Vec<AddedToken>,
    normalized: Vec<AddedToken>,
}

const PATTERNS: [(&str, Pattern); 9] = [
    ("gpt2", Pattern::Gpt2),
    ("gpt4", Pattern::Gpt4),
    ("gpt4o", Pattern::Gpt4o),
    ("llama3", Pattern::Llama3),
    ("qwen2", Pattern::Qwen2),
    ("qwen35", Pattern::Qwen35),
    ("tekken", Pattern::Tekken),
    ("deepseek", Pattern::Deepseek),
    ("kimi", Pattern::Kimi),
];

const DIGITS: [(&str, Digits); 3] =
    [("joined", Digits::Joined), ("each", Digits::Each), ("runs", Digits::Runs)];

const PREFIXES: [(&str, Prefix); 5] = [
    ("never", Prefix::Never),
    ("text", Prefix::Text),
    ("always", Prefix::Always),
    ("unless_space", Prefix::UnlessSpace),
    ("first_unless_space", Prefix::FirstUnlessSpace),
];

fn name_of<T: PartialEq>(names: &[(&'static str, T)], value: &T) -> &'static str {
    names.iter().find(|(_, known)| known == value).map_or("", |(name, _)| name)
}

fn named<T: Copy>(names: &[(&str, T)], name: &str) -> Option<T> {
    names.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
}

/// The user's folder for caches.
fn folder() -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let given = |name: &str| folder(name).filter(|path| path.is_absolute());
    match folder(FOLDER) {
        Some(path) => (!path.as_os_str().is_empty()).then_some(path),
        None => given("XDG_CACHE_HOME")
            .or_else(|| given("LOCALAPPDATA"))
            .or_else(|| Some(given("HOME")?.join(".cache")))
            .map(|path| path.join("foldline")),
    }
}

/// The place of a file in the cache, if there is one.
pub(super) fn path(name: &str) -> Option<PathBuf> {
    Some(folder()?.join("tokenizers").join(name))
}

fn entry(hash: u128) -> Option<PathBuf> {
    path(&format!("{hash:032x}.tables"))
}

/// The tokenizer of a file with this hash and size, if the cache has it.
pub(crate) fn find(hash: u128, size: usize) -> Option<Tokenizer> {
    if size < SHORTEST {
        return None;
    }
    decode(read(&entry(hash)?).ok()?)
}

/// Reads an entry.
fn read(path: &Path) -> std::io::Result<Lines> {
    let mut file = File::open(path)?;
    let len = file.metadata()?.len().min(MOST_BYTES);
    Lines::read(len as usize, |place| file.read_exact(place))
}

/// Keeps what a file with this hash and size was compiled to.
pub(crate) fn keep(hash: u128, size: usize, compiled: &Compiled) {
    if let Some(path) = entry(hash).filter(|_| size >= SHORTEST)
        && let Some(entry) = encode(compiled)
    {
        // Without a place to write, the next process makes the tables again.
        let _ = write(&path, &entry);
    }
}

/// Writes an entry under a name of its own and renames it, so that readers see a whole entry or none.
pub(super) fn write(path: &Path, entry: &[u8]) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let part = path.with_extension(format!("{}.part", std::process::id()));
    std::fs::write(&part, entry)?;
    std::fs::rename(&part, path).inspect_err(|_| {
        let _ = std::fs::remove_file(&part);
    })
}

fn encode(compiled: &Compiled) -> Option<Vec<u8>> {
    let layout = &compiled.layout;
    let (pattern, digits, characters) = match &compiled.cuts {
        Cuts::Pattern(pattern, digits) => (Some(name_of(&PATTERNS, pattern).to_owned()), *digits, None),
        Cuts::Words(characters) => (None, Digits::Joined, Some(characters)),
    };
    let head = Head {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        layout: [
            layout.slots,
            layout.keys,
            layout.pilots,
            layout.common,
            layout.long_slots,
            layout.long_pilots,
            layout.pool,
            layout.pairs,
            layout.joints,
        ],
        seeds: [layout.seed, layout.common_seed, layout.long_seed],
        longest: layout.longest,
        pattern,
        digits: name_of(&DIGITS, &digits).to_owned(),
        prefix: name_of(&PREFIXES, &compiled.prefix).to_owned(),
        is_composed: compiled.is_composed,
        raw: compiled.raw.clone(),
        normalized: compiled.normalized.clone(),
    };
    let head = serde_json::to_vec(&head).ok()?;
    let mut entry = MAGIC.to_vec();
    entry.extend((head.len() as u64).to_le_bytes());
    entry.extend(head);
    for words in characters.iter().flat_map(|characters| characters.words()) {
        entry.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    }
    entry.resize(entry.len().next_multiple_of(LINE), 0);
    entry.extend(compiled.file);
    let sum = XxHash3_64::oneshot(&entry);
    entry.extend(sum.to_le_bytes());
    Some(entry)
}

fn decode(entry: Lines) -> Option<Tokenizer> {
    let (content, sum) = entry.bytes().split_last_chunk::<8>()?;
    if XxHash3_64::oneshot(content) != u64::from_le_bytes(*sum) {
        return None;
    }
    let (len, rest) = content.strip_prefix(MAGIC)?.split_first_chunk::<8>()?;
    let (head, mut rest) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*len)).ok()?)?;
    let head: Head = serde_json::from_slice(head).ok()?;
    if head.version != env!("CARGO_PKG_VERSION") {
        return None;
    }
    let cuts = match &head.pattern {
        Some(name) => Cuts::Pattern(named(&PATTERNS, name)?, named(&DIGITS, &head.digits)?),
        None => {
            let lens = Characters::new().words().map(<[u64]>::len);
            let mut read = |len: usize| {
                let (words, after) = rest.split_at_checked(8 * len)?;
                rest = after;
                Some(words.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect())
            };
            Cuts::Words(Box::new(Characters::from_words(read(lens[0])?, read(lens[1])?)?))
        }
    };
    let [slots, keys, pilots, common, long_slots, long_pilots, pool, pairs, joints] = head.layout;
    let [seed, common_seed, long_seed] = head.seeds;
    let layout = Layout {
        slots,
        keys,
        pilots,
        common,
        long_slots,
        long_pilots,
        pool,
        pairs,
        joints,
        seed,
        common_seed,
        long_seed,
        longest: head.longest,
    };
    let (from, to) = ((content.len() - rest.len()).next_multiple_of(LINE), content.len());
    let prefix = named(&PREFIXES, &head.prefix)?;
    let raw = AddedTokens::new(head.raw).ok()?;
    let normalized = AddedTokens::new(head.normalized).ok()?;
    let vocab = Vocab::of(next_number(), entry.leak().get(from..to)?, &layout)?;
    Some(Tokenizer { vocab, cuts, is_composed: head.is_composed, prefix, raw, normalized })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count::files::vocabulary::{Draft, Proof};

    fn compiled(cuts: Cuts) -> Compiled {
        let tokens = (0..=u8::MAX).map(|byte| vec![byte]).chain([b"ab".to_vec(), b"abc".to_vec()]).collect();
        let added = AddedToken {
            content: "<t>".to_owned(),
            is_special: false,
            strips_left: true,
            strips_right: false,
            is_word: false,
        };
        let draft = Draft {
            tokens,
            proof: Proof::Given,
            cuts,
            is_composed: true,
            prefix: Prefix::UnlessSpace,
            raw: vec![added],
            normalized: Vec::new(),
        };
        draft.finish().unwrap()
    }

    fn lines(entry: &[u8]) -> Lines {
        let copy = |place: &mut [u8]| {
            place.copy_from_slice(entry);
            Ok(())
        };
        Lines::read(entry.len(), copy).unwrap()
    }

    #[test]
    fn an_entry_counts_like_what_was_kept() {
        let mut characters = Characters::new();
        characters.join_all("abc");
        characters.insert('a');
        for cuts in [Cuts::Pattern(Pattern::Llama3, Digits::Each), Cuts::Words(Box::new(characters))] {
            let compiled = compiled(cuts);
            let entry = encode(&compiled).unwrap();
            let (found, made) = (decode(lines(&entry)).unwrap(), compiled.tokenizer().unwrap());
            let mut watch = crate::count::bpe::encoding::Stop::new(usize::MAX, None);
            for text in ["", "abc ab <t> abcab", "x <t>abc", "abc12 ab"] {
                assert_eq!(found.count(text, &mut watch), made.count(text, &mut watch), "{text}");
            }
        }
    }

    #[test]
    fn a_damaged_entry_is_not_used() {
        let entry = encode(&compiled(Cuts::Pattern(Pattern::Qwen2, Digits::Joined))).unwrap();
        for at in (0..entry.len()).step_by(997) {
            let mut damaged = entry.clone();
            damaged[at] ^= 1;
            assert!(decode(lines(&damaged)).is_none(), "{at}");
            assert!(decode(lines(&entry[..at])).is_none(), "{at}");
        }
    }

    #[test]
    fn every_pattern_and_prefix_has_a_name() {
        for (name, pattern) in PATTERNS {
            assert_eq!((name_of(&PATTERNS, &pattern), named(&PATTERNS, name)), (name, Some(pattern)));
        }
        for (name, digits) in DIGITS {
            assert_eq!((name_of(&DIGITS, &digits), named(&DIGITS, name)), (name, Some(digits)));
        }
        for (name, prefix) in PREFIXES {
            assert_eq!((name_of(&PREFIXES, &prefix), named(&PREFIXES, name)), (name, Some(prefix)));
        }
    }
}
