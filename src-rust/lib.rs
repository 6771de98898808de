//! foldline: counts tokens over message arrays and plans where a conversation may be folded.
//!
//! Data flows one way: `formats` read messages into a [`transcript::Transcript`], `count` prices it,
//! `rules` find groups and legal cuts, [`prepared::Prepared`] holds all of that for a list, `plan` decides, and
//! `fold` turns a plan and a summary into the new list. Every stage turns one immutable value into the next;
//! nothing below `python` knows about Python.

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
