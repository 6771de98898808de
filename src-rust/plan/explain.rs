//! A plan explained to a person: the messages that stay and go, and why. It contains numbers and codes, never content.

use std::fmt::Write as _;

use super::model::{Alternative, AlternativeKind, Plan, Reason, Warning};

/// Most indices listed for a warning, so that it stays on one line.
const MAX_INDICES: usize = 8;

/// Every reason, in the order of the explanation.
const REASONS: [Reason; 15] = [
    Reason::Head,
    Reason::Compaction,
    Reason::Pinned,
    Reason::PinnedGroup,
    Reason::OpenCall,
    Reason::Recent,
    Reason::Fits,
    Reason::NothingToFold,
    Reason::KeepUnmet,
    Reason::GainTooSmall,
    Reason::NoGain,
    Reason::ClearedToFit,
    Reason::ShortenedToFit,
    Reason::BeforeCut,
    Reason::EarlierSummary,
];

/// A reason as text.
fn words(reason: Reason) -> &'static str {
    match reason {
        Reason::Head => "instructions in front",
        Reason::Compaction => "with a compaction of the provider, which replaces what is before it",
        Reason::Pinned => "pinned",
        Reason::PinnedGroup => "in a group with a pinned message",
        Reason::OpenCall => "in a group with a call that nothing answers yet",
        Reason::Recent => "at or after the cut",
        Reason::Fits => "the list is within its budget",
        Reason::NothingToFold => "nothing is folded",
        Reason::KeepUnmet => "no legal cut leaves what the keep requires",
        Reason::GainTooSmall => "folding would save too little",
        Reason::NoGain => "a summary would take as many tokens as it replaces",
        Reason::BeforeCut => "before the cut",
        Reason::EarlierSummary => "summary of an earlier fold, merged into the new one",
        Reason::ClearedToFit => "its results are cleared, so that the rest fits",
        Reason::ShortenedToFit => "its results are shortened, so that the rest fits",
    }
}

/// The text of a warning, by its code.
fn warning_words(code: &str) -> &'static str {
    match code {
        "open_call" => "a call that nothing answers",
        "orphan_result" => "a result that answers no call",
        "pin_grown" => "stays because another message of its group is pinned",
        "lone_surrogates" => "half of a UTF-16 pair, counted as U+FFFD",
        "gain_too_small" => "folding would save less than was asked for",
        "thinking_bound" => {
            "thinking behind a change: a provider that binds it to what is before it rejects it, unless told to drop it"
        }
        "thinking_blocks_fold" => "thinking that would stay behind any summary",
        _ => "",
    }
}

/// A number with commas between thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3 + 1);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number with its noun, in the plural unless it is one.
fn counted(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(number), if number == 1 { "" } else { "s" })
}

impl Plan {
    /// Explains the plan in a few lines of text. Deterministic. O(messages).
    #[must_use]
    pub fn explain(&self) -> String {
        let mut text = String::new();
        self.tell(&mut text);
        text
    }

    fn tell(&self, text: &mut String) {
        let tokens = counted(self.tokens_before, "token");
        let messages = counted(self.actions.len() as u64, "message");
        line(text, 0, &format!("{messages} ({}), {tokens} ({})", self.format, self.count_kind));
        line(text, 0, &self.told_decision());
        self.tell_reasons(text, "Stays", false);
        self.tell_reasons(text, "Goes into the summary", true);
        self.tell_tokens(text);
        self.tell_cache(text);
        self.tell_warnings(text);
        if !self.alternatives.is_empty() {
            line(text, 0, "Other cuts:");
            self.alternatives.iter().for_each(|alternative| line(text, 1, &told_alternative(alternative)));
        }
    }

    fn told_decision(&self) -> String {
        let changed = self.told_changes();
        if !self.folds() {
            return format!("Nothing is folded.{changed}");
        }
        let folded = counted(self.folded().count() as u64, "message");
        let place = match (self.turn_prefix, self.cut == self.actions.len()) {
            (_, true) => "behind the last message".to_owned(),
            (Some((start, _)), _) => {
                format!("before message {}, inside the turn that begins at {start}", self.cut)
            }
            (None, _) => format!("before message {}", self.cut),
        };
        format!("Folds {folded}. The cut lies {place}.{changed}")
    }

    /// The changes of messages that stay.
    fn told_changes(&self) -> String {
        let mut told = String::new();
        if !self.edits.is_empty() {
            let _ = write!(told, " {} cleared or shortened.", is_are(self.edits.len() as u64, "result"));
        }
        if !self.stripped.is_empty() {
            let of = counted(self.stripped.len() as u64, "message");
            let _ = write!(told, " The thinking of {of} is left out.");
        }
        told
    }

    fn tell_reasons(&self, text: &mut String, title: &str, goes: bool) {
        let of = |reason: Reason| {
            let at = (0..self.actions.len()).filter(move |&i| self.reasons[i] == reason);
            at.filter(|&i| self.is_folded(i) == goes)
                .map(|i| u64::from(self.message_tokens[i]))
                .fold((0, 0), |(count, sum): (u64, u64), tokens| (count + 1, sum + tokens))
        };
        let rows: Vec<_> = REASONS.iter().map(|&reason| (reason, of(reason))).collect();
        if rows.iter().all(|(_, (count, _))| *count == 0) {
            return;
        }
        line(text, 0, &format!("{title}:"));
        for (reason, (count, sum)) in rows.into_iter().filter(|(_, (count, _))| *count > 0) {
            let (messages, tokens) = (counted(count, "message"), counted(sum, "token"));
            line(text, 1, &format!("{messages}, {tokens}: {} ({})", words(reason), reason.name()));
        }
    }

