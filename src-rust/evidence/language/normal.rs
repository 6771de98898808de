//! Normal form of text for comparison: equal for spellings that differ without meaning.
//!
//! Ignores case, markdown emphasis, kinds of quotation marks, full-width forms, runs of spaces and invisible
//! characters. Quotation marks become `` ` ``, so that a quoted word still differs from a plain one.

use std::borrow::Cow;

/// `text` in normal form. Line ends are kept, other white space becomes one space. O(bytes).
pub(in crate::evidence) fn normal(text: &str) -> String {
    normalized(text, |_, _| ())
}

/// `text` in normal form, and for each byte of it the offset of its character in `text`. O(bytes).
pub(in crate::evidence) fn normal_with_offsets(text: &str) -> (String, Vec<u32>) {
    let mut offsets: Vec<u32> = Vec::with_capacity(text.len());
    let out = normalized(text, |len, at| offsets.resize(len, u32::try_from(at).unwrap_or(u32::MAX)));
    offsets.truncate(out.len());
    (out, offsets)
}

/// Calls `written` with the length of the normal form after each character, and the offset of that character.
fn normalized(text: &str, mut written: impl FnMut(usize, usize)) -> String {
    let mut out = String::with_capacity(text.len());
    let mut before = '\n';
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let c = match c {
            '\u{ff01}'..='\u{ff5e}' => char::from_u32(c as u32 - 0xfee0).unwrap_or(c),
            '\u{3000}' => ' ',
            '\n' => '\n',
            _ if c.is_whitespace() => ' ',
            _ => c,
        };
        let is_inside = |next: Option<&(usize, char)>| {
            before.is_alphanumeric() && next.is_some_and(|(_, c)| c.is_alphanumeric())
        };
        let c = match c {
            '*' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}' | '\u{ad}' => continue,
            '’' | '‘' | '\'' if is_inside(chars.peek()) => '\'',
            '’' | '‘' | '\'' | '"' | '“' | '”' | '«' | '»' | '「' | '」' | '『' | '』' => '`',
            c => c,
        };
        match c {
            ' ' if before == ' ' || before == '\n' => continue,
            '`' if before == '`' => continue,
            '\n' => {
                out.truncate(out.trim_end_matches(' ').len());
                out.push('\n');
            }
            'A'..='Z' => out.push(c.to_ascii_lowercase()),
            _ if c.is_ascii() => out.push(c),
            _ => out.extend(c.to_lowercase()),
        }
        written(out.len(), at);
        before = c;
    }
    out.truncate(out.trim_end().len());
    out
}

/// Lower case with plain apostrophes.
pub(in crate::evidence) fn folded(sentence: &str) -> String {
    if sentence.is_ascii() {
        return sentence.to_ascii_lowercase();
    }
    // Scripts without upper case, and punctuation.
    let is_caseless = |c: char| {
        matches!(c, '\0'..='\x7f' | '\u{2010}'..='\u{2018}' | '\u{201a}'..='\u{2027}' | '\u{2e80}'..='\u{a63f}'
            | '\u{ac00}'..='\u{d7ff}' | '\u{ff00}'..='\u{ff20}')
    };
    if sentence.chars().all(is_caseless) {
        return sentence.to_ascii_lowercase();
    }
    let mut lower = String::with_capacity(sentence.len());
    for c in sentence.chars() {
        match c {
            '’' => lower.push('\''),
            '\0'..='\x7f' => lower.push(c.to_ascii_lowercase()),
            _ => lower.extend(c.to_lowercase()),
        }
    }
    lower
}

/// Whether a character is a syllable or a word, in a script without spaces.
pub(in crate::evidence) fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}'
        | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// Whether a character may be inside a word. Characters of unspaced scripts are separate words.
pub(in crate::evidence) fn is_wordy(c: char) -> bool {
    c == '_' || c.is_ascii_alphanumeric() || (!c.is_ascii() && c.is_alphanumeric() && !is_unspaced(c))
}

