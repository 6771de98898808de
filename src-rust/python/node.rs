//! Python objects as [`Node`]s: `dict`, `list`, `tuple`, `str`, `int`, `float`, `bool`, `None`.
//!
//! Only the containers' own slots and the characters of strings are read: no method of a user's class is ever called.

use std::borrow::Cow;
use std::ops::Deref;

use pyo3::Borrowed;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::sync::PyOnceLock;
use pyo3::type_object::PyTypeCheck;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

use super::containers::Containers;
use super::gate::breathe;
use super::held::Held;
use super::members::{find, one, pair};
use super::strings::{ascii_length, characters, copied, kept};
use crate::error::{Error, Result};
use crate::node::{Found, Key, Kind, Node, Unit, Wanted, changed, write_float};

/// A Python object, read as a JSON value.
#[derive(Clone)]
pub(super) struct PyNode<'py>(pub Held<'py>);

/// The interned strings of all keys.
fn key_strings(py: Python<'_>) -> &[Py<PyString>] {
    static KEYS: PyOnceLock<Vec<Py<PyString>>> = PyOnceLock::new();
    KEYS.get_or_init(py, || Key::ALL.iter().map(|text| PyString::intern(py, text).unbind()).collect())
}

/// The text of a Python string, which may be read without the GIL: strings never change.
pub(super) enum PyText {
    /// In the string itself, which is held meanwhile.
    Held(PyBackedStr),
    /// A copy, since the string held surrogates.
    Copied(String),
}

impl Deref for PyText {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            PyText::Held(text) => text,
            PyText::Copied(text) => text,
        }
    }
}

/// After so many items of a list it is seen whether another thread should have its turn.
const BREATHE_EVERY_ITEMS: usize = 32;

impl<'py> PyNode<'py> {
    /// The node of an object.
    pub fn of(object: Bound<'py, PyAny>) -> Self {
        PyNode(object.into())
    }

    /// The object.
    pub fn into_bound(self) -> Bound<'py, PyAny> {
        self.0.into_bound()
    }

    // A cast to an exact type compares a pointer; one that may be to a subclass calls into Python.

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

    /// An item of a tuple.
    #[cold]
    fn tuple_item(&self, i: usize) -> Option<Self> {
        self.0.cast::<PyTuple>().ok()?.get_item(i).ok().map(PyNode::of)
    }
}

/// An object as what it is by a class of somebody's own.
#[cold]
fn rarer<'a, 'py, T: PyTypeCheck>(object: &'a Bound<'py, PyAny>) -> Option<&'a Bound<'py, T>> {
    object.cast().ok()
}

/// The text of a Python string and whether lone surrogates were replaced. Two surrogates that form a pair are that
/// character, as in tiktoken.
#[inline(always)]
pub(super) fn text_of<R>(string: &Bound<'_, PyString>, read: impl FnOnce(&str, bool) -> R) -> R {
    let rarer;
    let (text, is_lossy) = match kept(string) {
        Some(text) => (text, false),
        None => {
            rarer = rarer_text(string);
            (&*rarer.0, rarer.1)
        }
    };
    read(text, is_lossy)
}

/// The text of a string that is to be asked for it, or has surrogates.
#[cold]
fn rarer_text<'a>(string: &'a Bound<'_, PyString>) -> (Cow<'a, str>, bool) {
    if let Ok(text) = string.to_str() {
        return (Cow::Borrowed(text), false);
    }
    let (text, is_lossy) = copied(string);
    (Cow::Owned(text), is_lossy)
}

/// The length of a text that is not ASCII, or cannot be read where it lies.
#[inline(never)]
fn rarer_length(string: &Bound<'_, PyString>, unit: Unit) -> u64 {
    // Nothing is made of a string that is only measured, but of one with surrogates.
    let length = characters(string).and_then(|characters| characters.length(unit));
    length.unwrap_or_else(|| text_of(string, |text, _| unit.of(text)))
}

/// A `str` argument as text; lone surrogates are read as U+FFFD, as they are everywhere.
pub(super) struct Text(pub String);

impl<'a, 'py> FromPyObject<'a, 'py> for Text {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let string = object.cast::<PyString>()?;
        Ok(Text(text_of(&string, |text, _| text.to_owned())))
    }
}

/// What an object is that is neither exactly a string, dict or list nor `None`.
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
        let string = self.string()?;
        Some(match PyBackedStr::try_from(string.clone()) {
            Ok(text) => PyText::Held(text),
            Err(_) => PyText::Copied(text_of(string, |text, _| text.to_owned())),
        })
    }

    #[inline(always)]
    fn text_length(&self, unit: Unit) -> Option<u64> {
        let string = self.string()?;
        Some(ascii_length(string).map_or_else(|| rarer_length(string, unit), |length| length as u64))
    }

    fn find<const N: usize>(&self, wanted: &Wanted<N>, found: &mut Found<Self, N>) {
        if let Some(dict) = self.dict() {
            find(dict, wanted, found);
        }
    }

    #[inline(always)]
    fn pair(&self, keys: [Key; 2]) -> Option<[Self; 2]> {
        pair(self.dict()?, keys)
    }

    #[inline(always)]
    fn kind(&self) -> Kind {
        let object = &self.0;
        // Exact types first: they are told by a pointer.
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
    fn with_text<R>(&self, read: impl FnOnce(&str, bool) -> R) -> Option<R> {
        self.string().map(|string| text_of(string, read))
    }

    fn get(&self, key: Key) -> Option<Self> {
        let dict = self.dict()?;
        if let Some(found) = one(dict, key) {
            return found;
        }
        dict.get_item(&key_strings(dict.py())[key.ordinal()]).ok().flatten().map(PyNode::of)
    }

    #[inline]
    fn len(&self) -> usize {
        if let Some(list) = self.list() {
            Containers::of(list.py()).list_length(list)
        } else {
            self.0.cast::<PyTuple>().map_or(0, |tuple| tuple.len())
        }
    }

    #[inline(always)]
    fn each_item(&self, mut read: impl FnMut(usize, &Self) -> Result<()>) -> Result<()> {
        // One loop for both, so that there is one place where what is read of items is put into it.
        let list = self.list();
        for i in 0..self.len() {
            let item = match list {
                Some(list) => {
                    if i % BREATHE_EVERY_ITEMS == BREATHE_EVERY_ITEMS - 1 {
                        breathe(list.py());
                    }
                    Held::item(list, i).map(PyNode)
                }
                None => self.tuple_item(i),
            };
            read(i, &item.ok_or_else(changed)?)?;
        }
        Ok(())
    }

    fn item(&self, i: usize) -> Option<Self> {
        if let Some(list) = self.list() { Held::item(list, i).map(PyNode) } else { self.tuple_item(i) }
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
            match key.to_str() {
                Ok(key) => read(key, &value),
                Err(_) => text_of(key, |key, _| read(key, &value)),
            }
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

/// The digits of an integer beyond 64 bits. Python refuses to print more than a few thousand; such a number, which no
/// JSON reader would take either, stands in hexadecimal.
fn big_integer(object: &Bound<'_, PyAny>) -> String {
    let print = |method: &str, argument: &str| -> PyResult<String> {
        object.py().get_type::<PyInt>().call_method1(method, (object, argument))?.extract()
    };
    print("__format__", "d").or_else(|_| print("__format__", "x")).unwrap_or_default()
}
