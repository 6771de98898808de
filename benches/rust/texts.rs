//! Texts to measure on: real transcripts from `../shared/data` (or `FOLDLINE_SHARED`), by kind.
//!
//! Prose: texts of assistants and customers. Code: results of tools and written files. Chat: a file of OpenAI messages
//! as JSON. Chinese: human dialogues. `FOLDLINE_TEXTS` may name a folder of further `*.txt`.

use serde_json::Value;
use std::path::{Path, PathBuf};

/// Names and texts, about a megabyte each.
pub fn texts() -> Vec<(String, String)> {
    let data = std::env::var_os("FOLDLINE_SHARED")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared"), PathBuf::from)
        .join("data");
    let (mut prose, mut code) = (String::new(), String::new());
    for line in lines(&data.join("claude-code-entire")) {
        collect(&line["message"]["content"], &mut prose, &mut code);
    }
    let read = |path: &str| std::fs::read_to_string(data.join(path)).unwrap_or_default();
    let tasks: Value =
        serde_json::from_str(&read("openai-tau-airline/gpt-4o-airline.tasks0-24.json")).unwrap_or_default();
    for message in tasks.as_array().into_iter().flatten().flat_map(|t| t["traj"].as_array()).flatten() {
        prose += message["content"].as_str().unwrap_or_default();
        prose.push('\n');
    }
    let mut chinese = String::new();
    let dialogues: Value = serde_json::from_str(&read("kdconv-zh/film-dev.json")).unwrap_or_default();
    for message in dialogues.as_array().into_iter().flatten().flat_map(|d| d["messages"].as_array()).flatten()
    {
        chinese += message["message"].as_str().unwrap_or_default();
        chinese.push('\n');
    }
    let mut texts = vec![
        ("prose".to_owned(), prose),
        ("code".to_owned(), code),
        ("chat".to_owned(), read("openai-tau-airline/gpt-4o-airline.tasks0-24.json")),
        ("chinese".to_owned(), chinese),
    ];
    if let Some(dir) = std::env::var_os("FOLDLINE_TEXTS") {
        for path in files(Path::new(&dir)) {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            texts.push((name, std::fs::read_to_string(path).unwrap_or_default()));
        }
    }
    for (_, text) in &mut texts {
        text.truncate(boundary(text, 1_000_000));
    }
    texts.retain(|(_, text)| !text.is_empty());
    texts
}

/// The last character boundary up to `at`.
pub fn boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> =
        std::fs::read_dir(dir).into_iter().flatten().flatten().map(|e| e.path()).collect();
    files.sort();
    files
}

fn lines(dir: &Path) -> Vec<Value> {
    let texts = files(dir).into_iter().filter_map(|path| std::fs::read_to_string(path).ok());
    texts.flat_map(|t| t.lines().filter_map(|l| serde_json::from_str(l).ok()).collect::<Vec<_>>()).collect()
}

fn collect(content: &Value, prose: &mut String, code: &mut String) {
    let push = |to: &mut String, value: &Value| {
        if let Some(text) = value.as_str() {
            to.push_str(text);
            to.push('\n');
        }
    };
    for part in content.as_array().into_iter().flatten() {
        push(prose, &part["text"]);
        push(code, &part["content"]);
        push(code, &part["input"]["content"]);
        push(code, &part["input"]["new_string"]);
    }
}
