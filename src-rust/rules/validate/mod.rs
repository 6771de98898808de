//! Checks a transcript against the structural rules of providers.
//!
//! A validator reports every violation with the index of the message and a stable code, in the order of the messages.
//! An empty report means that the list satisfies the rules.

mod anthropic;
mod as_sent;
mod bedrock;
mod codes;
mod cohere;
mod gemini;
mod mistral;
mod openai_chat;
mod openai_responses;
mod prefill;
mod served;
mod strict;

pub(super) use anthropic::{MAX_CACHE_MARKS, MAX_ID_BYTES, is_blank_text, is_empty_error, is_good_id};
pub use as_sent::as_sent;
pub(super) use bedrock::{
    MAX_NAME_BYTES, is_blank_message, is_good_id as is_good_bedrock_id, is_mark, is_misnamed,
};
pub use codes::CODES;
pub(super) use cohere::{has_text_beside_calls, lacks_id};
pub(super) use gemini::{is_empty as is_empty_gemini_part, matching as gemini_matching};
pub(super) use mistral::{
    ID_BYTES as MISTRAL_ID_BYTES, begins_with_calls, has_bad_id as has_bad_mistral_id,
    has_bad_name as has_bad_mistral_name, may_follow,
};
pub(super) use openai_chat::Waiting;
pub(super) use prefill::ends_with_assistant;

pub use super::provider::{ChatService, Provider};
use super::shape::Shape;
use crate::transcript::{Framing, Part, PartKind, Role, Transcript};

/// A violation of a provider's rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The message.
    pub index: usize,
    /// A stable code.
    pub code: &'static str,
    /// The violation in words, without content.
    pub detail: String,
}

impl Problem {
    fn new(index: usize, code: codes::Code, detail: impl Into<String>) -> Self {
        Problem { index, code: code.0, detail: detail.into() }
    }
}

/// Number of leading instructions, which these APIs take outside the messages.
pub(super) fn head_of(transcript: &Transcript, provider: Provider) -> usize {
    let is_head = |role| match provider {
        Provider::Anthropic | Provider::Bedrock => matches!(role, Role::System | Role::Developer),
        Provider::Gemini => role == Role::System,
        Provider::OpenAiChat | Provider::OpenAiResponses => false,
    };
    transcript.messages.iter().take_while(|message| is_head(message.role)).count()
}

/// Requirements on a list beyond the rules of an API.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Strict {
    /// User and assistant take turns, the user first, as chat templates of open models require.
    pub alternate: bool,
    /// At most one system message, which is the first.
    pub single_system: bool,
    /// Responses: the provider stores the earlier history, so results may answer calls outside the list.
    pub partial: bool,
    /// The last message is not the assistant's: the model does not continue a prefilled answer.
    pub no_prefill: bool,
    /// OpenAI chat: the rules of this service hold too.
    pub service: Option<ChatService>,
}

/// Every violation that `provider` would reject. `shapes` are those of the messages, or empty if the messages are not in
/// the provider's own form. O(parts).
#[must_use]
pub fn validate(
    transcript: &Transcript,
    shapes: &[Shape],
    provider: Provider,
    strict: Strict,
) -> Vec<Problem> {
    let mut problems = match provider {
        Provider::OpenAiChat => openai_chat::problems(transcript, shapes),
        Provider::OpenAiResponses => openai_responses::problems(transcript, shapes),
        Provider::Anthropic => anthropic::problems(transcript, shapes),
        Provider::Gemini => gemini::problems(transcript),
        Provider::Bedrock => bedrock::problems(transcript, shapes),
    };
    if strict.service.is_some() {
        problems.extend(developer_messages(transcript));
    }
    match strict.service {
        Some(ChatService::Mistral) => {
            // A recorded request with an empty list of calls was answered.
            problems.retain(|problem| problem.code != codes::EMPTY_CALLS.0);
            mistral::problems(transcript, &mut problems);
        }
        Some(ChatService::Cohere) => cohere::problems(transcript, &mut problems),
        None => {}
    }
    let head = head_of(transcript, provider);
    if provider != Provider::OpenAiResponses {
        problems.extend(misplaced_calls(transcript, provider, head));
    }
    if !matches!(provider, Provider::OpenAiChat | Provider::OpenAiResponses) {
        served::problems(transcript, provider, head, &mut problems);
    }
    problems.extend(nameless_calls(transcript, provider, head));
    let is_bad = |&i: &usize| shapes[i].has_bad_content;
    let detail = "content is a list of objects, or a text where the API accepts one";
    problems.extend((head..shapes.len()).filter(is_bad).map(|i| Problem::new(i, codes::BAD_CONTENT, detail)));
    if strict.no_prefill && ends_with_assistant(transcript, provider) {
        let detail = "the last message must not be the assistant's";
        problems.push(Problem::new(transcript.len() - 1, codes::ENDS_WITH_ASSISTANT, detail));
    }
    if strict.partial && provider == Provider::OpenAiResponses {
        problems.retain(|problem| problem.code != codes::RESULT_WITHOUT_CALL.0);
    }
    // Bedrock alternates in any case, and says so.
    let strict = Strict { alternate: strict.alternate && provider != Provider::Bedrock, ..strict };
    strict::problems(transcript, strict, &mut problems);
    problems.sort_by_key(|problem| problem.index);
    problems
}

