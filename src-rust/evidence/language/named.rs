//! Identifiers and numbers with units, with the words before them that describe them.
//!
//! A text is split into runs of identifier characters, and only runs with a digit are examined. Fenced code is skipped:
//! code is full of names, and its files are known. O(bytes).

use std::sync::LazyLock;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::evidence::text::{ascii_table, escape_section_tags, head_bytes, lines, one_line, tail_bytes};
use crate::evidence::{NameKind, Named};

/// Most names of one text, and most names kept, the newest first.
const MAX_PER_TEXT: usize = 40;
const MAX_NAMES: usize = 1_000;
/// Longest identifier; anything longer is data.
const MAX_BYTES: usize = 200;
/// Most words before a name, enough to describe it.
const MAX_LEAD_WORDS: usize = 5;
const MAX_LEAD_CHARS: usize = 48;
/// Longest unit, with the bytes that show its end.
const MAX_UNIT_BYTES: usize = 24;
/// Longest line of prose; longer lines are data.
const MAX_LINE_BYTES: usize = 2_000;

/// Units that make a number worth keeping, grouped by meaning.
const UNITS: [&[&str]; 34] = [
    &["%", "percent"],
    &["ms", "millisecond", "milliseconds", "毫秒"],
    &["s", "sec", "secs", "second", "seconds", "秒"],
    &["min", "mins", "minute", "minutes", "分钟"],
    &["h", "hr", "hrs", "hour", "hours", "小时"],
    &["day", "days", "天"],
    &["week", "weeks", "周"],
    &["month", "months", "个月"],
    &["year", "years", "年"],
    &["kb", "kib"],
    &["mb", "mib"],
    &["gb", "gib"],
    &["tb", "tib"],
    &["byte", "bytes"],
    &["px", "pixel", "pixels", "像素"],
    &["token", "tokens"],
    &["word", "words", "字"],
    &["char", "chars", "character", "characters", "字符"],
    &["row", "rows"],
    &["usd", "dollar", "dollars", "美元"],
    &["eur", "euro", "euros", "欧元"],
    &["元", "块", "人民币"],
    &["rps", "qps", "req/s"],
    &["retry", "retries", "attempts"],
    &["item", "items"],
    &["people", "persons", "passengers", "人"],
    &["km"],
    &["kg"],
    &["hz"],
    &["khz"],
    &["mhz"],
    &["ghz"],
    &["worker", "workers", "thread", "threads", "cores"],
    &["倍", "次", "个", "万"],
];

/// Names, each once, in the order of their first appearance.
#[derive(Debug, Default)]
pub(in crate::evidence) struct Names {
    names: Vec<Named>,
    by_text: FxHashMap<String, usize>,
}

impl Names {
    /// Notes the names in a text.
    pub(in crate::evidence) fn read(&mut self, message: usize, text: &str, by_user: bool) {
        let (mut in_fence, mut left) = (false, MAX_PER_TEXT);
        let has_url = text.contains("://");
        for line in lines(text) {
            let is_fence = line.trim_start().starts_with("```");
            in_fence ^= is_fence;
            if in_fence || is_fence || line.len() > MAX_LINE_BYTES {
                continue;
            }
            for (at, end, kind) in names_in(line, has_url, by_user).into_iter().take(left) {
                left -= 1;
                let text = escape_section_tags(&line[at..end]);
                let known = self.by_text.get(&*text).map(|&at| &self.names[at]);
                let is_described = known.is_some_and(|known| known.by_user || !by_user);
                let phrase = if is_described { String::new() } else { phrase(line, at, end) };
                self.add(Named {
                    message,
                    last_message: message,
                    kind,
                    text: text.into_owned(),
                    phrase,
                    times: 1,
                    by_user,
                });
            }
        }
    }

    pub(in crate::evidence) fn add(&mut self, name: Named) {
        match self.by_text.get(&name.text).copied() {
            Some(at) => {
                let known = &mut self.names[at];
                known.times += name.times;
                known.last_message = known.last_message.max(name.last_message);
                // The user's description is preferred.
                if name.by_user && !known.by_user {
                    (known.phrase, known.by_user) = (name.phrase, true);
                }
            }
            None if self.names.len() >= MAX_NAMES => {}
            None => {
                self.by_text.insert(name.text.clone(), self.names.len());
                self.names.push(name);
            }
        }
    }

