//! Sentences of the user that correct an earlier statement or action.

use super::cues::{CORRECTED, CORRECTED_ZH, CORRECTIONS_ZH, CuedSentence, SETTING_RIGHT, is_short};

/// Openings of a correction.
const OPENINGS: [&str; 18] = [
    "no, ",
    "no. ",
    "no: ",
    "no - ",
    "nope",
    "wrong",
    "that's wrong",
    "that is wrong",
    "that's not ",
    "that is not ",
    "not that",
    "actually, ",
    "correction:",
    "scratch that",
    "i meant",
    "i said",
    "sorry, i meant",
    "no no",
];
/// A bare refusal, explained by the next sentence.
const BARE: [&str; 9] = ["no", "nope", "wrong", "no no", "nein", "non", "不", "不对", "错了"];
/// Longest bare refusal, with what may follow it.
const MAX_BARE_BYTES: usize = 24;

/// Whether a user's sentence corrects an earlier statement or action.
fn corrects(said: &CuedSentence<'_>) -> bool {
    let CuedSentence { sentence, lower, cues } = said;
    if sentence.ends_with(['?', '？', '吗', ':']) {
        return false;
    }
    if cues & (CORRECTED | SETTING_RIGHT | CORRECTED_ZH) == 0 {
        return false;
    }
    // "No, thanks" and "no problem" are not corrections.
    if ["no, thank", "no thank", "no, that's fine", "no problem", "no worries"]
        .iter()
        .any(|cue| lower.starts_with(cue))
    {
        return false;
    }
    OPENINGS.iter().any(|cue| lower.starts_with(cue))
        || cues & CORRECTED != 0
        || (lower.starts_with("not ") && lower.contains(','))
        || (lower.starts_with("不是") && lower.contains(['，', ',']))
        || (cues & CORRECTED_ZH != 0 && CORRECTIONS_ZH.iter().any(|cue| lower.contains(cue)))
}

/// Whether a correction says what does not hold, but not what holds instead.
fn denies_only(lower: &str) -> bool {
    let opens = [
        "no, not ",
        "no, no ",
        "not ",
        "no not ",
        "wrong",
        "that's wrong",
        "that is wrong",
        "that's not",
        "that is not",
    ];
    let replaces =
        ["use ", "instead", " but ", "rather", "should be", "make it", "it's ", "i meant", "take "];
    opens.iter().any(|opening| lower.starts_with(opening))
        && !replaces.iter().any(|word| lower.contains(word))
}

/// The corrections in a user's text; a bare "No." comes with the next sentence.
pub(in crate::evidence) fn corrections<'t>(
    text: &'t str,
    said: &[CuedSentence<'t>],
    most: usize,
) -> Vec<&'t str> {
    let mut found: Vec<&str> = Vec::new();
    let mut bare: Option<usize> = None;
    for each in said {
        let sentence = each.sentence;
        let start = sentence.as_ptr() as usize - text.as_ptr() as usize;
        let is_bare = sentence.len() <= MAX_BARE_BYTES && {
            let words = sentence.trim_end_matches(['.', '!', '。', '！', ',', '，']).to_lowercase();
            BARE.contains(&words.as_str())
        };
        if let Some(refusal) = bare.take() {
            let both = &text[refusal..start + sentence.len()];
            if is_short(both) && !both.contains('\n') && !corrects(each) {
                found.retain(|known| !both.starts_with(known));
                found.push(both);
                continue;
            }
        }
        if is_bare {
            bare = Some(start);
        } else if corrects(each) {
            // What is denied comes with the sentence that says what holds instead.
            found.push(sentence);
            bare = denies_only(&each.lower).then_some(start);
        }
        if found.len() >= most {
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::language::cues::said;

    #[test]
    fn corrections_are_told_from_refusals() {
        for (text, expected) in [
            ("No, not X, use Y.", "No, not X, use Y."),
            ("no. Use the other file. Thanks", "no. Use the other file."),
            ("Fine. I meant the second one!", "I meant the second one!"),
            ("不对，应该是第二个文件。", "不对，应该是第二个文件。"),
            ("把颜色改成红色", "把颜色改成红色"),
            ("nein, ich meinte blau", "nein, ich meinte blau"),
        ] {
            assert_eq!(corrections(text, &said(text), 8), [expected], "{text}");
        }
        for text in ["No problem.", "no, thanks", "yes, go on", "Is that wrong?", "there is no way", "No."] {
            assert!(corrections(text, &said(text), 8).is_empty(), "{text}");
        }
    }

    #[test]
    fn what_is_denied_comes_with_what_holds_instead() {
        let text = "no, not a fixed window, they double the burst. use a token bucket";
        assert_eq!(corrections(text, &said(text), 8), [text]);
    }
}
