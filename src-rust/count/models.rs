//! Which encoding a model uses, by the beginning of its name. Checked 2026-11 against tiktoken's own table.

/// Beginnings of model names, longest match first, with their encoding.
const FAMILIES: &[(&str, &str)] = &[
    ("chatgpt-4o", "o200k_base"),
    ("gpt-3.5", "cl100k_base"),
    ("gpt-35", "cl100k_base"),
    ("gpt-4", "cl100k_base"),
    ("gpt-4.1", "o200k_base"),
    ("gpt-4.5", "o200k_base"),
    ("gpt-4o", "o200k_base"),
    ("gpt-5", "o200k_base"),
    ("gpt-oss", "o200k_harmony"),
    ("o1", "o200k_base"),
    ("o3", "o200k_base"),
    ("o4", "o200k_base"),
    ("text-embedding-3", "cl100k_base"),
    ("text-embedding-ada-002", "cl100k_base"),
];

/// The encoding of a model, by its name, its dated name or a provider's prefix (`openai/…`, `ft:…`).
#[must_use]
pub fn encoding_of_model(model: &str) -> Option<&'static str> {
    let name = model.rsplit('/').next().unwrap_or(model);
    let name = name.strip_prefix("ft:").unwrap_or(name);
    let ends_family = |rest: &str| !rest.starts_with(|c: char| c.is_ascii_alphanumeric());
    FAMILIES
        .iter()
        .filter(|(family, _)| name.strip_prefix(family).is_some_and(ends_family))
        .max_by_key(|(family, _)| family.len())
        .map(|(_, encoding)| *encoding)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dated_and_suffixed_names_resolve_to_their_family() {
        let cases = [
            ("gpt-4o-mini-2024-07-18", Some("o200k_base")),
            ("gpt-4-0613", Some("cl100k_base")),
            ("gpt-4.1-nano", Some("o200k_base")),
            ("openai/gpt-5", Some("o200k_base")),
            ("ft:gpt-3.5-turbo:org::id", Some("cl100k_base")),
            ("o3-mini", Some("o200k_base")),
            ("gpt-5.1-codex", Some("o200k_base")),
            ("claude-sonnet-4-5", None),
            ("o1000", None),
            ("", None),
        ];
        for (model, encoding) in cases {
            assert_eq!(encoding_of_model(model), encoding, "{model}");
        }
    }
}
