//! foldline: counts tokens over message arrays and plans where a conversation may be folded.
//!
//! Data flows one way: `formats` read messages into a [`transcript::Transcript`], `count` prices it,
//! `rules` find groups and legal cuts, `plan` decides, `apply` turns a plan into edits; `live` keeps all
//! of that for a list that grows. Every stage turns one immutable value into the next; nothing below
//! `python` knows about Python.

pub mod apply;
pub mod batch;
pub mod count;
pub mod error;
pub mod evidence;
pub mod formats;
pub mod json;
pub mod live;
pub mod neutral;
pub mod node;
pub mod picture;
pub mod plan;
#[cfg(feature = "python")]
mod python;
pub mod rules;
pub mod tally;
pub mod transcript;
