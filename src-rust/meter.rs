//! Counts of the expensive passes over a list in this process, for tests that a fold does each once.

use std::sync::atomic::{AtomicU64, Ordering};

/// A thread-safe counter.
#[derive(Debug, Default)]
pub struct Meter(AtomicU64);

impl Meter {
    /// A counter at zero.
    #[must_use]
    pub const fn new() -> Self {
        Meter(AtomicU64::new(0))
    }

    /// Adds one.
    pub fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// The current count.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Passes over the messages of a list: reading it, or detecting its format.
pub static READINGS: Meter = Meter::new();

/// Extractions of evidence.
pub static EXTRACTIONS: Meter = Meter::new();
