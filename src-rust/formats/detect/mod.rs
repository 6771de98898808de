//! Detects the dialect of a list of messages from its content.
//!
//! Each message yields a set of possible dialects; the list is in the intersection. If several remain (most dialects
//! write plain text messages the same way), the types of its other parts decide, then the key under which the list is
//! stored, or else OpenAI chat.
//!
//! What a message has outside its parts (role, calls, `parts`, type) is decisive: where two messages contradict each
//! other in that, the list is of two dialects, which is an error. Its parts only suggest a dialect, calls and results
//! before others: a part that contradicts what decides, or an earlier one of its rank, is ignored and read as an unknown
//! one, so that no odd part stops a list.

pub(super) mod detector;
mod format_set;
mod hints;
mod reason;

use self::format_set::{ANY, COHERE, FormatSet, MISTRAL, NONE};
pub(super) use self::hints::messages_of;
use self::hints::{Clue, Hints, by_role, hints_of};
pub use self::hints::{has_form, is_unit};
pub use self::reason::Reason;
use super::Format;
use super::header::{Envelope, RoleName};
use crate::error::{Error, Result};
use crate::meter::READINGS;
use crate::node::{Kind, Node};

/// How sure a detection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certainty {
    /// The structure fits no other dialect: roles, calls, results, types of messages.
    Certain,
    /// The structure fits several, and another feature suggests this one: a part, or the key of the list.
    Likely,
    /// Several dialects write these messages the same way, and this one is the default.
    Assumed,
}

impl Certainty {
    /// Every certainty with its stable code.
    pub const ALL: &'static [(&'static str, Certainty)] =
        &[("certain", Certainty::Certain), ("likely", Certainty::Likely), ("assumed", Certainty::Assumed)];

    /// The stable code.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, certainty)| *certainty == self).map_or("", |(name, _)| name)
    }
}

/// A feature that suggests other dialects than the detected one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contradiction {
    /// The first message with one.
    pub index: usize,
    /// The dialects that it suggests.
    pub formats: Vec<Format>,
}

/// The detected dialect of a list, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detected {
    /// The dialect.
    pub format: Format,
    /// How sure it is.
    pub certainty: Certainty,
    /// What was ignored: the parts of that message are read as unknown ones.
    pub contradiction: Option<Contradiction>,
    /// The feature that decided.
    pub reason: Reason,
    /// Index of the message that decided; `None` if none did.
    pub index: Option<usize>,
    /// Every dialect possible for all the messages.
    pub candidates: Vec<Format>,
}

/// Intersects the possible dialects of messages seen one by one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidates {
    /// The dialect that the key of the list suggests.
    place: Option<Format>,
    /// The dialects that fit all messages outside their parts.
    left: FormatSet,
    /// Those among them that calls and results in the parts suggest.
    calls: Suggested,
    /// Those among these that other parts suggest.
    others: Suggested,
    /// The preferred dialect among the suggested ones.
    format: Format,
    /// The last message that excluded a dialect, with the reason.
    telling: Option<(usize, Reason)>,
}

/// The dialects that clues of one rank suggest; all possible ones if none does.
#[derive(Clone, Copy, Debug)]
struct Suggested {
    formats: FormatSet,
    /// The last message whose clue was followed.
    at: Option<usize>,
    /// The first message with a clue that was ignored, and what it suggested.
    contradiction: Option<(usize, FormatSet)>,
}

impl Suggested {
    const ALL: Suggested = Suggested { formats: ANY, at: None, contradiction: None };

    /// Whether a clue neither narrows the dialects nor contradicts anything.
    #[inline]
    fn is_known(&self, clue: Clue) -> bool {
        self.formats.and(clue.suggested) == self.formats && clue.against == NONE
    }

    /// Follows the clue of message `i` among the `possible` dialects: these overrule clues, and an earlier clue
    /// overrules a later one.
    fn follow(&mut self, i: usize, clue: Clue, possible: FormatSet) {
        let (was, was_at) = (self.formats, self.at.unwrap_or_default());
        let kept = was.and(possible);
        let followed = [kept.and(clue.suggested), kept, possible.and(clue.suggested)];
        self.formats = followed.into_iter().find(|set| *set != NONE).unwrap_or(possible);
        let is_ignored = |set: FormatSet| self.formats.and(set) == NONE;
        let found = [(was_at, was), (i, clue.suggested), (i, clue.against)];
        let found = found.into_iter().find(|(_, set)| *set != NONE && is_ignored(*set));
        self.contradiction = self.contradiction.or(found);
        if self.formats != kept && clue.reason != Reason::Plain && !is_ignored(clue.suggested) {
            self.at = Some(i);
        }
    }
}

