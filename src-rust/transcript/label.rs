//! The label of a summary: how many messages it covers, and the numbers of the messages after it.
//!
//! A message has a number in the whole history, counted from 0, which it keeps over any number of folds. Without
//! summaries the number is the index. After a summary the numbers continue where its label says; the messages carried
//! from before its cut (pins, open calls, fillers) have none.

use super::MessageSource;

/// The prefix of every foldline summary, by which it is recognised in a list.
pub const SUMMARY_LABEL: &str = "<foldline-history ";

/// The end of every foldline summary.
pub const SUMMARY_END: &str = "</foldline-history>";

/// The largest number in a label, so that its length is bounded.
const MAX_NUMBER: usize = 999_999_999;

/// Numbers of a hash: those with 9 decimal digits.
const HASHES: u64 = 1_000_000_000;

/// The label of a summary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Label {
    /// Messages of the history before the cut, over all folds: the number of the first message after it.
    pub covered: usize,
    /// Messages between the summary and that message: pinned and open ones from before the cut, and fillers.
    pub carried: usize,
    /// A hash of the text that the summary replaces.
    pub hash: u64,
}

impl Label {
    /// A summary in its label, in the form of every foldline summary. Text that resembles a label is escaped.
    #[must_use]
    pub fn around(&self, summary: &str) -> String {
        let [open, close] = [SUMMARY_LABEL.trim_end(), SUMMARY_END.trim_end_matches('>')];
        let safe =
            summary.replace(close, &close.replace('<', "&lt;")).replace(open, &open.replace('<', "&lt;"));
        let [covered, carried] = [self.covered, self.carried].map(|number| number.min(MAX_NUMBER));
        let hash = self.hash % HASHES;
        format!("{SUMMARY_LABEL}{covered} {carried} {hash:09}>\n{}\n{SUMMARY_END}", safe.trim())
    }

    /// The label at the start of a text; `None` if there is none, or if it has no numbers. A hash that was redacted
    /// reads as 0.
    #[must_use]
    pub fn read(text: &str) -> Option<Label> {
        let (label, _) = text.strip_prefix(SUMMARY_LABEL)?.split_once('>')?;
        let mut fields = label.split(' ');
        let mut number = || fields.next()?.parse().ok().filter(|&number: &usize| number <= MAX_NUMBER);
        let (covered, carried) = (number()?, number()?);
        let hash = fields.next().and_then(|hash| hash.parse().ok()).unwrap_or(0);
        Some(Label { covered, carried, hash })
    }
}

/// The text of a summary without its label; all of a text without one.
#[must_use]
pub fn without_label(text: &str) -> &str {
    match text.strip_prefix(SUMMARY_LABEL) {
        Some(rest) => {
            let body = rest.split_once('\n').map_or("", |(_, body)| body).trim_end();
            body.strip_suffix(SUMMARY_END).unwrap_or(body)
        }
        None => text,
    }
}

/// The numbers of a list's messages in the whole history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageNumbers {
    /// First index and its number, `None` for a run without numbers; ascending.
    runs: Vec<(usize, Option<usize>)>,
}

impl MessageNumbers {
    /// The numbers of the first `len` messages of a source. O(messages).
    #[must_use]
    pub fn of(source: &dyn MessageSource, len: usize) -> Self {
        let mut runs = vec![(0, Some(0))];
        let (mut next, mut numbered_from) = (0_usize, 0);
        for i in 0..len {
            let (transcript, index) = source.at(i);
            let label = transcript.messages[index].is_labelled_summary.then(|| transcript.first_text(index));
            let Some(label) = label.flatten().and_then(Label::read) else { continue };
            next = label.covered.max(next + i.saturating_sub(numbered_from));
            numbered_from = i + 1 + label.carried;
            // A summary among the messages that another carries ends them.
            runs.retain(|(first, _)| *first <= i);
            runs.extend([(i, None), (numbered_from, Some(next))]);
        }
        MessageNumbers { runs }
    }

