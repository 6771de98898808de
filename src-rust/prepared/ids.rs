//! Numbers for call ids across chunks, since each chunk numbers its keys separately.

use crate::transcript::{Numbers, Transcript};

/// The distinct ids, numbered in order of appearance.
#[derive(Clone, Debug)]
pub(super) struct Ids {
    numbers: Numbers,
    /// Their texts, concatenated.
    text: String,
    ends: Vec<u32>,
}

impl Ids {
    pub fn new() -> Self {
        Ids { numbers: Numbers::new(), text: String::new(), ends: Vec::new() }
    }

    /// The ids of a transcript; each is numbered as its key.
    pub fn of_keys(transcript: &Transcript) -> Self {
        let mut ids = Ids::new();
        for span in &transcript.keys {
            ids.number(transcript.str(span));
        }
        ids
    }

    /// The number of an id, assigned on first use. O(bytes of the id).
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
