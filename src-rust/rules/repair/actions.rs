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
    CACHE_MARKS_REMOVED = "cache_marks_removed", "marks for the prompt cache were removed, of which there were too many";
    CALL_ANSWERED = "call_answered", "a result was added, which says that the call was interrupted";
    CALL_AS_TEXT = "call_as_text", "a call that is not the model's became text";
    CALL_REMOVED = "call_removed", "a call without a result was removed";
    CONTENT_ADDED = "content_added", "an empty text was put in place of absent content";
    CONTENT_AS_LIST = "content_as_list", "content of another shape became a list of blocks";
    CONTENT_AS_PLAN = "content_as_plan", "a text beside calls became their plan";
    DUPLICATE_REMOVED = "duplicate_removed", "an item, or a result, that is in the list already was removed";
    EMPTY_REMOVED = "empty_removed", "an empty message, part, list or name was removed";
    ERROR_TEXT_ADDED = "error_text_added", "the result of a failed call got a text that says so";
    FIRST_USER_ADDED = "first_user_added", "a message of the user was added in front";
    ID_ADDED = "id_added", "a result without an id got the id of the call before it";
    ID_REMOVED = "id_removed", "an id without a call was removed from a result of several calls";
    ID_REWRITTEN = "id_rewritten", "an item, or a call and its result, got another id";
    ITEM_ID_REMOVED = "item_id_removed", "an item lost its id, which another item has";
    LAST_USER_ADDED = "last_user_added", "a message of the user was added at the end";
    MERGED = "merged", "the message was joined with its neighbour of the same side";
    NAME_ADDED = "name_added", "a call, or a response, without a name got one";
    NAME_REWRITTEN = "name_rewritten", "a call got a name with only the characters that the API accepts";
    ORPHAN_AS_TEXT = "orphan_as_text", "a result without a call became text of the user";
    ORPHAN_REMOVED = "orphan_removed", "a result without a call was removed";
    REASONING_REMOVED = "reasoning_removed", "reasoning without a following item, or alone in its message, was removed";
    RESULT_MOVED = "result_moved", "a result was moved to its call";
    RESULTS_FIRST = "results_first", "results were put before the other parts of their message";
    ROLE_CHANGED = "role_changed", "a role that the API does not know was replaced";
    SERVED_CALL_AS_TEXT = "served_call_as_text", "the call of a server tool without a result became text";
    SERVED_RESULT_AS_TEXT = "served_result_as_text", "the result of a server tool without its call became text";
    SYSTEM_MERGED = "system_merged", "the system message was joined with the first, in front of the list";
    TURN_ADDED = "turn_added", "a message of the other side was added before this one";
}
