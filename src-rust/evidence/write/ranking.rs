//! How paths are listed, and which requests and errors mean little.

use crate::evidence::language::asking::is_question;
use crate::evidence::read::files::common_root;
use crate::evidence::read::tools::file_action;
use crate::evidence::text::{has_word, sentences};
use crate::evidence::{ErrorSeen, Evidence};

/// The style of file paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::evidence) struct PathStyle {
    /// The folder that paths are relative to; empty for full paths.
    pub root: String,
}

impl PathStyle {
    /// Paths relative to the folder that saves most.
    pub(in crate::evidence) fn short(evidence: &Evidence) -> Self {
        let paths = evidence.files.iter().map(|file| file.path.as_str());
        PathStyle { root: common_root(paths).unwrap_or_default() }
    }

    /// A path in this style; `document` reads it back.
    pub(in crate::evidence) fn listed(&self, path: &str) -> String {
        if self.root.is_empty() || path.starts_with('~') {
            return path.to_owned();
        }
        match path.strip_prefix(&self.root) {
            Some(short) => short.to_owned(),
            None if path.starts_with('/') => path.to_owned(),
            None => format!("./{path}"),
        }
    }
}

/// Words of a mere consent.
const NODS: [&str; 103] = [
    "a",
    "absolutely",
    "agreed",
    "ahead",
    "all",
    "alright",
    "and",
    "awesome",
    "best",
    "bien",
    "bitte",
    "bueno",
    "continue",
    "cool",
    "correct",
    "danke",
    "do",
    "exactly",
    "excellent",
    "fine",
    "for",
    "gerne",
    "give",
    "go",
    "good",
    "gracias",
    "great",
    "gut",
    "hello",
    "hey",
    "hi",
    "i",
    "it",
    "ja",
    "job",
    "just",
    "k",
    "keep",
    "lets",
    "lgtm",
    "like",
    "looks",
    "love",
    "lovely",
    "me",
    "merci",
    "much",
    "n",
    "nice",
    "no",
    "now",
    "of",
    "ok",
    "okay",
    "on",
    "oui",
    "perfect",
    "please",
    "proceed",
    "right",
    "si",
    "so",
    "sounds",
    "start",
    "super",
    "sure",
    "thank",
    "thanks",
    "that",
    "thats",
    "the",
    "then",
    "this",
    "to",
    "try",
    "very",
    "weiter",
    "well",
    "with",
    "works",
    "y",
    "ya",
    "yeah",
    "yep",
    "yes",
    "you",
    "your",
    "是的",
    "好",
    "好的",
    "继续",
    "可以",
    "嗯",
    "对",
    "谢谢",
    "你好",
    "acknowledged",
    "continuing",
    "got",
    "noted",
    "plan",
    "recorded",
    "understood",
];
/// Words of which a consent has at least one.
const CONSENTS: [&str; 54] = [
    "absolutely",
    "agreed",
    "ahead",
    "alright",
    "awesome",
    "bien",
    "bitte",
    "continue",
    "cool",
    "correct",
    "danke",
    "exactly",
    "excellent",
    "fine",
    "good",
    "gracias",
    "great",
    "gut",
    "hello",
    "hey",
    "hi",
    "ja",
    "k",
    "lgtm",
    "merci",
    "n",
    "nice",
    "no",
    "ok",
    "okay",
    "on",
    "oui",
    "perfect",
    "please",
    "proceed",
    "right",
    "si",
    "start",
    "super",
    "sure",
    "thank",
    "thanks",
    "weiter",
    "works",
    "y",
    "ya",
    "yeah",
    "yep",
    "yes",
    "lovely",
    "acknowledged",
    "noted",
    "recorded",
    "understood",
];

/// Longest text that may be a mere consent.
const MAX_NOD_BYTES: usize = 60;

/// Whether a text is a mere consent, which means little without its question: "yes", "ok go on", "好的".
pub(in crate::evidence) fn is_nod(text: &str) -> bool {
    const NOT_ASCII: [&str; 9] = ["是的", "好", "好的", "继续", "可以", "嗯", "对", "谢谢", "你好"];
    if text.len() > MAX_NOD_BYTES {
        return false;
    }
    let (mut words, mut consents, mut goes, mut word) = (0, false, false, String::new());
    // Most texts are none by their first word.
    for c in text.chars().flat_map(char::to_lowercase).chain([' ']) {
        if c.is_alphanumeric() {
            word.push(c);
        } else if !matches!(c, '\'' | '’') && !word.is_empty() {
            words += 1;
            if words > 8 || !NODS.contains(&&*word) {
                return false;
            }
            consents |= CONSENTS.contains(&&*word) || NOT_ASCII.contains(&&*word);
            goes = word == "go";
            word.clear();
        }
    }
    words == 0 || consents || (words == 1 && goes)
}

/// Whether a text only asks, and wishes nothing: "does it have a cache?", not "can you add a cache?".
pub(in crate::evidence) fn is_pure_question(text: &str) -> bool {
    const WISHES: [&str; 18] = [
        "can",
        "could",
        "would",
        "will",
        "please",
        "lets",
        "should",
        "shall",
        "want",
        "need",
        "how about",
        "what about",
        "why not",
        "add",
        "fix",
        "make",
        "use",
        "instead",
    ];
    let lower = text.to_lowercase().replace(['\'', '’'], "");
    text.chars().count() <= 200
        && sentences(text).all(is_question)
        && !WISHES.iter().any(|wish| has_word(&lower, wish))
}

/// Whether an error is a look for a missing file: agents guess names.
pub(in crate::evidence) fn is_exploration(error: &ErrorSeen) -> bool {
    let tool = error.subject.split(' ').next().unwrap_or("");
    file_action(tool).is_some_and(|action| !action.is_change())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nods_are_told_from_wishes() {
        for text in [
            "yes",
            "ok go on",
            "thanks",
            "please do",
            "Sounds good, go ahead!",
            "LGTM",
            "好的",
            "yes, please do that",
            "yeah, let's give it a try",
            "Noted and recorded.",
            "Acknowledged. Continuing with the plan.",
            "👍",
        ] {
            assert!(is_nod(text), "{text}");
        }
        for text in [
            "next: duplicates",
            "yes, but not the tests",
            "do the docs",
            "B",
            "no tests please",
            "go to the docs",
        ] {
            assert!(!is_nod(text), "{text}");
        }
    }

    #[test]
    fn questions_are_told_from_wishes() {
        for text in
            ["does gemini have hooks?", "but this means both hooks run?", "did we write a test? where?"]
        {
            assert!(is_pure_question(text), "{text}");
        }
        for text in
            ["can you sort them by date?", "should we drop it?", "Is it fast? Measure it.", "sort them"]
        {
            assert!(!is_pure_question(text), "{text}");
        }
    }

    #[test]
    fn short_paths_are_relative_to_the_root_and_unambiguous() {
        let style = PathStyle { root: "/r/".into() };
        let listed: Vec<String> =
            ["/r/a", "/x/b", "c", "~/d"].iter().map(|path| style.listed(path)).collect();
        assert_eq!(listed, ["a", "/x/b", "./c", "~/d"]);
    }
}
