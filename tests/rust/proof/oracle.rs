//! The design, sentence by sentence, by brute force over all cuts. Nothing here is meant to be fast, and nothing is
//! shared with the planner but the names of its answers.

use foldline::plan::{Keep, PLACEHOLDER, SHORTEN_MARKER, Unit};

use super::model::{Bound, Message, Part, Who};

/// What is done to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    Keep,
    Pin,
    Summarize,
    Clear,
    Shorten,
}

/// Message, part, and the code points kept of its head and tail; none where it is at the placeholder.
pub type Edit = (usize, usize, Option<(usize, usize)>);

/// What a plan must say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    pub cut: usize,
    pub turn_prefix: Option<(usize, usize)>,
    pub actions: Vec<Act>,
    pub tokens_kept: u64,
    pub edits: Vec<Edit>,
}

/// What planning must say: a plan, or the floor of a budget that cannot be met.
pub type Answer = Result<Expected, u64>;

/// A message and the place of a part in it.
type Place = (usize, usize);

/// A transcript with all that the rules say about it.
pub struct Oracle<'a> {
    messages: &'a [Message],
    tokens: &'a [u64],
    summary_tokens: u64,
    /// For each result, in order, the call that it answers.
    answers: Vec<(Place, Option<Place>)>,
    group: Vec<usize>,
    head: usize,
    pinned: Vec<bool>,
    explicitly: Vec<bool>,
    open: Vec<bool>,
    /// The newest compaction outside the head, and whether each message is in its group.
    compaction: Option<usize>,
    held: Vec<bool>,
    /// Whether the list is Gemini's: the first message must be the user's.
    user_first: bool,
    is_result: Vec<bool>,
    legal: Vec<bool>,
    turns: Vec<(usize, usize)>,
}

impl<'a> Oracle<'a> {
    /// `tokens` are those of the messages; a code point of a text is one.
    pub fn new(messages: &'a [Message], tokens: &'a [u64], takes_names: bool, summary_tokens: u64) -> Self {
        let (answers, unanswered) = pair(messages, takes_names);
        let count = messages.len();
        let is_head = |message: &&Message| message.who == Who::System || message.bound == Bound::Compaction;
        let head = messages.iter().take_while(is_head).count();
        let group = groups(messages, &answers);
        let explicitly: Vec<bool> = messages.iter().map(|message| message.is_pinned).collect();
        let mut behind = explicitly.clone();
        for i in 1..count {
            behind[i] |= behind[i - 1] && messages[i - 1].bound == Bound::Turn;
        }
        let in_group_with = |wanted: &dyn Fn(usize) -> bool| -> Vec<bool> {
            (0..count).map(|i| (0..count).any(|other| group[other] == group[i] && wanted(other))).collect()
        };
        // What is tied to the head stays with it.
        let tied = |i: usize| i >= head && group[i] < head;
        let mut pinned = in_group_with(&|i| behind[i] || tied(i));
        (0..head).for_each(|i| pinned[i] = explicitly[i]);
        let open = in_group_with(&|i| unanswered.iter().any(|(message, _)| *message == i));
        let compaction = (head..count).rev().find(|&i| messages[i].bound == Bound::Compaction);
        let held = in_group_with(&|i| compaction == Some(i));
        let foreign =
            |(at, call): &(Place, Option<Place>)| call.is_none_or(|call| call.0 != at.0).then_some(at.0);
        let is_result: Vec<bool> =
            (0..count).map(|i| answers.iter().filter_map(foreign).any(|message| message == i)).collect();
        let mut oracle = Oracle {
            messages,
            tokens,
            summary_tokens,
            answers,
            group,
            head,
            pinned,
            explicitly,
            open,
            compaction,
            held,
            user_first: takes_names,
            is_result,
            legal: Vec::new(),
            turns: Vec::new(),
        };
        oracle.legal = (0..=count).map(|k| oracle.is_legal(k)).collect();
        oracle.turns = oracle.find_turns();
        oracle
    }

    fn len(&self) -> usize {
        self.messages.len()
    }

    fn counts(&self, i: usize) -> bool {
        i >= self.head && !self.pinned[i] && !self.open[i] && !self.held[i]
    }

    fn is_legal(&self, cut: usize) -> bool {
        if self.compaction.is_some_and(|compaction| cut > compaction) && !self.may_pass(cut) {
            return false;
        }
        if cut == self.len() {
            return true;
        }
        let may_be_torn = |i: usize| self.pinned_group(i) || self.open[i] || self.held[i];
        let torn =
            (0..cut).any(|i| (cut..self.len()).any(|j| self.group[i] == self.group[j] && !may_be_torn(i)));
        !self.is_result[cut] && !torn
    }

