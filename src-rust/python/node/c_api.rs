//! Calls of Python's stable C API without a safe form in PyO3: dict members, string lengths and bytes.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::ops::Deref;
use std::ptr::null_mut;
use std::str::from_utf8_unchecked;

use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict, PyString};

use crate::node::keys::{UNKNOWN, ordinal_of};

/// Calls `read` with the ordinal of each key of a dict, [`UNKNOWN`] for keys without one, and its value. O(members).
///
/// Keys are recognised by their addresses, and `read` takes a reference only to the values it wants. Looking each name
/// up would take several times as long, since most are absent, and could call `__eq__` of a caller's key. `read` must
/// not run Python code before it has taken its reference.
#[inline(always)]
pub(super) fn each_member<'py>(
    dict: &Bound<'py, PyDict>,
    mut read: impl FnMut(u8, Borrowed<'_, 'py, PyAny>),
) {
    let py = dict.py();
    let (mut position, mut key, mut value) = (0, null_mut(), null_mut());
    // A finalizer may add members while a new key is read: the bound ensures that the walk ends.
    for _ in 0..dict.len() {
        // SAFETY: `dict` is a live reference and the GIL is held. Key and value are borrowed from the dict: no Python
        // code runs before their last use, or before both are owned.
        unsafe {
            if ffi::PyDict_Next(dict.as_ptr(), &mut position, &mut key, &mut value) == 0 {
                return;
            }
            let borrowed = Borrowed::from_ptr(py, value);
            match CACHE.known(py, key) {
                Some(ordinal) => read(ordinal, borrowed),
                None => {
                    let (key, value) = (Borrowed::from_ptr(py, key).to_owned(), borrowed.to_owned());
                    read(CACHE.learn(&key), value.as_borrowed());
                }
            }
        }
    }
}

/// Code points of a string. O(1), and does not call a method of a subclass.
#[inline(always)]
pub(in crate::python) fn characters(string: &Bound<'_, PyString>) -> usize {
    // SAFETY: `string` is a live reference and the GIL is held.
    usize::try_from(unsafe { ffi::PyUnicode_GetLength(string.as_ptr()) }).unwrap_or(usize::MAX)
}

/// The code point at a place, which is below [`characters`]. O(1).
#[inline(always)]
pub(super) fn character(string: &Bound<'_, PyString>, place: usize) -> u32 {
    debug_assert!(place < characters(string));
    // SAFETY: `string` is a live reference and the GIL is held. A place beyond the string would set an exception.
    unsafe { ffi::PyUnicode_ReadChar(string.as_ptr(), place as ffi::Py_ssize_t) }
}

/// The UTF-8 of a string, encoded into a temporary.
pub(in crate::python) struct Utf8(PyBackedBytes);

impl Utf8 {
    /// `None` if the string contains surrogates, or memory is exhausted. O(code points).
    pub fn of(string: &Bound<'_, PyString>) -> Option<Self> {
        string.encode_utf8().ok().map(|bytes| Utf8(bytes.into()))
    }
}

impl Deref for Utf8 {
    type Target = str;

    #[inline]
    fn deref(&self) -> &str {
        // SAFETY: Python encoded it as UTF-8.
        unsafe { from_utf8_unchecked(&self.0) }
    }
}

/// The UTF-8 of a string, with every surrogate as three bytes. O(code points).
///
/// # Errors
/// `MemoryError`.
pub(super) fn encode_with_surrogates<'py>(string: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyBytes>> {
    // SAFETY: `string` is a live reference, the GIL is held, both names end with NUL, and the call returns a new
    // reference to `bytes`.
    unsafe {
        let bytes =
            ffi::PyUnicode_AsEncodedString(string.as_ptr(), c"utf-8".as_ptr(), c"surrogatepass".as_ptr());
        Ok(Bound::from_owned_ptr_or_err(string.py(), bytes)?.cast_into::<PyBytes>()?)
    }
}

/// Slots of the cache: many more than the distinct keys of messages, so that collisions are rare.
const SLOTS: usize = 512;

/// Bytes of the longest key that is cached: a bound on memory, since the cache keeps its keys alive.
const LONGEST: usize = 32;

/// Known keys by address. The cache owns them, so no other string can get the address of one.
struct KeyCache([Slot; SLOTS]);

struct Slot {
    key: Cell<Option<Py<PyString>>>,
    ordinal: Cell<u8>,
}

// SAFETY: slots are read and written with the GIL held, and there is one GIL: interpreters without it do not load
// modules of the stable ABI of 3.11.
unsafe impl Sync for KeyCache {}

/// One per process: finding a thread-local cache would take longer than finding a key.
static CACHE: KeyCache =
    KeyCache([const { Slot { key: Cell::new(None), ordinal: Cell::new(UNKNOWN) } }; SLOTS]);

impl KeyCache {
    /// The ordinal of a cached key. The messages of one document share their keys, and keys in source code are
    /// interned, so nearly every key is cached.
    #[inline(always)]
    fn known(&self, _: Python<'_>, key: *mut PyObject) -> Option<u8> {
        let slot = &self.0[slot_of(key as usize)];
        // SAFETY: the GIL is held, so no other thread writes the slot meanwhile.
        let cached = unsafe { &*slot.key.as_ptr() };
        (cached.as_ref().map_or(null_mut(), Py::as_ptr) == key).then(|| slot.ordinal.get())
    }

    /// The ordinal of any key, which is cached if it is short and exactly a `str`.
    #[cold]
    #[inline(never)]
    fn learn(&self, key: &Bound<'_, PyAny>) -> u8 {
        let Ok(key) = key.cast::<PyString>() else { return UNKNOWN };
        // No known name contains a surrogate.
        let (ordinal, bytes) =
            key.to_str().map_or((UNKNOWN, usize::MAX), |text| (ordinal_of(text.as_bytes()), text.len()));
        if bytes <= LONGEST && key.is_exact_instance_of::<PyString>() {
            let slot = &self.0[slot_of(key.as_ptr() as usize)];
            let before = slot.key.replace(Some(key.clone().unbind()));
            slot.ordinal.set(ordinal);
            // Dropped after the slot is complete, since this may free the key.
            drop(before);
        }
        ordinal
    }
}

/// The slot of an address, by Fibonacci hashing, which spreads nearby addresses.
#[inline(always)]
fn slot_of(address: usize) -> usize {
    let mixed = (address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> (u64::BITS - SLOTS.trailing_zeros())) as usize
}