impl Candidates {
    /// A judge without messages; `key` is the key of the list in a request.
    pub fn new(key: Option<&str>) -> Self {
        let place = match key {
            Some("input") => Some(Format::OpenAiResponses),
            Some("contents") => Some(Format::Gemini),
            _ => None,
        };
        let format = place.unwrap_or(Format::OpenAiChat);
        Candidates { place, left: ANY, calls: Suggested::ALL, others: Suggested::ALL, format, telling: None }
    }

    /// Observes message `i`.
    ///
    /// # Errors
    /// Those of [`detect`], with the index; the judge is then unchanged.
    #[inline(always)]
    pub fn observe<N: Node>(&mut self, i: usize, message: &N, envelope: &Envelope<N>) -> Result<()> {
        let hints = hints_of(message, envelope, self.calls.formats).map_err(|error| error.at(i))?;
        self.note(i, hints)
    }

    /// Observes a message whose only feature is its role.
    ///
    /// # Errors
    /// Those of [`Candidates::observe`].
    #[inline]
    pub fn observe_role(&mut self, i: usize, role: RoleName) -> Result<()> {
        self.note(i, by_role(Some(role)))
    }

    #[inline]
    fn note(&mut self, i: usize, hints: Hints) -> Result<()> {
        let is_known = self.left.and(hints.left) == self.left
            && self.calls.is_known(hints.calls)
            && self.others.is_known(hints.clue);
        if is_known { Ok(()) } else { self.narrow(i, hints) }
    }

    /// Excludes dialects.
    #[cold]
    fn narrow(&mut self, i: usize, hints: Hints) -> Result<()> {
        let left = self.left.and(hints.left);
        if left == NONE {
            let first = self.telling.map_or(0, |(first, _)| first);
            let (before, hints) = (self.calls.formats.names(), hints.closest().names());
            let detail = format!("message {first} looks like {before}, message {i} like {hints}");
            return Err(Error::message("ambiguous_format", "", detail).at(i));
        }
        let is_telling = self.calls.formats.and(left) != self.calls.formats && hints.reason != Reason::Plain;
        self.left = left;
        self.calls.follow(i, hints.calls, left);
        self.others.follow(i, hints.clue, self.calls.formats);
        self.format = self.preferred();
        if self.calls.at == Some(i) {
            self.telling = Some((i, hints.calls.reason));
        } else if is_telling {
            self.telling = Some((i, hints.reason));
        } else if self.others.at == Some(i) {
            self.telling = Some((i, hints.clue.reason));
        }
        Ok(())
    }

    /// The dialect of the messages so far.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Whether a dialect fits all messages outside their parts.
    pub fn fits(&self, format: Format) -> bool {
        self.left.has(format)
    }

    fn preferred(&self) -> Format {
        let preferred = [self.place.unwrap_or(Format::OpenAiChat), Format::OpenAiChat];
        let suggested = self.others.formats;
        let mut all = preferred.into_iter().chain(suggested.formats());
        all.find(|format| suggested.has(*format)).unwrap_or(preferred[0])
    }

    /// The dialect with the reason.
    fn detected(&self) -> Detected {
        let format = self.format();
        let candidates: Vec<Format> = without_variants(self.others.formats).formats().collect();
        let (reason, index) = match self.telling {
            _ if candidates.len() > 1 && self.place == Some(format) => (Reason::Place, None),
            Some((index, reason)) => (reason, Some(index)),
            None => (Reason::Plain, None),
        };
        let is_only = |set: FormatSet| without_variants(set) == FormatSet::of(format);
        let certainty = match () {
            () if is_only(self.left) => Certainty::Certain,
            () if is_only(self.calls.formats) && self.calls.contradiction.is_none() => Certainty::Certain,
            () if candidates.len() == 1 || self.place == Some(format) => Certainty::Likely,
            () => Certainty::Assumed,
        };
        let ignored = [self.calls.contradiction, self.others.contradiction].into_iter().flatten();
        let contradiction = ignored
            .min_by_key(|(index, _)| *index)
            .map(|(index, set)| Contradiction { index, formats: without_variants(set).formats().collect() });
        Detected { format, certainty, contradiction, reason, index, candidates }
    }
}

/// A set without the variants of OpenAI chat, if that is in it: it is read as the latter.
fn without_variants(set: FormatSet) -> FormatSet {
    if set.has(Format::OpenAiChat) { FormatSet(set.0 & !(MISTRAL.0 | COHERE.0)) } else { set }
}

/// Detects the dialect of an array node of messages. Reads all of them: a later one may contradict an earlier one.
///
/// # Errors
/// `ambiguous_format` if no dialect fits all the messages, with the candidates of both sides; `unsupported_format` for
/// a dialect that foldline does not read.
pub fn detect<N: Node>(messages: &N) -> Result<Detected> {
    detect_at(messages, None)
}

