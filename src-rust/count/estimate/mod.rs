//! Estimates: formulas over lengths, and weights of character classes.

pub mod auto;
pub mod formula;
pub mod lengths;