    /// Whether the summary of a cut after the compaction may stand after its group.
    fn may_pass(&self, cut: usize) -> bool {
        let count = self.len();
        let end = (0..count).rev().find(|&i| self.held[i]).map_or(count, |last| last + 1);
        let stays = |i: usize| self.pinned_group(i) || self.open[i];
        let is_open = (0..count).any(|i| self.held[i] && self.open[i]);
        // Without what is folded, the list begins with the first message that stays.
        let first = (0..count).find(|&i| stays(i) || self.held[i]);
        let may_begin = self.head > 0
            || !self.user_first
            || first.is_none_or(|i| Some(i) == self.compaction || self.messages[i].who != Who::Assistant);
        let is_split = (0..end).any(|i| stays(i) && (end..count).any(|j| self.group[i] == self.group[j]));
        cut >= end && may_begin && !is_open && !is_split
    }

    /// Whether the group of a message is pinned, the head's own part of it included.
    fn pinned_group(&self, i: usize) -> bool {
        (0..self.len()).any(|other| self.group[other] == self.group[i] && self.pinned[other])
    }

    fn find_turns(&self) -> Vec<(usize, usize)> {
        let user = |i: usize| matches!(self.messages[i].who, Who::User | Who::Bash) && !self.is_result[i];
        let starts: Vec<usize> = (self.head..self.len()).filter(|&i| i == self.head || user(i)).collect();
        let end = |at: usize| starts.get(at + 1).copied().unwrap_or(self.len());
        starts.iter().enumerate().map(|(at, &start)| (start, end(at))).collect()
    }

    fn sum(&self, from: usize, to: usize) -> u64 {
        (from..to).filter(|&i| self.counts(i)).map(|i| self.tokens[i]).sum()
    }

    fn counting(&self, from: usize, to: usize) -> u64 {
        (from..to).filter(|&i| self.counts(i)).count() as u64
    }

    fn latest_legal(&self, cuts: impl Iterator<Item = usize>) -> Option<usize> {
        cuts.filter(|&k| self.legal[k]).max()
    }

    fn at_least(&self, left: impl Fn(usize) -> u64, wanted: u64) -> Option<usize> {
        self.latest_legal((0..=self.len()).filter(|&k| left(k) >= wanted))
    }

    fn begins_group(&self, i: usize) -> bool {
        self.counts(i) && (0..i).all(|before| self.group[before] != self.group[i])
    }

    /// The plan for a keep.
    pub fn plan(&self, keep: Keep) -> Answer {
        let n = self.len();
        let cut = match keep {
            Keep::Tokens(amount) => self.for_tokens(amount),
            Keep::Fraction(fraction, Unit::Tokens) => {
                self.at_least(|k| self.sum(k, n), (fraction * self.sum(0, n) as f64).ceil() as u64)
            }
            Keep::Fraction(fraction, Unit::Messages) => {
                self.at_least(|k| self.counting(k, n), (fraction * self.counting(0, n) as f64).ceil() as u64)
            }
            Keep::Messages(amount) => self.at_least(|k| self.counting(k, n), amount),
            Keep::Iterations(amount) => {
                self.at_least(|k| (k..n).filter(|&i| self.begins_group(i)).count() as u64, amount)
            }
            Keep::Turns(amount) => self.for_turns(amount),
            Keep::Fit(limit) => return self.fit(limit),
        };
        Ok(self.finish(cut.unwrap_or(0), Vec::new()))
    }

    fn for_tokens(&self, amount: u64) -> Option<usize> {
        let at = (0..=self.len()).filter(|&i| self.sum(i, self.len()) >= amount).max()?;
        if at == self.len() {
            return self.latest_legal(0..=self.len());
        }
        // What lies in the head is before every turn.
        let (start, end) = self.turns.iter().copied().find(|turn| turn.0 <= at && at < turn.1)?;
        if self.sum(start, end) > amount
            && let Some(split) = self.latest_legal(start + 1..=at)
        {
            return Some(split);
        }
        self.latest_legal(0..=start)
    }

    fn for_turns(&self, amount: u64) -> Option<usize> {
        if amount == 0 {
            return self.latest_legal(0..=self.len());
        }
        let holding = self.turns.iter().rev().filter(|turn| self.counting(turn.0, turn.1) > 0);
        let (start, _) = holding.clone().nth(usize::try_from(amount).ok()? - 1)?;
        self.latest_legal(0..=*start)
    }

    /// What a cut folds: nothing where that would be earlier summaries alone.
    fn folded(&self, cut: usize) -> Vec<usize> {
        let gone: Vec<usize> = (0..cut).filter(|&i| self.counts(i)).collect();
        if gone.iter().all(|&i| self.is_summary(i)) { Vec::new() } else { gone }
    }

