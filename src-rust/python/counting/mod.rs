//! Token counters and counts, and the arguments that they share with planning.

mod arguments;
mod counts;
mod spec;
mod token_counter;

pub(super) use self::arguments::{Read, format_of, limit_of, read, read_all_tools};
pub(super) use self::counts::Counts;
pub(super) use self::token_counter::TokenCounter;