/// Messages of a role that only OpenAI knows.
fn developer_messages(transcript: &Transcript) -> impl Iterator<Item = Problem> + '_ {
    let detail = "roles are system, user, assistant and tool";
    let is_developer = |&i: &usize| transcript.messages[i].role == Role::Developer;
    (0..transcript.len()).filter(is_developer).map(move |i| Problem::new(i, codes::UNKNOWN_ROLE, detail))
}

/// Calls outside the model's messages. In Responses a call is a separate item.
fn misplaced_calls(
    transcript: &Transcript,
    provider: Provider,
    head: usize,
) -> impl Iterator<Item = Problem> + '_ {
    let is_misplaced = move |&i: &usize| {
        let is_call = |part: &Part| is_models_call(provider, part);
        transcript.messages[i].role != Role::Assistant && transcript.parts_of(i).iter().any(is_call)
    };
    let detail = "a call belongs in a message of the model";
    (head..transcript.len()).filter(is_misplaced).map(move |i| Problem::new(i, codes::CALL_MISPLACED, detail))
}

/// Whether a part is a call that only a message of the model may hold.
pub(super) fn is_models_call(provider: Provider, part: &Part) -> bool {
    // OpenAI's older form of a call is not checked.
    let is_checked = provider != Provider::OpenAiChat || !part.is_unchecked;
    part.kind == PartKind::ToolCall && is_checked
}

/// Calls without a name, and Gemini's responses, which have one as well.
fn nameless_calls(
    transcript: &Transcript,
    provider: Provider,
    head: usize,
) -> impl Iterator<Item = Problem> + '_ {
    let is_nameless = move |&i: &usize| {
        let is_one = |part: &Part| {
            is_nameless(transcript, provider, part) || is_nameless_function(transcript, provider, part)
        };
        transcript.parts_of(i).iter().any(is_one)
    };
    let detail = "a call has a name";
    (head..transcript.len()).filter(is_nameless).map(move |i| Problem::new(i, codes::EMPTY_NAME, detail))
}

/// Whether a provider misses the name of a part.
pub(super) fn is_nameless(transcript: &Transcript, provider: Provider, part: &Part) -> bool {
    let is_named = match provider {
        Provider::Gemini => matches!(part.kind, PartKind::ToolCall | PartKind::ToolResult),
        _ => part.kind == PartKind::ToolCall,
    };
    let is_empty = match &part.name {
        Some(name) => transcript.str(name).is_empty(),
        // Elsewhere it is a call whose name this version does not read.
        None => provider == Provider::Gemini,
    };
    is_named && !part.is_unchecked && is_empty
}

/// Whether a part is a call in OpenAI's older form, or the result of one, without a name.
pub(super) fn is_nameless_function(transcript: &Transcript, provider: Provider, part: &Part) -> bool {
    let is_function = provider == Provider::OpenAiChat
        && transcript.framing == Framing::OpenAiChat
        && part.is_unchecked
        && matches!(part.kind, PartKind::ToolCall | PartKind::ToolResult);
    is_function && part.name.as_ref().is_none_or(|name| transcript.str(name).is_empty())
}
