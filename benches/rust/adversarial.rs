//! Short strings that expose errors of nearly correct counters. String `index` of a seed is always the same.

use regex::Regex;
use tiktoken_rs::CoreBPE;

/// Branches of the patterns: contractions, case, white space, newlines, numbers, symbols, marks, special tokens.
#[rustfmt::skip]
const FRAGMENTS: &[&str] = &[
    "'s", "'S", "'ſ", "'t", "'T", "'re", "'RE", "'rE", "'ve", "'Ve", "'m", "'M", "'ll", "'lL", "'d", "'D",
    "'", "''", "’s", "'\u{212a}", "'x", "'l", "'v", "'r", "a", "b", "A", "B", "ab", "AB", "Ab", "aB", "the",
    " the", "The", "THE", "ß", "ẞ", "é", "É", "e\u{301}", "E\u{301}", "ǅ", "ʰ", "ª", "İ", "ı", "ſ",
    "\u{212a}", "日本", "的", "한국", "ไทย", "हिन्दी", "ع", "א", "ж", "Ж", "α", "Ω", "\u{301}", "\u{308}",
    "\u{94d}", "\u{200d}", "\u{fe0f}", "\u{20e3}", "1", "12", "123", "1234", "0", "٣", "½", "Ⅷ", "②",
    "\u{1d7d8}", " ", "  ", "   ", "\t", "\t\t", "\n", "\n\n", "\r", "\r\n", "\u{b}", "\u{c}", "\u{85}",
    "\u{a0}", "\u{1680}", "\u{2003}", "\u{2028}", "\u{2029}", "\u{202f}", "\u{205f}", "\u{3000}",
    "\u{180e}", "\u{200b}", "\u{feff}", "\u{1c}", "\u{1f}", "!", "!!", "?", ".", "...", ",", "/", "//",
    "/*", "*/", "\\", "\"", "(", ")", "{", "}", "[]", "<", ">", "=", "==", "-", "--", "_", "__", "^", "~",
    "$", "€", "+", "±", "|", "`", "@", "#", "%", "&", "\0", "\u{7f}", "\u{ad}", "\u{e000}", "\u{fffd}",
    "\u{fffe}", "\u{11dbc}", "\u{1c89}", "\u{10ffff}", "👍", "👍🏽", "👩‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪", "→", "│", "▁",
    "<|endoftext|>", "<|endofprompt|>", "<|fim_prefix|>", "<|im_start|>", "<|start|>", "<|endoftext", "|>",
    "http://", ".com", "def ", "return", "\n    ", "\n\t", " \n ", ";\n", "{\n", "),\n",
    "antidisestablishment", "internationalization", "0x7fff",
];

/// General categories, each a pool of code points to draw from.
#[rustfmt::skip]
const CLASSES: &[&str] = &[
    r"\p{Lu}", r"\p{Ll}", r"\p{Lt}", r"\p{Lm}", r"\p{Lo}", r"\p{Mn}", r"\p{Mc}", r"\p{Me}", r"\p{Nd}",
    r"\p{Nl}", r"\p{No}", r"\p{P}", r"\p{Sm}", r"\p{Sc}", r"\p{Sk}", r"\p{So}", r"\s", r"\p{Cc}", r"\p{Cf}",
    r"\p{Co}", r"\p{Cn}",
];

/// The texts before and after every code point.
const CONTEXTS: &[(&str, &str)] =
    &[("", ""), ("a", "a"), (" ", ""), ("A", "b"), ("!", "1"), ("\n", "\n"), (" '", " x"), ("1", "  x")];

const CODE_POINTS: u64 = 0x11_0000;

/// A small generator (SplitMix64): fast, and the same on every platform.
pub struct Random(u64);

impl Random {
    /// An independent generator for each number.
    pub fn new(seed: u64, number: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number.wrapping_mul(0xd129_42e2_96fe_94e3))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.next()) * end as u128) >> 64) as usize
    }

    fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}

/// Generates strings for one vocabulary.
pub struct Generator {
    classes: Vec<Vec<char>>,
    tokens: Vec<Vec<u8>>,
    seed: u64,
}

