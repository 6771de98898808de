//! `cargo bench --bench evidence`: speed of evidence extraction.
//!
//! Megabytes of message text per second, on one thread, without reading the messages. Texts: a given session
//! (FOLDLINE_BENCH_SESSION: JSON of Anthropic messages), else texts of pure prose, the slowest case.

#![allow(clippy::unwrap_used, missing_docs)]

use std::time::Instant;

use foldline::evidence::extract;
use foldline::formats::{Format, read_messages};
use foldline::json::with_document;
use foldline::node::write_json_string;
use foldline::rules::{Pins, analyze};
use foldline::transcript::Transcript;

const PROSE: &str = "The parser reads the header first. Then it looks at the table of sections, which begins at byte 64.
We decided to keep the old format for a while, since two programs still write it. It should not be slower than before.
- Every section has a name, a size and a checksum; the name may be empty.
- What is not known is passed over, and a warning with its offset goes to the log (see docs/format.md).

";
const CHINESE: &str = "解析器先读取文件头，然后查看从第64字节开始的段表。我们决定暂时保留旧格式，因为还有两个程序在使用它。\n\
    每个段都有名称、大小和校验和；名称可以为空。不认识的内容会被跳过，并在日志中记录一条警告。\n\n";

fn message(role: &str, text: &str) -> String {
    let mut out = format!(r#"{{"role":"{role}","content":"#);
    write_json_string(text, &mut out);
    out.push('}');
    out
}

fn read(json: &str) -> Transcript {
    with_document(json.as_bytes(), |node| read_messages(&node, Format::Anthropic, false)).unwrap().unwrap()
}

fn dialogue(unit: &str, role: &str) -> String {
    let text = unit.repeat(4_000 / unit.len());
    format!("[{}]", (0..4_000).map(|_| message(role, &text)).collect::<Vec<_>>().join(","))
}

fn main() {
    let cases = match std::env::var("FOLDLINE_BENCH_SESSION") {
        Ok(path) => vec![(path.clone(), std::fs::read_to_string(path).unwrap())],
        Err(_) => vec![
            ("prose of the user".to_owned(), dialogue(PROSE, "user")),
            ("prose of the model".to_owned(), dialogue(PROSE, "assistant")),
            ("Chinese of the user".to_owned(), dialogue(CHINESE, "user")),
            ("Chinese of the model".to_owned(), dialogue(CHINESE, "assistant")),
        ],
    };
    for (name, json) in cases {
        let transcript = read(&json);
        let structure = analyze(&transcript, &Pins::default()).unwrap();
        let all: Vec<usize> = (0..transcript.len()).collect();
        let best = (0..7)
            .map(|_| {
                let start = Instant::now();
                std::hint::black_box(extract(&transcript, &structure, &all));
                start.elapsed().as_secs_f64()
            })
            .fold(f64::INFINITY, f64::min);
        println!("{name}: {:.1} MB, {:.0} MB/s", json.len() as f64 / 1e6, json.len() as f64 / 1e6 / best);
    }
}
