//! The cost of encrypted content. It cannot be tokenized, so it is priced by length and always `estimated`.

use crate::transcript::{Part, PartKind, PieceKind, Transcript};

/// Bytes of the envelope around the content. Requests, 2026-11: reasoning and compactions of the Responses API.
const ENVELOPE_BYTES: usize = 650;

/// Tokens of encrypted content, given its length in base64 characters.
///
/// Reasoning: a quarter of its bytes. One recorded block of 9,572 characters was charged about 1,815; the formula gives
/// 1,632. Compactions are denser text: two elevenths. Five recorded ones of 2,764 to 4,772 characters were charged 263
/// to 538; the formula gives 258 to 532. The exact charge of blocks of fewer than 1,600 characters is not known.
#[must_use]
pub fn encrypted_tokens(kind: PartKind, base64_chars: usize) -> u32 {
    let bytes = (base64_chars / 4).saturating_mul(3).saturating_sub(ENVELOPE_BYTES);
    let tokens = if kind == PartKind::Reasoning { bytes / 4 } else { bytes / 11 * 2 };
    u32::try_from(tokens).unwrap_or(u32::MAX)
}

/// Tokens of the encrypted pieces of a part.
pub(super) fn of_part(transcript: &Transcript, part: &Part) -> u32 {
    let pieces = transcript.pieces_of(part).iter().filter(|piece| piece.kind == PieceKind::Encrypted);
    let tokens = pieces.map(|piece| encrypted_tokens(part.kind, transcript.str(&piece.span).len()));
    tokens.fold(0, u32::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_blocks() {
        assert_eq!(encrypted_tokens(PartKind::Reasoning, 9572), 1632);
        assert_eq!(encrypted_tokens(PartKind::Reasoning, 600), 0);
        assert_eq!(encrypted_tokens(PartKind::Unknown, 2764), 258);
        assert_eq!(encrypted_tokens(PartKind::Unknown, 4772), 532);
    }
}