    /// An earlier summary, or what a fold put between two messages behind one.
    fn is_summary(&self, i: usize) -> bool {
        let filler = |text: &str| Part::Text(text.to_owned());
        let is_filler = match self.messages[i].who {
            Who::User => self.messages[i].parts == [filler("Go on.")],
            Who::Assistant => self.messages[i].parts == [filler("Understood.")],
            _ => false,
        };
        let follows = (0..i).any(|before| self.messages[before].is_summary());
        self.messages[i].is_summary() || (is_filler && follows)
    }

    /// All tokens with this cut, the summary's included.
    fn stays(&self, cut: usize) -> u64 {
        let gone = self.folded(cut);
        let kept: u64 = (0..self.len()).filter(|i| !gone.contains(i)).map(|i| self.tokens[i]).sum();
        kept + if gone.is_empty() { 0 } else { self.summary_tokens }
    }

    fn newest(&self) -> Vec<usize> {
        match self.len().checked_sub(1) {
            Some(last) if self.counts(last) => {
                (0..=last).filter(|&i| self.group[i] == self.group[last]).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The results of a message that may be replaced, those that are longer than the placeholder: place and length.
    fn replaceable(&self, message: usize) -> Vec<(usize, u64)> {
        let lengths = self.messages[message].parts.iter().enumerate().filter_map(|(at, part)| match part {
            Part::Result { text, is_fixed: false, .. } => Some((at, text.chars().count() as u64)),
            _ => None,
        });
        let is_own = |at: usize| {
            let answer = self.answers.iter().find(|(place, _)| *place == (message, at));
            answer.is_some_and(|(_, call)| call.is_some_and(|call| call.0 == message))
        };
        let is_longer = |length: u64| length > chars(PLACEHOLDER) as u64;
        lengths.filter(|(at, length)| is_longer(*length) && !is_own(*at)).collect()
    }

    /// What a message loses at its placeholders; it may be less than nothing.
    fn saving(&self, message: usize) -> i64 {
        let placeholder = PLACEHOLDER.chars().count() as i64;
        self.replaceable(message).iter().map(|(_, length)| *length as i64 - placeholder).sum()
    }

    /// Messages that shrink, largest saving first, earlier first where equal.
    fn by_saving(&self, messages: impl Iterator<Item = usize>) -> Vec<usize> {
        let mut shrinking: Vec<usize> = messages.filter(|&i| self.saving(i) > 0).collect();
        shrinking.sort_by_key(|&i| (-self.saving(i), i));
        shrinking
    }

    /// Everything as it is, or what is left at the last cut with all results at the placeholder.
    pub fn floor(&self) -> u64 {
        let last = self.last_cut();
        let newest = self.newest();
        let mut tail = (last..self.len()).filter(|&i| self.counts(i)).collect::<Vec<_>>();
        tail.extend(newest.iter().filter(|&&i| i < last));
        let saved: i64 = self.by_saving(tail.into_iter()).iter().map(|&i| self.saving(i)).sum();
        let least = self.stays(last) as i64 - saved;
        self.tokens.iter().sum::<u64>().min(least as u64)
    }

    /// The last legal cut that folds something and spares the newest group, or 0.
    fn last_cut(&self) -> usize {
        let limit = self.newest().first().copied().unwrap_or(self.len());
        let folding = |&k: &usize| self.legal[k] && !self.folded(k).is_empty();
        (0..=limit).filter(folding).max().unwrap_or(0)
    }

    fn fit(&self, limit: u64) -> Answer {
        if self.tokens.iter().sum::<u64>() <= limit {
            return Ok(self.finish(0, Vec::new()));
        }
        let last = self.last_cut();
        let fits = |&k: &usize| self.legal[k] && !self.folded(k).is_empty() && self.stays(k) <= limit;
        if let Some(cut) = (0..=last).find(fits) {
            return Ok(self.finish(cut, Vec::new()));
        }
        if limit < self.floor() {
            return Err(self.floor());
        }
        Ok(self.reduced(last, limit))
    }

    fn reduced(&self, cut: usize, limit: u64) -> Expected {
        let newest = self.newest();
        let (mut total, mut edits) = (self.stays(cut) as i64, Vec::new());
        let limit = limit as i64;
        let tail = (cut..self.len()).filter(|i| self.counts(*i) && !newest.contains(i));
        for message in self.by_saving(tail) {
            if total <= limit {
                break;
            }
            total -= self.saving(message);
            edits.extend(self.replaceable(message).iter().map(|(at, _)| (message, *at, None)));
        }
        for message in self.by_saving(newest.iter().copied()) {
            let mut results = self.replaceable(message);
            results.sort_by_key(|(at, length)| (std::cmp::Reverse(*length), *at));
            for (at, length) in results {
                if total <= limit {
                    break;
                }
                let rest = total - length as i64;
                let kept = self.kept_chars(length as i64, limit - rest);
                total = rest + kept.map_or(chars(PLACEHOLDER), |kept| kept + chars(SHORTEN_MARKER));
                edits.push((message, at, kept.map(|kept| (((kept + 1) / 2) as usize, (kept / 2) as usize))));
            }
        }
        edits.sort_unstable();
        self.finish(cut, edits)
    }

    /// How many code points of a result stay, where it may cost `room`; none where not even one does.
    fn kept_chars(&self, length: i64, room: i64) -> Option<i64> {
        (1..length).rev().find(|kept| kept + chars(SHORTEN_MARKER) <= room)
    }

    fn finish(&self, cut: usize, edits: Vec<Edit>) -> Expected {
        let gone = self.folded(cut);
        let cut = if gone.is_empty() { 0 } else { cut };
        let newest = self.newest();
        let act = |i: usize| match () {
            () if self.is_pin(i) => Act::Pin,
            () if gone.contains(&i) => Act::Summarize,
            () if edits.iter().any(|edit| edit.0 == i) && newest.contains(&i) => Act::Shorten,
            () if edits.iter().any(|edit| edit.0 == i) => Act::Clear,
            () => Act::Keep,
        };
        let kept = (0..self.len()).filter(|i| !gone.contains(i)).map(|i| self.tokens[i] as i64);
        let changed = edits.iter().map(|&(message, at, kept)| {
            let after =
                kept.map_or(chars(PLACEHOLDER), |(head, tail)| (head + tail) as i64 + chars(SHORTEN_MARKER));
            let before =
                self.replaceable(message).iter().find(|result| result.0 == at).map_or(0, |result| result.1);
            after - before as i64
        });
        let turn = self.turns.iter().find(|turn| turn.0 < cut && cut < turn.1);
        Expected {
            cut,
            turn_prefix: turn.map(|turn| (turn.0, cut)),
            actions: (0..self.len()).map(act).collect(),
            tokens_kept: (kept.sum::<i64>() + changed.sum::<i64>()) as u64,
            edits,
        }
    }

    /// Pinned by the caller, or grown to; the head stays anyway.
    fn is_pin(&self, i: usize) -> bool {
        self.explicitly[i] || (i >= self.head && self.pinned[i])
    }
}

fn chars(text: &str) -> i64 {
    text.chars().count() as i64
}

/// Binds every result, in order, to the nearest preceding unanswered call with its id; one without an id, to the first
/// unanswered call without one (or that takes names) of its name in the nearest message that holds such a call.
fn pair(messages: &[Message], takes_names: bool) -> (Vec<(Place, Option<Place>)>, Vec<Place>) {
    let mut waiting: Vec<(Place, Option<char>, char)> = Vec::new();
    let mut answers = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        for (at, part) in message.parts.iter().enumerate() {
            match part {
                Part::Text(_) => {}
                Part::Call { id, name } => waiting.push(((index, at), *id, *name)),
                Part::Result { id, name, .. } => {
                    let call = match id {
                        Some(_) => waiting.iter().filter(|call| call.1 == *id).map(|call| call.0).next_back(),
                        None => {
                            let fits = |call: &&(Place, Option<char>, char)| {
                                (call.1.is_none() || takes_names) && name.is_none_or(|name| name == call.2)
                            };
                            let nearest = waiting.iter().filter(fits).map(|call| call.0.0).max();
                            waiting
                                .iter()
                                .filter(fits)
                                .map(|call| call.0)
                                .find(|call| Some(call.0) == nearest)
                        }
                    };
                    waiting.retain(|other| Some(other.0) != call);
                    answers.push(((index, at), call));
                }
            }
        }
    }
    (answers, waiting.into_iter().map(|call| call.0).collect())
}

/// For each message the first of those that it stays together with.
fn groups(messages: &[Message], answers: &[(Place, Option<Place>)]) -> Vec<usize> {
    let bound = |i: usize| {
        let (this, next) = (&messages[i], &messages[i + 1]);
        match this.bound {
            Bound::Reasoning => next.who == Who::Assistant && next.bound != Bound::Compaction,
            Bound::Call => next.bound == Bound::Call,
            _ => false,
        }
    };
    let mut joined: Vec<(usize, usize)> =
        answers.iter().filter_map(|(result, call)| Some(((*call)?.0, result.0))).collect();
    joined.extend((1..messages.len()).filter(|&i| bound(i - 1)).map(|i| (i - 1, i)));
    let mut group: Vec<usize> = (0..messages.len()).collect();
    for (one, other) in joined {
        let (old, new) = (group[one].max(group[other]), group[one].min(group[other]));
        group.iter_mut().filter(|each| **each == old).for_each(|each| *each = new);
    }
    group
}
