//! Columns of texts through the Arrow C interface, read without a copy.
//!
//! Accepted are Utf8, LargeUtf8, Utf8View, Dictionary of these, and Null; in chunks, sliced, with nulls. A null is a
//! missing text. A dictionary value in use is read once.
//!
//! # Trust
//!
//! Producers are not trusted. The arrow crate checks types and the number of buffers. For data from the C interface it
//! does not check that offsets ascend, that views and keys point inside their buffers, or that bytes are UTF-8. So no
//! `str` is ever taken from its arrays. This module takes offsets, views, keys and bytes, which are plain numbers,
//! slices them in checked ranges, and checks the UTF-8 of each text when it is read, in the thread that counts it.
//! Two properties no consumer can check, since the interface does not carry them: that buffers are as long as the last
//! offset, and that they are not written to while they are read. The interface obliges the producer to ensure both.

use std::borrow::Cow;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowDictionaryKeyType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{Array, ArrayRef, LargeStringArray, StringArray, StringViewArray};
use arrow_buffer::ArrowNativeType;
use arrow_schema::DataType;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};
use pyo3_arrow::{PyArray, PyArrayReader, PyField};

use super::gate::exception;
use crate::count::batch::texts::Texts;
use crate::error::{Error, Result};

/// Bytes of a view: length, then the whole text or its first bytes, buffer and offset.
const VIEW_BYTES: usize = 16;

/// Bytes of the longest text stored inside its view.
const INLINE_BYTES: usize = 12;

/// A column of texts.
pub(super) struct Column {
    chunks: Vec<Chunk>,
    rows: Rows,
}

/// The texts of an array.
enum Chunk {
    Utf8(StringArray),
    LargeUtf8(LargeStringArray),
    Utf8View(StringViewArray),
    /// A number of nulls.
    Null(usize),
}

/// The mapping of rows to texts.
enum Rows {
    /// Each row has its own text, chunk after chunk: the first row of each chunk, and the end.
    Plain(Vec<usize>),
    /// Rows refer to the values of a dictionary.
    Dictionary(Dictionary),
}

/// Rows as references to distinct values.
#[derive(Default)]
struct Dictionary {
    /// The value of each row, an index into `values`; `None` for a null.
    rows: Vec<Option<u32>>,
    /// Chunk and index of each value, in the order of their first use.
    values: Vec<(u32, usize)>,
    /// The first row that uses each value.
    first_rows: Vec<usize>,
}

/// The column of an object with `__arrow_c_array__` or `__arrow_c_stream__`; `None` for an object without them.
pub(super) fn column_of(object: &Bound<'_, PyAny>) -> PyResult<Option<Column>> {
    let py = object.py();
    let (array, stream) = (intern!(py, "__arrow_c_array__"), intern!(py, "__arrow_c_stream__"));
    let arrays = if object.hasattr(array)? {
        import_array(&object.call_method0(array)?)?
    } else if object.hasattr(stream)? {
        import_stream(&object.call_method0(stream)?)?
    } else {
        return Ok(None);
    };
    Column::new(&arrays).map(Some).map_err(|error| exception(py, error))
}

fn import_array(capsules: &Bound<'_, PyAny>) -> PyResult<Vec<ArrayRef>> {
    let py = capsules.py();
    let (schema, array) = sound(py, || {
        let capsules = capsules.cast::<PyTuple>()?;
        let capsule = |at| -> PyResult<_> { Ok(capsules.get_item(at)?.cast_into::<PyCapsule>()?) };
        Ok((capsule(0)?, capsule(1)?))
    })?;
    // Checked before the import: arrays of other types are not imported.
    let field = sound(py, || PyField::from_arrow_pycapsule(&schema))?.into_inner();
    check_type(field.data_type()).map_err(|error| exception(py, error))?;
    Ok(vec![sound(py, || PyArray::from_arrow_pycapsule(&schema, &array))?.into_inner().0])
}

