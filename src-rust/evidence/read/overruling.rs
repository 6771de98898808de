//! Which words of the user a later one overrules: a prohibition for now whose matter is ordered later, a wish that is
//! denied, a value that is given again.

use std::cell::LazyCell;
use std::sync::LazyLock;

use super::collect::MAX_ITEMS;
use super::said::is_same_matter;
use crate::evidence::language::asking::is_question;
use crate::evidence::language::cues::is_constraint;
use crate::evidence::language::matcher::Matcher;
use crate::evidence::language::normal::{folded, is_filler, normal, stem, words};
use crate::evidence::language::steps::telling;
use crate::evidence::language::table::has_any;
use crate::evidence::text::{has_word, sentences};
use crate::evidence::{Evidence, Note};

/// Most sentences that are compared with later ones, which is quadratic.
const MAX_COMPARED: usize = 60;
/// Words of a sentence in which numbers are sought.
const MAX_MEASURED_WORDS: usize = 40;
/// Words after which a sentence says what does not hold.
const NEGATIONS: [&str; 20] = [
    "不要用",
    "别用",
    "不用",
    "先别",
    "不要",
    "不是",
    "don't",
    "do not",
    "dont",
    "not",
    "never",
    "no longer",
    "instead of",
    "rather than",
    "without",
    "stop",
    "no more",
    "drop",
    "nicht",
    "statt",
];
/// A prohibition with such a word ends with a later order.
const FOR_NOW: [&str; 9] =
    ["yet", "until", "for now", "wait", "hold off", "not now", "先别", "先不要", "暂时不"];
static HOLDS_FOR_NOW: LazyLock<Matcher> = LazyLock::new(|| Matcher::default().with(1, &FOR_NOW));
/// A prohibition with such a word lasts.
const LASTING: [&str; 9] = ["never", "always", "ever", "nie", "niemals", "jamais", "nunca", "永远", "绝不"];
/// Words before the verb of an order: "ok, now commit it".
const LEADS: [&str; 27] = [
    "ok", "okay", "yes", "good", "great", "fine", "and", "now", "then", "please", "so", "you", "can", "may",
    "go", "ahead", "let", "us", "just", "it", "is", "lets", "to", "the", "alright", "right", "reviewed",
];
/// Words of a permission.
const PERMITTING: [&str; 9] =
    ["may", "can", "allowed", "ok to", "okay to", "free to", "fine to", "darfst", "kannst"];
/// Words with which "anymore" says that something is not wanted, not that it fails.
const WANTED: [&str; 9] =
    ["need", "want", "have to", "must", "required", "necessary", "matter", "care", "should"];
/// What a sentence is about that reports, and denies no wish: "the problem is not Helm".
const REPORTED: [&str; 6] = ["problem", "issue", "bug", "error", "cause", "reason"];
/// Marks of a sentence that says what holds from then on.
const CHANGES: [&str; 13] = [
    "after all",
    "instead",
    "change of mind",
    "changed my mind",
    "from now on",
    "no need to",
    "anymore",
    "any more",
    "jetzt doch",
    "doch lieber",
    "finalement",
    "改成",
    "改为",
];
/// Words that say nothing of what a sentence is about: "use metric" and "I prefer to use a gift card instead" concern
/// different things.
const GENERIC: [&str; 20] = [
    "keep", "except", "stay", "use", "us", "using", "make", "mak", "chang", "change", "need", "want", "like",
    "prefer", "let", "show", "please", "take", "get", "give",
];
/// Words of the marks of a change.
const CUE_WORDS: [&str; 10] =
    ["instead", "instea", "after", "all", "mind", "now", "anymore", "longer", "more", "finalement"];
/// Marks of a sentence that gives a new value.
const NEW_VALUES: [&str; 3] = ["make it", "should be", "make that"];
/// Marks of a sentence that overrules an earlier one.
const OVERRULING: [&str; 17] = [
    "不要用",
    "改成",
    "改用",
    "换成",
    "不是",
    "after all",
    "instead",
    "no longer",
    "rather than",
    "actually",
    "not ",
    "don't use",
    "do not use",
    "scratch that",
    "changed my mind",
    "forget",
    "replace",
];

