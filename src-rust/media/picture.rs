//! The size of pictures, from headers in base64 text (PNG, JPEG, GIF, WebP), and their detail.

use super::base64::DIGITS;

/// The requested detail of a picture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// Chosen by the provider; treated as high.
    #[default]
    Auto,
    /// A small fixed size.
    Low,
}

/// The known properties of a picture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Picture {
    /// Width and height in pixels, if found in its header.
    pub size: Option<(u32, u32)>,
    /// The requested detail.
    pub detail: Detail,
    /// A hash of its data or address, by which another picture of the same size is noticed.
    pub hash: u64,
}

/// The hash of the data or address of a picture. O(bytes), several gigabytes a second.
#[must_use]
pub fn picture_hash(data: &str) -> u64 {
    twox_hash::XxHash3_64::oneshot(data.as_bytes())
}

/// Most bytes of a picture that are decoded. Only in JPEG can the size follow other data (a preview, a colour profile);
/// if it lies beyond this, it is unknown.
const MAX_BYTES: usize = 256 << 10;

/// Bytes that contain the size in most JPEG files.
const NEAR_BYTES: usize = 2 << 10;

/// Longest plausible side.
const MAX_SIDE: u32 = 100_000;

/// The size of the picture in a `data:` URL; `None` for other URLs, other formats and broken headers.
#[must_use]
pub fn data_url_size(url: &str) -> Option<(u32, u32)> {
    let rest = url.strip_prefix("data:")?;
    let (head, data) = rest.split_once(',')?;
    head.ends_with(";base64").then(|| base64_size(data)).flatten()
}

/// The size of a picture in base64, with either alphabet.
#[must_use]
pub fn base64_size(data: &str) -> Option<(u32, u32)> {
    let start = decode(data.as_bytes(), 64);
    let size = if start.starts_with(b"\xff\xd8") {
        [NEAR_BYTES, MAX_BYTES].into_iter().find_map(|most| jpeg(&decode(data.as_bytes(), most)))
    } else {
        fixed(&start)
    };
    size.filter(|(width, height)| (1..=MAX_SIDE).contains(width) && (1..=MAX_SIDE).contains(height))
}

/// Decodes at most `most` bytes of base64. White space is skipped, any other character ends the text.
pub(super) fn decode(text: &[u8], most: usize) -> Vec<u8> {
    let value = |byte: u8| u32::from(VALUES[usize::from(byte)]);
    let mut out = vec![0; most.min(text.len() / 4 * 3 + 3)];
    let (mut len, mut bits, mut held, mut at) = (0, 0_u32, 0, 0);
    while len < out.len() {
        if held == 0 {
            // Groups of four digits without white space.
            let groups = text[at..].chunks_exact(4).zip(out[len..].chunks_exact_mut(3));
            let mut whole = 0;
            for (group, bytes) in groups {
                let [a, b, c, d] = [value(group[0]), value(group[1]), value(group[2]), value(group[3])];
                if a | b | c | d >= NO_DIGIT {
                    break;
                }
                bytes.copy_from_slice(&(a << 18 | b << 12 | c << 6 | d).to_be_bytes()[1..]);
                whole += 1;
            }
            (at, len) = (at + 4 * whole, len + 3 * whole);
        }
        let Some(&byte) = text.get(at).filter(|_| len < out.len()) else { break };
        at += 1;
        match value(byte) {
            value if value < NO_DIGIT => bits = bits << 6 | value,
            _ if matches!(byte, b'\r' | b'\n' | b' ') => continue,
            _ => break,
        }
        held += 6;
        if held >= 8 {
            held -= 8;
            out[len] = (bits >> held & 0xff) as u8;
            len += 1;
        }
    }
    out.truncate(len);
    out
}

/// The value of characters that are no digits: a bit that no digit has.
const NO_DIGIT: u32 = 64;

/// The values of digits, in either alphabet.
const VALUES: [u8; 256] = {
    let mut values = [NO_DIGIT as u8; 256];
    let mut value = 0;
    while value < 64 {
        values[DIGITS[value as usize] as usize] = value;
        value += 1;
    }
    (values[b'-' as usize], values[b'_' as usize]) = (62, 63);
    values
};

/// The size in formats that store it at a fixed offset.
fn fixed(bytes: &[u8]) -> Option<(u32, u32)> {
    let big = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let short = |at: usize| Some(u32::from(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?)));
    let three = |at: usize| Some(short(at)? | u32::from(*bytes.get(at + 2)?) << 16);
    let size = if bytes.starts_with(b"\x89PNG\r\n\x1a\n") && bytes.get(12..16)? == b"IHDR" {
        (big(16)?, big(20)?)
    } else if bytes.starts_with(b"GIF8") {
        (short(6)?, short(8)?)
    } else if bytes.starts_with(b"RIFF") && bytes.get(8..12)? == b"WEBP" {
        match bytes.get(12..16)? {
            b"VP8 " => (short(26)? & 0x3fff, short(28)? & 0x3fff),
            b"VP8L" => {
                let packed = short(21)? | short(23)? << 16;
                ((packed & 0x3fff) + 1, (packed >> 14 & 0x3fff) + 1)
            }
            b"VP8X" => (three(24)? + 1, three(27)? + 1),
            _ => return None,
        }
    } else {
        return None;
    };
    Some(size)
}

