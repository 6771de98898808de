//! Estimates: formulas over lengths, and weights per class of characters.

pub mod auto;
pub mod formula;
pub mod lengths;
