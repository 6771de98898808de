//! Text helpers: cutting, cleaning, sentence splitting, and escaping of section tags.
//!
//! Each reads its input once. Limits are in characters, not tokens.

use std::borrow::Cow;

/// Tags that structure a summary document; quoted text must not contain them.
const STRUCTURE_TAGS: [&str; 3] = ["foldline-history", "read-files", "modified-files"];

/// Escapes the `<` of every structure tag in `text`. Idempotent.
pub(super) fn escape_section_tags(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut from = 0;
    for at in memchr::memchr_iter(b'<', text.as_bytes()) {
        let after: &str = text[at + 1..].trim_start_matches([' ', '/']);
        if STRUCTURE_TAGS.iter().any(|tag| starts_with_ignoring_case(after, tag)) {
            out.push_str(&text[from..at]);
            out.push('‹');
            from = at + 1;
        }
    }
    if from == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[from..]);
    Cow::Owned(out)
}

#[inline]
pub(super) fn starts_with_ignoring_case(text: &str, prefix: &str) -> bool {
    let prefix = prefix.as_bytes();
    text.as_bytes().get(..prefix.len()).is_some_and(|head| {
        // Most texts differ in the first byte.
        head.first().map(u8::to_ascii_lowercase) == prefix.first().map(u8::to_ascii_lowercase)
            && head.eq_ignore_ascii_case(prefix)
    })
}

/// Byte offset of character `n`, or the length.
fn offset_of(text: &str, n: usize) -> usize {
    if n >= text.len() {
        return text.len();
    }
    text.char_indices().nth(n).map_or(text.len(), |(at, _)| at)
}

/// Cuts the middle of `text` at word boundaries to at most `max_chars` characters, marker included. The head gets two
/// thirds: a request is stated first and refined last.
pub(super) fn cut_middle(text: &str, max_chars: usize) -> Cow<'_, str> {
    if text.len() <= max_chars {
        return Cow::Borrowed(text);
    }
    let total = text.chars().count();
    if total <= max_chars {
        return Cow::Borrowed(text);
    }
    let marker_room = 40;
    if max_chars < 3 * marker_room {
        return cut_end(text, max_chars);
    }
    let room = max_chars - marker_room;
    let head = &text[..word_end(text, offset_of(text, room - room / 3))];
    let tail = &text[word_start(text, offset_of(text, total - room / 3))..];
    let left_out = total - head.chars().count() - tail.chars().count();
    Cow::Owned(format!("{} [… {left_out} characters left out …] {}", head.trim_end(), tail.trim_start()))
}

/// Shortens a text at line ends and sentence ends to at most `max_chars` characters: its beginning and its end, with a
/// mark between them. A sentence is never cut; where not even one fits, the text is cut between words.
pub(super) fn cut_whole(text: &str, max_chars: usize) -> Cow<'_, str> {
    const MARK: &str = "\n[…]\n";
    if text.len() <= max_chars || text.chars().count() <= max_chars {
        return Cow::Borrowed(text);
    }
    let room = max_chars.saturating_sub(MARK.len());
    let chars_to = |from: usize, to: usize| text[from..to].chars().count();
    let (mut head, mut used) = (0, 0);
    // Only as much of each end as there is room for is read.
    for end in ends_of_thoughts(&text[..offset_of(text, room)]) {
        let more = chars_to(head, end);
        if used + more > room - room / 3 {
            break;
        }
        (head, used) = (end, used + more);
    }
    let last = text.char_indices().rev().nth(room).map_or(0, |(at, _)| at);
    let (mut tail, mut at) = (text.len(), text.len());
    for start in ends_of_thoughts(&text[last..]).into_iter().rev().map(|end| last + end) {
        if start <= head {
            break;
        }
        let more = chars_to(start, at);
        if used + more > room {
            break;
        }
        (tail, at, used) = (start, start, used + more);
    }
    if head == 0 {
        return Cow::Owned(cut_end(text, max_chars).into_owned());
    }
    let (head, tail) = (text[..head].trim_end(), text[tail..].trim_start());
    if tail.is_empty() {
        Cow::Owned(format!("{head} […]"))
    } else {
        Cow::Owned(format!("{head}{MARK}{tail}"))
    }
}

/// Fewest headings of a text that is cut below each of them.
const MIN_HEADINGS: usize = 3;

