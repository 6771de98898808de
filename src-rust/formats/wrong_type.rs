//! Errors for values in the place of a list or a message. Where the mistake is a common one, the detail names the
//! right form.

use crate::error::Error;
use crate::node::{Kind, Node};

/// The error for a value in the place of a list of messages.
pub fn not_a_list<N: Node>(messages: &N) -> Error {
    let detail = match messages.kind() {
        Kind::String => {
            "messages must be a list of objects; a text is one message: [{\"role\": \"user\", \"content\": text}]"
        }
        Kind::Object => {
            "messages must be a list of objects; give a single message in a list, and of a request its messages"
        }
        _ => "messages must be a list or tuple of objects",
    };
    Error::message("not_a_list", "", detail)
}

/// The error for a value in the place of a message.
pub(super) fn not_an_object<N: Node>(message: &N) -> Error {
    let detail = match message.kind() {
        Kind::String => "a message must be an object, such as {\"role\": \"user\", \"content\": text}",
        Kind::Array => {
            "a message must be an object; this list contains a list, as a batch of transcripts does"
        }
        Kind::Other => "a message must be an object; the message of an SDK becomes one by its model_dump()",
        _ => "a message must be an object",
    };
    Error::message("not_an_object", "", detail)
}
