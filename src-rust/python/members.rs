//! The members of a dict where they lie: a key is told by its address, and references are counted of those values alone
//! that somebody asks for. (To look each name up takes several times as long; most names are not there.)

#![allow(unsafe_code)]

use std::cell::Cell;
use std::ptr::null_mut;

use pyo3::ffi::{Py_ssize_t, PyObject};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use super::containers::Containers;
use super::held::Held;
use super::node::PyNode;
use crate::node::names::{UNKNOWN, ordinal_of};
use crate::node::{Found, Key, Wanted};

/// What stands under some names of a dict. O(members).
#[inline]
pub(super) fn find<'py, const N: usize>(
    dict: &Bound<'py, PyDict>,
    wanted: &Wanted<N>,
    found: &mut Found<PyNode<'py>, N>,
) {
    let (py, met) = (dict.py(), Met::of(dict.py()));
    // SAFETY: nothing runs while they are gone over: keys are told by their addresses, and one not met ends it.
    let members = unsafe { Containers::of(py).plain_members(dict) };
    let mut place = 0;
    while let Some(&[key, value]) = members.get(place) {
        if !value.is_null() {
            let Some(ordinal) = met.known(py, key) else { break };
            if let Some(at) = wanted.place_of(ordinal) {
                // SAFETY: the dict holds it.
                found.note(at, PyNode(Held::of(unsafe { Borrowed::from_ptr(py, value) })));
            }
        }
        place += 1;
    }
    if place == 0 || place < members.len() {
        find_from(place, dict, wanted, found);
    }
}

/// What stands under some names of a dict, from that place on: in it may be keys that were not met.
#[cold]
#[inline(never)]
fn find_from<'py, const N: usize>(
    place: usize,
    dict: &Bound<'py, PyDict>,
    wanted: &Wanted<N>,
    found: &mut Found<PyNode<'py>, N>,
) {
    let (containers, met, mut place) = (Containers::of(dict.py()), Met::of(dict.py()), place as Py_ssize_t);
    for _ in 0..containers.dict_length(dict) {
        // SAFETY: nothing runs until both are held, or were told apart by their addresses.
        let Some((key, value)) = (unsafe { containers.next(dict, &mut place) }) else { break };
        if let Some(ordinal) = met.known(dict.py(), key.as_ptr()) {
            if let Some(at) = wanted.place_of(ordinal) {
                found.note(at, PyNode(Held::of(value)));
            }
            continue;
        }
        let (key, value) = (Held::of(key), Held::of(value));
        if let Some(at) = wanted.place_of(met.meet(&key)) {
            found.note(at, PyNode(value));
        }
    }
}

/// What stands under two names of a dict that has no others, as far as they were met before. O(1), and no Python code
/// runs.
#[inline(always)]
pub(super) fn pair<'py>(dict: &Bound<'py, PyDict>, keys: [Key; 2]) -> Option<[PyNode<'py>; 2]> {
    let (py, containers, met) = (dict.py(), Containers::of(dict.py()), Met::of(dict.py()));
    if containers.dict_length(dict) != 2 {
        return None;
    }
    // SAFETY: nothing runs until the values are held: keys are told by their addresses.
    let [(first, one), (second, other)] = unsafe { containers.both(dict) }?;
    let names = (met.known(py, first.as_ptr())?, met.known(py, second.as_ptr())?);
    let [a, b] = keys.map(|key| key.ordinal() as u8);
    let (one, other) = match names {
        names if names == (a, b) => (one, other),
        names if names == (b, a) => (other, one),
        _ => return None,
    };
    Some([PyNode(Held::of(one)), PyNode(Held::of(other))])
}

/// Up to so many members are walked over to find one, and more where a key could have code of its own.
const FEW: usize = 8;

