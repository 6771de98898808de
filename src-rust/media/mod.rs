//! Media in messages: pictures, documents, sound and video, measured from their bytes.
//!
//! The measures are pixels, pages and seconds; `count` prices them. Only what the measure needs is decoded,
//! and nothing is fetched: a medium at an address counts as one of usual size.

mod base64;
mod pdf;
mod picture;
mod sort;
mod sound;

pub use base64::encode as encode_base64;
pub use picture::{Detail, Picture, base64_size, data_url_size, picture_hash};
pub use sort::Sort;

use picture::decode;

/// A medium. Every variant but text has a hash of its data, by which another one of the same size is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Media {
    /// A picture.
    Picture(Picture),
    /// A document with pages.
    Document {
        /// Its pages, at least 1.
        pages: u32,
        /// A hash of its data or address.
        hash: u64,
    },
    /// Sound.
    Sound {
        /// Its seconds, rounded up.
        seconds: u32,
        /// A hash of its data or address.
        hash: u64,
    },
    /// Video.
    Video {
        /// Its seconds, rounded up.
        seconds: u32,
        /// A hash of its data or address.
        hash: u64,
    },
    /// A file of plain text.
    Text {
        /// Its length.
        bytes: u32,
        /// A hash of its data.
        hash: u64,
    },
}

/// Bytes of the start of a file that are enough to recognise it.
const MAGIC_BYTES: usize = 16;

/// Bytes of the start of a file that are enough to measure sound.
const HEAD_BYTES: usize = 4 << 10;

/// Most bytes of a document that are searched for pages.
const PAGES_WITHIN: usize = 4 << 20;

/// Bytes of a document per page if its pages cannot be found.
const BYTES_PER_PAGE: usize = 100_000;

/// Seconds of sound or video whose length is not known, as of a file that is only referred to.
const UNKNOWN_SECONDS: u32 = 60;

impl Media {
    /// The medium in a `data:` URL or in base64 text. `stated` is what the message says about it; the bytes decide where
    /// they are recognised. O(bytes decoded): a few KB, for documents up to 4 MB.
    #[must_use]
    pub fn of_data(text: &str, stated: Option<Sort>, detail: Detail) -> Media {
        let (url_sort, data) = match text.strip_prefix("data:").and_then(|url| url.split_once(',')) {
            Some((head, data)) => (Sort::of_media_type(head.split(';').next().unwrap_or_default()), data),
            None => (None, text),
        };
        let hash = picture_hash(text);
        let head = decode(data.as_bytes(), MAGIC_BYTES);
        let bytes = decoded_length(data);
        match Sort::of_bytes(&head).or(url_sort).or(stated).unwrap_or(Sort::Document) {
            Sort::Picture => Media::Picture(Picture { size: base64_size(data), detail, hash }),
            Sort::Document => Media::Document { pages: pages(data, &head, bytes), hash },
            Sort::Sound => {
                let head = decode(data.as_bytes(), HEAD_BYTES);
                Media::Sound { seconds: sound::seconds(&head, bytes), hash }
            }
            Sort::Video => {
                let head = decode(data.as_bytes(), HEAD_BYTES);
                Media::Video { seconds: sound::video_seconds(&head, bytes), hash }
            }
            Sort::Text => Media::Text { bytes: u32::try_from(bytes).unwrap_or(u32::MAX), hash },
        }
    }

    /// Whether text is base64 that begins with bytes recognised as a medium. The frame sync of MP3 is too short to tell
    /// it from text.
    #[must_use]
    pub fn is_recognised(text: &str) -> bool {
        let is_base64 =
            |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_' | b'=');
        let head = decode(text.as_bytes(), MAGIC_BYTES);
        let is_sync = head.first() == Some(&0xff) && head.get(1) != Some(&0xd8);
        !is_sync && text.bytes().take(64).all(|byte| is_base64(&byte)) && Sort::of_bytes(&head).is_some()
    }

    /// The medium at an address or under the id of a file, whose bytes are not here.
    #[must_use]
    pub fn at_address(address: &str, sort: Sort, detail: Detail) -> Media {
        let hash = picture_hash(address);
        match sort {
            Sort::Picture => Media::Picture(Picture { size: None, detail, hash }),
            Sort::Document | Sort::Text => Media::Document { pages: 1, hash },
            Sort::Sound => Media::Sound { seconds: UNKNOWN_SECONDS, hash },
            Sort::Video => Media::Video { seconds: UNKNOWN_SECONDS, hash },
        }
    }

    /// Its measures and its hash as numbers, for fingerprints.
    #[must_use]
    pub fn fingerprint(self) -> [u64; 3] {
        let (kind, measure, hash) = match self {
            Media::Picture(picture) => {
                let (width, height) = picture.size.unwrap_or_default();
                return [u64::from(width) | u64::from(height) << 32, picture.detail as u64, picture.hash];
            }
            Media::Document { pages, hash } => (2, pages, hash),
            Media::Sound { seconds, hash } => (3, seconds, hash),
            Media::Video { seconds, hash } => (4, seconds, hash),
            Media::Text { bytes, hash } => (5, bytes, hash),
        };
        [u64::from(measure), kind, hash]
    }
}

/// The pages of a document: those of a PDF that are found in its first 4 MB, else one for each 100 KB, at least 1.
fn pages(data: &str, head: &[u8], bytes: usize) -> u32 {
    let found =
        if head.starts_with(b"%PDF") { pdf::pages(&decode(data.as_bytes(), PAGES_WITHIN)) } else { 0 };
    if found > 0 {
        return found;
    }
    u32::try_from(bytes.div_ceil(BYTES_PER_PAGE)).unwrap_or(u32::MAX).max(1)
}

/// The number of bytes that base64 text stands for.
fn decoded_length(data: &str) -> usize {
    let digits = data.trim_end_matches(['=', '\r', '\n', ' ']).len();
    digits / 4 * 3 + (digits % 4).saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_without_known_pages_is_measured_by_its_bytes() {
        for (bytes, expected) in [(1, 1), (100_000, 1), (100_001, 2), (2_000_000, 20)] {
            let data = "QUJD".repeat(bytes / 3) + ["", "QQ", "QUI"][bytes % 3];
            let found = Media::of_data(&data, Some(Sort::Document), Detail::Auto);
            assert!(
                matches!(found, Media::Document { pages, .. } if pages == expected),
                "{bytes}: {found:?}"
            );
        }
    }

    #[test]
    fn the_bytes_decide_over_what_is_stated() {
        // %PDF-1.7
        let found = Media::of_data("JVBERi0xLjcK", Some(Sort::Picture), Detail::Auto);
        assert!(matches!(found, Media::Document { pages: 1, .. }), "{found:?}");
        let found = Media::of_data("data:text/plain;base64,QUJD", None, Detail::Auto);
        assert!(matches!(found, Media::Text { bytes: 3, .. }), "{found:?}");
        assert!(Media::is_recognised("JVBERi0xLjcK"));
        assert!(!Media::is_recognised("QUJDREVG"));
    }

    #[test]
    fn a_medium_at_an_address_has_the_usual_size() {
        let at = |sort| Media::at_address("https://example.com/a", sort, Detail::Auto);
        assert!(matches!(at(Sort::Document), Media::Document { pages: 1, .. }));
        assert!(matches!(at(Sort::Sound), Media::Sound { seconds: 60, .. }));
        assert!(matches!(at(Sort::Picture), Media::Picture(Picture { size: None, .. })));
    }
}