/// The words of a normal text with their offsets: runs of letters and digits; in unspaced scripts every bigram, or a
/// single character without neighbours.
pub(in crate::evidence) fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let c = text[at..].chars().next()?;
            let start = at;
            if is_wordy(c) {
                let len = text[at..].find(|c| !is_wordy(c)).unwrap_or(text.len() - at);
                at += len;
                return Some((start, &text[start..at]));
            }
            at += c.len_utf8();
            if !is_unspaced(c) {
                continue;
            }
            let next = text[at..].chars().next().filter(|c| is_unspaced(*c));
            let follows = text[..start].chars().next_back().is_some_and(is_unspaced);
            match next {
                Some(next) => return Some((start, &text[start..at + next.len_utf8()])),
                None if !follows => return Some((start, &text[start..at])),
                None => {}
            }
        }
    })
}

/// A word without English inflections. For comparison only.
pub(in crate::evidence) fn stem(word: &str) -> Cow<'_, str> {
    if word.len() < 5 || !word.bytes().all(|b| b.is_ascii_lowercase()) {
        return Cow::Borrowed(word);
    }
    for ending in ["ing", "ed", "es", "s", "e"] {
        if let Some(root) = word.strip_suffix(ending).filter(|root| root.len() >= 3) {
            return Cow::Borrowed(root);
        }
    }
    Cow::Borrowed(word)
}

/// Grammatical particles of Chinese and Japanese: bigrams with them change with the wording.
const PARTICLES: &str =
    "的了着过是在和与也就把被请要不吧吗呢地得之并都很我你他她它这那个们请はがをにのでともへや";

/// Whether a sentence, in normal form, says what is not or must not be.
pub(in crate::evidence) fn is_negative(normal: &str) -> bool {
    const SIGNS: [&str; 12] =
        ["不", "别", "勿", "禁", "无需", "没", "ない", "ません", "避免", "n't", "nicht", "kein"];
    const WORDS: [&str; 16] = [
        "not",
        "never",
        "no",
        "without",
        "avoid",
        "cannot",
        "dont",
        "forbid",
        "forbidden",
        "nor",
        "none",
        "nunca",
        "sin",
        "nie",
        "jamais",
        "pas",
    ];
    SIGNS.iter().any(|sign| normal.contains(sign)) || words(normal).any(|(_, word)| WORDS.contains(&word))
}

/// Words without content.
pub(in crate::evidence) fn is_filler(word: &str) -> bool {
    const FILLERS: [&str; 93] = [
        "a", "about", "all", "also", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by", "can",
        "could", "did", "do", "does", "done", "for", "from", "get", "got", "had", "has", "have", "he", "her",
        "here", "his", "how", "i", "if", "in", "into", "is", "it", "its", "just", "let", "like", "ll",
        "make", "may", "me", "more", "my", "need", "now", "of", "on", "one", "or", "our", "out", "please",
        "re", "s", "she", "should", "so", "some", "sure", "t", "than", "that", "the", "their", "them",
        "then", "there", "these", "they", "this", "those", "to", "up", "us", "ve", "very", "want", "was",
        "we", "were", "what", "when", "which", "will", "with", "would", "you", "your",
    ];
    const MAX_FILLER_BYTES: usize = 6;
    debug_assert!(FILLERS.is_sorted() && FILLERS.iter().all(|word| word.len() <= MAX_FILLER_BYTES));
    if word.chars().next().is_some_and(is_unspaced) {
        return word.chars().any(|c| PARTICLES.contains(c));
    }
    word.len() <= MAX_FILLER_BYTES && FILLERS.binary_search(&word).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_the_same_text_are_equal() {
        assert_eq!(normal("**Use**  “Tabs”\n\n  don’t"), "use `tabs`\n\ndon't");
        assert_eq!(normal("ＡＰＩ：８０８０"), "api:8080");
        assert_eq!(normal("`a`\u{200b} ''b''"), "`a` `b`");
    }

    #[test]
    fn words_are_runs_and_pairs() {
        let found = |text: &'static str| words(text).map(|(_, word)| word).collect::<Vec<_>>();
        assert_eq!(found("src/a_b.rs, x"), ["src", "a_b", "rs", "x"]);
        assert_eq!(found("不要用ab字"), ["不要", "要用", "ab", "字"]);
        assert_eq!(found("über-é"), ["über", "é"]);
    }

    #[test]
    fn grammar_is_taken_off() {
        assert_eq!(
            (stem("tests"), stem("tested"), stem("bus"), stem("a1ed")),
            ("test".into(), "test".into(), "bus".into(), "a1ed".into())
        );
    }
}