/// Shortens a text with headings below each of them: all headings stay, with the first lines of each section in turn, as
/// many as have room; code is left out. A text with few headings is cut as [`cut_whole`] does.
pub(super) fn cut_outline(text: &str, max_chars: usize) -> Cow<'_, str> {
    const MARK: &str = " […]";
    const MARK_CHARS: usize = 4;
    if text.len() <= max_chars || text.chars().count() <= max_chars {
        return Cow::Borrowed(text);
    }
    let lines: Vec<&str> = text.lines().collect();
    // Each section: its heading, and the lines below it that are not code. What stands before the first heading is one.
    let mut sections: Vec<(Option<usize>, Vec<usize>, bool)> = vec![(None, Vec::new(), false)];
    let mut is_code = false;
    for (at, line) in lines.iter().enumerate() {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        let Some((_, body, leaves_out)) = sections.last_mut() else { continue };
        match () {
            () if is_code || is_fence => *leaves_out = true,
            () if line.starts_with('#') => sections.push((Some(at), Vec::new(), false)),
            () if !line.trim().is_empty() => body.push(at),
            () => {}
        }
    }
    let is_apart = |at: usize| at > 0 && lines[at - 1].trim().is_empty();
    let cost = |at: usize| lines[at].chars().count() + 1 + usize::from(is_apart(at));
    let mut used: usize = sections.iter().map(|(title, ..)| title.map_or(0, cost) + MARK_CHARS).sum();
    if sections.len() <= MIN_HEADINGS || used > max_chars * 2 / 3 {
        return cut_whole(text, max_chars);
    }
    let mut kept = vec![false; lines.len()];
    sections.iter().filter_map(|(title, ..)| *title).for_each(|at| kept[at] = true);
    // A section ends where its next line does not fit.
    let mut open: Vec<&[usize]> = sections.iter().map(|(_, body, _)| body.as_slice()).collect();
    while !open.is_empty() {
        open.retain_mut(|body| {
            let Some((&at, rest)) = body.split_first() else { return false };
            *body = rest;
            kept[at] = used + cost(at) <= max_chars;
            used += if kept[at] { cost(at) } else { 0 };
            kept[at]
        });
    }
    let mut out = String::new();
    for (title, body, leaves_out) in &sections {
        let shown: Vec<usize> = title.iter().chain(body).copied().filter(|at| kept[*at]).collect();
        for at in &shown {
            if is_apart(*at) && !out.is_empty() {
                out.push('\n');
            }
            out.push_str(lines[*at]);
            out.push('\n');
        }
        if !shown.is_empty() && (*leaves_out || body.iter().any(|at| !kept[*at])) {
            out.truncate(out.trim_end().len());
            out.push_str(MARK);
            out.push('\n');
        }
    }
    Cow::Owned(out.trim_end().to_owned())
}

/// The offsets after each line and each sentence. The number of a list item is no sentence.
fn ends_of_thoughts(text: &str) -> Vec<usize> {
    let mut ends = Vec::new();
    let mut chars = text.char_indices().peekable();
    let mut is_number = true;
    while let Some((at, c)) = chars.next() {
        let is_end = match c {
            '\n' | '。' | '！' | '？' | '；' => true,
            '.' | '!' | '?' => !is_number && chars.peek().is_none_or(|(_, next)| next.is_whitespace()),
            _ => false,
        };
        is_number = c == '\n' || (is_number && (c.is_ascii_digit() || c == ' '));
        if is_end {
            ends.push(at + c.len_utf8());
        }
    }
    ends
}

/// The start of `text`, at most `max_chars` characters with the ellipsis, cut at a word boundary.
pub(super) fn cut_end(text: &str, max_chars: usize) -> Cow<'_, str> {
    let end = offset_of(text, max_chars);
    if end == text.len() {
        return Cow::Borrowed(text);
    }
    let end = word_end(text, offset_of(text, max_chars.saturating_sub(1)));
    Cow::Owned(format!("{}…", text[..end].trim_end()))
}

/// The nearest word end at or shortly before `at`; `at` itself in scripts without spaces.
fn word_end(text: &str, at: usize) -> usize {
    if text[at..].starts_with(char::is_whitespace) {
        return at;
    }
    let near = text[..at].char_indices().rev().take(24);
    near.into_iter().find(|(_, c)| c.is_whitespace()).map_or(at, |(space, _)| space)
}

/// The nearest word start at or shortly after `at`.
fn word_start(text: &str, at: usize) -> usize {
    if text[..at].ends_with(char::is_whitespace) {
        return at;
    }
    let near = text[at..].char_indices().take(24);
    near.into_iter().find(|(_, c)| c.is_whitespace()).map_or(at, |(space, _)| at + space)
}

