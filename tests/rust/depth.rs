//! How many cases each test takes: `tests/depth.json`, explained in `tests/depth.py`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::path::{Path, PathBuf};

use proptest::prelude::ProptestConfig;

/// The number of cases of a count in the table.
pub fn cases(name: &str) -> u32 {
    if let Ok(text) = std::env::var(format!("FOLDLINE_{}", name.to_uppercase())) {
        return text.parse().unwrap();
    }
    let depth = std::env::var("FOLDLINE_DEPTH").unwrap_or_else(|_| "quick".to_owned());
    let table: serde_json::Value = serde_json::from_str(include_str!("../depth.json")).unwrap();
    let count = table[name][&depth].as_u64().unwrap_or_else(|| panic!("no count {name} for {depth}"));
    u32::try_from(count).unwrap()
}

/// As many cases for a property; nothing is written beside the sources where one fails.
pub fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// The folder of recorded transcripts: `FOLDLINE_SHARED`, or `shared` beside the project. A test that needs it says
/// that it is missing and ends, or fails where `FOLDLINE_NO_SKIPS` is set.
pub fn shared_data() -> Option<PathBuf> {
    let root = std::env::var_os("FOLDLINE_SHARED")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared"), PathBuf::from);
    let data = root.join("data");
    if data.is_dir() {
        return Some(data);
    }
    assert!(std::env::var_os("FOLDLINE_NO_SKIPS").is_none(), "no recorded transcripts in {}", data.display());
    eprintln!("skipped: no recorded transcripts in {}", data.display());
    None
}

/// All files in a folder and below, sorted.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

#[test]
fn a_deeper_run_takes_at_least_as_many_cases() {
    let table: serde_json::Value = serde_json::from_str(include_str!("../depth.json")).unwrap();
    for (name, counts) in table.as_object().unwrap() {
        let [quick, deep, soak] = ["quick", "deep", "soak"].map(|depth| counts[depth].as_u64().unwrap());
        // A step is the distance of two cases: a deeper run takes smaller ones.
        let in_order = if name.ends_with("_step") { [soak, deep, quick] } else { [quick, deep, soak] };
        assert!(in_order.is_sorted() && quick > 0, "{name}");
    }
}
