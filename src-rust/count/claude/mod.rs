//! Claude's tokens, reconstructed: a text becomes marked runs, and each run is covered by the fewest pieces.
//!
//! Anthropic publishes no tokenizer. The package ctok (MIT, by Sander Land) measured which pieces are one token of it,
//! and the rules by which a text is marked before it is cut; `count/data` has these pieces, packed by
//! `scripts/claude_pieces.py`. The counts are unofficial. They equal all recorded ones of ctok's tests.
//!
//! - `normalize`: what the API folds or drops before it reads a text.
//! - `classes`: the class of each character, which decides where runs begin.
//! - `runs`: the runs of a text, and the markers of words, case and borders that are written into them.
//! - `local`: runs whose markers follow from the bytes beside them, cut and looked up 64 bytes at a time.
//! - `tiles`: the fewest pieces that cover a marked run.
//! - `memo`: the pieces of runs that recur.
//! - [`counter`]: the counts of texts: windows of local runs, and all other text run by run.
//!
//! A piece never spans two runs, except from a hard run into punctuation and from an apostrophe into a contraction; these
//! are covered together. So the sum over runs is the fewest pieces of the whole text.

mod classes;
pub mod counter;
mod local;
mod memo;
mod normalize;
mod runs;
mod tiles;

/// A generation of tokenizers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Generation {
    /// Claude 3 to 4.6.
    V3,
    /// Claude Opus 4.7.
    V47,
    /// Claude Opus 4.8 and later: the pieces of 4.7.
    V48,
}

impl Generation {
    /// Every generation.
    pub const ALL: [Generation; 3] = [Generation::V3, Generation::V47, Generation::V48];

    /// The name of its counter.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Generation::V3 => "claude-3",
            Generation::V47 => "claude-4.7",
            Generation::V48 => "claude-4.8",
        }
    }

    /// The generation with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|generation| generation.name() == name)
    }

    /// Whether the frame of a message ends in a word boundary, which the text then need not bring.
    fn begins_within_boundary(self) -> bool {
        self != Generation::V48
    }

    /// Whether curly quotes are plain ones.
    fn folds_quotes(self) -> bool {
        self == Generation::V3
    }

    /// The shortest word that is marked as one of capitals; `None` if none is.
    fn min_capitals(self) -> Option<usize> {
        (self == Generation::V3).then_some(4)
    }
}
