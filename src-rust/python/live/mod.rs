//! `Transcript` and its snapshots: a growing list, prepared for planning.

mod changes;
mod snapshot;
mod transcript;

pub(super) use self::snapshot::LiveSnapshot;
pub(super) use self::transcript::LiveTranscript;