/// [`detect`] for a list stored under a key of a request: if the messages leave it open, `input` means Responses and
/// `contents` Gemini.
///
/// # Errors
/// Those of [`detect`].
pub fn detect_at<N: Node>(messages: &N, key: Option<&str>) -> Result<Detected> {
    READINGS.add();
    let mut candidates = Candidates::new(key);
    messages.each_item(|i, message| match message.kind() {
        Kind::Object => {
            let mut envelope = Envelope::sealed();
            envelope.open(message);
            candidates.observe(i, message, &envelope)
        }
        _ => Ok(()),
    })?;
    Ok(candidates.detected())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::with_document;

    fn found(json: &str, key: Option<&str>) -> std::result::Result<&'static str, String> {
        let format = with_document(json.as_bytes(), |node| detect_at(&node, key)).unwrap();
        format.map(|found| found.format.name()).map_err(|error| format!("{}: {}", error.code, error.detail))
    }

    #[test]
    fn only_messages_are_storable() {
        let storable = |json: &str| with_document(json.as_bytes(), |node| has_form(&node)).unwrap();
        for json in [
            r#"{"role":"user","content":"a"}"#,
            r#"{"role":"of another program"}"#,
            r#"{"type":"function_call_output","call_id":"a","output":"b"}"#,
            r#"{"type":"unknown"}"#,
            r#"{"parts":[{"text":"a"}],"role":null}"#,
            r#"{"messages":[],"origin":"x"}"#,
            r#"{"Messages":null}"#,
        ] {
            assert!(storable(json), "{json}");
        }
        for json in [
            "[]",
            "{}",
            "null",
            "3",
            r#""user""#,
            r#"[["role","user"]]"#,
            r#"{"content":"a"}"#,
            r#"{"role":null}"#,
            r#"{"role":3,"type":"message"}"#,
            r#"{"type":7}"#,
        ] {
            assert!(!storable(json), "{json}");
        }
    }

    #[test]
    fn content_decides() {
        let cases = [
            ("[]", "openai_chat"),
            (r#"[{"role":"user","content":"a"}]"#, "openai_chat"),
            (r#"[{"role":"developer","content":"a"}]"#, "openai_chat"),
            (r#"[{"role":"developer","content":"a"},{"type":"reasoning","summary":[]}]"#, "openai_responses"),
            (r#"[{"type":"message","role":"user","content":"a"}]"#, "openai_responses"),
            (r#"[{"role":"user","content":[{"type":"input_text","text":"a"}]}]"#, "openai_responses"),
            (r#"[{"type":"compaction","encrypted_content":"x"}]"#, "openai_responses"),
            (
                r#"[{"type":"message","role":"assistant","content":[{"type":"tool_use","id":"a"}]}]"#,
                "anthropic",
            ),
            (r#"[{"role":"user","parts":[{"text":"a"}]}]"#, "gemini"),
            (r#"[{"parts":[{"text":"a"}]}]"#, "gemini"),
            (r#"[{"role":"function","parts":[{"functionResponse":{"name":"f"}}]}]"#, "gemini"),
            (r#"[{"role":"function","name":"f","content":"a"}]"#, "openai_chat"),
        ];
        for (json, expected) in cases {
            assert_eq!(found(json, None), Ok(expected), "{json}");
        }
    }

    #[test]
    fn the_place_decides_what_messages_leave_open() {
        let plain = r#"[{"role":"user","content":"a"}]"#;
        assert_eq!(found(plain, Some("input")), Ok("openai_responses"));
        assert_eq!(found(plain, Some("messages")), Ok("openai_chat"));
        let chat = r#"[{"role":"user","content":"a"},{"role":"tool","tool_call_id":"a","content":"b"}]"#;
        assert_eq!(found(chat, Some("input")), Ok("openai_chat"));
        assert_eq!(found(r#"[{"role":"user","parts":[]}]"#, Some("messages")), Ok("gemini"));
    }

    #[test]
    fn two_dialects_are_named() {
        let mixed = r#"[{"role":"developer","content":"s"},{"role":"user","parts":[]}]"#;
        let detail =
            "ambiguous_format: message 0 looks like openai_chat or openai_responses, message 1 like gemini";
        assert_eq!(found(mixed, None), Err(detail.to_owned()));
        let foreign = r#"[{"role":"assistant","parts":[{"text":"a"}]}]"#;
        assert!(found(foreign, None).unwrap_err().starts_with("unsupported_format"));
        let of_interface = r#"[{"role":"user","parts":[{"type":"text","text":"a"}]}]"#;
        assert_eq!(found(of_interface, None), Ok("ai_sdk_ui"));
    }
}
