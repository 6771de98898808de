//! The items of lists and the members of dicts where CPython keeps them.
//!
//! To walk over a message takes a step for each of its members, and through the library of Python a step costs more than
//! all that is done with most of them.

#![allow(unsafe_code)]

use std::ptr::null_mut;
use std::slice::from_raw_parts;
use std::sync::atomic::{AtomicU8, Ordering};

use pyo3::ffi::{self, Py_ssize_t, PyObject};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use super::interpreter::known_version;

/// The number of items of a list, or of members of a dict, in bytes from the beginning of the object.
const LENGTH: usize = 16;
/// Of a list, where its items are.
const ITEMS: usize = 24;
/// Of a dict, where its table is.
const TABLE: usize = 32;
/// Of a dict, where its values are: null where they stand beside their keys.
const VALUES: usize = 40;

/// Of a table, the power of two that the bytes of its index are.
const INDEX_BYTES_LOG2: usize = 9;
/// Of a table, what its keys are.
const KIND: usize = 10;
/// They are strings, and none is of a subclass.
const STRINGS: u8 = 1;
/// Of a table, how many entries it has, those of removed members included.
const ENTRIES: usize = 24;
/// Of a table, its index, behind which the entries are.
const INDEX: usize = 32;

/// An entry: a key and its value, which is null where it was removed.
pub(super) type Entry = [*mut PyObject; 2];

/// Whether containers lie so in this process.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Containers {
    /// They do.
    Here,
    /// That is not known.
    Elsewhere,
}

/// What was seen of them, as one byte.
const NOT_YET: u8 = 0;
const HERE: u8 = 1;
const ELSEWHERE: u8 = 2;

/// A member that the dict holds.
pub(super) type Member<'a, 'py> = (Borrowed<'a, 'py, PyAny>, Borrowed<'a, 'py, PyAny>);

impl Containers {
    /// Looks once, and remembers it.
    #[inline(always)]
    pub fn of(py: Python<'_>) -> Self {
        /// What was seen is there by itself: nothing is to be seen with it.
        static SEEN: AtomicU8 = AtomicU8::new(NOT_YET);
        match SEEN.load(Ordering::Relaxed) {
            HERE => Containers::Here,
            ELSEWHERE => Containers::Elsewhere,
            _ => Containers::look(py, &SEEN),
        }
    }

    /// Two threads may look at once, and see the same.
    #[cold]
    fn look(py: Python<'_>, seen: &AtomicU8) -> Self {
        let is_right = matches!(known_version(py), Some((3, 11..=13))) && is_right(py).unwrap_or(false);
        seen.store(if is_right { HERE } else { ELSEWHERE }, Ordering::Relaxed);
        if is_right { Containers::Here } else { Containers::Elsewhere }
    }

    /// How many items a list has. O(1).
    #[inline(always)]
    pub fn list_length(self, list: &Bound<'_, PyList>) -> usize {
        match self {
            // SAFETY: containers lie so in this process.
            Containers::Here => unsafe { at::<usize>(list.as_ptr(), LENGTH).read() },
            Containers::Elsewhere => list.len(),
        }
    }

    /// How many members a dict has. O(1).
    #[inline(always)]
    pub fn dict_length(self, dict: &Bound<'_, PyDict>) -> usize {
        match self {
            // SAFETY: containers lie so in this process.
            Containers::Here => unsafe { at::<usize>(dict.as_ptr(), LENGTH).read() },
            Containers::Elsewhere => dict.len(),
        }
    }

    /// Whether all keys of a dict are known to be strings, and none of a subclass: then none is twice there, and to look one
    /// up calls no code of theirs. O(1).
    #[inline(always)]
    pub fn has_plain_keys(self, dict: &Bound<'_, PyDict>) -> bool {
        // SAFETY: where containers lie so, every dict has a table. An object's keys are plain.
        self == Containers::Here
            && unsafe {
                let table = at::<*const u8>(dict.as_ptr(), TABLE).read();
                !at::<*const u8>(dict.as_ptr(), VALUES).read().is_null() || table.add(KIND).read() == STRINGS
            }
    }

    /// An item of a list, if there is one. O(1).
    ///
    /// # Safety
    /// It belongs to the list: it is to be taken hold of before anything else runs that could change the list.
    #[inline(always)]
    pub unsafe fn item<'a, 'py>(
        self,
        list: &'a Bound<'py, PyList>,
        index: usize,
    ) -> Option<Borrowed<'a, 'py, PyAny>> {
        if index >= self.list_length(list) {
            return None;
        }
        // SAFETY: the list has such an item, which it holds until it is changed; and where containers lie so, there it is.
        unsafe {
            let item = match self {
                Containers::Here => at::<*const *mut PyObject>(list.as_ptr(), ITEMS).read().add(index).read(),
                Containers::Elsewhere => ffi::PyList_GetItem(list.as_ptr(), index as Py_ssize_t),
            };
            Some(Borrowed::from_ptr(list.py(), item))
        }
    }

    /// The members of a dict whose keys are strings, none of a subclass: each a key and its value, which is null where
    /// it was removed. None of any other dict. O(1).
    ///
    /// # Safety
    /// They belong to the dict. Nothing else is to run that could change it as long as they are looked at, and what is
    /// needed longer is to be taken hold of before. (Whatever makes an object may: the collector then runs finalisers.)
    #[inline(always)]
    pub unsafe fn plain_members<'a>(self, dict: &'a Bound<'_, PyDict>) -> &'a [Entry] {
        let pointer = dict.as_ptr();
        // SAFETY: containers lie so in this process; the table and its entries are there until the dict is changed.
        unsafe {
            if self == Containers::Here && at::<*const u8>(pointer, VALUES).read().is_null() {
                let table = at::<*const u8>(pointer, TABLE).read();
                let many = table.add(ENTRIES).cast::<usize>().read();
                // The table that all empty dicts share has no room for entries, and what is behind it is none.
                if many > 0 && table.add(KIND).read() == STRINGS {
                    let entries = table.add(INDEX).add(1 << table.add(INDEX_BYTES_LOG2).read());
                    return from_raw_parts(entries.cast(), many);
                }
            }
        }
        &[]
    }

