//! A tokenizer file of any content is read or is an error, without a panic and in bounded memory.
//!
//! The choice is the format, so that mutations of every format start from its first bytes.
#![no_main]

use foldline::count::files::load::check;
use foldline_fuzz::choice;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((format, rest)) = choice(data, 4) else { return };
    let start: &[u8] = [b"{".as_slice(), b"GGUF", b"\x0a", b""][format];
    let content = [start, rest].concat();
    if let Err(error) = check(&content) {
        assert!(["bad_tokenizer", "unsupported_tokenizer"].contains(&error.code), "{}", error.code);
    }
});