impl Generator {
    /// Reads the classes of the regex engine and the tokens of the vocabulary once.
    pub fn new(vocabulary: &CoreBPE, tokens: u32, seed: u64) -> Generator {
        let classes = CLASSES.iter().map(|class| members(class)).filter(|class| !class.is_empty()).collect();
        let tokens = (0..tokens).filter_map(|rank| vocabulary.decode_bytes(&[rank]).ok());
        Generator { classes, tokens: tokens.collect(), seed }
    }

    /// The number of strings of [`Generator::code_point`].
    pub fn code_points() -> u64 {
        CODE_POINTS * CONTEXTS.len() as u64
    }

    /// Every code point in every context; `false` for surrogates, which no string contains.
    pub fn code_point(index: u64, out: &mut String) -> bool {
        out.clear();
        let (before, after) = CONTEXTS[(index / CODE_POINTS) as usize];
        let Some(c) = char::from_u32((index % CODE_POINTS) as u32) else { return false };
        out.push_str(before);
        out.push(c);
        out.push_str(after);
        true
    }

    /// String `index`: 1 to 60 characters; one in 64 has up to 600, so that it crosses block boundaries of the engine.
    pub fn string(&self, index: u64, out: &mut String) {
        let random = &mut Random::new(self.seed, index);
        out.clear();
        let longest = if random.below(64) == 0 { 600 } else { 60 };
        let chars = 1 + random.below(longest);
        while out.chars().count() < chars {
            self.stretch(random, chars, out);
        }
        if let Some((at, _)) = out.char_indices().nth(chars) {
            out.truncate(at);
        }
    }

    /// Appends a run of one kind; a string consists of one or several.
    fn stretch(&self, random: &mut Random, chars: usize, out: &mut String) {
        let times = 1 + random.below(chars.min(24));
        match random.below(10) {
            0 | 1 => (0..times).for_each(|_| out.push_str(FRAGMENTS[random.below(FRAGMENTS.len())])),
            2 => (0..times).for_each(|_| out.push(self.any_class(random))),
            3 => {
                let class = random.below(self.classes.len());
                (0..times).for_each(|_| out.push(*random.one(&self.classes[class])));
            }
            4 => alphabet(random, times, "'ſsStTrReEvVmMlLdD\u{212a}aA 1\n", out),
            5 => alphabet(random, times, " \t\n\r\u{b}\u{c}\u{85}\u{a0}\u{2028}\u{3000}a1.", out),
            6 => {
                let piece = if random.below(2) == 0 {
                    FRAGMENTS[random.below(FRAGMENTS.len())].to_owned()
                } else {
                    self.any_class(random).to_string()
                };
                (0..times + random.below(40)).for_each(|_| out.push_str(&piece));
            }
            7 => (0..times.min(8)).for_each(|_| self.token(random, out)),
            8 => alphabet(random, times, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", out),
            _ => (0..times).for_each(|_| out.push(anywhere(random))),
        }
    }

    fn any_class(&self, random: &mut Random) -> char {
        let class = random.below(self.classes.len());
        *random.one(&self.classes[class])
    }

    /// A token of the vocabulary, or its start or end: critical for merging.
    fn token(&self, random: &mut Random, out: &mut String) {
        let token = random.one(&self.tokens);
        let bytes = match random.below(4) {
            0 => &token[random.below(token.len())..],
            1 => &token[..=random.below(token.len())],
            _ => &token[..],
        };
        out.push_str(&String::from_utf8_lossy(bytes));
    }
}

fn members(class: &str) -> Vec<char> {
    let Ok(class) = Regex::new(class) else { return Vec::new() };
    let mut bytes = [0; 4];
    ('\0'..=char::MAX).filter(|c| class.is_match(c.encode_utf8(&mut bytes))).collect()
}

fn alphabet(random: &mut Random, times: usize, of: &str, out: &mut String) {
    let chars: Vec<char> = of.chars().collect();
    (0..times).for_each(|_| out.push(*random.one(&chars)));
}

/// A code point, short encodings more often.
fn anywhere(random: &mut Random) -> char {
    let end = *random.one(&[0x80, 0x800, 0x800, 0x1_0000, 0x11_0000]);
    loop {
        if let Some(c) = char::from_u32(random.below(end) as u32) {
            return c;
        }
    }
}
