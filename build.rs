//! Build script: see the count engine.
fn main() {}
