//! Tool results that may be cleared or shortened, with their tools.

use super::structure::Structure;
use crate::transcript::Transcript;

/// A result whose content can be replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundResult<'t> {
    /// Its message.
    pub message: usize,
    /// Index of the result in the message, as edits count them.
    pub part: usize,
    /// The tool's name, from the result or its call.
    pub tool: Option<&'t str>,
    /// Length of its text in code points.
    pub chars: usize,
}

/// All results whose content can be replaced, in order; not those of server tools, which belong to their calls. O(bytes
/// of their text).
pub fn results<'t>(
    transcript: &'t Transcript,
    structure: &Structure,
) -> impl Iterator<Item = FoundResult<'t>> {
    let all = (0..transcript.len()).flat_map(|message| {
        let first = transcript.part_range(message).start;
        transcript.part_range(message).map(move |at| (message, at - first, at))
    });
    let replaceable = all.filter(|&(_, _, at)| structure.is_clearable(&transcript.parts[at], at));
    replaceable.map(|(message, part, at)| {
        let result = &transcript.parts[at];
        let call = structure.pairing.call_of(at).map(|call| &transcript.parts[call as usize]);
        let name = result.name.as_ref().or_else(|| call.and_then(|call| call.name.as_ref()));
        let pieces = transcript.pieces_of(result);
        let chars = pieces.iter().map(|piece| transcript.str(&piece.span).chars().count()).sum::<usize>();
        // Pieces are joined by newlines.
        let chars = chars + pieces.len().saturating_sub(1);
        FoundResult { message, part, tool: name.map(|name| transcript.str(name)), chars }
    })
}
