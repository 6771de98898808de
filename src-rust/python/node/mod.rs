//! Python objects as [`Node`]s: `dict`, `list`, `tuple`, `str`, `int`, `float`, `bool`, `None`.
//!
//! Only the containers' own slots and the strings' code points are read: no method of a user's class is ever called.

pub(super) mod c_api;
pub(super) mod dicts;
pub(super) mod text;

use pyo3::Borrowed;
use pyo3::prelude::*;
use pyo3::type_object::PyTypeCheck;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

use self::c_api::{character, characters, each_member};
use self::text::{PyText, length_of, text_of};
use super::gate::yield_gil;
use crate::error::{Error, Result};
use crate::node::{Fields, Key, KeySet, Kind, Node, Unit, changed, write_float};

/// A Python object, read as a JSON value.
#[derive(Clone)]
pub(super) struct PyNode<'py>(pub Bound<'py, PyAny>);

/// Items of a list between calls of [`yield_gil`], few enough that it can keep its interval.
const BREATHE_EVERY_ITEMS: usize = 32;

impl<'py> PyNode<'py> {
    /// The node of an object.
    pub fn of(object: Bound<'py, PyAny>) -> Self {
        PyNode(object)
    }

    /// The object.
    pub fn into_bound(self) -> Bound<'py, PyAny> {
        self.0
    }

    // A check for an exact type compares a pointer; one for subclasses calls into Python.

    #[inline(always)]
    fn string(&self) -> Option<&Bound<'py, PyString>> {
        if self.0.is_exact_instance_of::<PyString>() {
            return self.0.cast_exact().ok();
        }
        rarer(&self.0)
    }

    #[inline(always)]
    fn dict(&self) -> Option<&Bound<'py, PyDict>> {
        if self.0.is_exact_instance_of::<PyDict>() {
            return self.0.cast_exact().ok();
        }
        rarer(&self.0)
    }

    #[inline(always)]
    fn list(&self) -> Option<&Bound<'py, PyList>> {
        if self.0.is_exact_instance_of::<PyList>() {
            return self.0.cast_exact().ok();
        }
        rarer(&self.0)
    }

    /// Item `i` of a list or tuple. O(1).
    pub fn item(&self, i: usize) -> Option<Self> {
        if let Some(list) = self.list() { list.get_item(i).ok().map(PyNode) } else { self.tuple_item(i) }
    }

    /// An item of a tuple.
    #[cold]
    fn tuple_item(&self, i: usize) -> Option<Self> {
        self.0.cast::<PyTuple>().ok()?.get_item(i).ok().map(PyNode::of)
    }
}

/// An object as an instance of a subclass.
#[cold]
fn rarer<'a, 'py, T: PyTypeCheck>(object: &'a Bound<'py, PyAny>) -> Option<&'a Bound<'py, T>> {
    object.cast().ok()
}

/// A `str` argument; lone surrogates are read as U+FFFD.
pub(super) struct Text(pub String);

impl<'a, 'py> FromPyObject<'a, 'py> for Text {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let string = object.cast::<PyString>()?;
        Ok(Text(text_of(&string, |text, _| text.to_owned())))
    }
}

/// The kind of an object that is neither exactly a string, dict or list nor `None`.
fn rarer_kind(object: &Bound<'_, PyAny>) -> Kind {
    if object.is_exact_instance_of::<PyBool>() {
        Kind::Bool
    } else if object.is_instance_of::<PyString>() {
        Kind::String
    } else if object.is_instance_of::<PyDict>() {
        Kind::Object
    } else if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
        Kind::Array
    } else if object.is_instance_of::<PyInt>() || object.is_instance_of::<PyFloat>() {
        Kind::Number
    } else {
        Kind::Other
    }
}

