//! Numbers for the ids of calls, since each chunk of texts has keys of its own.

use crate::transcript::{Numbers, Transcript};

/// Ids that were seen, each with a number.
#[derive(Clone, Debug)]
pub(super) struct Ids {
    numbers: Numbers,
    /// Their texts, one after the other.
    text: String,
    ends: Vec<u32>,
}

impl Ids {
    pub fn new() -> Self {
        Ids { numbers: Numbers::new(), text: String::new(), ends: Vec::new() }
    }

    /// The ids of a transcript, each with the index of its key.
    pub fn of_keys(transcript: &Transcript) -> Self {
        let mut ids = Ids::new();
        for span in &transcript.keys {
            ids.number(transcript.str(span));
        }
        ids
    }

    /// The number of an id; a new one where it was not seen before. O(bytes of the id).
    pub fn number(&mut self, id: &str) -> u32 {
        let text_of = |number| text_of(&self.text, &self.ends, number);
        let (number, is_new) = self.numbers.of(id, self.ends.len() as u32, text_of);
        if is_new {
            self.text.push_str(id);
            self.ends.push(self.text.len() as u32);
        }
        number
    }
}

fn text_of<'a>(text: &'a str, ends: &[u32], number: u32) -> &'a str {
    let number = number as usize;
    let start = if number == 0 { 0 } else { ends[number - 1] };
    &text[start as usize..ends[number] as usize]
}