/// `text` on one line: runs of white space become one space; terminal colours and control characters are removed. Reads
/// only as much as `max_chars` needs.
pub(super) fn one_line(text: &str, max_chars: usize) -> String {
    if text.len() <= max_chars && is_plain(text.trim_ascii()) {
        return text.trim_ascii().to_owned();
    }
    let mut out = String::with_capacity(text.len().min(max_chars));
    let mut chars = text.chars();
    let (mut count, mut wants_space) = (0, false);
    while let Some(c) = chars.next() {
        if c == '\u{1b}' {
            skip_escape(&mut chars);
        } else if c.is_whitespace() {
            wants_space = !out.is_empty();
        } else if !c.is_control() {
            if std::mem::take(&mut wants_space) {
                out.push(' ');
                count += 1;
            }
            out.push(c);
            count += 1;
            if count > max_chars {
                return cut_end(&out, max_chars).into_owned();
            }
        }
    }
    out
}

/// Whether a text is ASCII without control characters and without two spaces in a row.
fn is_plain(text: &str) -> bool {
    let mut before = b'_';
    text.bytes().all(|byte| {
        let is_plain = matches!(byte, b' '..=b'~') && (byte, before) != (b' ', b' ');
        before = byte;
        is_plain
    })
}

/// Skips a terminal escape sequence (`ESC [ … letter`).
fn skip_escape(chars: &mut std::str::Chars<'_>) {
    if !chars.as_str().starts_with('[') {
        return;
    }
    for c in chars.by_ref().take(32) {
        if c.is_ascii_alphabetic() {
            return;
        }
    }
}

/// The lines of a text, as [`str::lines`] gives them, but faster.
pub(super) fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || match memchr::memchr(b'\n', rest.as_bytes()) {
        Some(end) => {
            let line = &rest[..end];
            rest = &rest[end + 1..];
            Some(line.strip_suffix('\r').unwrap_or(line))
        }
        None => Some(std::mem::take(&mut rest)).filter(|last| !last.is_empty()),
    })
}

/// The sentences of a text, without list and heading markers, quotes and fenced code. A sentence ends at `.`, `!`, `?`
/// before white space, at Chinese full stops, and at a line end.
pub(super) fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let mut in_fence = false;
    lines(text).flat_map(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        in_fence ^= is_fence;
        let prose = if in_fence || is_fence { "" } else { without_marker(line) };
        Sentences { rest: prose, is_ascii: prose.is_ascii() }
    })
}

/// A line without leading `- `, `* `, `> `, `# `, `12. ` and white space.
pub(super) fn without_marker(line: &str) -> &str {
    let line = line.trim();
    // Most lines have no marker.
    if line.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return line;
    }
    let line = line.trim_start_matches(['#', '>', '*', '-', '•', ' ', '\t']);
    let digits = line.len() - line.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    match line[digits..].strip_prefix(['.', ')']).filter(|rest| digits > 0 && rest.starts_with(' ')) {
        Some(rest) => rest.trim_start(),
        None => line,
    }
}

struct Sentences<'t> {
    rest: &'t str,
    is_ascii: bool,
}

impl<'t> Iterator for Sentences<'t> {
    type Item = &'t str;

    fn next(&mut self) -> Option<&'t str> {
        loop {
            self.rest = self.rest.trim_start();
            if self.rest.is_empty() {
                return None;
            }
            let end = if self.is_ascii { ascii_sentence_end(self.rest) } else { sentence_end(self.rest) };
            let sentence = self.rest[..end].trim_end();
            self.rest = &self.rest[end..];
            if sentence.chars().any(char::is_alphanumeric) {
                return Some(sentence);
            }
        }
    }
}

fn ascii_sentence_end(text: &str) -> usize {
    let bytes = text.as_bytes();
    let is_end = |at: &usize| bytes.get(at + 1).is_none_or(u8::is_ascii_whitespace);
    memchr::memchr3_iter(b'.', b'!', b'?', bytes).find(is_end).map_or(text.len(), |at| at + 1)
}

fn sentence_end(text: &str) -> usize {
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let ends = match c {
            '。' | '！' | '？' | '；' => true,
            '.' | '!' | '?' => chars.peek().is_none_or(|(_, next)| next.is_whitespace()),
            _ => false,
        };
        if ends {
            return at + c.len_utf8();
        }
    }
    text.len()
}

/// ASCII letters, digits and these signs, as a table for texts of which every byte is checked.
pub(super) const fn ascii_table(signs: &[u8]) -> [bool; 256] {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    let mut at = 0;
    while at < signs.len() {
        table[signs[at] as usize] = true;
        at += 1;
    }
    table
}

