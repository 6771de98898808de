//! Counting: exact encodings, heuristics and what providers add around the text.
