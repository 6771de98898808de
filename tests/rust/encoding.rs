//! Counts equal the reference's on every string: traps, every code point, generated text.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use foldline::count::bpe::encoding::Encoding;
use proptest::prelude::*;
use tiktoken_rs::CoreBPE;

use super::depth::{cases, config};

fn reference(name: &str) -> &'static CoreBPE {
    match name {
        "o200k_base" => tiktoken_rs::o200k_base_singleton(),
        "o200k_harmony" => tiktoken_rs::o200k_harmony_singleton(),
        "cl100k_base" => tiktoken_rs::cl100k_base_singleton(),
        "p50k_base" => tiktoken_rs::p50k_base_singleton(),
        "r50k_base" => tiktoken_rs::r50k_base_singleton(),
        _ => panic!("no reference for {name}"),
    }
}

fn check(text: &str) {
    for name in Encoding::names() {
        check_with(name, text);
    }
}

fn check_with(name: &str, text: &str) {
    let encoding = Encoding::get(name).unwrap();
    let expected = reference(name).encode_ordinary(text).len();
    assert_eq!(encoding.count(text), expected, "{name} on {text:?}");
}

/// One line each: a place where a counter that is nearly right goes wrong.
const TRAPS: &[&str] = &[
    "",
    " ",
    "  ",
    "a",
    "hello world",
    "Hello, World!",
    // White space gives back one character, but not at the end of the text.
    "a  b",
    "a   b",
    "a \t b",
    "a\t\tb",
    "a  ",
    "  a",
    " \u{a0}a",
    "\u{a0}\u{a0}!",
    "a\u{3000}\u{3000}b",
    "a\u{3000}\u{3000}",
    "\u{85}\u{85}1",
    "   1",
    "   !",
    "\t!",
    "\t a",
    // Newlines: a run ends after its last one.
    "\n",
    "\r\n\r\n",
    "a\n\nb",
    "a \n b",
    "a\n  \n  b",
    "a\n  \n  ",
    "\n\t\n\tb",
    " \r \n x",
    "  \n",
    "\u{2028}\n\u{2029}x",
    // Symbols take newlines with them, in o200k slashes too.
    "!\n",
    "!!\r\n\r\na",
    "!\n  a",
    "!\n \n a",
    "//\n//\n",
    "*/\n/**\n",
    "!/\n/!\n",
    " !\n/ /",
    "\n/",
    "/a/b//c",
    " //a",
    // A symbol joins the letters behind it, unless it is part of a run.
    "!a",
    "!!a",
    " !a",
    "  !a",
    "\n!a",
    "\t!a",
    "(a)",
    "((a))",
    "\u{0}a\u{0}\u{0}a",
    "\u{7f}a",
    // Contractions.
    "don't",
    "DON'T",
    "don't've",
    "don'tell",
    "'s's's",
    "''s",
    " 's",
    "'sabc",
    "'S",
    "'ſ",
    "a'ſb",
    "'lL'Ve'rE",
    "'l",
    "'v",
    "'",
    "I'll I'd I'm I've we're it's",
    "1's",
    "a's1",
    "’s",
    "日本's",
    "A'SA",
    "a'\u{212a}",
    // Numbers in threes.
    "1",
    "12",
    "1234567890",
    " 123 4567",
    "a1b22c333d4444",
    "١٢٣٤٥",
    "½¾Ⅷ①②③④",
    // Case.
    "camelCaseWords",
    "ABCdef",
    "ABC",
    "ABcD",
    "aBC",
    "HTTPServer",
    "ǅabc",
    "ABǅ",
    // Letters without case, between cases.
    "日本ABC",
    "日本Abc",
    "A日B",
    "A日b",
    "a日B",
    "日A日B日",
    "ªª",
    "ʰA",
    // Marks: letters in o200k, symbols elsewhere.
    "\u{301}",
    "\u{301}a",
    "\u{301}A",
    "\u{301}AB",
    "\u{301}ABc",
    " \u{301}",
    "!\u{301}",
    "!!\u{301}",
    "!!\u{301}a",
    "e\u{301}a",
    "E\u{301}A",
    "1\u{301}",
    "\n\u{301}",
    "हिन्दी में",
    "\u{301}'s",
    "👩‍👩‍👧‍👦 family",
    "🏳️‍🌈",
    "👍🏽👍🏽",
    // Special tokens are plain text.
    "<|endoftext|>",
    "<|im_start|>user\nhi<|im_end|>",
    "<|fim_prefix|> <|endofprompt|>",
    // Characters that came late to Unicode.
    "\u{11dbc}",
    "a\u{11dbc}b",
    "\u{1c89}\u{1c8a}",
    "\u{10ffff}",
    "\u{fffd}",
    "\u{feff}a",
    "a\u{200b}b",
    // Long tokens and near misses.
    "                                                                                x",
    "--------------------------------------------------------------------------------",
    "================================================================",
    "abcdefghijklmno",
    "abcdefghijklmnop",
    "antidisestablishmentarianism floccinaucinihilipilification",
    " internationalization internationalizationx",
    "的的的的的的的的的的的的的的的的的的的的的的",
];