fn import_stream(capsule: &Bound<'_, PyAny>) -> PyResult<Vec<ArrayRef>> {
    let py = capsule.py();
    let mut reader =
        sound(py, || PyArrayReader::from_arrow_pycapsule(capsule.cast::<PyCapsule>()?)?.into_reader())?;
    // Checked before the first chunk is imported.
    check_type(reader.field().data_type()).map_err(|error| exception(py, error))?;
    let mut arrays = Vec::new();
    while let Some(array) = sound(py, || Ok(reader.next()))? {
        py.check_signals()?;
        let failed = |_| {
            let detail = format!("the producer of the stream failed at chunk {}", arrays.len());
            exception(py, Error::message("arrow_stream_failed", "", detail))
        };
        arrays.push(array.map_err(failed)?);
    }
    Ok(arrays)
}

/// The result of an import; a `bad_arrow` error if the arrow crate refuses it or panics.
fn sound<T>(py: Python<'_>, import: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    let refused = || {
        const DETAIL: &str = "the data from the Arrow C interface is invalid, or of an unknown type";
        exception(py, Error::text_type("bad_arrow", DETAIL))
    };
    catch_unwind(AssertUnwindSafe(import)).map_err(|_| refused())?.map_err(|_| refused())
}

fn check_type(data_type: &DataType) -> Result<()> {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null => Ok(()),
        DataType::Dictionary(_, values) if !matches!(**values, DataType::Dictionary(..)) => {
            check_type(values)
        }
        other => {
            // Nested types contain field names, which are the caller's own.
            let other = if other.is_nested() { "a nested type".to_owned() } else { other.to_string() };
            let detail = format!(
                "texts must be Utf8, LargeUtf8, Utf8View, a Dictionary of these or Null, not {other}"
            );
            Err(Error::text_type("not_text", detail))
        }
    }
}

impl Column {
    fn new(arrays: &[ArrayRef]) -> Result<Self> {
        arrays.iter().try_for_each(|array| check_type(array.data_type()))?;
        if arrays.iter().any(|array| matches!(array.data_type(), DataType::Dictionary(..))) {
            return Self::of_dictionaries(arrays);
        }
        let chunks: Vec<Chunk> = arrays.iter().map(Chunk::new).collect();
        let mut starts = vec![0];
        starts.extend(chunks.iter().scan(0, |end, chunk| {
            *end += chunk.len();
            Some(*end)
        }));
        Ok(Column { chunks, rows: Rows::Plain(starts) })
    }

    fn of_dictionaries(arrays: &[ArrayRef]) -> Result<Self> {
        let mut dictionary = Dictionary::default();
        let mut chunks = Vec::new();
        // Chunks of a column often share one dictionary.
        let mut last: Option<(ArrayRef, Vec<u32>)> = None;
        for array in arrays {
            let Some(any) = array.as_any_dictionary_opt() else {
                return Err(Error::text_type("bad_arrow", "the chunks of a stream are not of one type"));
            };
            let values = any.values();
            let mut known = match last.take() {
                Some((shared, known)) if shared.to_data().ptr_eq(&values.to_data()) => known,
                _ => {
                    chunks.push(Chunk::new(values));
                    vec![0; values.len()]
                }
            };
            let chunk = u32::try_from(chunks.len() - 1).map_err(|_| too_many_values())?;
            dictionary.add(chunk, array, &mut known)?;
            last = Some((values.clone(), known));
        }
        Ok(Column { chunks, rows: Rows::Dictionary(dictionary) })
    }

    /// Bytes of all texts to count.
    pub(super) fn total_bytes(&self) -> usize {
        match &self.rows {
            Rows::Plain(_) => self.chunks.iter().map(Chunk::total_bytes).fold(0, usize::saturating_add),
            Rows::Dictionary(_) => (0..self.len()).map(|i| self.size_bytes(i)).fold(0, usize::saturating_add),
        }
    }

    /// Number of rows.
    pub(super) fn rows(&self) -> usize {
        match &self.rows {
            Rows::Plain(starts) => starts.last().copied().unwrap_or(0),
            Rows::Dictionary(dictionary) => dictionary.rows.len(),
        }
    }

    /// The text of a row, as an index; `None` for a null.
    pub(super) fn value(&self, row: usize) -> Option<usize> {
        match &self.rows {
            Rows::Plain(_) => Some(row),
            Rows::Dictionary(dictionary) => dictionary.rows[row].map(|value| value as usize),
        }
    }