    /// Identifiers, and numbers with units.
    pub(in crate::evidence) fn finish(self) -> (Vec<Named>, Vec<Named>) {
        self.names.into_iter().partition(|name| name.kind != NameKind::Number)
    }
}

/// The name in an item of a document.
pub(in crate::evidence) fn from_phrase(message: usize, phrase: &str, kind: NameKind) -> Named {
    let last = names_in(phrase, true, true).pop();
    let text = last.map_or(phrase, |(at, end, _)| &phrase[at..end]).to_owned();
    let kind = last.map_or(kind, |(_, _, kind)| kind);
    Named { message, last_message: message, kind, text, phrase: phrase.to_owned(), times: 1, by_user: true }
}

/// The commit that `git commit` reports: `[main 1a2b3c4] Title`.
pub(in crate::evidence) fn commit_of(message: usize, output: &str) -> Option<Named> {
    let lines = || output.lines().take(40).map(str::trim);
    // `[main 1a2b3c4] title` of the commit itself, or `1a2b3c4 title` of a log that is shown after a quiet one.
    let own = lines().find_map(|line| {
        let (inside, title) = line.strip_prefix('[')?.split_once("] ")?;
        Some((inside.rsplit(' ').next().filter(|id| is_hex(id))?, title))
    });
    let logged = || lines().filter_map(|line| line.split_once(' ')).find(|(id, _)| is_hex(id));
    let (id, title) = own.or_else(logged)?;
    let phrase = escape_section_tags(&one_line(&format!("commit {id}: {title}"), 120)).into_owned();
    let (text, kind) = (id.to_owned(), NameKind::Hash);
    Some(Named { message, last_message: message, kind, text, phrase, times: 2, by_user: false })
}

/// Equivalent spellings of a number with its unit.
pub(in crate::evidence) fn spellings(text: &str) -> Vec<String> {
    let digits =
        text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | ',')).len();
    let (number, unit) = (&text[..digits], text[digits..].trim().to_lowercase());
    let group = UNITS.iter().find(|group| group.contains(&unit.as_str())).filter(|_| digits > 0);
    let Some(group) = group else { return vec![text.to_owned()] };
    group
        .iter()
        .flat_map(|unit| [format!("{number}{unit}"), format!("{number} {unit}"), format!("{number}-{unit}")])
        .collect()
}

/// Ranges of the names in a line, which may have addresses.
fn names_in(line: &str, may_have_url: bool, with_quoted: bool) -> Vec<(usize, usize, NameKind)> {
    let bytes = line.as_bytes();
    let mut found = Vec::new();
    let has_url = may_have_url && line.contains("://");
    let mut at = 0;
    // The next run with a digit, or with the colon of an address. Most lines have neither.
    let is_sign = |byte: &u8| byte.is_ascii_digit() || (has_url && *byte == b':');
    while let Some(sign) = bytes[at..].iter().position(is_sign) {
        let sign = at + sign;
        let before = bytes[at..sign].iter().rposition(|byte| !is_token(*byte));
        let start = before.map_or(at, |before| at + before + 1);
        at = bytes[sign..].iter().position(|byte| !is_token(*byte)).map_or(bytes.len(), |end| sign + end);
        let run = &line[start..at];
        if run.bytes().any(|byte| byte.is_ascii_digit()) || run.contains("://") {
            let trimmed = run.trim_start_matches(['.', ':', ',', '=', '-', '?', '&', '/']);
            let start = start + run.len() - trimmed.len();
            let token = trimmed.trim_end_matches(['.', ':', ',', '=', '-', '?', '&', '#', '/']);
            if let Some((len, kind)) = kind_of(token, line, start) {
                found.push((start, start + len, kind));
                at = at.max(start + len);
            }
        }
    }
    if with_quoted {
        quoted(line, &mut found);
        found.sort_unstable_by_key(|(at, ..)| *at);
    }
    found
}

/// Bytes of identifiers.
const TOKEN: [bool; 256] = ascii_table(b"_-./:#@%+~$=?&,");

fn is_token(byte: u8) -> bool {
    TOKEN[usize::from(byte)]
}

