//! Normalization and matching of model names.

/// Prefixes of services, separated from the name by a colon or a dot.
const PREFIXES: &[&str] = &[
    "anthropic",
    "apac",
    "au",
    "azure",
    "bedrock",
    "eu",
    "ft",
    "gateway",
    "global",
    "google",
    "google-gla",
    "google-vertex",
    "groq",
    "jp",
    "litellm",
    "ollama",
    "openai",
    "openai-chat",
    "openai-responses",
    "openrouter",
    "us",
    "us-gov",
    "vertex",
    "vertex_ai",
];

/// The name in lower case without service prefixes. Versions of Claude get a dash (`claude-sonnet-4-5`).
pub(super) fn normalized(model: &str) -> String {
    let lower = model.trim().to_ascii_lowercase();
    let mut name = lower.rsplit('/').next().unwrap_or_default();
    while let Some((_, rest)) =
        name.split_once([':', '.']).filter(|(prefix, rest)| PREFIXES.contains(prefix) && !rest.is_empty())
    {
        name = rest;
    }
    if name.starts_with("claude") { name.replace('.', "-") } else { name.to_owned() }
}

/// Whether a name equals that of a model, or extends it by a date or a suffix.
///
/// With `covers_versions` it may also be extended by a version.
pub(super) fn matches(name: &str, model: &str, covers_versions: bool) -> bool {
    let Some(rest) = name.strip_prefix(model) else { return false };
    let Some(divider) = rest.chars().next() else { return true };
    if divider.is_ascii_alphanumeric() {
        return false;
    }
    let rest = &rest[divider.len_utf8()..];
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let ends = |at: usize| !rest.as_bytes().get(at).is_some_and(u8::is_ascii_alphanumeric);
    // `-03-25` is a month and a day.
    let is_date = digits == 2
        && rest.as_bytes().get(2) == Some(&b'-')
        && rest.bytes().skip(3).take_while(u8::is_ascii_digit).count() == 2
        && ends(5);
    let is_version = matches!(divider, '-' | '.') && (1..=2).contains(&digits) && ends(digits) && !is_date;
    covers_versions || !is_version
}
