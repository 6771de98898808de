//! Names of open models, as hubs, gateways and local servers write them.
//!
//! Each rule gives a name of the table: `llama3-3-70b-instruct` (Bedrock), `llama3.3:70b` (Ollama) and
//! `Llama-3.3-70B-Instruct-FP8` (vLLM) are all `llama-3.3`.

/// Lines whose version is written with and without a dash, a dot or a dash: written form, name in the table.
const LINES: [(&str, &str); 14] = [
    ("meta-llama", "llama-"),
    ("llama", "llama-"),
    ("qwen", "qwen"),
    ("gemma", "gemma-"),
    ("codegemma", "gemma-"),
    ("phi", "phi-"),
    ("glm", "glm-"),
    ("chatglm", "glm-"),
    ("hermes", "hermes-"),
    ("kimi-k", "kimi-k"),
    ("olmo", "olmo-"),
    ("deepseek-v", "deepseek-v"),
    ("gpt", "gpt-"),
    ("gemini", "gemini-"),
];

/// Beginnings that are written in another way without a version.
const WHOLE: [(&str, &str); 18] = [
    ("deepseek-chat-v", "deepseek-v"),
    ("deepseek-r1-v1", "deepseek-r1"),
    ("gpt-4-o", "gpt-4o"),
    ("qwen2.5vl", "qwen2.5-vl"),
    ("mistral-large:latest", "mistral-large:123b"),
    ("mistral:instruct", "mistral-7b"),
    ("mistral:v0.", "mistral-7b-v0."),
    ("mistral:", "mistral-"),
    ("mixtral:instruct", "mixtral-8x7b"),
    ("mixtral:", "mixtral-"),
    ("codestral:", "codestral-"),
    ("code-llama", "codellama"),
    ("llama-guard3", "llama-guard-3"),
    ("meta-llama-guard-", "llama-guard-"),
    ("gemma3n", "gemma-3n"),
    ("qwq:", "qwq-"),
    ("open-mistral-", "mistral-"),
    ("open-mixtral-", "mixtral-"),
];

/// What Ollama runs for a name without a tag.
const UNTAGGED: [(&str, &str); 3] =
    [("mistral", "mistral-7b"), ("mixtral", "mixtral-8x7b"), ("codestral", "codestral-22b")];

/// The name with the spelling of the table; `None` for a name that no rule is about. Some gateways write the dot of a
/// closed model's version as a dash, too.
pub(super) fn spelled(name: &str) -> Option<String> {
    if let Some(model) = distilled(name) {
        return Some(model.to_owned());
    }
    let untagged = name.strip_suffix(":latest").unwrap_or(name);
    if let Some((_, model)) = UNTAGGED.iter().find(|(written, _)| *written == untagged) {
        return Some((*model).to_owned());
    }
    let whole =
        WHOLE.iter().find_map(|(written, line)| Some(format!("{line}{}", name.strip_prefix(written)?)));
    let name = whole.as_deref().unwrap_or(name);
    if name.starts_with("mistral-") || name.starts_with("pixtral-") {
        return Some(of_mistral(name));
    }
    in_line(name).or(whole)
}

/// Mistral's hub writes `Mistral-Large-Instruct-2411`, its API `mistral-large-2411`; Bedrock `v0:2` for `v0.2`.
fn of_mistral(name: &str) -> String {
    let part = ["-instruct-", "-text-"].into_iter().find(|part| name.contains(part));
    let name = part.map_or(name.to_owned(), |part| name.replacen(part, "-", 1));
    name.replace("-v0:", "-v0.")
}

/// The name of a model of a line, with the version as the table has it.
fn in_line(name: &str) -> Option<String> {
    let (written, line) = LINES.iter().find(|(written, _)| {
        name.strip_prefix(written).is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphabetic()))
    })?;
    let rest = name.get(written.len()..)?;
    let rest = rest.strip_prefix(['-', '.', '_']).unwrap_or(rest);
    let rest = rest.strip_prefix('v').filter(|rest| begins_with_digit(rest)).unwrap_or(rest);
    let Some((version, rest)) = version(rest) else { return Some(name.to_owned()) };
    if *line == "qwen" && version == "3" && rest.contains("-2507") {
        return Some("qwen3-2507".to_owned());
    }
    // Ollama writes the size behind a colon.
    let size = rest.strip_prefix(':').filter(|size| begins_with_digit(size));
    Some(size.map_or_else(|| format!("{line}{version}{rest}"), |size| format!("{line}{version}-{size}")))
}

/// The version that begins a text, with a dot, and what follows it. A number with a unit (`70b`) is a size.
fn version(text: &str) -> Option<(String, &str)> {
    let (major, rest) = number(text)?;
    let minor =
        rest.strip_prefix(['.', '-', '_', 'p']).and_then(number).filter(|(minor, _)| minor.len() == 1);
    match minor {
        Some((minor, rest)) => Some((format!("{major}.{minor}"), rest)),
        None => Some((major.to_owned(), rest)),
    }
}

fn begins_with_digit(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
}

/// One or two digits that no letter or further digit follows, but for the `p` before a minor version.
fn number(text: &str) -> Option<(&str, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at(digits);
    let has_minor = rest.strip_prefix('p').is_some_and(begins_with_digit);
    let is_size = rest.starts_with(|c: char| c.is_ascii_alphanumeric()) && !has_minor;
    (matches!(digits, 1 | 2) && !is_size).then_some((number, rest))
}