impl Node for PyNode<'_> {
    type Text = PyText;

    fn text(&self) -> Option<PyText> {
        self.string().map(PyText::of)
    }

    #[inline(always)]
    fn text_length(&self, unit: Unit) -> Option<u64> {
        self.string().map(|string| length_of(string, unit))
    }

    fn find<const N: usize>(&self, wanted: &KeySet<N>, found: &mut Fields<Self, N>) {
        let Some(dict) = self.dict() else { return };
        each_member(dict, |ordinal, value| {
            if let Some(at) = wanted.place_of(ordinal) {
                found.note(at, PyNode(value.to_owned()));
            }
        });
    }

    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> Option<R> {
        self.0.cast::<PyBytes>().ok().map(|bytes| read(bytes.as_bytes()))
    }

    #[inline(always)]
    fn pair(&self, keys: [Key; 2]) -> Option<[Self; 2]> {
        let dict = self.dict().filter(|dict| dict.len() == 2)?;
        let mut values = [None, None];
        each_member(dict, |ordinal, value| {
            if let Some(at) = keys.iter().position(|key| key.ordinal() == usize::from(ordinal)) {
                values[at] = Some(PyNode(value.to_owned()));
            }
        });
        let [first, second] = values;
        Some([first?, second?])
    }

    #[inline(always)]
    fn kind(&self) -> Kind {
        let object = &self.0;
        // Exact types first: checking them compares a pointer.
        if object.is_exact_instance_of::<PyString>() {
            Kind::String
        } else if object.is_exact_instance_of::<PyDict>() {
            Kind::Object
        } else if object.is_exact_instance_of::<PyList>() {
            Kind::Array
        } else if object.is_none() {
            Kind::Null
        } else {
            rarer_kind(object)
        }
    }

    #[inline(always)]
    fn may_begin_with(&self, sign: u8) -> bool {
        self.string().is_some_and(|string| is_at_edge(string, sign, 0..characters(string)))
    }

    #[inline(always)]
    fn may_end_with(&self, sign: u8) -> bool {
        self.string().is_some_and(|string| is_at_edge(string, sign, (0..characters(string)).rev()))
    }

    #[inline(always)]
    fn with_text<R>(&self, read: impl FnOnce(&str, bool) -> R) -> Option<R> {
        self.string().map(|string| text_of(string, read))
    }

    fn get(&self, key: Key) -> Option<Self> {
        let dict = self.dict()?;
        let mut last = None;
        each_member(dict, |ordinal, value| {
            if usize::from(ordinal) == key.ordinal() {
                last = Some(PyNode(value.to_owned()));
            }
        });
        last
    }

    #[inline]
    fn len(&self) -> usize {
        if let Some(list) = self.list() {
            list.len()
        } else {
            self.0.cast::<PyTuple>().map_or(0, |tuple| tuple.len())
        }
    }

    #[inline(always)]
    fn each_item(&self, mut read: impl FnMut(usize, &Self) -> Result<()>) -> Result<()> {
        // One loop for lists and tuples, so that `read` is inlined once.
        let list = self.list();
        for i in 0..self.len() {
            let item = match list {
                Some(list) => {
                    if i % BREATHE_EVERY_ITEMS == BREATHE_EVERY_ITEMS - 1 {
                        yield_gil(list.py());
                    }
                    list.get_item(i).ok().map(PyNode)
                }
                None => self.tuple_item(i),
            };
            read(i, &item.ok_or_else(changed)?)?;
        }
        Ok(())
    }

    fn first(&self) -> Option<Self> {
        self.item(0)
    }

    fn members(&self) -> Result<Vec<(String, Self)>> {
        let Some(dict) = self.dict() else { return Ok(Vec::new()) };
        let mut members = Vec::with_capacity(dict.len());
        self.each_member(|key, value| {
            members.push((key.to_owned(), value.clone()));
            Ok(())
        })?;
        Ok(members)
    }

    fn each_member(&self, mut read: impl FnMut(&str, &Self) -> Result<()>) -> Result<()> {
        let Some(dict) = self.dict() else { return Ok(()) };
        // A copy of the items: the dict may change while they are read.
        let items: Vec<_> = dict.iter().collect();
        items.into_iter().try_for_each(|(key, value)| {
            let key = key
                .cast::<PyString>()
                .map_err(|_| Error::message("bad_key", "", "a key of an object is not a string"))?;
            let value = PyNode::of(value);
            text_of(key, |key, _| read(key, &value))
        })
    }

    fn as_bool(&self) -> Option<bool> {
        self.0.cast::<PyBool>().ok().map(|value| value.is_true())
    }

    fn write_scalar(&self, out: &mut String) {
        let object = &self.0;
        if let Some(value) = self.as_bool() {
            out.push_str(if value { "true" } else { "false" });
        } else if let Ok(float) = object.cast::<PyFloat>() {
            write_float(float.value(), out);
        } else if let Ok(value) = object.extract::<i64>() {
            out.push_str(&value.to_string());
        } else {
            out.push_str(&big_integer(object));
        }
    }
}

/// White space that is walked over one by one; text after more may begin with anything.
const MOST_SPACES: usize = 64;

/// Whether the first character at these places that is no ASCII white space is `sign`, or lies behind more than
/// [`MOST_SPACES`]. Does not need the string's UTF-8.
#[inline(always)]
fn is_at_edge(string: &Bound<'_, PyString>, sign: u8, places: impl Iterator<Item = usize>) -> bool {
    let found = places.take(MOST_SPACES).find_map(|at| {
        let character = character(string, at);
        (!u8::try_from(character).is_ok_and(|byte| byte.is_ascii_whitespace())).then_some(character)
    });
    found.is_none_or(|character| character == u32::from(sign))
}

/// The digits of an integer beyond 64 bits. Python refuses to print more than a few thousand digits; such a number,
/// which no JSON reader would accept either, is written in hexadecimal.
fn big_integer(object: &Bound<'_, PyAny>) -> String {
    let print = |method: &str, argument: &str| -> PyResult<String> {
        object.py().get_type::<PyInt>().call_method1(method, (object, argument))?.extract()
    };
    print("__format__", "d").or_else(|_| print("__format__", "x")).unwrap_or_default()
}
