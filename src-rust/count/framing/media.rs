//! The cost of media: the providers' published rules, applied to pixels, pages and seconds.
//!
//! # Pictures
//!
//! | rule | where | source |
//! |---|---|---|
//! | [`Tiles`](PictureRule::Tiles) | gpt-4o, gpt-4.1, gpt-5, o1, o3 | OpenAI's guide to images, 2026-11; 85 at low detail |
//! | [`Patches`](PictureRule::Patches) | gpt-4.1-mini and -nano, o4-mini, gpt-5-mini and -nano | the same; a recorded 540 x 360 picture cost gpt-4.1-nano 503, the rule gives 502 |
//! | [`ClaudeArea`](PictureRule::ClaudeArea) | Claude up to 4.6 | Anthropic's guide to vision: width x height / 750, at most 1568 |
//! | [`ClaudePatches`](PictureRule::ClaudePatches) | Claude 4.7 and later | the same: patches of 28 px, long edge up to 2576, at most 4784 |
//! | [`GeminiTiles`](PictureRule::GeminiTiles) | Gemini up to 2.5 | Google's guide to tokens; a recorded 540 x 360 picture cost gemini-2.0-flash 1806, as the rule gives |
//! | [`Flat`](PictureRule::Flat) | Gemini 3 and later | Google's guide to media resolution: 1120 unless set otherwise |
//!
//! Sources disagree and providers change them, so a count with a picture in it is always `estimated`. The size is read
//! from the first bytes of a `data:` URL or of a base64 block (PNG, JPEG, GIF, WebP); a picture referred to by another
//! URL is not fetched and costs the provider's default.
//!
//! # Documents, sound, video
//!
//! The rule for pictures names the provider, so the same row decides ([`PictureRule::rates`]), for every dialect.
//!
//! | provider | page | second of sound | second of video | source, 2026-11 |
//! |---|---|---|---|---|
//! | OpenAI | a picture of 768 x 1024 and 500 of text | 10 | - | guide to file inputs: text and picture of each page; Realtime: 1 token per 100 ms |
//! | Anthropic | 2333 | - | - | guide to PDF support: about 7,000 for 3 pages with text and pictures |
//! | Google, up to Gemini 2.5 | 258 | 32 | 263 | guides to documents, audio and video understanding |
//! | Google, Gemini 3 | 560 | 32 | 102 | guide to media resolution: a page 560, a frame 70 |
//!
//! Where a provider takes no such medium (-), the dearest price of the others counts. A file of text costs a token for
//! 4 bytes. The number of pages is that of the PDF's page objects, else a page for 100 KB (`crate::media`).

use crate::media::{Detail, Media, Picture};

/// How a provider prices pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PictureRule {
    /// The same for all.
    Flat(u32),
    /// Scaled into 2048 x 2048, then to 768 on the short side; a base and a price for each tile of 512 px.
    Tiles {
        /// For each picture; the whole price at low detail.
        base: u32,
        /// For each tile.
        tile: u32,
    },
    /// Patches of 32 px, at most 1536 of them, times a factor.
    Patches {
        /// The factor in hundredths.
        percent: u32,
    },
    /// Width x height / 750, after scaling to 1568 px on the long edge and 1568 tokens.
    ClaudeArea,
    /// Patches of 28 px, after scaling to 2576 px on the long edge and 4784 patches.
    ClaudePatches,
    /// 258 for a small picture, else 258 for each tile and for the whole.
    GeminiTiles,
}

/// The prices of media other than pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MediaRates {
    /// Tokens of a page.
    pub page: u32,
    /// Tokens of a second of sound.
    pub sound: u32,
    /// Tokens of a second of video.
    pub video: u32,
}

/// Size of the picture that OpenAI makes of a page.
const PAGE_SIZE: (u32, u32) = (768, 1024);

/// Tokens of the text of a page that OpenAI adds to its picture: a page of 400 words.
const PAGE_TEXT: u32 = 500;

/// Dearest known price of a second of sound.
const SOUND: u32 = 32;

/// Dearest known price of a second of video.
const VIDEO: u32 = 263;

/// Bytes of a file of text for a token.
const TEXT_BYTES: u32 = 4;