/// A distillation of DeepSeek R1: named, or known by its size. Ollama's newest is one.
fn distilled(name: &str) -> Option<&'static str> {
    let rest = name.strip_prefix("deepseek-r1")?;
    let has_size = |size: &str| rest.split([':', '-']).any(|word| word == size);
    if rest.contains("llama") || has_size("70b") {
        Some("deepseek-r1-distill-llama")
    } else if rest.contains("qwen3") || has_size("8b") || rest == ":latest" {
        Some("deepseek-r1-0528-qwen3")
    } else if rest.contains("qwen") || ["1.5b", "7b", "14b", "32b"].into_iter().any(has_size) {
        Some("deepseek-r1-distill-qwen")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_write_a_name_gives_that_of_the_table() {
        for (written, expected) in [
            ("llama3-3-70b-instruct-v1:0", Some("llama-3.3-70b-instruct-v1:0")),
            ("llama3.3:70b-instruct-q4_k_m", Some("llama-3.3-70b-instruct-q4_k_m")),
            ("llama-3.3-70b-instruct-fp8", Some("llama-3.3-70b-instruct-fp8")),
            ("llama3-70b", Some("llama-3-70b")),
            ("llama3-2-1b-instruct-v1:0", Some("llama-3.2-1b-instruct-v1:0")),
            ("llama-v3p1-8b", Some("llama-3.1-8b")),
            ("llama-v3-70b-instruct", Some("llama-3-70b-instruct")),
            ("meta-llama-3_1-70b-instruct", Some("llama-3.1-70b-instruct")),
            ("qwen2p5-coder-32b-instruct", Some("qwen2.5-coder-32b-instruct")),
            ("qwen-v2p5-7b", Some("qwen2.5-7b")),
            ("deepseek-v3p1", Some("deepseek-v3.1")),
            ("glm-4p6", Some("glm-4.6")),
            ("kimi-k2p5", Some("kimi-k2.5")),
            ("codellama:34b", None),
            ("code-llama-34b-instruct", Some("codellama-34b-instruct")),
            ("open-mixtral-8x22b", Some("mixtral-8x22b")),
            ("gpt-5-1-mini", Some("gpt-5.1-mini")),
            ("gemini-2-5-flash", Some("gemini-2.5-flash")),
            ("gemini-1.5-pro-002", Some("gemini-1.5-pro-002")),
            ("gpt-4-0613", Some("gpt-4-0613")),
            ("gpt-4-32k", Some("gpt-4-32k")),
            ("gpt-4o-mini", Some("gpt-4o-mini")),
            ("gpt-oss:20b", Some("gpt-oss:20b")),
            ("gpt-35-turbo", Some("gpt-35-turbo")),
            ("meta-llama-3.1-8b", Some("llama-3.1-8b")),
            ("llama-4-scout-17b", Some("llama-4-scout-17b")),
            ("llama2:7b", Some("llama-2-7b")),
            ("qwen3:32b", Some("qwen3-32b")),
            ("qwen3:30b-a3b-instruct-2507-q8_0", Some("qwen3-2507")),
            ("qwen3-coder-30b-a3b-instruct", Some("qwen3-coder-30b-a3b-instruct")),
            ("qwen3:cloud", Some("qwen3:cloud")),
            ("qwen-2.5-72b-instruct", Some("qwen2.5-72b-instruct")),
            ("qwen3-coder:30b", Some("qwen3-coder:30b")),
            ("qwen3.5-27b", Some("qwen3.5-27b")),
            ("qwq:32b", Some("qwq-32b")),
            ("gemma3:27b", Some("gemma-3-27b")),
            ("gemma3n:e4b", Some("gemma-3n:e4b")),
            ("gemma-3-27b-it", Some("gemma-3-27b-it")),
            ("phi4", Some("phi-4")),
            ("mistral:7b", Some("mistral-7b")),
            ("mistral-large-instruct-2411", Some("mistral-large-2411")),
            ("mistral-7b-instruct-v0.2", Some("mistral-7b-v0.2")),
            ("mistral-7b-instruct-v0:2", Some("mistral-7b-v0.2")),
            ("mistral:7b-instruct-v0.2-q4_k_m", Some("mistral-7b-v0.2-q4_k_m")),
            ("mistral:7b-text-v0.2-q8_0", Some("mistral-7b-v0.2-q8_0")),
            ("mistral:v0.1", Some("mistral-7b-v0.1")),
            ("mistral:instruct", Some("mistral-7b")),
            ("mixtral", Some("mixtral-8x7b")),
            ("mixtral:latest", Some("mixtral-8x7b")),
            ("codestral:latest", Some("codestral-22b")),
            ("codestral-latest", None),
            ("hermes3:8b", Some("hermes-3-8b")),
            ("deepseek-chat-v3.1", Some("deepseek-v3.1")),
            ("qwen-max", Some("qwen-max")),
            ("glm-4.5-air", Some("glm-4.5-air")),
            ("deepseek-r1:70b", Some("deepseek-r1-distill-llama")),
            ("deepseek-r1-distill-qwen-32b", Some("deepseek-r1-distill-qwen")),
            ("deepseek-r1:671b", None),
            ("deepseek-r1:8b-llama-distill-q4_k_m", Some("deepseek-r1-distill-llama")),
            ("deepseek-r1-8b", Some("deepseek-r1-0528-qwen3")),
            ("deepseek-r1-7b-qwen", Some("deepseek-r1-distill-qwen")),
            ("deepseek-r1-0528-qwen3-8b", Some("deepseek-r1-0528-qwen3")),
            ("deepseek-r1-0528", None),
            ("gpt-4-o-preview", Some("gpt-4o-preview")),
            ("mistral-large:latest", Some("mistral-large:123b")),
            ("deepseek-v3.1", Some("deepseek-v3.1")),
            ("llamafile", None),
            ("o3-mini", None),
        ] {
            assert_eq!(spelled(written).as_deref(), expected, "{written}");
        }
    }
}