/// The kind of a token, with the length of its identifier.
fn kind_of(token: &str, line: &str, start: usize) -> Option<(usize, NameKind)> {
    if token.is_empty() || token.len() > MAX_BYTES {
        return None;
    }
    let whole = |kind| Some((token.len(), kind));
    if let Some(scheme) = memchr::memmem::find(token.as_bytes(), b"://") {
        return (scheme > 1 && token.len() > scheme + 4).then_some((token.len(), NameKind::Url));
    }
    if !token.bytes().any(|b| b.is_ascii_digit()) {
        return None;
    }
    if let Some(len) = number_with_unit(token, line, start) {
        return Some((len, NameKind::Number));
    }
    let letters = token.bytes().filter(u8::is_ascii_alphabetic).count();
    let digits = token.bytes().filter(u8::is_ascii_digit).count();
    if is_date(token) {
        return whole(NameKind::Date);
    }
    if letters == 0 && token.starts_with('#') && digits == token.len() - 1 {
        return whole(NameKind::Id);
    }
    if let Some((host, port)) = token.rsplit_once(':')
        && (2..=5).contains(&port.len())
        && port.bytes().all(|b| b.is_ascii_digit())
        && !host.contains(['/', ':'])
        && (host.contains('.') || host == "localhost")
        && !host.rsplit('.').next().is_some_and(is_file_ending)
    {
        return whole(NameKind::Port);
    }
    let follows_port = || {
        let before = tail_bytes(&line[..start], 16).trim_end().to_ascii_lowercase();
        before.ends_with("port") || before.ends_with("端口") || before.ends_with("端口是")
    };
    if letters == 0 && digits == token.len() && follows_port() {
        return whole(NameKind::Port);
    }
    if is_version(token) {
        return whole(NameKind::Version);
    }
    if letters == 0 || token.contains(['=', '?', '&', ',', '$', '%']) {
        return None;
    }
    let is_hash = is_hex(token) && token.len() <= 64;
    let is_uuid = token.len() == 36 && token.split('-').map(str::len).eq([8, 4, 4, 4, 12]);
    if is_hash || is_uuid {
        return whole(NameKind::Hash);
    }
    // A path is already listed as a file; `a.rs:12` is a position in one.
    let is_path = token.contains('/') && token.rsplit('/').next().is_some_and(|name| name.contains('.'))
        || token.matches('/').count() > 2;
    let has_upper = token.bytes().any(|b| b.is_ascii_uppercase());
    let is_joined = token.contains(['-', '_']) && !token.contains(['.', ':']);
    let is_id = (has_upper && token.bytes().all(|b| b.is_ascii_alphanumeric())) || is_joined;
    (!is_path && is_id && token.len() >= 4 && !token.contains(['+', '~', '@']))
        .then_some((token.len(), NameKind::Id))
}

fn is_file_ending(name: &str) -> bool {
    (1..=4).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_lowercase())
        && !matches!(name, "com" | "org" | "net" | "dev" | "io" | "ai" | "cn")
}

/// The length of `$500`, `30s`, `2.5 GB`, `80%`, `500元`.
fn number_with_unit(token: &str, line: &str, start: usize) -> Option<usize> {
    let currency = usize::from(token.starts_with('$'));
    let is_currency = currency == 1 || line[..start].ends_with(['€', '£', '¥', '￥']);
    let body = &token[currency..];
    let digits =
        body.len() - body.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | ',')).len();
    let number = body[..digits].trim_end_matches(['.', ',']);
    if number.is_empty() || !number.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let end = start + currency + number.len();
    let attached = &body[number.len()..];
    if is_currency && (attached.is_empty() || matches!(attached, "k" | "K" | "m" | "M" | "/h")) {
        return Some(token.len());
    }
    let after = &line[end..];
    let spaced = head_bytes(after.strip_prefix([' ', '-']).unwrap_or(after), MAX_UNIT_BYTES);
    let space = usize::from(after.starts_with([' ', '-']));
    let unit_end =
        spaced.find(|c: char| !(c.is_ascii_alphabetic() || matches!(c, '%' | '/'))).unwrap_or(spaced.len());
    let unit = spaced[..unit_end].trim_end_matches('/');
    if unit.is_empty() {
        // Most numbers are not followed by a unit.
        if spaced.as_bytes().first().is_none_or(u8::is_ascii) {
            return None;
        }
        static UNSPACED: LazyLock<Vec<&str>> =
            LazyLock::new(|| UNITS.concat().into_iter().filter(|unit| !unit.is_ascii()).collect());
        let units = UNSPACED.iter().filter(|unit| spaced.starts_with(**unit));
        let unit = units.max_by_key(|unit| unit.len())?;
        return Some(currency + number.len() + space + unit.len());
    }
    let is_unit = is_unit(unit);
    // A single letter must be attached: "3 s" is rare, "30s" is not.
    let is_attached = space == 0;
    (is_unit && (unit.len() > 1 || is_attached)).then_some(currency + number.len() + space + unit.len())
}