/// Side of the square assumed for a picture of unknown size.
const UNKNOWN_SIDE: u32 = 1024;

impl PictureRule {
    /// The rule for providers whose rule is not known: OpenAI's, the most copied.
    pub const UNKNOWN: PictureRule = PictureRule::Tiles { base: 85, tile: 170 };

    /// Tokens of a medium, at least 1.
    #[must_use]
    pub fn media_tokens(self, medium: Media) -> u32 {
        let rates = self.rates();
        let tokens = match medium {
            Media::Picture(picture) => self.tokens(picture),
            Media::Document { pages, .. } => rates.page.saturating_mul(pages),
            Media::Sound { seconds, .. } => rates.sound.saturating_mul(seconds),
            Media::Video { seconds, .. } => rates.video.saturating_mul(seconds),
            Media::Text { bytes, .. } => bytes.div_ceil(TEXT_BYTES),
        };
        tokens.max(1)
    }

    /// The prices of other media at the provider that has this rule for pictures.
    #[must_use]
    pub fn rates(self) -> MediaRates {
        match self {
            PictureRule::Tiles { .. } | PictureRule::Patches { .. } => {
                let picture = Picture { size: Some(PAGE_SIZE), ..Picture::default() };
                MediaRates { page: self.tokens(picture).saturating_add(PAGE_TEXT), sound: 10, video: VIDEO }
            }
            PictureRule::ClaudeArea | PictureRule::ClaudePatches => {
                MediaRates { page: 2333, sound: SOUND, video: VIDEO }
            }
            PictureRule::GeminiTiles => MediaRates { page: 258, sound: SOUND, video: VIDEO },
            PictureRule::Flat(_) => MediaRates { page: 560, sound: SOUND, video: 102 },
        }
    }

    /// Tokens of a picture.
    #[must_use]
    pub fn tokens(self, picture: Picture) -> u32 {
        let low = picture.detail == Detail::Low;
        let (width, height) = picture.size.unwrap_or((UNKNOWN_SIDE, UNKNOWN_SIDE));
        let (width, height) = (f64::from(width.max(1)), f64::from(height.max(1)));
        let known = picture.size.is_some();
        match self {
            PictureRule::Flat(tokens) => tokens,
            PictureRule::Tiles { base, .. } if low => base,
            PictureRule::Tiles { base, tile } => {
                let into_square = (2048.0 / width.max(height)).min(1.0);
                let to_short_side = (768.0 / (width.min(height) * into_square)).min(1.0);
                let scale = into_square * to_short_side;
                let count = tiles(width * scale, 512.0).saturating_mul(tiles(height * scale, 512.0));
                tile.saturating_mul(count).saturating_add(base)
            }
            PictureRule::Patches { percent } => {
                patches(width, height, 32.0, 1536.0).saturating_mul(percent).div_ceil(100)
            }
            PictureRule::ClaudeArea if !known => 1568,
            PictureRule::ClaudeArea => {
                let scale = (1568.0 / width.max(height)).min(1.0);
                to_u32((width * height * scale * scale / 750.0).ceil()).clamp(1, 1568)
            }
            PictureRule::ClaudePatches if !known => 1568,
            PictureRule::ClaudePatches => {
                let scale = (2576.0 / width.max(height)).min(1.0);
                patches(width * scale, height * scale, 28.0, 4784.0)
            }
            PictureRule::GeminiTiles if width <= 384.0 && height <= 384.0 => 258,
            PictureRule::GeminiTiles => {
                let tile = (width.min(height) / 1.5).clamp(256.0, 768.0).floor();
                tiles(width, tile).saturating_mul(tiles(height, tile)).saturating_add(1).saturating_mul(258)
            }
        }
    }
}

/// Tiles that cover a length.
fn tiles(length: f64, tile: f64) -> u32 {
    // A thousandth of a pixel is rounding error from scaling, not a tile.
    to_u32(((length - 1e-3) / tile).ceil()).max(1)
}

