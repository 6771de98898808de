//! The path from the written text to the summary's text: redacted, sanitized, checked against the evidence.

use std::cell::RefCell;

use crate::count::counter::{Counter, Interrupt};
use crate::error::Result;
use crate::evidence::{Evidence, Mended, mend, render};
use crate::sanitize::sanitize;

/// Tokens of a text.
pub type Price<'a> = &'a dyn Fn(&str) -> Result<usize>;

/// A caller's function that redacts a text.
pub type Redact<'a> = &'a dyn Fn(&str) -> Result<String>;

/// The text of a summary, and the result of checking its facts.
#[derive(Clone, Debug)]
pub struct Finished {
    /// The text.
    pub text: String,
    /// Whether role markers, tool markers or hidden characters were sanitized.
    pub is_sanitized: bool,
    /// The facts kept, added and missing; `None` without a check.
    pub facts: Option<Mended>,
}

/// A text without role and tool markers, redacted first if `redact` is given.
///
/// # Errors
/// Those of `redact`.
pub fn safe_text(text: &str, redact: Option<Redact<'_>>) -> Result<String> {
    match redact {
        Some(redact) => Ok(sanitize(&redact(text)?).into_owned()),
        None => Ok(sanitize(text).into_owned()),
    }
}

/// Makes a summary's text safe, and adds missing facts of `evidence` within `room` tokens.
///
/// # Errors
/// Those of `redact` and of counting.
pub(super) fn finish(
    written: &str,
    evidence: Option<&Evidence>,
    redact: Option<Redact<'_>>,
    room: usize,
    counter: &dyn Counter,
    check: Interrupt<'_>,
) -> Result<Finished> {
    let redacted = redact.map_or_else(|| Ok(written.to_owned()), |redact| redact(written))?;
    let text = sanitize(&redacted).into_owned();
    let is_sanitized = text != redacted;
    let Some(evidence) = evidence else { return Ok(Finished { text, is_sanitized, facts: None }) };
    let safe = |text: &str| safe_text(text, redact);
    let (text, mut facts) = priced(counter, check, |price| {
        let write = |price: Price<'_>| {
            let mended = mend(evidence, &text, price, room)?;
            Ok((mended.text.clone(), mended))
        };
        fitted(write, price, room, &safe)
    })?;
    if text != facts.text {
        facts.forget_places();
    }
    Ok(Finished { text, is_sanitized, facts: Some(facts) })
}

/// Writes the extractive summary of `evidence`, sanitized, within `room` tokens.
///
/// # Errors
/// Those of counting.
pub fn write_extractive(
    evidence: &Evidence,
    room: usize,
    counter: &dyn Counter,
    check: Interrupt<'_>,
) -> Result<String> {
    let safe = |text: &str| safe_text(text, None);
    priced(counter, check, |price| {
        let write = |price: Price<'_>| Ok((render(evidence, price, room)?, ()));
        fitted(write, price, room, &safe).map(|(text, ())| text)
    })
}

/// Writes a text within a budget and makes it safe. If the safe text is over the budget, it is written again with the
/// price of safe text.
///
/// # Errors
/// Those of `write`, `price` and `safe`.
pub fn fitted<T>(
    write: impl Fn(Price<'_>) -> Result<(String, T)>,
    price: Price<'_>,
    max_tokens: usize,
    safe: &dyn Fn(&str) -> Result<String>,
) -> Result<(String, T)> {
    let (text, about) = write(price)?;
    let safe_text = safe(&text)?;
    if safe_text == text || price(&safe_text)? <= max_tokens {
        return Ok((safe_text, about));
    }
    let (text, about) = write(&|text| price(&safe(text)?))?;
    Ok((safe(&text)?, about))
}

/// Calls `work` with a counter as price function.
///
/// # Errors
/// Those of `work`.
pub fn priced<T>(
    counter: &dyn Counter,
    check: Interrupt<'_>,
    work: impl FnOnce(Price<'_>) -> Result<T>,
) -> Result<T> {
    let check = RefCell::new(check);
    work(&|text| {
        let tokens = counter.count(text, &mut **check.borrow_mut())?;
        Ok(usize::try_from(tokens).unwrap_or(usize::MAX))
    })
}
