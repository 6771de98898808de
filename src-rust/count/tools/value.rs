//! An owned JSON value with ordered members, since the order of a schema is part of its text.

use crate::error::{Error, Result};
use crate::node::{Kind, MAX_DEPTH, Node, write_json_string};

/// A JSON value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `null`.
    Null,
    /// A boolean.
    Bool(bool),
    /// A number, in its JSON text.
    Number(String),
    /// A text.
    String(String),
    /// A list.
    Array(Vec<Value>),
    /// An object.
    Object(Vec<(String, Value)>),
}

impl Value {
    /// Reads a node. O(bytes).
    ///
    /// # Errors
    /// `LimitExceeded` beyond [`MAX_DEPTH`], `MessageError` for values that JSON cannot represent.
    pub fn read<N: Node>(node: &N) -> Result<Value> {
        Self::read_at(node, 0)
    }

    fn read_at<N: Node>(node: &N, depth: usize) -> Result<Value> {
        if depth > MAX_DEPTH {
            let detail = format!("nested beyond {MAX_DEPTH} levels");
            return Err(Error::limit("nesting_too_deep", "", detail));
        }
        Ok(match node.kind() {
            Kind::Null => Value::Null,
            Kind::Bool => Value::Bool(node.as_bool().unwrap_or(false)),
            Kind::Number => {
                let mut digits = String::new();
                node.write_scalar(&mut digits);
                Value::Number(digits)
            }
            Kind::String => Value::String(node.with_text(|text, _| text.to_owned()).unwrap_or_default()),
            Kind::Array => {
                let mut items = Vec::new();
                node.each_item(|_, item| Self::read_at(item, depth + 1).map(|item| items.push(item)))?;
                Value::Array(items)
            }
            Kind::Object => {
                let member = |(key, value): (String, N)| Ok((key, Self::read_at(&value, depth + 1)?));
                Value::Object(node.members()?.into_iter().map(member).collect::<Result<_>>()?)
            }
            Kind::Other => {
                return Err(Error::message("unsupported_value", "", "not representable as JSON"));
            }
        })
    }

    /// The member with this name; the last if repeated.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.members().iter().rev().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// The members of an object; empty for other values.
    #[must_use]
    pub fn members(&self) -> &[(String, Value)] {
        match self {
            Value::Object(members) => members,
            _ => &[],
        }
    }

    /// The items of a list; empty for other values.
    #[must_use]
    pub fn items(&self) -> &[Value] {
        match self {
            Value::Array(items) => items,
            _ => &[],
        }
    }

    /// The text of a string.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// Calls `visit` on every string except keys.
    pub fn each_string<'a>(&'a self, visit: &mut impl FnMut(&'a str)) {
        match self {
            Value::String(text) => visit(text),
            Value::Array(items) => items.iter().for_each(|item| item.each_string(visit)),
            Value::Object(members) => members.iter().for_each(|(_, value)| value.each_string(visit)),
            _ => {}
        }
    }

    /// Calls `visit` on every key and every string.
    pub fn each_key_and_string<'a>(&'a self, visit: &mut impl FnMut(&'a str)) {
        match self {
            Value::String(text) => visit(text),
            Value::Array(items) => items.iter().for_each(|item| item.each_key_and_string(visit)),
            Value::Object(members) => members.iter().for_each(|(key, value)| {
                visit(key);
                value.each_key_and_string(visit);
            }),
            _ => {}
        }
    }

    /// Appends the value as compact JSON.
    pub fn write_json(&self, out: &mut String) {
        self.write_with(out, ",", ":");
    }

    /// Appends the value as JSON with a blank after every comma and colon.
    pub fn write_spaced_json(&self, out: &mut String) {
        self.write_with(out, ", ", ": ");
    }

    fn write_with(&self, out: &mut String, comma: &str, colon: &str) {
        match self {
            Value::Null => out.push_str("null"),
            Value::Bool(true) => out.push_str("true"),
            Value::Bool(false) => out.push_str("false"),
            Value::Number(digits) => out.push_str(digits),
            Value::String(text) => write_json_string(text, out),
            Value::Array(items) => {
                out.push('[');
                for (i, item) in items.iter().enumerate() {
                    if i > 0 {
                        out.push_str(comma);
                    }
                    item.write_with(out, comma, colon);
                }
                out.push(']');
            }
            Value::Object(members) => {
                out.push('{');
                for (i, (key, value)) in members.iter().enumerate() {
                    if i > 0 {
                        out.push_str(comma);
                    }
                    write_json_string(key, out);
                    out.push_str(colon);
                    value.write_with(out, comma, colon);
                }
                out.push('}');
            }
        }
    }
}
