//! Hostile input: twelve families that make naive counters quadratic, and stopping in the middle.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use foldline::count::bpe::encoding::Encoding;

fn pseudo_random(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    }
}

fn family(name: &str, bytes: usize) -> String {
    let mut random = pseudo_random(0x5eed);
    let base64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes + 8);
    while text.len() < bytes {
        match name {
            "letter" => text.push('a'),
            "spaces" => text.push(' '),
            "newlines" => text.push('\n'),
            "digits" => text.push('7'),
            "caret" => text.push('^'),
            "han" => text.push(char::from_u32(0x4e00 + (random() % 0x5000) as u32).unwrap()),
            "marks" => text.push(char::from_u32(0x300 + (random() % 0x6f) as u32).unwrap()),
            "latin1" => text.push(char::from(random() as u8)),
            "base64" => text.push(char::from(base64[(random() % 64) as usize])),
            "case" => text.push(if text.len().is_multiple_of(2) { 'a' } else { 'A' }),
            "joiners" => text.push_str("👩\u{200d}"),
            "punctuation" => text.push(char::from(b"!#$%&()*+,-./:;<=>?@[]"[(random() % 22) as usize])),
            _ => panic!("no family {name}"),
        }
    }
    text
}

const FAMILIES: [&str; 12] = [
    "letter",
    "spaces",
    "newlines",
    "digits",
    "caret",
    "han",
    "marks",
    "latin1",
    "base64",
    "case",
    "joiners",
    "punctuation",
];

#[test]
fn hostile_families_equal_the_reference() {
    for name in FAMILIES {
        // The reference's regex engine gives up on long runs of white space.
        let text = family(name, 20_000);
        for (encoding, reference) in [
            ("o200k_base", tiktoken_rs::o200k_base_singleton()),
            ("cl100k_base", tiktoken_rs::cl100k_base_singleton()),
            ("r50k_base", tiktoken_rs::r50k_base_singleton()),
        ] {
            let text = format!("x{text}x");
            let expected = reference.encode_ordinary(&text).len();
            assert_eq!(Encoding::get(encoding).unwrap().count(&text), expected, "{encoding}, {name}");
        }
    }
}

/// Scanning a long pre-token and merging it are both interrupted.
#[test]
fn the_check_is_asked_while_a_long_pre_token_is_merged() {
    for name in ["letter", "spaces", "newlines", "caret"] {
        let text = family(name, 1 << 20);
        for encoding in ["o200k_base", "cl100k_base", "r50k_base"] {
            let mut asked = 0;
            Encoding::get(encoding).unwrap().count_with_check(&text, &mut || {
                asked += 1;
                true
            });
            assert!(asked >= 100, "{name}, {encoding}: asked {asked} times");
        }
    }
}

/// A quadratic step anywhere would take hours here.
#[test]
fn hostile_families_of_many_megabytes_end() {
    for name in FAMILIES {
        let text = family(name, 2 << 20);
        for encoding in Encoding::names() {
            assert!(Encoding::get(encoding).unwrap().count(&text) > 0);
        }
    }
}

#[test]
fn a_megabyte_of_one_character_has_the_defined_count() {
    let o200k = Encoding::get("o200k_base").unwrap();
    let cl100k = Encoding::get("cl100k_base").unwrap();
    for name in ["letter", "caret"] {
        let text = family(name, 1 << 20);
        assert_eq!(o200k.count(&text), tiktoken_rs::o200k_base_singleton().encode_ordinary(&text).len());
        assert_eq!(cl100k.count(&text), tiktoken_rs::cl100k_base_singleton().encode_ordinary(&text).len());
    }
    // cl100k takes trailing white space without backtracking, so the reference can answer.
    let text = family("spaces", 1 << 20);
    assert_eq!(cl100k.count(&text), tiktoken_rs::cl100k_base_singleton().encode_ordinary(&text).len());
}

#[test]
fn the_check_is_asked_often_and_obeyed() {
    for name in FAMILIES {
        let text = family(name, 1 << 19);
        for encoding in ["o200k_base", "cl100k_base", "r50k_base"] {
            let encoding = Encoding::get(encoding).unwrap();
            let mut asked = 0;
            let count = encoding.count_with_check(&text, &mut || {
                asked += 1;
                true
            });
            assert_eq!(count, Some(encoding.count(&text)));
            assert!(asked >= 7, "{name}: asked {asked} times in half a megabyte");

            for stop_at in [1, 3, 7] {
                let mut asked = 0;
                let stopped = encoding.count_with_check(&text, &mut || {
                    asked += 1;
                    asked != stop_at
                });
                assert_eq!(stopped, None);
                assert_eq!(asked, stop_at, "{name}: not asked again after no");
            }
        }
    }
}

#[test]
fn the_limit_stops_inside_one_long_pre_token() {
    let text = family("letter", 16 << 20);
    for encoding in Encoding::names() {
        assert_eq!(Encoding::get(encoding).unwrap().count_up_to(&text, 1000), None);
    }
}
