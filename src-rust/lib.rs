//! foldline: counts tokens over message arrays and plans where a conversation may be folded.
//!
//! Data flows one way: `formats` read messages into a [`transcript::Transcript`], `count` prices it, `rules` find
//! groups and legal cuts, [`prepared::Prepared`] combines these for a list, `plan` decides, and `fold` turns a plan and
//! a summary into the new list. Every stage maps immutable values to new ones. Only `python` depends on Python.

pub mod batch;
pub mod count;
pub mod error;
pub mod evidence;
pub mod fold;
pub mod formats;
pub mod json;
pub mod media;
pub mod meter;
pub mod node;
pub mod plan;
pub mod prepared;
#[cfg(feature = "python")]
mod python;
pub mod rules;
pub mod sanitize;
pub mod transcript;
