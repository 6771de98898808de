//! The members of a dict where they lie: a key is told by its address, and references are counted of those values alone
//! that somebody asks for. (To look each name up takes several times as long; most names are not there.)

#![allow(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::ptr::null_mut;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::node::Key;

/// Calls `read` with every member whose name is a [`Key`]. O(members), and no Python code runs but what `read` runs.
pub(super) fn each_known<'py>(dict: &Bound<'py, PyDict>, mut read: impl FnMut(Key, Bound<'py, PyAny>)) {
    let py = dict.py();
    let (mut place, mut key, mut value) = (0, null_mut(), null_mut());
    for _ in 0..dict.len() {
        // SAFETY: the dict is held, and so is the GIL. What a step finds belongs to the dict: it is looked at, and the
        // value is taken hold of, before anything else can run. Should `read` change the dict, the next step reads what
        // it holds then: it may pass over members, but compares its place with the table that there is.
        if unsafe { ffi::PyDict_Next(dict.as_ptr(), &mut place, &mut key, &mut value) } == 0 {
            break;
        }
        // SAFETY: as above; a key in a dict is never null.
        let key = unsafe { Borrowed::from_ptr(py, key) };
        if let Some(name) = known(&key) {
            // SAFETY: as above.
            read(name, unsafe { Bound::from_borrowed_ptr(py, value) });
        }
    }
}

/// How many keys are remembered by their addresses.
const PLACES: usize = 64;

/// Bytes of the longest key that is remembered.
const LONGEST: usize = 32;

/// Keys that were met, at places by their addresses. They are held: no other string can have the address of one.
struct Met {
    addresses: [Cell<usize>; PLACES],
    names: [Cell<Option<Key>>; PLACES],
    held: RefCell<[Option<Py<PyString>>; PLACES]>,
}

thread_local! {
    static MET: Met = const {
        Met {
            addresses: [const { Cell::new(0) }; PLACES],
            names: [const { Cell::new(None) }; PLACES],
            held: RefCell::new([const { None }; PLACES]),
        }
    };
}

/// Which name a key is. The messages of one document share their keys, and those written in code are interned: nearly
/// always the same few strings come again.
fn known(key: &Bound<'_, PyAny>) -> Option<Key> {
    let address = key.as_ptr() as usize;
    // Objects stand at multiples of 16; those made one after the other, 48 or 64 bytes apart.
    let place = (address >> 4 ^ address >> 10) % PLACES;
    MET.with(|met| {
        if met.addresses[place].get() == address {
            return met.names[place].get();
        }
        let key = key.cast::<PyString>().ok()?;
        let text = key.to_str().ok()?;
        let name = Key::named(text);
        if text.len() <= LONGEST && key.is_exact_instance_of::<PyString>() {
            let before = met.held.borrow_mut()[place].replace(key.clone().unbind());
            met.addresses[place].set(address);
            met.names[place].set(name);
            // Nothing is borrowed any more, should this be the last that held it.
            drop(before);
        }
        name
    })
}