/// The telling words after a negation: what does not hold.
fn negated(lower: &str) -> Vec<String> {
    let Some((_, at)) = negation(lower) else { return Vec::new() };
    let rest = lower[at..].split([',', ';', '.', ':', '，', '；', '。']).next().unwrap_or("");
    let rest = [" but ", " sondern ", " after all"]
        .iter()
        .fold(rest, |rest, end| rest.split(end).next().unwrap_or(rest));
    let normal = normal(rest);
    let found = words(&normal).map(|(_, word)| stem(word).into_owned());
    found
        .filter(|word| {
            word.len() > 2
                && !is_filler(word)
                && !matches!(word.as_str(), "us" | "use" | "using" | "meant" | "per" | "anymore" | "longer")
        })
        .take(4)
        .collect()
}

/// Where the first negation begins and ends.
fn negation(lower: &str) -> Option<(usize, usize)> {
    static MATCHER: LazyLock<Matcher> = LazyLock::new(|| Matcher::default().with(1, &NEGATIONS));
    MATCHER.first_in(lower)
}

/// Rules that a later word of the user ends: a prohibition for now whose matter is ordered later, a wish that is
/// overruled.
pub(super) fn without_replaced(found: &mut Evidence) {
    let is_ended = |note: &Note| ended_by(found, note.message, &note.text).is_some();
    let ended: Vec<bool> = found.constraints.iter().map(is_ended).collect();
    let mut ended = ended.into_iter();
    found.constraints.retain(|_| !ended.next().unwrap_or(false));
    let overruling: Vec<(usize, Vec<String>)> =
        overruling(found).map(|(note, words)| (note.message, words)).collect();
    let is_overruled = |note: &Note| {
        let mut after = overruling.iter().filter(|(message, _)| *message > note.message).peekable();
        after.peek().is_some() && {
            let wish = Wish::of(&folded(&note.text));
            after.any(|(_, denied)| wish.contradicts(denied))
        }
    };
    found.constraints.retain(|note| !is_overruled(note));
    let (mut constraints, mut decisions) =
        (std::mem::take(&mut found.constraints), std::mem::take(&mut found.decisions));
    let first = constraints.iter().chain(&decisions).map(|note| note.message).min();
    let changes = LazyCell::new(|| changes(found, first));
    // A rule of several clauses stays: the number is in one of them.
    let is_changed = |note: &Note| {
        let is_simple = clauses(&note.text).is_empty() && !note.text.contains(" and ");
        let own = if is_simple { measures(&note.text) } else { Vec::new() };
        !own.is_empty()
            && changes.iter().any(|change| change.note.message > note.message && change.gives_new_value(&own))
    };
    constraints.retain(|note| !is_changed(note));
    decisions.retain(|note| !is_changed(note));
    (found.constraints, found.decisions) = (constraints, decisions);
    // Of two corrections on one matter the later one holds.
    let corrections = found.corrections.clone();
    let is_older = |note: &Note| {
        corrections
            .iter()
            .any(|other| other.message > note.message && is_same_matter(&other.text, &note.text))
    };
    found.corrections.retain(|note| !is_older(note));
}

/// The later request that orders what a sentence prohibits for now: "don't commit yet" ends with "commit it".
fn ended_by<'e>(found: &'e Evidence, message: usize, sentence: &str) -> Option<&'e Note> {
    let lower = folded(sentence);
    let (start, _) = HOLDS_FOR_NOW.first_in(&lower)?;
    if has_any(&lower, &LASTING) {
        return None;
    }
    // "先不要" is a negation as well.
    let begins = negation(&lower).is_some_and(|(negation, _)| negation < start);
    let matter = negated(if begins { &lower[..start] } else { &lower });
    let (verb, object) = matter.split_first()?;
    let later = found.requests.iter().rev().take(MAX_COMPARED).filter(|note| note.message > message);
    let orders = |note: &&Note| {
        sentences(&note.text)
            .take(12)
            .any(|sentence| !is_question(sentence) && is_order(sentence, verb, object))
    };
    later.into_iter().find(orders)
}

/// Whether a sentence orders to do something with the object of a prohibition, or with "it".
fn is_order(sentence: &str, verb: &str, object: &[String]) -> bool {
    const UNSPACED: [&str; 8] = ["好的", "好", "请", "现在", "可以", "那", "就", "，"];
    let lower = folded(sentence);
    if !verb.is_ascii() {
        let mut rest = lower.as_str();
        while let Some(after) = UNSPACED.iter().find_map(|lead| rest.strip_prefix(lead)) {
            rest = after;
        }
        return rest.starts_with(verb);
    }
    let normal = normal(&lower);
    let all: Vec<String> = words(&normal).map(|(_, word)| stem(word).into_owned()).collect();
    let Some(at) = all.iter().position(|word| !LEADS.contains(&word.as_str())) else { return false };
    if all[at] != verb || negation(&lower).is_some() {
        return false;
    }
    let others = || all[at + 1..].iter().filter(|word| word.len() > 2 && !is_filler(word));
    others().next().is_none() || object.is_empty() || others().any(|word| object.contains(word))
}