    /// The members of a dict that has two. O(1), but for members that were removed.
    ///
    /// # Safety
    /// That of [`Containers::next`].
    #[inline(always)]
    pub unsafe fn both<'a, 'py>(self, dict: &'a Bound<'py, PyDict>) -> Option<[Member<'a, 'py>; 2]> {
        let py = dict.py();
        // SAFETY: the same is owed. Members that are there are never null.
        unsafe {
            if let &[[key, value], [other_key, other]] = self.plain_members(dict)
                && !value.is_null()
                && !other.is_null()
            {
                let of = |key, value| (Borrowed::from_ptr(py, key), Borrowed::from_ptr(py, value));
                return Some([of(key, value), of(other_key, other)]);
            }
            let mut place = 0;
            Some([self.next(dict, &mut place)?, self.next(dict, &mut place)?])
        }
    }

    /// The next member of a dict, from a place that is 0 at first. O(1), but for members that were removed.
    ///
    /// # Safety
    /// It belongs to the dict: it is to be taken hold of before anything else runs that could change the dict. (Whatever
    /// makes an object may: the collector then runs finalisers.)
    #[inline(never)]
    pub unsafe fn next<'a, 'py>(
        self,
        dict: &'a Bound<'py, PyDict>,
        place: &mut Py_ssize_t,
    ) -> Option<Member<'a, 'py>> {
        // SAFETY: nothing runs here. Members that are there are never null.
        unsafe {
            let members = self.plain_members(dict);
            while let Some(&[key, value]) = members.get(*place as usize) {
                *place += 1;
                if !value.is_null() {
                    return Some((Borrowed::from_ptr(dict.py(), key), Borrowed::from_ptr(dict.py(), value)));
                }
            }
            // Of plain members there are no more.
            if members.is_empty() { rarer_next(dict, place) } else { None }
        }
    }
}

/// The next member of a dict that lies elsewhere: its keys are not all strings, or it is an object's.
///
/// # Safety
/// That of [`Containers::next`].
#[cold]
unsafe fn rarer_next<'a, 'py>(
    dict: &'a Bound<'py, PyDict>,
    place: &mut Py_ssize_t,
) -> Option<Member<'a, 'py>> {
    let (mut key, mut value) = (null_mut(), null_mut());
    // SAFETY: the dict is held, and so is the GIL. Members that were found are never null.
    unsafe {
        if ffi::PyDict_Next(dict.as_ptr(), place, &mut key, &mut value) == 0 {
            return None;
        }
        Some((Borrowed::from_ptr(dict.py(), key), Borrowed::from_ptr(dict.py(), value)))
    }
}

/// Something in an object.
#[inline(always)]
fn at<T>(object: *mut PyObject, offset: usize) -> *const T {
    object.cast::<u8>().wrapping_add(offset).cast()
}

/// Whether containers lie so in this process: some are read whose items are known. (A last look: nothing is read here in
/// a version of which that was not found out before.)
fn is_right(py: Python<'_>) -> PyResult<bool> {
    for length in [0, 1, 5, 6, 90, 300] {
        let keys = (0..length).map(|i| PyString::new(py, &i.to_string())).collect::<Vec<_>>();
        let list = PyList::new(py, &keys)?;
        let dict = PyDict::new(py);
        for (i, key) in keys.iter().enumerate() {
            dict.set_item(key, i)?;
        }
        for key in keys.iter().skip(2).step_by(3) {
            dict.del_item(key)?;
        }
        // SAFETY: both are longer than what is read of them; nothing runs that changes them.
        let is_same = unsafe { has_items(&list) && has_members(&dict) };
        if !is_same {
            return Ok(false);
        }
    }
    // Of other keys, and of an object's.
    let others = PyDict::new(py);
    others.set_item(1, 2)?;
    // SAFETY: as above.
    Ok(unsafe { has_members(&others) })
}

/// Whether a list lies as it should.
///
/// # Safety
/// Nothing runs that changes it.
unsafe fn has_items(list: &Bound<'_, PyList>) -> bool {
    let here = Containers::Here;
    if here.list_length(list) != list.len() {
        return false;
    }
    // SAFETY: it has so many items, each of which is but compared.
    (0..list.len()).all(|i| unsafe {
        let item = ffi::PyList_GetItem(list.as_ptr(), i as Py_ssize_t);
        here.item(list, i).is_some_and(|found| found.as_ptr() == item)
    })
}

/// Whether a dict lies as it should.
///
/// # Safety
/// Nothing runs that changes it.
unsafe fn has_members(dict: &Bound<'_, PyDict>) -> bool {
    let here = Containers::Here;
    if here.dict_length(dict) != dict.len() {
        return false;
    }
    let (mut place, mut other) = (0, 0);
    loop {
        // SAFETY: what is found is but compared.
        let (found, expected) = unsafe { (here.next(dict, &mut place), rarer_next(dict, &mut other)) };
        let pointers =
            |member: Option<Member<'_, '_>>| member.map(|(key, value)| (key.as_ptr(), value.as_ptr()));
        if pointers(found) != pointers(expected) {
            return false;
        }
        if expected.is_none() {
            return true;
        }
    }
}
