//! The fewest pieces that cover a marked run.
//!
//! The pieces of a generation are a trie over bytes. Covering goes from left to right: from each position that some cover
//! reaches, every piece that begins there reaches another with one piece more. A character that is no piece costs the
//! fewest parts of its bytes. O(bytes times the longest piece).

use std::sync::LazyLock;

use rustc_hash::FxHashSet;

use super::Generation;

const PIECES_3: &[u8] = include_bytes!("../data/claude-3.pieces");
const PIECES_47: &[u8] = include_bytes!("../data/claude-4.7.pieces");

/// Markers in a marked run. These control characters are in no normalized text.
pub(super) const BEGIN: u8 = 1;
pub(super) const END: u8 = 2;
pub(super) const SHIFT: u8 = 3;
pub(super) const CAPS: u8 = 4;

/// The pieces of a generation.
pub(super) struct Pieces {
    nodes: Vec<Node>,
    /// The byte and the node of each child, those of a node together, in order of their bytes.
    children: Vec<(u8, u32)>,
    /// Parts of characters: two or three bytes.
    parts: FxHashSet<Vec<u8>>,
    /// The pieces of each character of the Basic Multilingual Plane.
    of_char: Vec<u8>,
}

#[derive(Clone, Copy, Default)]
struct Node {
    first_child: u32,
    children: u32,
    is_piece: bool,
}

static OF_3: LazyLock<Pieces> = LazyLock::new(|| Pieces::read(PIECES_3));
static OF_47: LazyLock<Pieces> = LazyLock::new(|| Pieces::read(PIECES_47));

/// Positions that a cover has reached, with the pieces so far; used again from run to run.
#[derive(Default)]
pub(super) struct Reached(Vec<u32>);

impl Pieces {
    /// The pieces of a generation, read at their first use.
    pub(super) fn of(generation: Generation) -> &'static Pieces {
        match generation {
            Generation::V3 => &OF_3,
            Generation::V47 | Generation::V48 => &OF_47,
        }
    }

    fn read(mut packed: &[u8]) -> Pieces {
        let pieces = unpacked(&mut packed);
        let parts = unpacked(&mut packed).into_iter().collect();
        let mut trie =
            Pieces { nodes: vec![Node::default()], children: Vec::new(), parts, of_char: Vec::new() };
        // Breadth first, so that the children of a node stand together: a node is a range of sorted pieces.
        let mut ranges = std::collections::VecDeque::from([(0, 0, pieces.len(), 0)]);
        while let Some((node, mut from, to, depth)) = ranges.pop_front() {
            if let Some(piece) = pieces[..to].get(from)
                && piece.len() == depth
                && node != 0
            {
                trie.nodes[node].is_piece = true;
                from += 1;
            }
            trie.nodes[node].first_child = u32::try_from(trie.children.len()).unwrap_or(u32::MAX);
            for same in pieces[from..to].chunk_by(|a, b| a[depth] == b[depth]) {
                let child = trie.nodes.len();
                trie.nodes.push(Node::default());
                trie.children.push((same[0][depth], u32::try_from(child).unwrap_or(u32::MAX)));
                trie.nodes[node].children += 1;
                ranges.push_back((child, from, from + same.len(), depth + 1));
                from += same.len();
            }
        }
        let prices = (0..=0xffff).map(|code| char::from_u32(code).map_or(0, |c| trie.price(c)));
        trie.of_char = prices.map(|price| u8::try_from(price).unwrap_or(u8::MAX)).collect();
        trie
    }

    #[inline]
    fn child(&self, node: usize, byte: u8) -> Option<usize> {
        let Node { first_child, children, .. } = self.nodes[node];
        let children = &self.children[first_child as usize..(first_child + children) as usize];
        let found = if children.len() < 8 {
            children.iter().find(|(known, _)| *known == byte).map(|(_, child)| *child)
        } else {
            children.binary_search_by_key(&byte, |(known, _)| *known).ok().map(|at| children[at].1)
        };
        found.map(|child| child as usize)
    }

    /// The fewest pieces that cover `run`, which is marked UTF-8.
    pub(super) fn cover(&self, run: &[u8], reached: &mut Reached) -> u64 {
        const NOT_REACHED: u32 = u32::MAX;
        let best = &mut reached.0;
        best.clear();
        best.resize(run.len() + 1, NOT_REACHED);
        best[0] = 0;
        for from in 0..run.len() {
            let so_far = best[from];
            if so_far == NOT_REACHED {
                continue;
            }
            let len = char_len(run[from]).min(run.len() - from);
            let (mut node, mut is_character_covered) = (0, false);
            for (at, byte) in run[from..].iter().enumerate() {
                let Some(child) = self.child(node, *byte) else { break };
                node = child;
                if self.nodes[node].is_piece {
                    is_character_covered |= at + 1 == len;
                    let to = &mut best[from + at + 1];
                    *to = (*to).min(so_far + 1);
                }
            }
            if !is_character_covered {
                let to = &mut best[from + len];
                *to = (*to).min(so_far + self.fewest_parts(&run[from..from + len]));
            }
        }
        best[run.len()].into()
    }

    /// The pieces of one character.
    #[inline]
    pub(super) fn of_char(&self, c: char) -> u64 {
        self.of_char.get(c as usize).map_or_else(|| self.price(c), |price| u64::from(*price))
    }

    fn price(&self, c: char) -> u64 {
        let mut bytes = [0; 4];
        let bytes = c.encode_utf8(&mut bytes).as_bytes();
        let node = bytes.iter().try_fold(0, |node, byte| self.child(node, *byte));
        match node {
            Some(node) if self.nodes[node].is_piece => 1,
            _ => self.fewest_parts(bytes).into(),
        }
    }

    /// The fewest parts that cover the bytes of a character: known ones of several bytes, and single bytes.
    fn fewest_parts(&self, bytes: &[u8]) -> u32 {
        if bytes.is_empty() {
            return 0;
        }
        let known = (2..bytes.len()).filter(|len| self.parts.contains(&bytes[..*len]));
        let best = known.map(|len| 1 + self.fewest_parts(&bytes[len..])).min().unwrap_or(u32::MAX);
        best.min(1 + self.fewest_parts(&bytes[1..]))
    }
}