/// What stands under one name of a dict, by a walk; `None` where it has so many members that it is to be looked up. O(1),
/// but for keys that are no plain strings.
#[inline]
pub(super) fn one<'py>(dict: &Bound<'py, PyDict>, key: Key) -> Option<Option<PyNode<'py>>> {
    let (py, containers, met) = (dict.py(), Containers::of(dict.py()), Met::of(dict.py()));
    if containers.dict_length(dict) > FEW {
        return rarer_one(dict, key);
    }
    // SAFETY: nothing runs while they are gone over: keys are told by their addresses, and one not met ends it.
    let members = unsafe { containers.plain_members(dict) };
    for &[name, value] in members {
        let Some(ordinal) = met.known(py, name) else { return rarer_one(dict, key) };
        if usize::from(ordinal) == key.ordinal() && !value.is_null() {
            // SAFETY: the dict holds it.
            return Some(Some(PyNode(Held::of(unsafe { Borrowed::from_ptr(py, value) }))));
        }
    }
    if members.is_empty() { rarer_one(dict, key) } else { Some(None) }
}

/// The same of any dict: it may have keys that were not met, or that are no plain strings.
#[inline(never)]
fn rarer_one<'py>(dict: &Bound<'py, PyDict>, key: Key) -> Option<Option<PyNode<'py>>> {
    let (py, containers, met) = (dict.py(), Containers::of(dict.py()), Met::of(dict.py()));
    let length = containers.dict_length(dict);
    let is_plain = containers.has_plain_keys(dict);
    if is_plain && length > FEW {
        return None;
    }
    let (mut place, mut last) = (0, None);
    for _ in 0..length {
        // SAFETY: nothing runs until both are held, or were told apart by their addresses.
        let Some((name, value)) = (unsafe { containers.next(dict, &mut place) }) else { break };
        let (ordinal, value) = match met.known(py, name.as_ptr()) {
            Some(ordinal) if usize::from(ordinal) != key.ordinal() => continue,
            Some(ordinal) => (ordinal, Held::of(value)),
            None => {
                let (name, value) = (Held::of(name), Held::of(value));
                (met.meet(&name), value)
            }
        };
        if usize::from(ordinal) == key.ordinal() {
            last = Some(PyNode(value));
            if is_plain {
                break;
            }
        }
    }
    Some(last)
}

/// How many keys are remembered by their addresses: far more than messages have, so that hardly two share a place.
const PLACES: usize = 512;

/// Bytes of the longest key that is remembered.
const LONGEST: usize = 32;

/// Keys that were met, at places by their addresses. They are held: no other string can have the address of one.
struct Met([Place; PLACES]);

struct Place {
    key: Cell<Option<Py<PyString>>>,
    /// Which name that is.
    ordinal: Cell<u8>,
}

// SAFETY: what is in it is looked at and changed by those alone who have the GIL, of which there is one: this module is
// built for the stable interface, which interpreters without it have not.
unsafe impl Sync for Met {}

static MET: Met = Met([const { Place { key: Cell::new(None), ordinal: Cell::new(UNKNOWN) } }; PLACES]);

impl Met {
    /// Those of this process. (Of each thread by itself they took longer to find than a key.)
    #[inline(always)]
    fn of(_: Python<'_>) -> &'static Self {
        &MET
    }

    /// Which name a key is that was met. The messages of one document share their keys, and those written in code are
    /// interned: nearly always the same few strings come again.
    #[inline(always)]
    fn known(&self, _: Python<'_>, key: *mut PyObject) -> Option<u8> {
        let place = &self.0[place_of(key as usize)];
        // SAFETY: nobody changes it meanwhile, since the GIL is held.
        let held = unsafe { &*place.key.as_ptr() };
        (held.as_ref().map_or(null_mut(), Py::as_ptr) == key).then(|| place.ordinal.get())
    }

    /// Looks which name a key is, and holds the key.
    #[cold]
    #[inline(never)]
    fn meet(&self, key: &Bound<'_, PyAny>) -> u8 {
        let Ok(key) = key.cast::<PyString>() else { return UNKNOWN };
        let Ok(text) = key.to_str() else { return UNKNOWN };
        let ordinal = ordinal_of(text.as_bytes());
        if text.len() <= LONGEST && key.is_exact_instance_of::<PyString>() {
            let place = &self.0[place_of(key.as_ptr() as usize)];
            let before = place.key.replace(Some(key.clone().unbind()));
            place.ordinal.set(ordinal);
            // Nothing is looked at any more, should this be the last that held it.
            drop(before);
        }
        ordinal
    }
}

/// The place of an address. What lies close together gets places far apart.
#[inline(always)]
fn place_of(address: usize) -> usize {
    let mixed = (address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> (u64::BITS - PLACES.trailing_zeros())) as usize
}
