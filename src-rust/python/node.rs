//! Python objects as [`Node`]s: `dict`, `list`, `tuple`, `str`, `int`, `float`, `bool`, `None`.
//!
//! Only the containers' own slots are read, through the C API: no method of a user's class is ever called.

use pyo3::Borrowed;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

use crate::error::{Error, Result};
use crate::node::{Key, Kind, Node, write_float};

/// A Python object, read as a JSON value.
#[derive(Clone)]
pub(super) struct PyNode<'py>(pub Bound<'py, PyAny>);

/// The interned string of a key.
fn key_string<'py>(py: Python<'py>, key: Key) -> &'py Bound<'py, PyString> {
    static KEYS: PyOnceLock<Vec<Py<PyString>>> = PyOnceLock::new();
    let keys =
        KEYS.get_or_init(py, || Key::ALL.iter().map(|text| PyString::intern(py, text).unbind()).collect());
    keys[key.ordinal()].bind(py)
}

/// The text of a Python string and whether lone surrogates were replaced. Two surrogates that form a pair are that
/// character, as in tiktoken.
pub(super) fn text_of<R>(string: &Bound<'_, PyString>, read: impl FnOnce(&str, bool) -> R) -> R {
    if let Ok(text) = string.to_str() {
        return read(text, false);
    }
    let py = string.py();
    let encode = || -> PyResult<Vec<u8>> {
        let bytes =
            py.get_type::<PyString>().call_method1("encode", (string, "utf-16-le", "surrogatepass"))?;
        Ok(bytes.cast_into::<PyBytes>()?.as_bytes().to_vec())
    };
    let units = encode().unwrap_or_default();
    let units = units.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
    let mut lossy = false;
    let text: String = char::decode_utf16(units)
        .map(|unit| {
            unit.unwrap_or_else(|_| {
                lossy = true;
                char::REPLACEMENT_CHARACTER
            })
        })
        .collect();
    read(&text, lossy)
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

impl Node for PyNode<'_> {
    fn kind(&self) -> Kind {
        let object = &self.0;
        if object.is_instance_of::<PyString>() {
            Kind::String
        } else if object.is_instance_of::<PyDict>() {
            Kind::Object
        } else if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
            Kind::Array
        } else if object.is_none() {
            Kind::Null
        } else if object.is_instance_of::<PyBool>() {
            Kind::Bool
        } else if object.is_instance_of::<PyInt>() || object.is_instance_of::<PyFloat>() {
            Kind::Number
        } else {
            Kind::Other
        }
    }

    fn with_text<R>(&self, read: impl FnOnce(&str, bool) -> R) -> Option<R> {
        self.0.cast::<PyString>().ok().map(|string| text_of(string, read))
    }

    fn get(&self, key: Key) -> Option<Self> {
        let dict = self.0.cast::<PyDict>().ok()?;
        dict.get_item(key_string(dict.py(), key)).ok().flatten().map(PyNode)
    }

    fn len(&self) -> usize {
        if let Ok(list) = self.0.cast::<PyList>() {
            list.len()
        } else {
            self.0.cast::<PyTuple>().map_or(0, |tuple| tuple.len())
        }
    }

    fn item(&self, i: usize) -> Option<Self> {
        if let Ok(list) = self.0.cast::<PyList>() {
            list.get_item(i).ok().map(PyNode)
        } else {
            self.0.cast::<PyTuple>().ok()?.get_item(i).ok().map(PyNode)
        }
    }

    fn members(&self) -> Result<Vec<(String, Self)>> {
        let Ok(dict) = self.0.cast::<PyDict>() else { return Ok(Vec::new()) };
        // A copy of the items: the dict may change while they are read.
        let items = dict.items();
        let mut members = Vec::with_capacity(items.len());
        for item in &items {
            let pair = item.cast::<PyTuple>().map_err(|_| crate::node::changed())?;
            let (key, value) = match (pair.get_item(0), pair.get_item(1)) {
                (Ok(key), Ok(value)) => (key, value),
                _ => return Err(crate::node::changed()),
            };
            let key = key
                .cast::<PyString>()
                .map_err(|_| Error::message("bad_key", "", "a key of an object is not a string"))?;
            members.push((text_of(key, |text, _| text.to_owned()), PyNode(value)));
        }
        Ok(members)
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