/// The user's sentences that overrule earlier ones, with what they negate.
fn overruling(found: &Evidence) -> impl Iterator<Item = (&Note, Vec<String>)> {
    let all = found.corrections.iter().chain(&found.constraints).rev().take(MAX_COMPARED);
    all.filter_map(|note| {
        let lower = folded(&note.text);
        let marked = OVERRULING.iter().any(|mark| lower.contains(mark));
        let before = negation(&lower).map_or("", |(at, _)| &lower[..at]);
        let words = negated(&lower);
        (marked && !words.is_empty() && !has_any(before, &REPORTED)).then_some((note, words))
    })
}

/// The words of a sentence before what it denies.
struct Wish {
    words: Vec<String>,
}

impl Wish {
    fn of(lower: &str) -> Wish {
        let normal = normal(negation(lower).map_or(lower, |(at, _)| &lower[..at]));
        Wish { words: words(&normal).map(|(_, word)| stem(word).into_owned()).collect() }
    }

    /// Whether it wants what the words deny, all of it: "write docs" is not overruled by "no docs for the helpers".
    fn contradicts(&self, denied: &[String]) -> bool {
        !denied.is_empty() && denied.iter().all(|word| self.words.contains(word))
    }
}

/// A sentence of the user that says that something holds no longer.
struct ChangeOfMind<'e> {
    note: &'e Note,
    words: Vec<String>,
    measures: Vec<Measure>,
    /// It permits: "you may touch the tests now".
    permits: bool,
}

impl ChangeOfMind<'_> {
    fn gives_new_value(&self, older: &[Measure]) -> bool {
        older.iter().any(|older| self.measures.iter().any(|new| new.replaces(older)))
    }
}

/// The user's sentences after a message that change an earlier word: "the accent should be blue instead".
fn changes(found: &Evidence, first: Option<usize>) -> Vec<ChangeOfMind<'_>> {
    const CHANGE: u32 = 1;
    static MATCHER: LazyLock<Matcher> =
        LazyLock::new(|| Matcher::default().with(CHANGE, &CHANGES).with(2 * CHANGE, &NEW_VALUES));
    let said = found.corrections.iter().chain(&found.constraints).chain(&found.requests);
    let said = said.map(|note| (note, note.text.as_str()));
    let answers = found.answers.iter().filter_map(|note| Some((note, note.text.rsplit_once("→ ")?.1)));
    said.chain(answers)
        .rev()
        .take(MAX_COMPARED)
        .filter(|(note, text)| {
            // Few texts have a cue at all.
            let whole = if Some(note.message) > first { folded(text) } else { String::new() };
            MATCHER.is_in(&whole) || whole.contains(" now")
        })
        .flat_map(|(note, text)| sentences(text).take(12).map(move |sentence| (note, sentence)))
        .filter_map(|(note, sentence)| {
            let whole = folded(sentence);
            let ends_now = whole.trim_end_matches(['.', '!', '"']).ends_with(" now");
            if !ends_now && !MATCHER.is_in(&whole) {
                return None;
            }
            let lower = without_quotes(&whole).replace("instead of", "");
            if only_remarks(sentence, &lower) {
                return None;
            }
            let permits = ends_now && has_any(&lower, &PERMITTING);
            let is_cued = MATCHER.groups_in(&lower);
            let is_change = permits || is_cued & CHANGE != 0;
            let is_marked =
                |clause: &&str| MATCHER.groups_in(&folded(clause).replace("instead of", "")) & CHANGE != 0;
            let marked = sentence.split([',', ';']).find(is_marked).unwrap_or(sentence);
            let mut words = if is_change { telling(marked) } else { Vec::new() };
            words.retain(|word| !GENERIC.contains(&word.as_str()) && !CUE_WORDS.contains(&word.as_str()));
            let cued = sentence
                .split([',', ';'])
                .filter(|clause| MATCHER.is_in(&folded(clause).replace("instead of", "")));
            let measures =
                if is_cued == 0 { Vec::new() } else { cued.flat_map(measures).collect::<Vec<_>>() };
            (is_change || !measures.is_empty()).then_some(ChangeOfMind { note, words, measures, permits })
        })
        .collect()
}

