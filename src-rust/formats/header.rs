//! What stands at the top of a message: who speaks, and under which names there is something.

use super::Format;
use super::parts::text_part;
use crate::error::{Error, Result};
use crate::node::{Found, Key, Kind, Node, Wanted};
use crate::transcript::{Build, Role};

/// A role by its name, as far as any dialect knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RoleName {
    System,
    Developer,
    User,
    Assistant,
    /// Gemini's word for assistant.
    Model,
    Tool,
    /// OpenAI's older word for tool, and one of Gemini's for the user who answers calls.
    Function,
    /// A tool's message of pi.
    ToolResult,
    /// A command that the user ran, of pi.
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

    /// The same of a text as a node has it.
    #[inline(always)]
    fn read(text: &str, _: bool) -> Self {
        Self::of(text)
    }

    /// The roles that most dialects share; anything else is an ordinary message.
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

/// A role and a text that are all there is of a message of OpenAI chat which is no result: what most messages are. It
/// takes half as long to read as an [`Envelope`] does.
pub(super) struct Plain<N> {
    pub role: RoleName,
    text: N,
}

impl<N: Node> Plain<N> {
    /// `None` of any other message, and in another dialect.
    #[inline(always)]
    pub fn of(message: &N, format: Format) -> Option<Self> {
        if format != Format::OpenAiChat {
            return None;
        }
        let [role, text] = message.pair([Key::ROLE, Key::CONTENT])?;
        let role = role.with_text(RoleName::read)?;
        let is_plain = text.kind() == Kind::String && role.common() != Role::Tool;
        is_plain.then_some(Plain { role, text })
    }

    /// Reads it.
    ///
    /// # Errors
    /// Those of the builder.
    #[inline(always)]
    pub fn read(&self, builder: &mut impl Build<N>) -> Result<()> {
        builder.begin_message(self.role.common())?;
        text_part(&self.text, builder)?;
        builder.end_message()
    }
}

/// What stands at the top of a message: the judge of dialects and the readers both need it. It is filled where it lies,
/// since what was just written part by part is slow to copy.
pub(super) struct Envelope<N> {
    /// `None` without a role, `Some(None)` where it is no text.
    pub role: Option<Option<RoleName>>,
    heads: Found<N, 11>,
}

/// The names; from the seventh on those that tell dialects apart.
static HEADS: Wanted<11> = Wanted::new([
    Key::ROLE,
    Key::NAME,
    Key::TOOL_CALL_ID,
    Key::REASONING_CONTENT,
    Key::REFUSAL,
    Key::CONTENT,
    Key::TOOL_CALLS,
    Key::TOOL_CALLS_CAMEL,
    Key::FUNCTION_CALL,
    Key::TYPE,
    Key::PARTS,
]);

/// The place of the first behind content that tells dialects apart.
const TELLING: usize = 6;

impl<N: Node> Envelope<N> {
    /// Nothing was looked up.
    #[inline(always)]
    pub fn sealed() -> Self {
        Envelope { role: None, heads: Found::nothing() }
    }

    /// Looks everything up.
    #[inline(always)]
    pub fn open(&mut self, message: &N) {
        message.find(&HEADS, &mut self.heads);
        self.role = None;
        if let Some(role) = self.heads.under(&HEADS, Key::ROLE) {
            self.role = Some(role.with_text(RoleName::read));
        }
    }

    /// What stands under one of [`HEADS`].
    #[inline(always)]
    pub fn get(&self, key: Key) -> Option<&N> {
        self.heads.under(&HEADS, key)
    }

    /// Whether nothing but the role tells dialects apart.
    #[inline(always)]
    pub fn is_quiet(&self) -> bool {
        self.heads.is_empty_from(TELLING) && self.has_role_and_no_list()
    }

    /// The same but for what stands under one of [`HEADS`].
    #[inline(always)]
    pub fn is_quiet_but_for(&self, key: Key) -> bool {
        self.heads.is_empty_from_but_for(TELLING, &HEADS, key) && self.has_role_and_no_list()
    }

    #[inline(always)]
    fn has_role_and_no_list(&self) -> bool {
        let is_list = || self.get(Key::CONTENT).is_some_and(|content| content.kind() == Kind::Array);
        self.role.is_some() && !is_list()
    }

    /// Who speaks.
    #[inline(always)]
    pub fn role(&self) -> Result<RoleName> {
        match self.role {
            None => Err(Error::message("missing_role", "role", "the message has no role")),
            Some(None) => Err(Error::message("bad_role", "role", "the role is not a string")),
            Some(Some(role)) => Ok(role),
        }
    }
}