/// Patches that cover an area, after scaling it down to at most `most` patches.
fn patches(width: f64, height: f64, side: f64, most: f64) -> u32 {
    let count = |scale: f64| tiles(width * scale, side).saturating_mul(tiles(height * scale, side));
    if f64::from(count(1.0)) <= most {
        return count(1.0);
    }
    let scale = (side * side * most / (width * height)).sqrt();
    // Shrunk slightly further, so that the shorter side is whole patches.
    let whole = |length: f64| ((length * scale / side).floor() / (length * scale / side)).max(0.0);
    let fit = whole(width).min(whole(height));
    let shrunk = if fit > 0.0 { count(scale * fit) } else { to_u32(most) };
    shrunk.min(to_u32(most))
}

/// A rounded length or count. Never negative; large only if a header is wrong.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn to_u32(number: f64) -> u32 {
    number.clamp(0.0, 1e6) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(rule: PictureRule, width: u32, height: u32) -> u32 {
        rule.tokens(Picture { size: Some((width, height)), ..Picture::default() })
    }

    #[test]
    fn published_and_recorded_examples() {
        let tiles = PictureRule::Tiles { base: 85, tile: 170 };
        assert_eq!(cost(tiles, 1024, 1024), 765);
        assert_eq!(cost(tiles, 2048, 4096), 1105);
        assert_eq!(cost(tiles, 128, 64), 255);
        assert_eq!(tiles.tokens(Picture { size: Some((4096, 8192)), detail: Detail::Low, hash: 0 }), 85);
        assert_eq!(tiles.tokens(Picture::default()), 765);
        let patches = PictureRule::Patches { percent: 100 };
        assert_eq!(cost(patches, 1024, 1024), 1024);
        assert_eq!(cost(patches, 1800, 2400), 1452);
        assert_eq!(cost(PictureRule::Patches { percent: 246 }, 540, 360), 502);
        assert_eq!(cost(PictureRule::ClaudeArea, 200, 200), 54);
        assert_eq!(cost(PictureRule::ClaudeArea, 1000, 1000), 1334);
        assert_eq!(cost(PictureRule::ClaudeArea, 8000, 6000), 1568);
        assert_eq!(cost(PictureRule::ClaudePatches, 1000, 1000), 1296);
        assert_eq!(cost(PictureRule::GeminiTiles, 384, 384), 258);
        assert_eq!(cost(PictureRule::GeminiTiles, 540, 360), 1806);
    }

    #[test]
    fn other_media_cost_what_their_provider_publishes() {
        let (pages, seconds) =
            (|pages| Media::Document { pages, hash: 0 }, |seconds| Media::Sound { seconds, hash: 0 });
        let openai = PictureRule::Tiles { base: 85, tile: 170 };
        assert_eq!(openai.media_tokens(pages(2)), 2 * 1265);
        assert_eq!(openai.media_tokens(seconds(60)), 600);
        assert_eq!(PictureRule::ClaudeArea.media_tokens(pages(3)), 6999);
        assert_eq!(PictureRule::GeminiTiles.media_tokens(pages(10)), 2580);
        assert_eq!(PictureRule::GeminiTiles.media_tokens(seconds(60)), 1920);
        assert_eq!(PictureRule::Flat(1120).media_tokens(Media::Video { seconds: 10, hash: 0 }), 1020);
        assert_eq!(openai.media_tokens(Media::Text { bytes: 4001, hash: 0 }), 1001);
        for rule in [openai, PictureRule::ClaudePatches, PictureRule::Flat(0)] {
            assert!(rule.media_tokens(pages(u32::MAX)) > 0);
            assert_eq!(rule.media_tokens(Media::Text { bytes: 0, hash: 0 }), 1);
        }
    }

    #[test]
    fn no_size_is_out_of_bounds() {
        let rules = [
            PictureRule::Flat(1120),
            PictureRule::Tiles { base: 2833, tile: 5667 },
            PictureRule::Patches { percent: 246 },
            PictureRule::ClaudeArea,
            PictureRule::ClaudePatches,
            PictureRule::GeminiTiles,
        ];
        for rule in rules {
            for (width, height) in [(0, 0), (1, u32::MAX), (u32::MAX, 1), (u32::MAX, u32::MAX), (1, 1)] {
                assert!(cost(rule, width, height) > 0, "{rule:?}");
            }
        }
    }
}
