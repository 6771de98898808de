//! Which interpreter runs, where it is one whose objects are read in place.
//!
//! How objects are laid out is part of the binary interface of a version of CPython, which does not change after its
//! release; it differs between versions. What is not known here is asked for through the library of Python.

use pyo3::prelude::*;

/// The version of CPython, on machines of 64 bits, the lowest byte first.
pub(super) fn known_version(py: Python<'_>) -> Option<(u8, u8)> {
    if cfg!(not(all(target_pointer_width = "64", target_endian = "little"))) {
        return None;
    }
    // Builds that count references without the GIL, or trace them, have other objects.
    let is_usual = || -> PyResult<bool> {
        let sys = py.import("sys")?;
        let name = sys.getattr("implementation")?.getattr("name")?.extract::<String>()?;
        // Not there on Windows.
        let flags = sys.getattr("abiflags").and_then(|flags| flags.extract::<String>()).unwrap_or_default();
        Ok(name == "cpython" && !flags.contains('t') && !sys.hasattr("getobjects")?)
    };
    let version = py.version_info();
    is_usual().unwrap_or(false).then_some((version.major, version.minor))
}