/// The length of a character by its first byte.
fn char_len(first: u8) -> usize {
    match first {
        0xf0.. => 4,
        0xe0.. => 3,
        0xc0.. => 2,
        _ => 1,
    }
}

/// A list of sorted pieces: their number, then for each the bytes shared with the one before, and the others.
fn unpacked(packed: &mut &[u8]) -> Vec<Vec<u8>> {
    let count = varint(packed);
    let mut pieces: Vec<Vec<u8>> = Vec::with_capacity(count);
    for _ in 0..count {
        let (shared, more) = (varint(packed), varint(packed));
        let (own, rest) = packed.split_at_checked(more).unwrap_or_default();
        let before = pieces.last().and_then(|piece| piece.get(..shared)).unwrap_or_default();
        let piece = [before, own].concat();
        pieces.push(piece);
        *packed = rest;
    }
    pieces
}

/// A number of seven bits a byte, the lowest first.
fn varint(packed: &mut &[u8]) -> usize {
    let mut number = 0;
    for shift in (0..).step_by(7) {
        let Some((byte, rest)) = packed.split_first() else { break };
        *packed = rest;
        number |= usize::from(byte & 127) << shift;
        if *byte < 128 {
            break;
        }
    }
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cover(generation: Generation, run: &str) -> u64 {
        Pieces::of(generation).cover(run.as_bytes(), &mut Reached::default())
    }

    #[test]
    fn a_run_is_covered_by_the_fewest_pieces() {
        assert_eq!(cover(Generation::V3, "\u{1}the\u{2}"), 1);
        assert_eq!(cover(Generation::V3, "\u{3}\u{1}the\u{2}"), 1);
        assert_eq!(cover(Generation::V3, ""), 0);
        assert_eq!(cover(Generation::V3, "123"), 1);
        assert_eq!(cover(Generation::V3, "1234"), 2);
        assert_eq!(cover(Generation::V3, "!!!"), 1);
    }

    #[test]
    fn a_character_without_a_piece_costs_parts_of_its_bytes() {
        let pieces = Pieces::of(Generation::V3);
        assert_eq!(pieces.of_char('a'), 1);
        assert_eq!(pieces.of_char('\u{e004}'), 3);
        assert_eq!(pieces.of_char('\u{10ffff}'), 4);
        // f0 9f 98 is one part, 80 another.
        assert_eq!(pieces.of_char('\u{1f610}'), cover(Generation::V3, "\u{1f610}"));
    }

    #[test]
    fn both_files_hold_what_was_published() {
        let count = |generation| {
            let pieces = Pieces::of(generation);
            (pieces.nodes.iter().filter(|node| node.is_piece).count(), pieces.parts.len())
        };
        assert_eq!(count(Generation::V3), (48_325 + 7, 467));
        assert_eq!(count(Generation::V47), (14_815 + 4, 468));
    }
}
