//! How often the costly readings of a list ran in this process: tests require that a fold does each once.

use std::sync::atomic::{AtomicU64, Ordering};

/// A count that any thread may raise.
#[derive(Debug, Default)]
pub struct Meter(AtomicU64);

impl Meter {
    /// Nothing counted.
    #[must_use]
    pub const fn new() -> Self {
        Meter(AtomicU64::new(0))
    }

    /// Counts one more.
    pub fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// How many were counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Walks over the messages of a list: reading it, or detecting its format.
pub static READINGS: Meter = Meter::new();

/// Extractions of evidence.
pub static EXTRACTIONS: Meter = Meter::new();
