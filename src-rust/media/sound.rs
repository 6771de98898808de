//! The length of sound and video, from the first bytes of a file and its size.

/// Bytes of a second of sound in an unknown encoding: 128 kbit/s, the usual rate of MP3.
const SOUND_BYTES: usize = 16_000;

/// Bytes of a second of video in an unknown encoding: 1 Mbit/s.
const VIDEO_BYTES: usize = 125_000;

/// Bit rates of MPEG 1 layer III in kbit/s, by their index in a frame header; 0 is free or invalid.
const MPEG1_RATES: [usize; 16] = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 0];

/// The same for MPEG 2 and 2.5.
const MPEG2_RATES: [usize; 16] = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160, 0];

/// Seconds of sound, rounded up, at least 1. `head` are the first bytes of a file of `bytes`.
pub(super) fn seconds(head: &[u8], bytes: usize) -> u32 {
    let rate = wave_rate(head).or_else(|| mp3_rate(head)).unwrap_or(SOUND_BYTES);
    whole(movie_seconds(head).unwrap_or_else(|| bytes.div_ceil(rate)))
}

/// Seconds of video, rounded up, at least 1.
pub(super) fn video_seconds(head: &[u8], bytes: usize) -> u32 {
    whole(movie_seconds(head).unwrap_or_else(|| bytes.div_ceil(VIDEO_BYTES)))
}

fn whole(seconds: usize) -> u32 {
    u32::try_from(seconds).unwrap_or(u32::MAX).max(1)
}

/// Bytes a second of a WAVE file, from its `fmt ` chunk.
fn wave_rate(head: &[u8]) -> Option<usize> {
    if !head.starts_with(b"RIFF") || head.get(8..12)? != b"WAVE" {
        return None;
    }
    let at = memchr::memmem::find(head, b"fmt ")?;
    let rate = u32::from_le_bytes(head.get(at + 16..at + 20)?.try_into().ok()?);
    usize::try_from(rate).ok().filter(|rate| *rate > 0)
}

/// Bytes a second of an MP3 file with a constant rate, from its first frame header.
fn mp3_rate(head: &[u8]) -> Option<usize> {
    let mut at = 0;
    if head.starts_with(b"ID3") {
        // The size of the tag is in 7 bits a byte.
        let size = head.get(6..10)?.iter().fold(0, |size, &byte| size << 7 | usize::from(byte & 0x7f));
        at = size + 10;
    }
    let frame = head.get(at..at + 3)?;
    if frame[0] != 0xff || frame[1] & 0xe6 != 0xe2 {
        return None;
    }
    let rates = if frame[1] & 0x18 == 0x18 { MPEG1_RATES } else { MPEG2_RATES };
    Some(rates[usize::from(frame[2] >> 4)] * 125).filter(|rate| *rate > 0)
}

/// Seconds of an MP4 or MOV file whose movie header is at its start.
fn movie_seconds(head: &[u8]) -> Option<usize> {
    let at = memchr::memmem::find(head, b"mvhd")? + 4;
    let long = |at: usize| Some(u64::from(u32::from_be_bytes(head.get(at..at + 4)?.try_into().ok()?)));
    let (scale, duration) = match head.get(at)? {
        0 => (long(at + 12)?, long(at + 16)?),
        _ => (long(at + 20)?, long(at + 24)? << 32 | long(at + 28)?),
    };
    let seconds = (scale > 0).then(|| duration.div_ceil(scale))?;
    usize::try_from(seconds).ok().filter(|seconds| *seconds > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_of_known_headers() {
        let mut wave = b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0".to_vec();
        wave.extend_from_slice(&16_000_u32.to_le_bytes());
        wave.extend_from_slice(&32_000_u32.to_le_bytes());
        assert_eq!(seconds(&wave, 1_920_000), 60);
        assert_eq!(seconds(b"\xff\xfb\x90\x00", 16_000 * 90), 90);
        assert_eq!(seconds(b"\xff\xf3\x40\x00", 4_000 * 30), 30);
        let mut movie = b"\0\0\0\x20ftypisom\0\0\0\x6cmoov\0\0\0\x6cmvhd\0\0\0\0\0\0\0\0\0\0\0\0".to_vec();
        movie.extend_from_slice(&1_000_u32.to_be_bytes());
        movie.extend_from_slice(&12_500_u32.to_be_bytes());
        assert_eq!(video_seconds(&movie, 9_999_999), 13);
        assert_eq!(seconds(b"OggS", 160_000), 10);
        assert_eq!(video_seconds(b"", 0), 1);
    }

    #[test]
    fn cut_and_changed_headers_are_no_trouble() {
        let wave = b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x80\x3e\0\0\0\x7d\0\0";
        let movie = b"\0\0\0\x6cmvhd\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff";
        let tag = b"ID3\x04\0\0\x7f\x7f\x7f\x7f\xff\xfb\x90";
        for bytes in [wave.as_slice(), movie, tag] {
            for end in 0..=bytes.len() {
                assert!(seconds(&bytes[..end], 1_000) >= 1);
                assert!(video_seconds(&bytes[..end], 1_000) >= 1);
            }
        }
    }
}