/// The size in the first frame header of a JPEG.
fn jpeg(bytes: &[u8]) -> Option<(u32, u32)> {
    let short = |at: usize| Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    let mut at = 2;
    loop {
        match (*bytes.get(at)?, *bytes.get(at + 1)?) {
            (0xff, 0xff) => at += 1,
            (0xff, 0x01 | 0xd0..=0xd8) => at += 2,
            // Frame headers, except for Huffman tables (c4), extensions (c8) and arithmetic conditioning (cc).
            (0xff, 0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf) => {
                let (height, width) = (short(at + 5)?, short(at + 7)?);
                return Some((width.into(), height.into()));
            }
            (0xff, 0xd9 | 0xda) => return None,
            (0xff, _) => at += 2 + usize::from(short(at + 2)?.max(2)),
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_decoded_up_to_an_end_and_without_white_space() {
        let bytes: Vec<u8> = (0..=255).cycle().skip(7).take(600).collect();
        let text = crate::media::encode_base64(&bytes);
        let url_safe = text.replace('+', "-").replace('/', "_");
        for most in [0, 1, 2, 3, 4, 5, 64, 599, 600, 9_000] {
            let expected = &bytes[..most.min(600)];
            assert_eq!(decode(text.as_bytes(), most), expected, "{most}");
            assert_eq!(decode(url_safe.as_bytes(), most), expected, "{most}");
        }
        for at in 0..12 {
            let (before, after) = text.split_at(at);
            let broken = format!("{before}\r\n {after}");
            assert_eq!(decode(broken.as_bytes(), 9_000), bytes, "{at}");
            let ended = format!("{before}!{after}");
            assert_eq!(decode(ended.as_bytes(), 9_000), bytes[..at * 6 / 8], "{at}");
        }
    }

    fn encode(bytes: &[u8]) -> String {
        const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut out = String::new();
        for chunk in bytes.chunks(3) {
            let bits = chunk.iter().fold(0_u32, |bits, &byte| bits << 8 | u32::from(byte))
                << (8 * (3 - chunk.len()));
            for i in 0..=chunk.len() {
                out.push(ALPHABET[(bits >> (18 - 6 * i) & 63) as usize] as char);
            }
        }
        out
    }

    fn samples() -> Vec<(&'static str, Vec<u8>)> {
        let webp = |kind: &[u8], rest: &[u8]| [b"RIFF\0\0\0\0WEBP", kind, b"\0\0\0\0", rest].concat();
        vec![
            ("png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\x1c\0\0\x01\x68\x08\x06".to_vec()),
            ("gif", b"GIF89a\x1c\x02\x68\x01\0".to_vec()),
            ("webp lossy", webp(b"VP8 ", b"\0\0\0\x9d\x01\x2a\x1c\x02\x68\x01")),
            ("webp lossless", webp(b"VP8L", &[0x2f, 0x1b, 0xc2, 0x59, 0x00])),
            ("webp extended", webp(b"VP8X", &[0, 0, 0, 0, 0x1b, 0x02, 0, 0x67, 0x01, 0])),
            (
                "jpeg",
                b"\xff\xd8\xff\xe0\0\x04ab\xff\xff\xc4\0\x02\xff\xc2\0\x11\x08\x01\x68\x02\x1c\x03".to_vec(),
            ),
        ]
    }

    #[test]
    fn sizes_are_found() {
        for (name, bytes) in samples() {
            assert_eq!(base64_size(&encode(&bytes)), Some((540, 360)), "{name}");
            let url = format!("data:image/x;base64,{}", encode(&bytes));
            assert_eq!(data_url_size(&url), Some((540, 360)), "{name}");
        }
        assert_eq!(data_url_size("https://example.com/a.png"), None);
        assert_eq!(data_url_size("data:image/png,abc"), None);
    }

    #[test]
    fn cut_and_changed_headers_are_no_trouble() {
        for (_, bytes) in samples() {
            for end in 0..bytes.len() {
                let _ = base64_size(&encode(&bytes[..end]));
                let mut changed = bytes.clone();
                for value in [0, 1, 0x7f, 0xff] {
                    changed[end] = value;
                    let _ = base64_size(&encode(&changed));
                }
            }
        }
        let endless = [b"\xff\xd8".to_vec(), b"\xff\xe1\0\x02".repeat(MAX_BYTES)].concat();
        assert_eq!(base64_size(&encode(&endless)), None);
    }
}
