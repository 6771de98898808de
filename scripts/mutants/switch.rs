//! Which mutant is on, and which were asked for. Only in the mutated copy of the crate.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

const UNREAD: usize = usize::MAX;
static ON: AtomicUsize = AtomicUsize::new(UNREAD);
static REACHED: [AtomicBool; MUTANTS + 1] = [const { AtomicBool::new(false) }; MUTANTS + 1];

/// Whether this mutant is on. The environment is read once.
#[inline]
pub fn on(number: usize) -> bool {
    REACHED[number].store(true, Relaxed);
    match ON.load(Relaxed) {
        UNREAD => first() == number,
        chosen => chosen == number,
    }
}

#[cold]
fn first() -> usize {
    if std::env::var_os("FOLDLINE_MUTANTS_REACHED").is_some() {
        unsafe extern "C" {
            fn atexit(last: extern "C" fn()) -> i32;
        }
        // The harness of tests ends the process by itself.
        unsafe { atexit(write_reached) };
    }
    let chosen = std::env::var("FOLDLINE_MUTANT").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    ON.store(chosen, Relaxed);
    chosen
}

/// Switches one on in a process that runs, for `ctypes`.
#[unsafe(no_mangle)]
pub extern "C" fn foldline_mutant_choose(number: usize) {
    ON.store(number, Relaxed);
}

/// A byte for each number, 1 where a place was reached; the caller may set them to 0.
#[unsafe(no_mangle)]
pub extern "C" fn foldline_mutants_reached() -> *const AtomicBool {
    REACHED.as_ptr()
}

extern "C" fn write_reached() {
    let reached = (0..=MUTANTS).filter(|&number| REACHED[number].load(Relaxed));
    let text: Vec<String> = reached.map(|number| number.to_string()).collect();
    if let Some(path) = std::env::var_os("FOLDLINE_MUTANTS_REACHED") {
        let _ = std::fs::write(path, text.join("\n"));
    }
}
