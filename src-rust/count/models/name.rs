//! Normalization and matching of model names.

use super::open_names;

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

/// Prefixes of providers on Bedrock, separated from the name by a dot. With a colon they are names of Ollama.
const DOTTED: &[&str] = &["cohere", "deepseek", "meta", "mistral", "moonshot", "moonshotai", "qwen", "zai"];

/// Prefixes of gateways and providers, separated from the name by a dash.
const DASHED: &[&str] = &[
    "system.ai.",
    "alibaba-",
    "anthropic-",
    "cohere-",
    "databricks-",
    "fw-",
    "openai-",
    "snowflake-",
    "zai-",
];

/// Owners of repositories that converters join to the model's name: `Qwen_Qwen3-32B-GGUF`.
const OWNERS: &[&str] = &[
    "allenai",
    "cohereforai",
    "coherelabs",
    "deepseek-ai",
    "google",
    "meta-llama",
    "microsoft",
    "mistralai",
    "moonshotai",
    "nousresearch",
    "openai",
    "qwen",
    "thudm",
    "zai-org",
];

/// The name in lower case, without service prefixes and as the table spells it. Versions of Claude get a dash
/// (`claude-sonnet-4-5`).
pub(super) fn normalized(model: &str) -> String {
    let name = plain(model);
    open_names::spelled(&name).unwrap_or(name)
}

/// The name in lower case, without a closing slash.
pub(super) fn lowered(model: &str) -> String {
    model.trim().trim_end_matches('/').to_ascii_lowercase()
}

/// Characters of a registered name that a name as given equals, or extends; `None` if it is another one. A name with an
/// owner (`team/model`) is found behind those of gateways, and by its last part alone.
pub(super) fn matched_registered(given: &str, registered: &str, covers_versions: bool) -> Option<usize> {
    let given = lowered(given);
    if registered.contains('/') && given.contains('/') {
        let mut begins = std::iter::once(0).chain(given.match_indices('/').map(|(at, _)| at + 1));
        let is_found = begins.any(|at| matches(&given[at..], registered, covers_versions));
        return is_found.then_some(registered.len());
    }
    let last = |name: &str| name.rsplit('/').next().unwrap_or_default().to_owned();
    let is_found = matches(&last(&given), &last(registered), covers_versions)
        || matches(&plain(&given), &plain(registered), covers_versions);
    is_found.then(|| last(registered).len())
}

/// Characters that a name as given and one of the table begin with.
pub(super) fn shared(given: &str, known: &str) -> usize {
    plain(given).bytes().zip(known.bytes()).take_while(|(one, other)| one == other).count()
}

/// The name in lower case without service prefixes.
fn plain(model: &str) -> String {
    let lower = lowered(model);
    let mut name = lower.rsplit('/').next().unwrap_or_default();
    name = name.split_once('_').filter(|(owner, _)| OWNERS.contains(owner)).map_or(name, |(_, rest)| rest);
    let mut is_deepseek = false;
    let is_prefix = |prefix: &str| PREFIXES.contains(&prefix);
    let is_dotted = |name: &str, prefix: &str| {
        DOTTED.contains(&prefix) && name.get(prefix.len()..).is_some_and(|rest| rest.starts_with('.'))
    };
    while let Some((prefix, rest)) = name
        .split_once([':', '.'])
        .filter(|(prefix, rest)| (is_prefix(prefix) || is_dotted(name, prefix)) && !rest.is_empty())
    {
        is_deepseek = prefix == "deepseek";
        name = rest;
    }
    name = DASHED
        .iter()
        .find_map(|prefix| name.strip_prefix(prefix))
        .filter(|rest| !rest.is_empty())
        .unwrap_or(name);
    if name.starts_with("claude") {
        return name.replace('.', "-");
    }
    // Vertex writes a version behind `@`.
    let name = &*name.replace('@', "-");
    // Bedrock's name after the provider's prefix: `r1-v1:0`, `v3.2`.
    if is_deepseek && !name.starts_with("deepseek") { format!("deepseek-{name}") } else { name.to_owned() }
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
    // `-03-25` is a month and a day, `-03-2025` a month and a year.
    let second = rest.bytes().skip(3).take_while(u8::is_ascii_digit).count();
    let is_date =
        digits == 2 && rest.as_bytes().get(2) == Some(&b'-') && matches!(second, 2 | 4) && ends(3 + second);
    let is_version = matches!(divider, '-' | '.') && (1..=2).contains(&digits) && ends(digits) && !is_date;
    covers_versions || !is_version
}
