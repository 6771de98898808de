//! Builds the tables of the estimator `auto` from `auto_weights.txt`, which `benches/fit/auto.py` writes.

/// Rust source: a constant for each number in the file, a static for each list.
pub fn tables() -> String {
    // After the head of the file each paragraph is a comment, a name with its type, and numbers.
    let sections = include_str!("auto_weights.txt").split("\n\n").skip(1).map(|section| {
        let (comment, section) = section.split_once('\n').expect("a comment");
        let (declaration, numbers) = section.split_once('\n').expect("numbers");
        let (name, kind) = declaration.split_once(' ').expect("a type");
        let numbers: Vec<&str> = numbers.split_whitespace().collect();
        let (count, values) = (numbers.len(), numbers.join(","));
        let doc = comment.trim_start_matches("# ");
        match kind.strip_prefix('[').and_then(|kind| kind.strip_suffix(']')) {
            Some(item) => format!("/// {doc}.\npub static {name}: [{item}; {count}] = [{values}];\n"),
            None => format!("/// {doc}.\npub const {name}: {kind} = {values};\n"),
        }
    });
    sections.collect()
}
