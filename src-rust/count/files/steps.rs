//! Split patterns by their text, and the steps before the model in a `tokenizer.json`.

use serde_json::Value;

use super::problem::unsupported;
use super::tokenizer::Prefix;
use crate::count::pretokenize::Pattern;
use crate::count::pretokenize::digits::Digits;
use crate::error::{Error, Result};

/// The contractions that begin several patterns.
const CONTRACTIONS: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|";
/// What follows the numbers, and the end of most patterns.
const SIGNS: &str = r"| ?[^\s\p{L}\p{N}]+[\r\n]*";
const SPACES: &str = r"|\s*[\r\n]+|\s+(?!\S)|\s+";
/// The two kinds of words of o200k.
const CAPITALS: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]";
const SMALL: &str = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]";

/// The pattern with this text.
pub(crate) fn pattern_of(text: &str) -> Option<Pattern> {
    // Some files have the characters, others their escapes.
    let text = text.replace('\r', r"\r").replace('\n', r"\n");
    let contraction = CONTRACTIONS.trim_end_matches('|');
    let words = |end: &str| format!("{CAPITALS}*{SMALL}+{end}|{CAPITALS}+{SMALL}*{end}|");
    let o200k =
        |end: &str, numbers: &str| format!(r"{}{numbers}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*{SPACES}", words(end));
    let kimi = o200k(&format!("{contraction}?"), r"\p{N}{1,3}");
    let kimi = kimi.replace(r"\p{M}]", r"\p{M}&&[^\p{Han}]]").replace(r"[\r\n/]*", r"[\r\n]*");
    let kimi = format!(r"[\p{{Han}}]+|{kimi}");
    let known = [
        (
            r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+".to_owned(),
            Pattern::Gpt2,
        ),
        (
            format!(r"{CONTRACTIONS}[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}{SIGNS}{SPACES}"),
            Pattern::Llama3,
        ),
        (format!(r"{CONTRACTIONS}[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{SIGNS}{SPACES}"), Pattern::Qwen2),
        (
            format!(
                r"{CONTRACTIONS}[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*{SPACES}"
            ),
            Pattern::Qwen35,
        ),
        (o200k(&format!("{contraction}?"), r"\p{N}{1,3}"), Pattern::Gpt4o),
        (o200k("", r"\p{N}"), Pattern::Tekken),
        (kimi, Pattern::Kimi),
    ];
    known.into_iter().find(|(known, _)| *known == text).map(|(_, pattern)| pattern)
}

/// DeepSeek's three patterns, one after the other.
const DEEPSEEK: [&str; 3] = [
    r"\p{N}{1,3}",
    "[一-龥\u{3040}-\u{309f}\u{30a0}-\u{30ff}]+",
    r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"##,
];

/// What is done with a text before the model sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Steps {
    /// The split pattern of a byte-level model; `None` for a model on characters.
    pub(crate) pattern: Option<Pattern>,
    /// Numbers that are cut apart before the pattern.
    pub(crate) digits: Digits,
    pub(crate) prefix: Prefix,
    /// Whether the text is normalized to NFC.
    pub(crate) is_composed: bool,
    /// Whether spaces get their marks only after the search for added tokens.
    pub(crate) marks_late: bool,
    /// Whether every space begins a piece, so that no token has one behind its first character.
    pub(crate) cuts_spaces: bool,
}

impl Steps {
    /// A pattern alone.
    pub(crate) fn of(pattern: Option<Pattern>) -> Steps {
        Steps {
            pattern,
            digits: Digits::Joined,
            prefix: Prefix::Never,
            is_composed: false,
            marks_late: false,
            cuts_spaces: false,
        }
    }
}

/// The items of a sequence, or the only one. An absent step has none.
fn flat<'v>(step: &'v Value, list: &str, steps: &mut Vec<&'v Value>) {
    match step.get("type").and_then(Value::as_str) {
        Some("Sequence") => {
            let items = step.get(list).and_then(Value::as_array);
            items.into_iter().flatten().for_each(|item| flat(item, list, steps));
        }
        _ if step.is_null() => {}
        _ => steps.push(step),
    }
}

fn kind(step: &Value) -> &str {
    step.get("type").and_then(Value::as_str).unwrap_or("without a type")
}

fn flag(step: &Value, name: &str, default: bool) -> bool {
    step.get(name).and_then(Value::as_bool).unwrap_or(default)
}

fn text<'v>(step: &'v Value, path: &[&str]) -> &'v str {
    path.iter().try_fold(step, |value, name| value.get(*name)).and_then(Value::as_str).unwrap_or_default()
}

/// What a split does with its matches, and whether its matches are the text between those of its pattern.
fn behavior(step: &Value) -> (&str, bool) {
    (text(step, &["behavior"]), flag(step, "invert", false))
}

/// Whether the matches of a split become pieces, and so does the text between them.
fn is_isolating(step: &Value) -> bool {
    // "Removed" with "invert" drops the text between the matches: these patterns leave none.
    matches!(behavior(step), ("Isolated", false) | ("Removed", true))
}