    /// Calls `count` for the texts of the column, and spreads its counts over the rows.
    pub(super) fn spread(&self, count: impl FnOnce() -> Result<Vec<u32>>) -> Result<Vec<u32>> {
        let Rows::Dictionary(dictionary) = &self.rows else { return count() };
        let counts = count().map_err(|mut error| {
            // Report the first row with the text.
            error.index = error.index.and_then(|value| dictionary.first_rows.get(value).copied());
            error
        })?;
        Ok(dictionary.rows.iter().map(|value| value.map_or(0, |value| counts[value as usize])).collect())
    }

    /// Chunk and index of a text.
    fn place(&self, index: usize) -> (usize, usize) {
        match &self.rows {
            Rows::Plain(starts) => {
                let chunk = starts.partition_point(|&start| start <= index) - 1;
                (chunk, index - starts[chunk])
            }
            Rows::Dictionary(dictionary) => {
                let (chunk, index) = dictionary.values[index];
                (chunk as usize, index)
            }
        }
    }
}

impl Texts for Column {
    fn len(&self) -> usize {
        match &self.rows {
            Rows::Plain(starts) => starts.last().copied().unwrap_or(0),
            Rows::Dictionary(dictionary) => dictionary.values.len(),
        }
    }

    fn size_bytes(&self, index: usize) -> usize {
        let (chunk, index) = self.place(index);
        self.chunks[chunk].size_bytes(index)
    }

    fn text(&self, index: usize) -> Result<Option<Cow<'_, str>>> {
        let (chunk, index) = self.place(index);
        let Some(bytes) = self.chunks[chunk].bytes(index)? else { return Ok(None) };
        let bad = |_| Error::message("bad_utf8", "", "the bytes of a text are not UTF-8");
        std::str::from_utf8(bytes).map(|text| Some(Cow::Borrowed(text))).map_err(bad)
    }
}

impl Chunk {
    /// An array of a type accepted by [`check_type`].
    fn new(array: &ArrayRef) -> Self {
        match array.data_type() {
            DataType::Utf8 => Chunk::Utf8(array.as_string().clone()),
            DataType::LargeUtf8 => Chunk::LargeUtf8(array.as_string().clone()),
            DataType::Utf8View => Chunk::Utf8View(array.as_string_view().clone()),
            _ => Chunk::Null(array.len()),
        }
    }

    fn len(&self) -> usize {
        match self {
            Chunk::Utf8(array) => array.len(),
            Chunk::LargeUtf8(array) => array.len(),
            Chunk::Utf8View(array) => array.len(),
            Chunk::Null(len) => *len,
        }
    }

    fn is_null(&self, index: usize) -> bool {
        match self {
            Chunk::Utf8(array) => array.is_null(index),
            Chunk::LargeUtf8(array) => array.is_null(index),
            Chunk::Utf8View(array) => array.is_null(index),
            Chunk::Null(_) => true,
        }
    }

    /// The bytes of a text; `None` for a null.
    fn bytes(&self, index: usize) -> Result<Option<&[u8]>> {
        if self.is_null(index) {
            return Ok(None);
        }
        let bytes = match self {
            Chunk::Utf8(array) => slice(array.value_data(), span(array.value_offsets(), index)),
            Chunk::LargeUtf8(array) => slice(array.value_data(), span(array.value_offsets(), index)),
            Chunk::Utf8View(array) => View::of(array, index).bytes(array),
            Chunk::Null(_) => None,
        };
        bytes.map(Some).ok_or_else(|| Error::message("bad_offsets", "", "a text lies outside its buffer"))
    }

    /// The length of a text as stated by its producer.
    fn size_bytes(&self, index: usize) -> usize {
        match self {
            Chunk::Utf8(array) => span(array.value_offsets(), index).map_or(0, |span| span.len()),
            Chunk::LargeUtf8(array) => span(array.value_offsets(), index).map_or(0, |span| span.len()),
            Chunk::Utf8View(array) => View::of(array, index).len(),
            Chunk::Null(_) => 0,
        }
    }

