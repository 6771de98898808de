//! Counts equal the reference's on real transcripts, whole files and line by line.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use foldline::count::bpe::encoding::Encoding;

use super::depth::{files, shared_data};

#[test]
#[ignore = "deep: every recorded transcript"]
fn real_transcripts() {
    let Some(data) = shared_data() else { return };
    let found = files(&data);
    assert!(!found.is_empty());
    let references = [
        ("o200k_base", tiktoken_rs::o200k_base_singleton()),
        ("cl100k_base", tiktoken_rs::cl100k_base_singleton()),
    ];
    for path in found {
        let Ok(bytes) = std::fs::read(&path) else { continue };
        let text = String::from_utf8_lossy(&bytes);
        for (name, reference) in references {
            let encoding = Encoding::get(name).unwrap();
            let mut total = 0;
            let mut expected_total = 0;
            for line in text.split_inclusive('\n') {
                let expected = reference.encode_ordinary(line).len();
                assert_eq!(encoding.count(line), expected, "{name}, {}: {line:.200}", path.display());
                // Escapes undone, so that the text inside is checked as text.
                let plain = line.replace("\\n", "\n").replace("\\t", "\t").replace("\\\"", "\"");
                total += encoding.count(&plain);
                expected_total += reference.encode_ordinary(&plain).len();
            }
            assert_eq!(total, expected_total, "{name}, {}", path.display());
            assert_eq!(
                encoding.count(&text),
                reference.encode_ordinary(&text).len(),
                "{name}, {}",
                path.display()
            );
        }
    }
}