/// Whether a sentence changes nothing whatever its words: it asks (but for "how about another one instead?"), says what
/// holds in some case, or that something fails.
fn only_remarks(sentence: &str, lower: &str) -> bool {
    let asks = is_question(sentence) || has_any(lower, &["why", "wonder"]);
    let fails = has_any(lower, &["anymore", "any more"]) && !has_any(lower, &WANTED);
    (asks && (!lower.contains("instead") || has_any(lower, &["why", "wonder"])))
        || lower.starts_with("if ")
        || fails
}

/// A text without what it quotes.
fn without_quotes(text: &str) -> String {
    let quoted = |c: char| matches!(c, '"' | '“' | '”' | '„' | '«' | '»');
    text.split(quoted).step_by(2).collect()
}

/// The later word that changes a sentence: they share half of its words, values aside, or the sentence gives another
/// number of the same. A permission changes only what restricts.
fn changed_by<'e>(changes: &[ChangeOfMind<'e>], message: usize, sentence: &str) -> Option<&'e Note> {
    let lower = folded(sentence);
    let mut words = telling(sentence);
    words.retain(|word| {
        !word.contains(|c: char| c.is_ascii_digit())
            && !GENERIC.contains(&word.as_str())
            && !NEGATIONS.contains(&word.as_str())
    });
    let own = if clauses(sentence).is_empty() { measures(sentence) } else { Vec::new() };
    let restricts =
        negation(&lower).is_some() || ["only", "except"].iter().any(|word| has_word(&lower, word));
    // What a prohibition forbids has to be what the change is about.
    let forbidden = if restricts { negated(&lower) } else { Vec::new() };
    let concerns = |change: &&ChangeOfMind<'_>| {
        let shared = words.iter().filter(|word| change.words.contains(word)).count();
        let is_most = shared > 0 && 2 * shared >= words.len();
        let is_matter = match change.permits {
            // "Push the branch now" does not permit to push to main.
            true => restricts && is_most && forbidden.iter().all(|word| change.words.contains(word)),
            false => {
                is_most
                    && 2 * shared >= change.words.len()
                    && forbidden.first().is_none_or(|verb| change.words.contains(verb))
            }
        };
        change.note.message > message && (is_matter || change.gives_new_value(&own))
    };
    changes.iter().find(concerns).map(|change| change.note)
}

/// A number with the words around it: `every 50 scans`, `90 a night`.
struct Measure {
    before: String,
    number: String,
    unit: String,
    /// Names in its sentence: what holds in Rome does not hold in Paris.
    names: Vec<String>,
    /// Telling words of its sentence besides, and those after "for": what holds for lines does not hold for titles.
    about: Vec<String>,
    scope: Vec<String>,
    /// Its sentence points at what was said before: "make it 20".
    points: bool,
}

impl Measure {
    fn replaces(&self, older: &Measure) -> bool {
        let concerns_others = !self.names.is_empty()
            && !older.names.is_empty()
            && !self.names.iter().any(|name| older.names.contains(name));
        let is_of_unit =
            |word: &String| self.unit.starts_with(word.as_str()) || self.before.starts_with(word.as_str());
        let shares = self.about.iter().any(|word| !is_of_unit(word) && older.about.contains(word));
        let is_elsewhere = !self.scope.is_empty()
            && !older.scope.is_empty()
            && !self.scope.iter().any(|word| older.scope.contains(word));
        self.unit == older.unit
            && self.before == older.before
            && self.number != older.number
            && (shares || self.points)
            && !is_elsewhere
            && !concerns_others
    }
}

/// The numbers of a sentence that have a unit, in the order of their place.
fn measures(sentence: &str) -> Vec<Measure> {
    let words: Vec<&str> = sentence
        .split(|c: char| !(c.is_alphanumeric() || c == '.'))
        .filter(|word| !word.is_empty())
        .take(MAX_MEASURED_WORDS)
        .collect();
    let is_number = |word: &str| word.starts_with(|c: char| c.is_ascii_digit());
    if !words.iter().any(|word| is_number(word)) {
        return Vec::new();
    }
    let names = words.iter().skip(1).filter(|word| word.len() > 2 && word.starts_with(char::is_uppercase));
    let names: Vec<String> = names.map(|name| name.trim_end_matches('.').to_owned()).collect();
    let lower = folded(sentence);
    let mut about = telling(sentence);
    about.retain(|word| !word.contains(|c: char| c.is_ascii_digit()));
    let scope = lower.split_once(" for ").map_or_else(Vec::new, |(_, rest)| telling(rest));
    let points =
        ["make it", "make that", "it should be", "that should be"].iter().any(|cue| lower.contains(cue));
    let unit_after = |at: usize| words[at + 1..].iter().find(|word| !matches!(**word, "a" | "per" | "an"));
    let found = (0..words.len()).filter(|&at| is_number(words[at])).filter_map(|at| {
        let unit = unit_after(at).filter(|unit| !is_number(unit))?.trim_end_matches('.');
        let is_rate = words.get(at + 1).is_some_and(|next| matches!(*next, "a" | "per" | "an"));
        // "90 a night" is of one kind whatever is before it.
        let before = if is_rate || at == 0 { "" } else { words[at - 1] };
        Some(Measure {
            before: folded(before),
            number: words[at].to_owned(),
            unit: folded(unit),
            names: names.clone(),
            about: about.clone(),
            scope: scope.clone(),
            points,
        })
    });
    found.collect()
}

