//! Writes the evidence as a page within a budget, and reads a page back.

mod checks;
mod constraints;
pub(super) mod document;
pub(super) mod form;
mod item;
mod labels;
mod page;
pub(super) mod parse;
pub(super) mod ranking;
pub(super) mod render;
mod shares;
mod shelf;
mod state;