/// Whether letters are a unit, in any case. Called for each number followed by a word.
fn is_unit(letters: &str) -> bool {
    static KNOWN: LazyLock<FxHashSet<&str>> =
        LazyLock::new(|| UNITS.iter().flat_map(|group| group.iter().copied()).collect());
    let mut lower = [0; MAX_UNIT_BYTES];
    let Some(lower) = lower.get_mut(..letters.len()) else { return false };
    lower.copy_from_slice(letters.as_bytes());
    lower.make_ascii_lowercase();
    std::str::from_utf8(lower).is_ok_and(|lower| KNOWN.contains(lower))
}

fn is_date(token: &str) -> bool {
    token.len() == 10
        && token.split(['-', '/']).map(str::len).eq([4, 2, 2])
        && token.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'-' | b'/'))
}

/// `v2`, `1.2.3`, `v0.4.0-rc.1`; not `1.5`, which is a number.
fn is_version(token: &str) -> bool {
    let (has_sign, rest) = token.strip_prefix('v').map_or((false, token), |rest| (true, rest));
    let core = rest.split(['-', '+']).next().unwrap_or("");
    let is_numeric =
        |part: &str| !part.is_empty() && part.len() <= 6 && part.bytes().all(|b| b.is_ascii_digit());
    let parts = core.split('.').count();
    (parts >= 3 || has_sign) && parts <= 5 && core.split('.').all(is_numeric)
}

/// A commit or another hash: a hexadecimal word that is neither a number nor a word of a language.
fn is_hex(token: &str) -> bool {
    let is_hex = token.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    let has_both = token.bytes().any(|b| b.is_ascii_digit()) && token.bytes().any(|b| b.is_ascii_lowercase());
    is_hex && has_both && token.len() >= 7
}

/// Names in quotes: `` `parse_v2` ``, "Blue Whale", 「名前」, 《书》.
fn quoted(line: &str, found: &mut Vec<(usize, usize, NameKind)>) {
    const PAIRS: [(char, char); 6] =
        [('`', '`'), ('"', '"'), ('“', '”'), ('「', '」'), ('『', '』'), ('《', '》')];
    // Most lines have none of the first bytes of these.
    if !line.bytes().any(|byte| matches!(byte, b'`' | b'"' | 0xe2 | 0xe3)) {
        return;
    }
    let mut at = 0;
    // The partner of an unpaired mark is searched once.
    let mut alone: Vec<char> = Vec::new();
    while let Some(open) = line[at..].find(|c| PAIRS.iter().any(|(opening, _)| *opening == c)) {
        let sign = line[at + open..].chars().next().unwrap_or('`');
        let start = at + open + sign.len_utf8();
        let closing = PAIRS.iter().find(|(opening, _)| *opening == sign).map_or('`', |(_, closing)| *closing);
        let partner = if alone.contains(&sign) { None } else { line[start..].find(closing) };
        let Some(len) = partner else {
            if !alone.contains(&sign) {
                alone.push(sign);
            }
            at = start;
            continue;
        };
        let inside = &line[start..start + len];
        let is_name = inside.chars().count() <= MAX_LEAD_CHARS
            && inside.split_whitespace().count() <= 4
            && inside.chars().any(char::is_alphabetic)
            && inside.trim() == inside
            && !inside.contains('/')
            && !found.iter().any(|(from, to, _)| *from < start + len && start < *to);
        if is_name {
            found.push((start, start + len, NameKind::Quoted));
        }
        at = start + len + closing.len_utf8();
    }
}

