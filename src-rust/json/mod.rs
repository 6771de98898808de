//! JSON bytes as [`Node`](crate::node::Node)s: documents, tapes for counting, and overlays.

mod document;
mod entry;
mod escapes;
mod overlay;
mod rewrite;
mod scan;
mod simd;
mod strings;
mod tape;
mod tape_list;
mod tape_node;

pub use document::{JsonDoc, JsonNode, replace_lone_surrogates, with_document};
pub use overlay::{Overlay, OverlayNode, push_overlay};
pub use rewrite::{Rewrite, push_string};
pub use tape::{Tape, TapeNode};
pub use tape_list::TapeList;
