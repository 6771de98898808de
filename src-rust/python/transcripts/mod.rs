//! Many transcripts: their counts, and the reading and threading that all batches share.

mod counts;
mod objects;
mod sink;
mod work;

pub(super) use self::counts::{TranscriptCounts, count_transcripts};
pub(super) use self::sink::{Sink, exceptions, is_strict};
pub(super) use self::work::work_on;