/// Whether `text` (lower case) contains `word` without adjacent letters or digits.
pub(super) fn has_word(text: &str, word: &str) -> bool {
    let is_edge = |c: Option<char>| c.is_none_or(|c| !c.is_ascii_alphanumeric());
    text.match_indices(word).any(|(at, _)| {
        is_edge(text[..at].chars().next_back()) && is_edge(text[at + word.len()..].chars().next())
    })
}

/// Phrases that are sought in many texts, most of which have none of them.
#[derive(Debug)]
pub(super) struct Phrases(Vec<memchr::memmem::Finder<'static>>);

impl Phrases {
    pub(super) fn new(phrases: &[&'static str]) -> Self {
        Phrases(phrases.iter().map(|phrase| memchr::memmem::Finder::new(*phrase)).collect())
    }

    /// Whether a text has one of them, within other words too.
    pub(super) fn any_in(&self, text: &str) -> bool {
        self.0.iter().any(|phrase| phrase.find(text.as_bytes()).is_some())
    }
}

/// At most the first `n` bytes, cut at a character boundary.
pub(super) fn head_bytes(text: &str, n: usize) -> &str {
    let mut end = n.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// At most the last `n` bytes, cut at a character boundary.
pub(super) fn tail_bytes(text: &str, n: usize) -> &str {
    let mut start = text.len().saturating_sub(n);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_is_cut_at_word_boundaries_with_a_marker() {
        let text = (0..400).map(|i| format!("word{i}")).collect::<Vec<_>>().join(" ");
        let cut = cut_middle(&text, 200);
        assert!(cut.chars().count() <= 200, "{}", cut.len());
        assert!(cut.starts_with("word0 word1 ") && cut.ends_with(" word399"), "{cut}");
        assert!(cut.contains(" characters left out …] word3"), "{cut}");
        assert_eq!(cut_middle("short", 200), "short");
        assert_eq!(cut_middle(&cut, 200), cut);
    }

    #[test]
    fn a_text_with_headings_is_cut_below_each_of_them() {
        let section = |n: usize| {
            format!("## {n}. Part\nFile {n}.\nSecond line of {n}, which is longer.\n```\ncode\n```\n")
        };
        let text: String = (1..=4).map(section).collect();
        assert_eq!(cut_outline(&text, 10_000), text);
        let cut = cut_outline(&text, 110);
        let expected: Vec<String> = (1..=4).map(|n| format!("## {n}. Part\nFile {n}. […]")).collect();
        assert_eq!(cut, expected.join("\n"));
        assert!(cut_outline(&text, 140).contains("Second line of 1, which is longer. […]"));
        assert!(cut_outline("One. Two. Three. Four. Five.", 20).starts_with("One."));
    }

    #[test]
    fn text_without_spaces_is_cut_between_characters() {
        let text = "电影".repeat(300);
        let cut = cut_middle(&text, 150);
        assert!(cut.chars().count() <= 150 && cut.starts_with("电影电影"), "{cut}");
        assert_eq!(cut_end("汉字汉字汉字", 4), "汉字汉…");
        assert_eq!(cut_end("one two three", 9), "one two…");
        assert_eq!(cut_end("one", 0), "…");
    }

    #[test]
    fn structure_tags_are_neutralised_and_other_tags_left_alone() {
        assert_eq!(escape_section_tags("a </foldline-history> b"), "a ‹/foldline-history> b");
        assert_eq!(
            escape_section_tags("<Foldline-History v=1>< / read-files>"),
            "‹Foldline-History v=1>‹ / read-files>"
        );
        assert!(matches!(escape_section_tags("<b>1 < 2</b>"), Cow::Borrowed(_)));
        assert_eq!(escape_section_tags("<<modified-files>"), "<‹modified-files>");
    }

    #[test]
    fn lines_are_joined_without_colours() {
        assert_eq!(one_line("a\u{1b}[31m b\n\n\tc\u{7}", 80), "a b c");
        assert_eq!(one_line("alpha beta gamma", 11), "alpha beta…");
    }

    #[test]
    fn sentences_end_at_marks_and_lines_and_skip_code() {
        let text = "Use v1.2 here. Never x!\n- 3. item\n```\ncode must\n```\n不要删除。请用它";
        let found: Vec<&str> = sentences(text).collect();
        assert_eq!(found, ["Use v1.2 here.", "Never x!", "item", "不要删除。", "请用它"]);
    }

    #[test]
    fn words_have_edges() {
        assert!(has_word("you must, now", "must") && !has_word("mustard", "must"));
        assert!(has_word("don't", "don't"));
    }
}
