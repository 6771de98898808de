//! Objects that are held while they are read: references are counted in place.
//!
//! To read a message takes and gives back a reference for each of its values, and through the library of Python each is a
//! call. The stable interface of 3.11, for which this module is built, has the count at the beginning of an object and
//! lets modules change it there; later versions keep to that for modules as old. What they mark in it on machines of 64
//! bits, objects that live for ever, is left to them; on others all counting is.

#![allow(unsafe_code)]

use std::mem::ManuallyDrop;
use std::ops::Deref;

use pyo3::prelude::*;
use pyo3::types::PyList;

use super::containers::Containers;

/// An object that is held.
pub(super) struct Held<'py>(ManuallyDrop<Bound<'py, PyAny>>);

/// The lower half of a count where it can be changed in place: elsewhere it means something else, or is one.
const IN_PLACE: std::ops::Range<i32> = 2..i32::MAX;

impl<'py> Held<'py> {
    /// Holds an object that somebody else holds.
    #[inline(always)]
    pub fn of(object: Borrowed<'_, 'py, PyAny>) -> Self {
        let pointer = object.as_ptr();
        // SAFETY: the object lives, since somebody holds it, and so does the GIL, without which nobody counts. The reference
        // that is counted here is given to the `Bound`.
        unsafe {
            let count = &raw mut (*pointer).ob_refcnt;
            let is_in_place = (IN_PLACE.start - 1..IN_PLACE.end).contains(&(*count as i32));
            if cfg!(not(target_pointer_width = "64")) || !is_in_place {
                return object.to_owned().into();
            }
            *count += 1;
            Bound::from_owned_ptr(object.py(), pointer).into()
        }
    }

    /// An item of a list, if there is one.
    #[inline]
    pub fn item(list: &Bound<'py, PyList>, index: usize) -> Option<Self> {
        // SAFETY: nothing runs before it is held.
        unsafe { Containers::of(list.py()).item(list, index) }.map(Held::of)
    }

    /// The object.
    pub fn into_bound(self) -> Bound<'py, PyAny> {
        let mut held = ManuallyDrop::new(self);
        // SAFETY: it is taken once: what held it is forgotten.
        unsafe { ManuallyDrop::take(&mut held.0) }
    }
}

impl<'py> From<Bound<'py, PyAny>> for Held<'py> {
    #[inline(always)]
    fn from(object: Bound<'py, PyAny>) -> Self {
        Held(ManuallyDrop::new(object))
    }
}

impl<'py> Deref for Held<'py> {
    type Target = Bound<'py, PyAny>;

    #[inline(always)]
    fn deref(&self) -> &Bound<'py, PyAny> {
        &self.0
    }
}

impl Clone for Held<'_> {
    #[inline(always)]
    fn clone(&self) -> Self {
        Held::of(self.as_borrowed())
    }
}

impl Drop for Held<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: the object is held here, and the GIL by whoever has a `Bound`. Where it is not the last reference that is
        // given back, nothing else is to be done; and it is given back once.
        unsafe {
            let count = &raw mut (*self.0.as_ptr()).ob_refcnt;
            if cfg!(target_pointer_width = "64") && IN_PLACE.contains(&(*count as i32)) {
                *count -= 1;
            } else {
                ManuallyDrop::drop(&mut self.0);
            }
        }
    }
}