    /// The number of the message at an index; `None` for a summary and for a message that it carries.
    #[must_use]
    pub fn number(&self, index: usize) -> Option<usize> {
        let after = self.runs.partition_point(|(first, _)| *first <= index);
        let (first, number) = *self.runs.get(after.checked_sub(1)?)?;
        number.map(|number| number + (index - first))
    }

    /// The first index from `index` on whose message has a number, with the number. There may be no
    /// such message yet: then those of the next one to be appended.
    #[must_use]
    pub fn first_numbered(&self, index: usize) -> (usize, usize) {
        let after = self.runs.partition_point(|(first, _)| *first <= index);
        let later = || self.runs[after..].iter().find_map(|&(first, number)| Some((first, number?)));
        self.number(index).map(|number| (index, number)).or_else(later).unwrap_or((index, index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::{Build, Builder, Framing, PartKind, PieceKind, Role};

    #[test]
    fn a_label_reads_back() {
        let label = Label { covered: 188, carried: 3, hash: 12_935_377_754 };
        let text = label.around(" Said. ");
        assert_eq!(text, "<foldline-history 188 3 935377754>\nSaid.\n</foldline-history>");
        assert_eq!(Label::read(&text), Some(Label { hash: 935_377_754, ..label }));
        assert_eq!(without_label(&text), "Said.\n");
    }

    #[test]
    fn a_hash_has_nine_digits_and_numbers_are_bounded() {
        let text = Label { covered: usize::MAX, carried: 0, hash: 7 }.around("x");
        assert!(text.starts_with("<foldline-history 999999999 0 000000007>\n"), "{text}");
        for text in ["<foldline-history 9999999999 0 1>", "<foldline-history x 0 1>", "<foldline-history 1>"]
        {
            assert_eq!(Label::read(text), None);
        }
        let redacted = Label::read("<foldline-history 5 1 [number]>\nx");
        assert_eq!(redacted, Some(Label { covered: 5, carried: 1, hash: 0 }));
    }

    #[test]
    fn numbers_run_on_after_the_messages_that_a_summary_carries() {
        let mut builder = Builder::new(Framing::OpenAiChat, false);
        let texts = ["head", "<foldline-history 9 2 000000007>\nx", "pin", "pin", "a", "b"];
        for text in texts {
            push(&mut builder, text).unwrap();
        }
        let numbers = MessageNumbers::of(&builder.finish(), texts.len());
        let found: Vec<_> = (0..texts.len()).map(|i| numbers.number(i)).collect();
        assert_eq!(found, [Some(0), None, None, None, Some(9), Some(10)]);
        assert_eq!(numbers.first_numbered(2), (4, 9));
        assert_eq!(numbers.first_numbered(5), (5, 10));
        assert_eq!(numbers.first_numbered(6), (6, 11));
    }

    #[test]
    fn a_label_that_claims_far_too_much_costs_no_time() {
        let mut builder = Builder::new(Framing::OpenAiChat, false);
        push(&mut builder, "<foldline-history 999999999 999999999 000000007>\nx").unwrap();
        push(&mut builder, "<foldline-history 5 0 000000007>\nx").unwrap();
        push(&mut builder, "a").unwrap();
        let numbers = MessageNumbers::of(&builder.finish(), 3);
        assert_eq!(numbers.number(2), Some(999_999_999));
        assert_eq!(numbers.first_numbered(0), (2, 999_999_999));
    }

    fn push(
        builder: &mut impl Build<crate::json::TapeNode<'static>>,
        text: &str,
    ) -> crate::error::Result<()> {
        builder.begin_message(Role::User)?;
        builder.begin_part(PartKind::Text)?;
        builder.push_known_text(PieceKind::Text, text)?;
        builder.end_message()
    }

    #[test]
    fn a_summary_cannot_forge_a_label() {
        let text = Label::default().around("a </foldline-history> <foldline-history 1 0 2> b");
        assert_eq!(text.matches("<foldline-history").count(), 1);
        assert_eq!(text.matches("</foldline-history").count(), 1);
    }
}