    fn total_bytes(&self) -> usize {
        match self {
            Chunk::Utf8(array) => extent(array.value_offsets()),
            Chunk::LargeUtf8(array) => extent(array.value_offsets()),
            Chunk::Utf8View(array) => (0..array.len()).map(|i| View::of(array, i).len()).sum(),
            Chunk::Null(_) => 0,
        }
    }
}

/// The range of a text between offsets; `None` if they are not valid indices. The range may still end before it begins.
fn span<O: ArrowNativeType>(offsets: &[O], index: usize) -> Option<Range<usize>> {
    Some(offsets.get(index)?.to_usize()?..offsets.get(index + 1)?.to_usize()?)
}

/// Bytes between the first and the last offset.
fn extent<O: ArrowNativeType>(offsets: &[O]) -> usize {
    let ends = offsets.first().zip(offsets.last());
    let ends = ends.and_then(|(first, last)| first.to_usize().zip(last.to_usize()));
    ends.map_or(0, |(first, last)| last.saturating_sub(first))
}

fn slice(bytes: &[u8], span: Option<Range<usize>>) -> Option<&[u8]> {
    bytes.get(span?)
}

/// A view of a text.
struct View<'a>(&'a [u8]);

impl<'a> View<'a> {
    fn of(array: &'a StringViewArray, index: usize) -> Self {
        let views = array.views().inner().as_slice();
        View(views.get(index * VIEW_BYTES..(index + 1) * VIEW_BYTES).unwrap_or_default())
    }

    fn number(&self, at: usize) -> usize {
        let bytes = self.0.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, |bytes| u32::from_ne_bytes(bytes) as usize)
    }

    fn len(&self) -> usize {
        self.number(0)
    }

    fn bytes(&self, array: &'a StringViewArray) -> Option<&'a [u8]> {
        let len = self.len();
        if len <= INLINE_BYTES {
            return self.0.get(4..4 + len);
        }
        let (buffer, offset) = (self.number(8), self.number(12));
        array.data_buffers().get(buffer)?.as_slice().get(offset..offset.checked_add(len)?)
    }
}

impl Dictionary {
    /// Adds the rows of an array whose values are in `chunk`. `known` is, for each value, its position in `values` plus
    /// 1, or 0 if not added yet.
    fn add(&mut self, chunk: u32, array: &ArrayRef, known: &mut [u32]) -> Result<()> {
        let DataType::Dictionary(keys, _) = array.data_type() else { return Ok(()) };
        match **keys {
            DataType::Int8 => self.add_rows::<Int8Type>(chunk, array, known),
            DataType::Int16 => self.add_rows::<Int16Type>(chunk, array, known),
            DataType::Int32 => self.add_rows::<Int32Type>(chunk, array, known),
            DataType::Int64 => self.add_rows::<Int64Type>(chunk, array, known),
            DataType::UInt8 => self.add_rows::<UInt8Type>(chunk, array, known),
            DataType::UInt16 => self.add_rows::<UInt16Type>(chunk, array, known),
            DataType::UInt32 => self.add_rows::<UInt32Type>(chunk, array, known),
            DataType::UInt64 => self.add_rows::<UInt64Type>(chunk, array, known),
            _ => Err(Error::text_type("bad_arrow", "the keys of a dictionary must be integers")),
        }
    }

    fn add_rows<K: ArrowDictionaryKeyType>(
        &mut self,
        chunk: u32,
        array: &ArrayRef,
        known: &mut [u32],
    ) -> Result<()> {
        let keys = array.as_dictionary::<K>().keys();
        self.rows.reserve(keys.len());
        for (i, key) in keys.values().iter().enumerate() {
            if keys.is_null(i) {
                self.rows.push(None);
                continue;
            }
            let key = key.to_usize().filter(|&key| key < known.len()).ok_or_else(|| {
                Error::message("bad_offsets", "", "a key lies outside its dictionary").at(self.rows.len())
            })?;
            if known[key] == 0 {
                self.values.push((chunk, key));
                self.first_rows.push(self.rows.len());
                known[key] = u32::try_from(self.values.len()).map_err(|_| too_many_values())?;
            }
            self.rows.push(Some(known[key] - 1));
        }
        Ok(())
    }
}

fn too_many_values() -> Error {
    Error::limit("too_many_values", "", "more than 2^32 values in the dictionaries of one column")
}
