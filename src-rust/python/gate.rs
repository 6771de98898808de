//! The only gate between Python and the core. It releases the GIL for long work, checks for Ctrl-C meanwhile, turns
//! errors into exceptions and panics into `InternalError`.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

use crate::count::counter::Interrupt;
use crate::error::{Error, ErrorKind, Result};

/// Work on fewer bytes keeps the GIL: releasing it would cost more than it gains.
const RELEASE_FROM_BYTES: usize = 64 * 1024;

/// Interval of signal checks in long work: short enough that Ctrl-C seems immediate.
const LOOK_EVERY: Duration = Duration::from_millis(20);

thread_local! {
    /// The exception that an `Interrupted` error of this thread stands for.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// The longest time a walk over Python objects keeps the GIL, short so that event loops stay responsive.
const GIL_HOLD: Duration = Duration::from_millis(2);
/// The pause without the GIL. Without it, this thread would take the GIL back before a waiting thread has woken up, and
/// each release restarts the 5 ms after which CPython forces a switch.
const BREATH: Duration = Duration::from_micros(1);

/// Releases the GIL once held for [`GIL_HOLD`], so event loops stay responsive. Call it between objects.
pub(super) fn yield_gil(py: Python<'_>) {
    thread_local! {
        static YIELDED: Cell<Option<Instant>> = const { Cell::new(None) };
    }
    YIELDED.with(|yielded| {
        if yielded.get().is_none_or(|last| last.elapsed() >= GIL_HOLD) {
            py.detach(|| std::thread::sleep(BREATH));
            yielded.set(Some(Instant::now()));
        }
    });
}

/// Stores an exception while the core unwinds, and returns the error that stands for it.
pub(super) fn raise_later(exception: PyErr) -> Error {
    RAISED.with(|raised| *raised.borrow_mut() = Some(exception));
    Error::interrupted()
}

/// Runs `work` on `bytes` bytes of text, without the GIL if they are many.
pub(super) fn run<T: Send>(
    py: Python<'_>,
    bytes: usize,
    work: impl FnOnce(Interrupt<'_>) -> Result<T> + Send,
) -> PyResult<T> {
    guard(py, || {
        let outcome = if bytes < RELEASE_FROM_BYTES {
            work(&mut || true)
        } else {
            py.detach(|| {
                let mut looked = Instant::now();
                work(&mut || {
                    if looked.elapsed() < LOOK_EVERY {
                        return true;
                    }
                    looked = Instant::now();
                    match Python::attach(|py| py.check_signals()) {
                        Ok(()) => true,
                        Err(exception) => {
                            raise_later(exception);
                            false
                        }
                    }
                })
            })
        };
        outcome.map_err(|error| exception(py, error))
    })
}

/// Imports numpy on first use. Call it before any function of the numpy crate, which panics if its own import fails,
/// for example because of Ctrl-C.
pub(super) fn load_numpy(py: Python<'_>) -> PyResult<()> {
    static LOADED: PyOnceLock<()> = PyOnceLock::new();
    LOADED.get_or_try_init(py, || PyModule::import(py, "numpy").map(drop)).copied()
}

/// Runs `work`, and turns a panic into an `InternalError`.
pub(super) fn guard<T>(py: Python<'_>, work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        let error = Error::internal("panic", "a defect in foldline; the input is unchanged");
        Err(exception(py, error))
    })
}

/// The exception for an error.
pub(super) fn exception(py: Python<'_>, error: Error) -> PyErr {
    static ERRORS: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    if error.kind == ErrorKind::Interrupted
        && let Some(raised) = RAISED.with(|raised| raised.borrow_mut().take())
    {
        return raised;
    }
    let class = match error.kind {
        ErrorKind::Message => "MessageError",
        ErrorKind::TextType => "TextTypeError",
        ErrorKind::Limit => "LimitExceeded",
        ErrorKind::Config => "ConfigError",
        ErrorKind::Summary => "SummaryError",
        ErrorKind::Internal | ErrorKind::Interrupted => "InternalError",
    };
    let build = || {
        let module =
            ERRORS.get_or_try_init(py, || PyModule::import(py, "foldline.errors").map(Bound::unbind))?;
        let options = PyDict::new(py);
        options.set_item("code", error.code)?;
        options.set_item("index", error.index)?;
        options.set_item("path", &error.path)?;
        options.set_item("transcript", error.transcript)?;
        options.set_item("line", error.line)?;
        module.bind(py).getattr(class)?.call((&error.detail,), Some(&options))
    };
    match build() {
        Ok(instance) => PyErr::from_value(instance),
        Err(failure) => failure,
    }
}
