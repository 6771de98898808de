//! The top-level members of a message, looked up once for detection and reading.

use crate::error::{Error, Result};
use crate::node::{Fields, Key, KeySet, Kind, Node};
use crate::transcript::Role;

/// A role by its name, as known to any dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RoleName {
    System,
    Developer,
    User,
    Assistant,
    /// Gemini's word for assistant.
    Model,
    Tool,
    /// OpenAI's older word for tool, and one of Gemini's for a user who answers calls.
    Function,
    /// pi's role of a tool result.
    ToolResult,
    /// pi's role of a command that the user ran.
    BashExecution,
    Other,
}

impl RoleName {
    #[inline(always)]
    pub fn of(text: &str) -> Self {
        match text {
            "system" => RoleName::System,
            "developer" => RoleName::Developer,
            "user" => RoleName::User,
            "assistant" => RoleName::Assistant,
            "model" => RoleName::Model,
            "tool" => RoleName::Tool,
            "function" => RoleName::Function,
            "toolResult" => RoleName::ToolResult,
            "bashExecution" => RoleName::BashExecution,
            _ => RoleName::Other,
        }
    }

    /// [`RoleName::of`] in the form that `Node::with_text` calls.
    #[inline(always)]
    pub fn read(text: &str, _: bool) -> Self {
        Self::of(text)
    }

    /// The role shared by most dialects; a role without one is an ordinary message.
    pub fn common(self) -> Role {
        match self {
            RoleName::System => Role::System,
            RoleName::Developer => Role::Developer,
            RoleName::User => Role::User,
            RoleName::Assistant => Role::Assistant,
            RoleName::Tool | RoleName::Function => Role::Tool,
            RoleName::Model | RoleName::ToolResult | RoleName::BashExecution | RoleName::Other => Role::Other,
        }
    }
}

/// The top-level members of a message that detection and readers need. Filled in place, because copying a value just
/// written member by member is slow.
pub(super) struct Envelope<N> {
    /// `None` without a role, `Some(None)` if it is not text.
    pub role: Option<Option<RoleName>>,
    heads: Fields<N, 15>,
}

/// The keys looked up; those from index [`TELLING`] on distinguish dialects.
static HEADS: KeySet<15> = KeySet::new([
    Key::ROLE,
    Key::NAME,
    Key::TOOL_CALL_ID,
    Key::REASONING_CONTENT,
    Key::REFUSAL,
    Key::IMAGES,
    Key::AUDIO,
    Key::KIND,
    Key::CONTENT,
    Key::TOOL_CALLS,
    Key::TOOL_CALLS_CAMEL,
    Key::FUNCTION_CALL,
    Key::TYPE,
    Key::PARTS,
    Key::TOOL_PLAN,
]);

/// Index of the first key after content that distinguishes dialects.
const TELLING: usize = 9;

impl<N: Node> Envelope<N> {
    /// An envelope before any lookup.
    #[inline(always)]
    pub fn sealed() -> Self {
        Envelope { role: None, heads: Fields::nothing() }
    }

    /// Looks up all keys.
    #[inline(always)]
    pub fn open(&mut self, message: &N) {
        message.find(&HEADS, &mut self.heads);
        self.role = None;
        if let Some(role) = self.heads.under(&HEADS, Key::ROLE) {
            self.role = Some(role.with_text(RoleName::read));
        }
    }

    /// The value under one of [`HEADS`].
    #[inline(always)]
    pub fn get(&self, key: Key) -> Option<&N> {
        self.heads.under(&HEADS, key)
    }

    /// Whether only the role distinguishes dialects.
    #[inline(always)]
    pub fn is_quiet(&self) -> bool {
        self.heads.is_empty_from(TELLING) && self.has_role_and_no_list()
    }

    /// [`Self::is_quiet`], except for the value under one of [`HEADS`].
    #[inline(always)]
    pub fn is_quiet_but_for(&self, key: Key) -> bool {
        self.heads.is_empty_from_but_for(TELLING, &HEADS, key) && self.has_role_and_no_list()
    }

    #[inline(always)]
    fn has_role_and_no_list(&self) -> bool {
        let is_list = || self.get(Key::CONTENT).is_some_and(|content| content.kind() == Kind::Array);
        self.role.is_some() && !is_list()
    }

    /// The role of the message.
    #[inline(always)]
    pub fn role(&self) -> Result<RoleName> {
        match self.role {
            None => Err(Error::message("missing_role", "role", "the message has no role")),
            Some(None) => Err(Error::message("bad_role", "role", "the role is not a string")),
            Some(Some(role)) => Ok(role),
        }
    }
}
