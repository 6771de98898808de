//! A parallel map over many items.
//!
//! Threads live for one call: there is no pool that a forked child could lose. Items are split into chunks of about
//! equal bytes, and idle threads take the next chunk from an atomic counter. The result does not depend on the
//! schedule:
//!
//! - results are returned in the order of the items;
//! - of several errors the first by index is returned. Chunks are taken in order, so all chunks before a failed one
//!   have been taken; they are finished, and chunks after it are not started.
//!
//! Only the calling thread calls `check`, which may check for signals. The others read a flag.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use crate::count::counter::Interrupt;
use crate::error::{Error, Result};

/// Most threads that a call may ask for.
pub const MAX_THREADS: usize = 1024;

/// Bytes in a chunk. Small enough that the last chunk ends soon and that `check` is called often; large enough that
/// scheduling is free.
const CHUNK_BYTES: usize = 64 * 1024;

/// Fixed cost of an item, so that a million empty ones are distributed too.
const ITEM_BYTES: usize = 32;

/// Interval of `check` while the calling thread waits for the others.
const ASK_EVERY: Duration = Duration::from_millis(10);

/// Runs `work` for each of `items` items on up to `threads` threads, including the calling one.
///
/// `size_bytes` estimates the work of an item. The results are in the order of the items.
///
/// # Errors
/// That of the item with the lowest index; `interrupted` if `check` returns `false`.
pub fn map<T: Send>(
    threads: usize,
    items: usize,
    size_bytes: impl Fn(usize) -> usize,
    work: impl Fn(usize, Interrupt<'_>) -> Result<T> + Sync,
    check: Interrupt<'_>,
) -> Result<Vec<T>> {
    let chunks = chunks(items, size_bytes);
    let queue = WorkQueue::new(&chunks, &work);
    let mut found = Found::new(chunks.len());
    let helpers = threads.min(chunks.len()).saturating_sub(1);
    if helpers == 0 {
        queue.take_chunks(check, |chunk, outcome| found.add(chunk, outcome));
        return found.finish(&queue);
    }
    let (sender, receiver) = channel();
    thread::scope(|scope| {
        let _end = StopOnDrop { queue: &queue, only_in_panic: false };
        for _ in 0..helpers {
            let (sender, queue) = (sender.clone(), &queue);
            // If the system refuses a thread, the existing ones do the work.
            if thread::Builder::new().spawn_scoped(scope, move || queue.help(sender)).is_err() {
                break;
            }
        }
        drop(sender);
        queue.take_chunks(check, |chunk, outcome| found.add(chunk, outcome));
        // The others may be at their last chunks, and a chunk may be one long text.
        loop {
            match receiver.recv_timeout(ASK_EVERY) {
                Ok((chunk, outcome)) => found.add(chunk, outcome),
                Err(RecvTimeoutError::Timeout) => queue.ask(check),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        found.finish(&queue)
    })
}

/// Ranges of items of about [`CHUNK_BYTES`].
fn chunks(items: usize, size_bytes: impl Fn(usize) -> usize) -> Vec<Range<usize>> {
    let mut chunks = Vec::new();
    let (mut start, mut bytes) = (0, 0_usize);
    for item in 0..items {
        bytes = bytes.saturating_add(size_bytes(item)).saturating_add(ITEM_BYTES);
        if bytes >= CHUNK_BYTES {
            chunks.push(start..item + 1);
            (start, bytes) = (item + 1, 0);
        }
    }
    if start < items {
        chunks.push(start..items);
    }
    chunks
}

/// State shared by the threads of a call.
struct WorkQueue<'a, W> {
    chunks: &'a [Range<usize>],
    work: &'a W,
    /// The next chunk to take.
    next: AtomicUsize,
    /// The first chunk that failed.
    failed: AtomicUsize,
    /// Whether the caller cancelled the call.
    stopped: AtomicBool,
}

type Outcome<T> = Result<Vec<T>>;

impl<'a, W> WorkQueue<'a, W> {
    fn new(chunks: &'a [Range<usize>], work: &'a W) -> Self {
        let (next, failed) = (AtomicUsize::new(0), AtomicUsize::new(usize::MAX));
        WorkQueue { chunks, work, next, failed, stopped: AtomicBool::new(false) }
    }

    /// Whether the result of a chunk still matters.
    fn wants(&self, chunk: usize) -> bool {
        !self.stopped.load(Ordering::Relaxed) && chunk <= self.failed.load(Ordering::Relaxed)
    }

    fn ask(&self, check: Interrupt<'_>) {
        if !self.stopped.load(Ordering::Relaxed) && !check() {
            self.stopped.store(true, Ordering::Relaxed);
        }
    }

    /// Takes chunks until none are left or the rest does not matter.
    fn take_chunks<T>(&self, check: Interrupt<'_>, mut give: impl FnMut(usize, Outcome<T>))
    where
        W: Fn(usize, Interrupt<'_>) -> Result<T>,
    {
        loop {
            let chunk = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(items) = self.chunks.get(chunk) else { return };
            self.ask(check);
            if !self.wants(chunk) {
                return;
            }
            let mut check = || {
                self.ask(check);
                self.wants(chunk)
            };
            let outcome: Outcome<T> = items.clone().map(|item| (self.work)(item, &mut check)).collect();
            if outcome.is_err() {
                self.failed.fetch_min(chunk, Ordering::Relaxed);
            }
            give(chunk, outcome);
        }
    }

    /// The loop of a helper thread.
    fn help<T>(&self, sender: Sender<(usize, Outcome<T>)>)
    where
        W: Fn(usize, Interrupt<'_>) -> Result<T>,
    {
        let _end = StopOnDrop { queue: self, only_in_panic: true };
        self.take_chunks(&mut || true, |chunk, outcome| {
            // Fails only if the calling thread panicked.
            let _ = sender.send((chunk, outcome));
        });
    }
}

/// Stops the other threads when one ends early, so that none outlives a panic.
struct StopOnDrop<'a, W> {
    queue: &'a WorkQueue<'a, W>,
    only_in_panic: bool,
}

impl<W> Drop for StopOnDrop<'_, W> {
    fn drop(&mut self) {
        if !self.only_in_panic || thread::panicking() {
            self.queue.stopped.store(true, Ordering::Relaxed);
        }
    }
}

/// The results of the chunks.
struct Found<T> {
    chunks: Vec<Vec<T>>,
    error: Option<(usize, Error)>,
}

impl<T> Found<T> {
    fn new(chunks: usize) -> Self {
        Found { chunks: (0..chunks).map(|_| Vec::new()).collect(), error: None }
    }

    fn add(&mut self, chunk: usize, outcome: Outcome<T>) {
        match outcome {
            Ok(results) => self.chunks[chunk] = results,
            Err(error) if self.error.as_ref().is_none_or(|(first, _)| chunk < *first) => {
                self.error = Some((chunk, error));
            }
            Err(_) => {}
        }
    }

    fn finish<W>(self, queue: &WorkQueue<'_, W>) -> Result<Vec<T>> {
        if queue.stopped.load(Ordering::Relaxed) {
            return Err(Error::interrupted());
        }
        match self.error {
            Some((_, error)) => Err(error),
            None => Ok(self.chunks.into_iter().flatten().collect()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::sync::Mutex;

    const THREADS: [usize; 4] = [1, 2, 3, 8];

    fn failure(item: usize) -> Error {
        Error::message("failed", "", "").at(item)
    }

    #[test]
    fn results_are_in_the_order_of_the_items() {
        for threads in THREADS {
            for items in [0, 1, 2, 7, 5_000] {
                let done = map(threads, items, |i| i * 100, |i, _| Ok(i), &mut || true);
                assert_eq!(done, Ok((0..items).collect()), "{items} items, {threads} threads");
            }
        }
    }

    #[test]
    fn chunks_hold_every_item_once_and_are_of_a_size() {
        let sizes = [0, 1, 200_000, CHUNK_BYTES - ITEM_BYTES, 1, 30_000, 30_000, 30_000, usize::MAX, 5];
        let found = chunks(sizes.len(), |i| sizes[i]);
        assert_eq!(found, [0..3, 3..4, 4..8, 8..9, 9..10]);
        assert!(chunks(1_000_000, |_| 0).len() > 400);
    }

    #[test]
    fn several_threads_take_part() {
        let seen = Mutex::new(HashSet::new());
        let both = std::sync::Barrier::new(2);
        let work = |_: usize, _: Interrupt<'_>| {
            both.wait();
            seen.lock().map(|mut seen| seen.insert(thread::current().id())).unwrap();
            Ok(())
        };
        map(2, 2, |_| CHUNK_BYTES, work, &mut || true).unwrap();
        assert_eq!(seen.lock().unwrap().len(), 2);
    }

    #[test]
    fn the_first_error_by_index_is_given() {
        for threads in THREADS {
            for _ in 0..20 {
                let fails = |i: usize, _: Interrupt<'_>| if i >= 40 { Err(failure(i)) } else { Ok(i) };
                assert_eq!(map(threads, 400, |_| CHUNK_BYTES / 3, fails, &mut || true), Err(failure(40)));
            }
        }
    }

    #[test]
    fn an_error_stops_longer_work_behind_it() {
        // Item 1 ends only if it is stopped.
        let work = |i: usize, check: Interrupt<'_>| {
            if i == 0 {
                return Err(failure(0));
            }
            while check() {
                thread::yield_now();
            }
            Err(Error::interrupted())
        };
        assert_eq!(map::<()>(2, 2, |_| CHUNK_BYTES, work, &mut || true), Err(failure(0)));
    }

    #[test]
    fn the_caller_stops_everybody() {
        for threads in THREADS {
            let mut asked = 0;
            let endless = |_: usize, check: Interrupt<'_>| {
                while check() {
                    thread::yield_now();
                }
                Err(Error::interrupted())
            };
            let mut check = || {
                asked += 1;
                asked < 5
            };
            assert_eq!(
                map::<()>(threads, 100, |_| CHUNK_BYTES, endless, &mut check),
                Err(Error::interrupted())
            );
        }
    }

    #[test]
    fn the_caller_is_asked_while_it_waits_for_the_others() {
        // The calling thread finishes at once; only its calls of `check` end the other's work.
        let caller = thread::current().id();
        let others = AtomicBool::new(false);
        let work = |_: usize, check: Interrupt<'_>| {
            if thread::current().id() == caller {
                while !others.load(Ordering::Relaxed) {
                    thread::yield_now();
                }
                return Ok(());
            }
            others.store(true, Ordering::Relaxed);
            while check() {
                thread::yield_now();
            }
            Err(Error::interrupted())
        };
        let mut asked = 0;
        let mut check = || {
            asked += 1;
            asked < 6
        };
        assert_eq!(map(2, 2, |_| CHUNK_BYTES, work, &mut check), Err(Error::interrupted()));
    }

    #[test]
    fn a_panic_ends_the_call() {
        for threads in THREADS {
            let call = || {
                map(
                    threads,
                    50,
                    |_| CHUNK_BYTES,
                    |i, _| if i == 30 { panic!("as told") } else { Ok(i) },
                    &mut || true,
                )
            };
            assert!(std::panic::catch_unwind(call).is_err());
        }
    }
}
