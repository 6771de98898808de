//! Contents in the shape that an API accepts: a list of blocks.

use pyo3::prelude::*;
use pyo3::types::PyList;

use super::pieces::{MessageBuilder, content_field, copied};
use crate::node::{Key, Node};
use crate::python::node::PyNode;
use crate::python::node::dicts::{field, is_dict, is_list, is_text, items};
use crate::rules::content_of_result;
use crate::rules::validate::Provider;

impl<'py> MessageBuilder<'_, 'py> {
    /// A message whose content is a list of blocks. What is neither a block nor a text becomes its JSON text.
    pub(super) fn listed(&self, i: usize) -> PyResult<Bound<'py, PyAny>> {
        let message = self.message(i)?;
        let copy = copied(&message)?;
        let is_model = PyNode::of(message.clone()).text_is(Key::ROLE, "assistant");
        let name = content_field(&message, self.provider);
        // Gemini's `parts` may be there and null.
        let content = match field(&message, name)?.filter(|content| !content.is_none()) {
            Some(content) => Some(content),
            None => field(&message, "content")?,
        };
        if let Some(content) = content {
            let blocks = self.blocks_of(&content, is_model)?;
            match self.provider {
                Provider::Gemini => {
                    copy.set_item("parts", blocks)?;
                    if name == "content" {
                        copy.del_item("content")?;
                    }
                }
                _ => copy.set_item("content", blocks)?,
            }
        }
        Ok(copy.into_any())
    }

    /// A content as a list of blocks.
    fn blocks_of(&self, content: &Bound<'py, PyAny>, is_model: bool) -> PyResult<Bound<'py, PyList>> {
        let given = if is_list(content) { items(content)? } else { vec![content.clone()] };
        let blocks = PyList::empty(self.py());
        for block in given.into_iter().filter(|block| !block.is_none()) {
            if is_dict(&block) {
                blocks.append(self.with_listed_result(block)?)?;
            } else {
                let text = if is_text(&block) { block } else { self.json(&block)? };
                blocks.append(self.text_block(text, is_model)?)?;
            }
        }
        Ok(blocks)
    }

    /// A block; a copy if it is a result whose content is of another shape.
    fn with_listed_result(&self, block: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if content_of_result(&PyNode::of(block.clone()), self.provider).is_none() {
            return Ok(block);
        }
        let copy = copied(&block)?;
        let inner = match field(&block, "toolResult")?.filter(|_| self.provider == Provider::Bedrock) {
            Some(result) => {
                let inner = copied(&result)?;
                copy.set_item("toolResult", &inner)?;
                inner
            }
            None => copy.clone(),
        };
        if let Some(content) = field(inner.as_any(), "content")?.filter(|content| !content.is_none())
            && (self.provider == Provider::Bedrock || !is_text(&content))
        {
            inner.set_item("content", self.blocks_of(&content, false)?)?;
        }
        Ok(copy.into_any())
    }
}