/// Sentences of requests that a later word overrules, and clauses of them.
pub(super) fn overruled(found: &Evidence) -> Vec<(usize, String, Note)> {
    let mut parts: Vec<(usize, String, Note)> = Vec::new();
    let later: Vec<(&Note, Vec<String>)> = overruling(found).collect();
    let messages = || found.requests.iter().map(|note| note.message);
    let (changes, last) = (changes(found, messages().min()), messages().max());
    for (at, request) in found.requests.iter().enumerate() {
        let after: Vec<_> = later.iter().filter(|(note, _)| note.message > request.message).collect();
        let may_end = last > Some(request.message) && HOLDS_FOR_NOW.is_in(&folded(&request.text));
        let may_change = changes.iter().any(|change| change.note.message > request.message);
        // Few requests are read sentence by sentence.
        let most = if after.is_empty() && !may_end && !may_change { 0 } else { 40 };
        for (place, sentence) in sentences(&request.text).take(most).enumerate() {
            let wish = LazyCell::new(|| Wish::of(&folded(sentence)));
            let by = after.iter().find(|(_, denied)| wish.contradicts(denied)).map(|(note, _)| *note);
            let by = by.or_else(|| may_end.then(|| ended_by(found, request.message, sentence)).flatten());
            // A request begins with what is wanted, which another way of doing it does not change.
            let changed = |place: usize, text: &str| {
                let is_open = may_change && (place > 0 || is_constraint(text));
                is_open.then(|| changed_by(&changes, request.message, text)).flatten()
            };
            let whole = by.or_else(|| changed(place, sentence)).map(|note| (sentence, note));
            let clauses = if whole.is_none() && may_change { clauses(sentence) } else { Vec::new() };
            let clauses = clauses.into_iter().enumerate();
            let clauses = clauses.filter_map(|(i, clause)| Some((clause, changed(place + i, clause)?)));
            for (text, note) in whole.into_iter().chain(clauses) {
                if parts.len() < MAX_ITEMS {
                    parts.push((at, text.to_owned(), note.clone()));
                }
            }
        }
    }
    parts
}

/// The clauses of a sentence that has several: "British spelling" and "keep first person".
fn clauses(sentence: &str) -> Vec<&str> {
    let clauses: Vec<&str> = sentence
        .split([',', ';', '，'])
        .map(|clause| clause.trim().trim_end_matches(['.', '!']))
        .filter(|clause| !clause.is_empty())
        .collect();
    if clauses.len() > 1 { clauses } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_sentence_denies() {
        assert_eq!(negated("and don't use redis for this after all"), ["redi"]);
        assert_eq!(negated("no, not a fixed window, they double"), ["fix", "window"]);
        assert!(negated("use redis for the counters").is_empty());
        let denied = negated("don't use redis for this after all");
        assert!(Wish::of("use redis for the counters").contradicts(&denied));
        assert!(!Wish::of("never use redis").contradicts(&negated("don't use redis")));
    }

    #[test]
    fn a_new_number_of_the_same_replaces_the_older_one() {
        let replaces = |new: &str, old: &str| {
            let (new, old) = (measures(new), measures(old));
            old.iter().any(|old| new.iter().any(|new| new.replaces(old)))
        };
        assert!(replaces("make it every 20 scans", "Batch upload every 50 scans"));
        assert!(replaces("the budget is 100 a night from now on", "Budget for hotels 90 a night"));
        assert!(!replaces("make it every 20 scans", "every 50 pages"));
        assert!(!replaces("make it every 50 scans", "Batch upload every 50 scans"));
        assert!(!replaces("In Paris it should be 120 a night.", "Never spend more than 90 a night in Rome."));
    }
}
