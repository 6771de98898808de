//! Problem codes, spelled once. `docs/validation.md` explains them; a test keeps both in step.

/// The code of a problem. Only the constants of this module create one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Code(pub(super) &'static str);

macro_rules! codes {
    ($($name:ident = $text:literal,)*) => {
        $(pub(super) const $name: Code = Code($text);)*

        /// Every code of a problem.
        pub const CODES: &[&str] = &[$($text),*];
    };
}

codes! {
    BAD_CONTENT = "bad_content",
    BAD_ID = "bad_id",
    BAD_NAME = "bad_name",
    CALL_MISPLACED = "call_misplaced",
    CALL_UNANSWERED = "call_unanswered",
    CONTENT_BESIDE_CALLS = "content_beside_calls",
    DUPLICATE_ID = "duplicate_id",
    EMPTY_CALLS = "empty_calls",
    EMPTY_CONTENT = "empty_content",
    EMPTY_NAME = "empty_name",
    ENDS_WITH_ASSISTANT = "ends_with_assistant",
    ERROR_WITHOUT_CONTENT = "error_without_content",
    FIRST_NOT_USER = "first_not_user",
    MODEL_AFTER_MODEL = "model_after_model",
    REASONING_WITHOUT_FOLLOWER = "reasoning_without_follower",
    RESULT_AFTER_TEXT = "result_after_text",
    RESULT_WITHOUT_CALL = "result_without_call",
    ROLE_OUT_OF_ORDER = "role_out_of_order",
    ROLES_NOT_ALTERNATING = "roles_not_alternating",
    SERVED_CALL_UNANSWERED = "served_call_unanswered",
    SERVED_RESULT_MISPLACED = "served_result_misplaced",
    SERVED_RESULT_WITHOUT_CALL = "served_result_without_call",
    SYSTEM_NOT_FIRST = "system_not_first",
    TOO_MANY_CACHE_MARKS = "too_many_cache_marks",
    UNKNOWN_ITEM = "unknown_item",
    UNKNOWN_ROLE = "unknown_role",
}
