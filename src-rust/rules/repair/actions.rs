//! What repair does, each with a stable code and a sentence. `docs/validation.md` explains them, and a test holds the
//! two together.

/// One thing that was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action {
    /// The message that it was done to, or for.
    pub index: usize,
    /// A stable code.
    pub code: &'static str,
    /// What was done, without content.
    pub detail: &'static str,
}

/// A kind of action; only the constants here can be one.
#[derive(Clone, Copy)]
pub(super) struct Kind {
    code: &'static str,
    detail: &'static str,
}

impl Kind {
    pub fn at(self, index: usize) -> Action {
        Action { index, code: self.code, detail: self.detail }
    }
}

macro_rules! actions {
    ($($name:ident = $code:literal, $detail:literal;)*) => {
        $(pub(super) const $name: Kind = Kind { code: $code, detail: $detail };)*

        /// Every code that an action can have.
        pub const ACTIONS: &[&str] = &[$($code),*];
    };
}

actions! {
    CALL_ANSWERED = "call_answered", "a result was added that says that the call was interrupted";
    CALL_AS_TEXT = "call_as_text", "a call that is not the model's became text";
    CALL_REMOVED = "call_removed", "a call without a result was removed";
    DUPLICATE_REMOVED = "duplicate_removed", "a result that says again what the call's result says was removed";
    EMPTY_REMOVED = "empty_removed", "an empty message or an empty part was removed";
    FIRST_USER_ADDED = "first_user_added", "a message of the user was added in front";
    ID_ADDED = "id_added", "a result without an id got the id of the call that it stands behind";
    ID_REWRITTEN = "id_rewritten", "a call and its result got another id";
    MERGED = "merged", "the message was joined with its neighbour of the same side";
    ORPHAN_AS_TEXT = "orphan_as_text", "a result without a call became text of the user";
    ORPHAN_REMOVED = "orphan_removed", "a result without a call was removed";
    REASONING_REMOVED = "reasoning_removed", "reasoning without what it led to was removed";
    RESULTS_FIRST = "results_first", "results were put before the other parts of their message";
    RESULT_MOVED = "result_moved", "a result was moved to its call";
    ROLE_CHANGED = "role_changed", "a role that the API does not know became one that it knows";
    SERVED_RESULT_AS_TEXT = "served_result_as_text", "the result of a server tool outside the assistant's message became text";
    SYSTEM_MERGED = "system_merged", "the system message was joined with the first, in front of the list";
    TURN_ADDED = "turn_added", "a message of the other side was added before this one";
}
