//! The members of a dict where they lie: a key is told by its address, and references are counted of those values alone
//! that somebody asks for. (To look each name up takes several times as long; most names are not there.)

#![allow(unsafe_code)]

use std::cell::{Cell, RefCell};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use super::containers::Containers;
use super::held::Held;
use super::node::PyNode;
use crate::node::names::{UNKNOWN, ordinal_of};
use crate::node::{Found, Key, Wanted};

/// What stands under some names of a dict. O(members).
pub(super) fn find<'py, const N: usize>(
    dict: &Bound<'py, PyDict>,
    wanted: &Wanted<N>,
    found: &mut Found<PyNode<'py>, N>,
) {
    let containers = Containers::of(dict.py());
    MET.with(|met| {
        let mut place = 0;
        for _ in 0..containers.dict_length(dict) {
            // SAFETY: nothing runs until both are held, or were told apart by their addresses.
            let Some((key, value)) = (unsafe { containers.next(dict, &mut place) }) else { break };
            if let Some(ordinal) = met.known(key) {
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
    });
}

/// What stands under two names of a dict that has no others, as far as they were met before. O(1), and no Python code
/// runs.
pub(super) fn pair<'py>(dict: &Bound<'py, PyDict>, keys: [Key; 2]) -> Option<[PyNode<'py>; 2]> {
    let containers = Containers::of(dict.py());
    if containers.dict_length(dict) != 2 {
        return None;
    }
    MET.with(|met| {
        let mut next = {
            let mut place = 0;
            // SAFETY: nothing runs until the values are held: keys are told by their addresses.
            move || unsafe { containers.next(dict, &mut place) }
        };
        let ((first, one), (second, other)) = (next()?, next()?);
        let names = (met.known(first)?, met.known(second)?);
        let [a, b] = keys.map(|key| key.ordinal() as u8);
        match names {
            names if names == (a, b) => Some([one, other]),
            names if names == (b, a) => Some([other, one]),
            _ => None,
        }
        .map(|values| values.map(|value| PyNode(Held::of(value))))
    })
}

/// Up to so many members are walked over to find one, and more where a key could have code of its own.
const FEW: usize = 8;

/// What stands under one name of a dict, by a walk; `None` where it has so many members that it is to be looked up. O(1),
/// but for keys that are no plain strings.
pub(super) fn one<'py>(dict: &Bound<'py, PyDict>, key: Key) -> Option<Option<PyNode<'py>>> {
    let containers = Containers::of(dict.py());
    let length = containers.dict_length(dict);
    let is_plain = containers.has_plain_keys(dict);
    if is_plain && length > FEW {
        return None;
    }
    MET.with(|met| {
        let (mut place, mut last) = (0, None);
        for _ in 0..length {
            // SAFETY: nothing runs until both are held, or were told apart by their addresses.
            let Some((name, value)) = (unsafe { containers.next(dict, &mut place) }) else { break };
            let (ordinal, value) = match met.known(name) {
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
    })
}

/// How many keys are remembered by their addresses: far more than messages have, so that hardly two share a place.
const PLACES: usize = 512;

/// Bytes of the longest key that is remembered.
const LONGEST: usize = 32;

/// Keys that were met, at places by their addresses. They are held: no other string can have the address of one.
struct Met {
    addresses: [Cell<usize>; PLACES],
    ordinals: [Cell<u8>; PLACES],
    held: RefCell<[Option<Py<PyString>>; PLACES]>,
}

thread_local! {
    static MET: Met = const {
        Met {
            addresses: [const { Cell::new(0) }; PLACES],
            ordinals: [const { Cell::new(UNKNOWN) }; PLACES],
            held: RefCell::new([const { None }; PLACES]),
        }
    };
}

impl Met {
    /// Which name a key is that was met. The messages of one document share their keys, and those written in code are
    /// interned: nearly always the same few strings come again.
    #[inline]
    fn known(&self, key: Borrowed<'_, '_, PyAny>) -> Option<u8> {
        let address = key.as_ptr() as usize;
        let place = place_of(address);
        (self.addresses[place].get() == address).then(|| self.ordinals[place].get())
    }

    /// Looks which name a key is, and holds the key.
    #[cold]
    #[inline(never)]
    fn meet(&self, key: &Bound<'_, PyAny>) -> u8 {
        let Ok(key) = key.cast::<PyString>() else { return UNKNOWN };
        let Ok(text) = key.to_str() else { return UNKNOWN };
        let ordinal = ordinal_of(text.as_bytes());
        if text.len() <= LONGEST && key.is_exact_instance_of::<PyString>() {
            let address = key.as_ptr() as usize;
            let place = place_of(address);
            let before = self.held.borrow_mut()[place].replace(key.clone().unbind());
            self.addresses[place].set(address);
            self.ordinals[place].set(ordinal);
            // Nothing is borrowed any more, should this be the last that held it.
            drop(before);
        }
        ordinal
    }
}

/// The place of an address. What lies close together gets places far apart.
fn place_of(address: usize) -> usize {
    let mixed = (address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> (u64::BITS - PLACES.trailing_zeros())) as usize
}