#[test]
fn traps() {
    for text in TRAPS {
        check(text);
        check(&format!("{text} {text}"));
        check(&format!("{text}{text}"));
        check(&format!("x{text}\n"));
        check(&format!(" the {text} end"));
    }
}

#[test]
fn traps_side_by_side() {
    for a in TRAPS {
        for b in TRAPS {
            check_with("o200k_base", &format!("{a}{b}"));
            check_with("cl100k_base", &format!("{a}{b}"));
        }
    }
}

/// Every code point between letters; those before the ideographs, and a sample of the rest, in more contexts.
#[test]
fn every_code_point() {
    let contexts: [fn(char) -> String; 6] = [
        |c| format!("{c}"),
        |c| format!("a{c}a"),
        |c| format!(" {c}"),
        |c| format!("{c}{c}"),
        |c| format!("A{c}b"),
        |c| format!("!{c}1"),
    ];
    for name in ["o200k_base", "cl100k_base", "r50k_base"] {
        let (encoding, reference) = (Encoding::get(name).unwrap(), reference(name));
        for c in '\0'..=char::MAX {
            let sample = (c as u32) < 0x3400 || (c as u32).is_multiple_of(13);
            for context in if sample { &contexts[..] } else { &contexts[1..2] } {
                let text = context(c);
                assert_eq!(encoding.count(&text), reference.encode_ordinary(&text).len(), "{name}: {text:?}");
            }
        }
    }
}

#[test]
fn limits() {
    for name in Encoding::names() {
        let encoding = Encoding::get(name).unwrap();
        for text in TRAPS {
            let count = encoding.count(text);
            assert_eq!(encoding.count_up_to(text, count), Some(count));
            assert_eq!(encoding.count_up_to(text, usize::MAX), Some(count));
            if count > 0 {
                assert_eq!(encoding.count_up_to(text, count - 1), None);
                assert_eq!(encoding.count_up_to(text, 0), None);
            }
        }
    }
}

#[test]
fn names() {
    assert_eq!(Encoding::names()[..2], ["o200k_base", "cl100k_base"]);
    for name in Encoding::names() {
        assert_eq!(Encoding::get(name).unwrap().name(), *name);
    }
    assert!(Encoding::get("gpt-4").is_none() && Encoding::get("").is_none());
}

/// Strings over alphabets where the patterns branch.
fn text() -> impl Strategy<Value = String> {
    let alphabet = prop::sample::select(vec![
        "abcXYZ019 .,!?'\"\n\t/_-",
        " \t\n\r\u{b}\u{c}\u{85}\u{a0}\u{2003}\u{2028}\u{3000}a!1",
        "aAzZéÉßſǅʰªºﬀ中あア한א\u{301}\u{94d}\u{64b}5Ⅷ½! '",
        "中文字符的是在，。！？「」 \n、a1A",
        "👍🏽👩\u{200d}❤\u{fe0f}🏳🌈♂ a!\u{20e3}1",
        "'''sStTdDmMlLvVrReEſ ab1\n",
        "0123456789 .,-٣४x",
        "aaaaab ",
        "=-*#_/\\\r\n a",
    ]);
    alphabet.prop_flat_map(|alphabet| {
        let characters: Vec<char> = alphabet.chars().collect();
        prop::collection::vec(prop::sample::select(characters), 0..200).prop_map(String::from_iter)
    })
}

proptest! {
    #![proptest_config(config(cases("encoding_cases")))]

    #[test]
    fn generated_text(text in text()) {
        check(&text);
    }

    #[test]
    fn any_text(text in any::<String>()) {
        check(&text);
    }

    #[test]
    fn mixed_text(texts in prop::collection::vec(text(), 0..8)) {
        check(&texts.join(" "));
    }

    #[test]
    fn limits_hold_everywhere(text in text(), limit in 0..100usize) {
        let encoding = Encoding::get("o200k_base").unwrap();
        let count = encoding.count(&text);
        prop_assert_eq!(encoding.count_up_to(&text, limit), (count <= limit).then_some(count));
    }
}
