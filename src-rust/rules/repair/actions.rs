//! Repair actions, each with a stable code and a sentence. `docs/validation.md` explains them; a test keeps both in
//! step.

/// One repair that was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepairAction {
    /// The message that was repaired.
    pub index: usize,
    /// A stable code.
    pub code: &'static str,
    /// The repair in words, without content.
    pub detail: &'static str,
}

/// A kind of action. Only the constants of this module create one.
#[derive(Clone, Copy)]
pub(super) struct Kind {
    code: &'static str,
    detail: &'static str,
}

impl Kind {
    pub fn at(self, index: usize) -> RepairAction {
        RepairAction { index, code: self.code, detail: self.detail }
    }
}

macro_rules! actions {
    ($($name:ident = $code:literal, $detail:literal;)*) => {
        $(pub(super) const $name: Kind = Kind { code: $code, detail: $detail };)*

        /// Every code of an action.
        pub const ACTIONS: &[&str] = &[$($code),*];
    };
}

actions! {
    CALL_ANSWERED = "call_answered", "a result was added, which says that the call was interrupted";
    CALL_AS_TEXT = "call_as_text", "a call that is not the model's became text";
    CALL_REMOVED = "call_removed", "a call without a result was removed";
    DUPLICATE_REMOVED = "duplicate_removed", "a result that repeats the call's result was removed";
    EMPTY_REMOVED = "empty_removed", "an empty message or an empty part was removed";
    FIRST_USER_ADDED = "first_user_added", "a message of the user was added in front";
    ID_ADDED = "id_added", "a result without an id got the id of the call before it";
    ID_REMOVED = "id_removed", "an id without a call was removed from a result of several calls";
    ID_REWRITTEN = "id_rewritten", "a call and its result got another id";
    MERGED = "merged", "the message was joined with its neighbour of the same side";
    NAME_ADDED = "name_added", "a response without a name got the name of the call that it answers";
    ORPHAN_AS_TEXT = "orphan_as_text", "a result without a call became text of the user";
    ORPHAN_REMOVED = "orphan_removed", "a result without a call was removed";
    REASONING_REMOVED = "reasoning_removed", "reasoning without a following item was removed";
    RESULTS_FIRST = "results_first", "results were put before the other parts of their message";
    RESULT_MOVED = "result_moved", "a result was moved to its call";
    ROLE_CHANGED = "role_changed", "a role that the API does not know was replaced";
    SERVED_RESULT_AS_TEXT = "served_result_as_text", "the result of a server tool outside the assistant's message became text";
    SYSTEM_MERGED = "system_merged", "the system message was joined with the first, in front of the list";
    TURN_ADDED = "turn_added", "a message of the other side was added before this one";
}