/// The name with the words before it, up to the start of its sentence.
fn phrase(line: &str, at: usize, end: usize) -> String {
    let mut from = at;
    let (mut words, mut chars) = (0, 0);
    for (offset, c) in line[..at].char_indices().rev() {
        let next_is_space = line[offset + c.len_utf8()..].starts_with(char::is_whitespace);
        let is_end = matches!(c, '。' | '！' | '？' | '；' | '\t')
            || (matches!(c, '.' | '!' | '?' | ';' | ':') && next_is_space);
        words += usize::from(c.is_whitespace() && offset + c.len_utf8() < at);
        chars += 1;
        if is_end || words >= MAX_LEAD_WORDS || chars > MAX_LEAD_CHARS {
            break;
        }
        from = offset;
    }
    let lead = line[from..at].trim_start_matches(|c: char| {
        !c.is_alphanumeric() && !matches!(c, '`' | '"' | '“' | '$' | '「' | '《')
    });
    let close = line[end..].chars().next().filter(|c| matches!(c, '`' | '"' | '”' | '」' | '』' | '》'));
    let whole = format!("{lead}{}{}", &line[at..end], close.map_or(String::new(), String::from));
    escape_section_tags(&one_line(&whole, MAX_BYTES + 60)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(String, NameKind)> {
        names_in(text, true, true)
            .into_iter()
            .map(|(at, end, kind)| (text[at..end].to_owned(), kind))
            .collect()
    }

    #[test]
    fn identifiers_of_every_kind_are_found() {
        for (text, name, kind) in [
            ("see https://x.dev/a?b=1.", "https://x.dev/a?b=1", NameKind::Url),
            ("commit 1a2b3c4d broke it", "1a2b3c4d", NameKind::Hash),
            (
                "id 6ba7b810-9dad-11d1-80b4-00c04fd430c8",
                "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
                NameKind::Hash,
            ),
            ("upgrade to v2.1.0-rc.1, please", "v2.1.0-rc.1", NameKind::Version),
            ("uses 3.11.2 now", "3.11.2", NameKind::Version),
            ("it listens on port 8080", "8080", NameKind::Port),
            ("端口是8080。", "8080", NameKind::Port),
            ("open localhost:3000/", "localhost:3000", NameKind::Port),
            ("fixes #123", "#123", NameKind::Id),
            ("ticket ABC-42 is open", "ABC-42", NameKind::Id),
            ("user sara_doe_496 flies", "sara_doe_496", NameKind::Id),
            ("reservation K1NW8N", "K1NW8N", NameKind::Id),
            ("region eu-north-1", "eu-north-1", NameKind::Id),
            ("due 2027-03-14", "2027-03-14", NameKind::Date),
            ("rename it to `parse_all`", "parse_all", NameKind::Quoted),
            ("电影《流浪地球》很好看", "流浪地球", NameKind::Quoted),
        ] {
            assert_eq!(found(text), [(name.to_owned(), kind)], "{text}");
        }
    }

    #[test]
    fn numbers_need_a_unit() {
        for (text, number) in [
            ("at most 250 ms a call", "250 ms"),
            ("wait 30s", "30s"),
            ("cap of $1,500 total", "$1,500"),
            ("80% coverage", "80%"),
            ("a 2.5 GB file", "2.5 GB"),
            ("预算上限是500元左右", "500元"),
            ("超时设为30秒", "30秒"),
            ("in 5 days", "5 days"),
        ] {
            assert_eq!(found(text), [(number.to_owned(), NameKind::Number)], "{text}");
        }
        for text in [
            "chapter 12",
            "x = 3",
            "line 4 of it",
            "1.5",
            "a.rs:12",
            "src/v2/a.rs",
            "abc",
            "deadbeef",
            "1234567",
        ] {
            assert_eq!(found(text), [], "{text}");
        }
    }

    #[test]
    fn a_name_carries_the_words_that_tell_what_it_is() {
        let mut names = Names::default();
        names.read(1, "Fine. The maintenance access code is AB12-99, keep it.\n```\nX9-1\n```", true);
        names.read(4, "AB12-99 again", false);
        let (identifiers, numbers) = names.finish();
        assert_eq!(identifiers.len(), 1);
        assert_eq!(identifiers[0].phrase, "The maintenance access code is AB12-99");
        assert_eq!((identifiers[0].times, identifiers[0].last_message, numbers.len()), (2, 4, 0));
    }

    #[test]
    fn a_commit_is_known_by_its_report() {
        let found = commit_of(3, "[main 1a2b3c4] Fix the parser\n 1 file changed").map(|name| name.phrase);
        assert_eq!(found.as_deref(), Some("commit 1a2b3c4: Fix the parser"));
        assert_eq!(commit_of(3, "[x] done"), None);
    }

    #[test]
    fn a_number_is_the_same_in_every_spelling_of_its_unit() {
        let found = spellings("30s");
        assert!(found.contains(&"30 seconds".to_owned()) && found.contains(&"30秒".to_owned()), "{found:?}");
        assert_eq!(spellings("$500"), ["$500"]);
    }
}
