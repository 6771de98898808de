//! The active mutant, and the mutants reached. Only in the mutated copy of the crate.

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
        // The test harness exits the process itself.
        unsafe { atexit(write_reached) };
    }
    let chosen = std::env::var("FOLDLINE_MUTANT").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    ON.store(chosen, Relaxed);
    chosen
}

extern "C" fn write_reached() {
    let reached = (0..=MUTANTS).filter(|&number| REACHED[number].load(Relaxed));
    let text: String = reached.map(|number| format!("{number}\n")).collect();
    // Appended, since tests start child processes.
    if let Some(path) = std::env::var_os("FOLDLINE_MUTANTS_REACHED")
        && let Ok(mut file) = std::fs::File::options().create(true).append(true).open(path)
    {
        let _ = std::io::Write::write_all(&mut file, text.as_bytes());
    }
}