    fn tell_tokens(&self, text: &mut String) {
        let (before, after) = (self.tokens_before, self.tokens_after());
        let summary = if self.folds() { self.summary_tokens } else { 0 };
        line(text, 0, "Tokens:");
        let parts = format!(
            "{} kept, {} of overhead, {} for the summary",
            grouped(self.tokens_kept),
            grouped(self.overhead),
            grouped(summary)
        );
        line(text, 1, &format!("{} before, {} after ({parts})", grouped(before), grouped(after)));
        let share = |tokens: u64| u128::from(tokens) * 100 / u128::from(before.max(1));
        let change = match before.checked_sub(after) {
            Some(saved) => format!("{} saved ({} %)", grouped(saved), share(saved)),
            None => format!("{} more ({} %)", grouped(after - before), share(after - before)),
        };
        line(text, 1, &change);
        line(text, 1, &format!("the least that FitTokens could reach: {}", grouped(self.floor)));
    }

    fn tell_cache(&self, text: &mut String) {
        let Some(changed) = self.first_changed_index() else {
            return line(text, 0, "Cached prefix: nothing changes.");
        };
        let (kept, rebilled) = (counted(self.tokens_prefix_kept(), "token"), self.tokens_rebilled());
        let rebilled = is_are(rebilled, "token");
        line(
            text,
            0,
            &format!(
                "Cached prefix: the first change is at message {changed}. A cache serves at most {kept}; {rebilled} \
                 billed anew."
            ),
        );
    }

    fn tell_warnings(&self, text: &mut String) {
        if self.warnings.is_empty() {
            return;
        }
        line(text, 0, "Warnings:");
        let mut codes: Vec<&str> = Vec::new();
        for Warning { code, .. } in &self.warnings {
            if !codes.contains(&code.as_str()) {
                codes.push(code);
            }
        }
        for code in codes {
            let of_code = self.warnings.iter().filter(|warning| warning.code == code);
            let indices: Vec<usize> = of_code.filter_map(|warning| warning.index).collect();
            line(text, 1, &told_warning(code, &indices));
        }
    }
}

/// A number with its noun and verb.
fn is_are(number: u64, noun: &str) -> String {
    format!("{} {}", counted(number, noun), if number == 1 { "is" } else { "are" })
}

fn told_warning(code: &str, indices: &[usize]) -> String {
    let mut told = code.to_owned();
    if !warning_words(code).is_empty() {
        let _ = write!(told, " ({})", warning_words(code));
    }
    if !indices.is_empty() {
        let named: Vec<String> = indices.iter().take(MAX_INDICES).map(ToString::to_string).collect();
        let noun = if indices.len() == 1 { "message" } else { "messages" };
        let _ = write!(told, ": {noun} {}", named.join(", "));
        if indices.len() > MAX_INDICES {
            let _ = write!(told, " and {} more", grouped((indices.len() - MAX_INDICES) as u64));
        }
    }
    told
}

fn told_alternative(alternative: &Alternative) -> String {
    let why = match alternative.why {
        AlternativeKind::Shallower => "the next that folds less",
        AlternativeKind::Deeper => "the next that folds more",
        AlternativeKind::TurnStart => "the nearest start of a turn",
        AlternativeKind::Everything => "everything that may be folded",
    };
    let inside = if alternative.is_mid_turn { ", inside a turn" } else { "" };
    let folded = counted(alternative.folded as u64, "message");
    format!(
        "{}: {why}{inside}; {folded} folded, {} tokens after",
        alternative.cut,
        grouped(alternative.tokens_after)
    )
}

fn line(text: &mut String, depth: usize, words: &str) {
    let _ = writeln!(text, "{}{words}", "  ".repeat(depth));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_warning_of_a_plan_has_words() {
        let codes = [
            "open_call",
            "orphan_result",
            "pin_grown",
            "lone_surrogates",
            "gain_too_small",
            "thinking_bound",
            "thinking_blocks_fold",
        ];
        assert!(codes.iter().all(|code| !warning_words(code).is_empty()));
        assert_eq!(told_warning("pin_grown", &[]), format!("pin_grown ({})", warning_words("pin_grown")));
    }

    #[test]
    fn numbers_are_grouped_and_nouns_agree() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_000), "1,000");
        assert_eq!(grouped(u64::MAX), "18,446,744,073,709,551,615");
        assert_eq!(counted(1, "token"), "1 token");
        assert_eq!(counted(0, "token"), "0 tokens");
        assert_eq!(is_are(1, "result"), "1 result is");
        assert_eq!(told_warning("x", &[]), "x");
        assert_eq!(told_warning("x", &[7]), "x: message 7");
        let many: Vec<usize> = (0..10).collect();
        assert_eq!(told_warning("x", &many[..8]), "x: messages 0, 1, 2, 3, 4, 5, 6, 7");
        assert_eq!(told_warning("x", &many), "x: messages 0, 1, 2, 3, 4, 5, 6, 7 and 2 more");
    }
}
