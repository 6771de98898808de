//! Vocabulary tables of the published encodings, as binary files (see `src-rust/count/tables/file.rs`).

use crate::file;
pub(crate) use crate::file::Tokens;
use std::fmt::Write as _;
use std::path::Path;
use tiktoken_rs::CoreBPE;

/// Seeds tried for the table of common tokens.
const COMMON_SEEDS: usize = 200;

/// Reads a vocabulary by decoding every id up to `limit`, without special tokens.
pub(crate) fn tokens(bpe: &CoreBPE, limit: u32) -> Tokens {
    let special = bpe.special_tokens();
    let mut tokens = Tokens::new();
    for rank in 0..limit {
        let Ok(bytes) = bpe.decode_bytes(&[rank]) else { continue };
        if std::str::from_utf8(&bytes).is_ok_and(|text| special.contains(text)) {
            continue;
        }
        tokens.push((bytes, rank));
    }
    for byte in 0..=255 {
        assert!(tokens.iter().any(|(bytes, _)| bytes == &[byte]), "every byte is a token");
    }
    tokens
}

/// Writes `NAME.bin` into `dir` and returns the Rust source of the static that describes it.
///
/// Tokens from rank `shared` on are not in every encoding that uses the vocabulary.
pub(crate) fn write(number: usize, name: &str, tokens: &Tokens, shared: u32, dir: &Path) -> String {
    let (bytes, layout) = file::write(tokens, shared, COMMON_SEEDS).expect("published vocabularies fit");
    std::fs::write(dir.join(format!("{name}.bin")), &bytes).expect("OUT_DIR is writable");
    let mut source = String::new();
    let _ = writeln!(
        source,
        "pub(crate) static {}: Vocab = {{\n    \
         static FILE: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{name}.bin\")));\n    \
         Vocab::new({number}, &FILE.0, &{layout:?})\n}};",
        name.to_uppercase(),
    );
    source
}