/// Reads the normalizer and the pre-tokenizer of a `tokenizer.json`.
///
/// # Errors
/// `unsupported_tokenizer`, which names the step.
pub(crate) fn steps(normalizer: &Value, pre_tokenizer: &Value) -> Result<Steps> {
    let (mut before, mut splits) = (Vec::new(), Vec::new());
    flat(normalizer, "normalizers", &mut before);
    flat(pre_tokenizer, "pretokenizers", &mut splits);
    let mut steps = Steps::of(None);
    let mut marks_spaces = false;
    for step in before {
        match kind(step) {
            "NFC" if !marks_spaces => steps.is_composed = true,
            "Prepend"
                if text(step, &["prepend"]) == "\u{2581}"
                    && !marks_spaces
                    && steps.prefix == Prefix::Never =>
            {
                steps.prefix = Prefix::Always
            }
            "Replace"
                if text(step, &["pattern", "String"]) == " " && text(step, &["content"]) == "\u{2581}" =>
            {
                marks_spaces = true;
            }
            other => return Err(unsupported(&format!("the normalizer {other}"))),
        }
    }
    if let Some((last, splits)) = splits.split_last()
        && kind(last) == "ByteLevel"
        && !marks_spaces
        && steps.prefix == Prefix::Never
    {
        let splits = match splits.split_first() {
            Some((first, others)) if kind(first) == "Digits" => {
                let is_each = flag(first, "individual_digits", false);
                steps.digits = if is_each { Digits::Each } else { Digits::Runs };
                others
            }
            _ => splits,
        };
        steps.pattern = Some(byte_level(last, splits)?);
        if flag(last, "add_prefix_space", true) {
            if !splits.is_empty() || steps.digits != Digits::Joined {
                return Err(unsupported("a prefix space after a split"));
            }
            steps.prefix = Prefix::UnlessSpace;
        }
        return Ok(steps);
    }
    for step in &splits {
        match kind(step) {
            // Never matches: the spaces are replaced.
            "Split"
                if marks_spaces
                    && text(step, &["pattern", "String"]) == " "
                    && behavior(step) != ("Removed", true) => {}
            "Metaspace" if text(step, &["replacement"]) == "\u{2581}" => {
                steps.marks_late = !marks_spaces;
                steps.cuts_spaces |= flag(step, "split", true);
                marks_spaces = true;
                steps.prefix = match text(step, &["prepend_scheme"]) {
                    "never" => steps.prefix,
                    "" if !flag(step, "add_prefix_space", true) => {
                        return Err(unsupported("Metaspace without a prepend scheme"));
                    }
                    "" | "always" if steps.prefix == Prefix::Never => Prefix::UnlessSpace,
                    "first" if steps.prefix == Prefix::Never => Prefix::FirstUnlessSpace,
                    other => return Err(unsupported(&format!("the prepend scheme {other:?}"))),
                };
            }
            other => return Err(unsupported(&format!("the pre-tokenizer {other}"))),
        }
    }
    if !marks_spaces || steps.is_composed {
        return Err(unsupported("a model without bytes and without marks for spaces"));
    }
    Ok(steps)
}

/// The pattern of a byte-level pre-tokenizer and the splits before it.
fn byte_level(step: &Value, splits: &[&Value]) -> Result<Pattern> {
    let own = flag(step, "use_regex", true);
    let regexes: Vec<String> = splits
        .iter()
        .map(|split| {
            let regex = text(split, &["pattern", "Regex"]).replace('\r', r"\r").replace('\n', r"\n");
            (kind(split) == "Split" && !regex.is_empty()).then_some(regex)
        })
        .collect::<Option<_>>()
        .unwrap_or_default();
    if regexes.len() != splits.len() {
        let other = splits.iter().map(|split| kind(split)).find(|kind| *kind != "Split").unwrap_or("Split");
        return Err(unsupported(&format!("the pre-tokenizer {other}")));
    }
    match (&*regexes, own) {
        ([], true) => Ok(Pattern::Gpt2),
        ([regex], false) if splits.iter().all(|split| is_isolating(split)) => {
            pattern_of(regex).ok_or_else(|| unknown_pattern(regex))
        }
        ([regex], false) if pattern_of(regex).is_some() => {
            let (behavior, is_inverted) = splits.first().map_or(("", false), |split| behavior(split));
            let inverted = if is_inverted { ", inverted" } else { "" };
            Err(unsupported(&format!("the split behavior {behavior:?}{inverted}")))
        }
        (regexes, false)
            if regexes == DEEPSEEK && splits.iter().all(|split| text(split, &["behavior"]) == "Isolated") =>
        {
            Ok(Pattern::Deepseek)
        }
        ([], false) => Err(unsupported("a byte-level model without a split pattern")),
        _ => Err(unknown_pattern(&regexes.join(" then "))),
    }
}

/// The error for a pattern that the engine does not know. It names all of a pattern of the length of known ones.
pub(crate) fn unknown_pattern(pattern: &str) -> Error {
    const MOST: usize = 500;
    let more = if pattern.chars().count() > MOST { "…" } else { "" };
    let shown: String = pattern.chars().take(MOST).collect();
    unsupported(&format!("the split pattern {shown}{more}"))
}
