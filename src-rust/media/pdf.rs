//! The number of pages of a PDF: its objects of `/Type /Page`, plain or within compressed object streams.

use memchr::memmem::{Finder, find};
use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;

/// Most bytes that are inflated of one document. A page object has some hundred bytes, so this is tens of thousands.
const MAX_INFLATED: usize = 16 << 20;

/// The page objects found. O(bytes) and the bytes inflated, of which there are at most 16 MB.
pub(super) fn pages(pdf: &[u8]) -> u32 {
    let mut found = page_objects(pdf);
    let mut left = MAX_INFLATED;
    // Other streams hold contents and pictures; only object streams hold objects.
    let markers = Finder::new(b"/ObjStm");
    let mut from = 0;
    while let Some(at) = markers.find(&pdf[from..]).map(|at| from + at) {
        from = at + 7;
        let Some(stream) = stream_of(pdf, from) else { continue };
        let inflated = match decompress_to_vec_zlib_with_limit(stream, left) {
            Ok(inflated) => inflated,
            // A stream that is cut off, or longer than what is left, counts as far as it could be read.
            Err(error) => error.output,
        };
        found = found.saturating_add(page_objects(&inflated));
        left = left.saturating_sub(inflated.len());
        if left == 0 {
            break;
        }
    }
    found
}

/// The bytes from the start of the stream whose dictionary contains the position `from`, if it is Flate's.
fn stream_of(pdf: &[u8], from: usize) -> Option<&[u8]> {
    let rest = &pdf[from..];
    let end = find(rest, b"endobj").unwrap_or(rest.len());
    let at = find(&rest[..end], b"stream")? + 6;
    // The filter may come before or after the type.
    let start = memchr::memmem::rfind(&pdf[..from], b"obj").unwrap_or(0);
    find(&pdf[start..from + at], b"FlateDecode")?;
    let body = &rest[at..];
    Some(body.strip_prefix(b"\r\n").or_else(|| body.strip_prefix(b"\n")).unwrap_or(body))
}

/// The number of `/Type /Page` in plain text; `/Pages` and longer names are other types.
fn page_objects(text: &[u8]) -> u32 {
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | 0x0c | 0);
    let is_page = |at: usize| {
        let rest = &text[at + 5..];
        let spaces = rest.iter().take_while(|byte| is_space(byte)).count();
        let name = rest[spaces..].strip_prefix(b"/Page");
        name.is_some_and(|after| {
            !after.first().is_some_and(|&byte| byte.is_ascii_alphanumeric() || byte == b'#')
        })
    };
    let count = memchr::memmem::find_iter(text, b"/Type").filter(|&at| is_page(at)).count();
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use miniz_oxide::deflate::compress_to_vec_zlib;

    #[test]
    fn page_objects_are_counted_but_not_other_types() {
        let text = b"/Type /Page /Type/Page>> /Type\r\n/Page\n/Type /Pages /Type /PageLabel /Subtype /Page";
        assert_eq!(page_objects(text), 3);
        assert_eq!(page_objects(b"/Type"), 0);
    }

    #[test]
    fn compressed_object_streams_are_read() {
        let objects = compress_to_vec_zlib(&b"<< /Type /Page /Parent 1 0 R >> ".repeat(7), 6);
        for dictionary in
            ["<< /Type /ObjStm /N 7 /Filter /FlateDecode >>", "<< /Filter /FlateDecode /Type /ObjStm /N 7 >>"]
        {
            let mut pdf = format!("%PDF-1.5\n3 0 obj\n{dictionary}\nstream\r\n").into_bytes();
            pdf.extend_from_slice(&objects);
            pdf.extend_from_slice(b"\nendstream\nendobj\n/Type /Page");
            assert_eq!(pages(&pdf), 8, "{dictionary}");
        }
        let other = b"<< /Type /ObjStm /Filter /LZWDecode >>\nstream\nabc\nendstream endobj";
        assert_eq!(pages(other), 0);
    }

    #[test]
    fn cut_and_hostile_files_end() {
        let objects = compress_to_vec_zlib(&b" /Type /Page".repeat(3 << 20), 9);
        let mut pdf = b"<< /Type /ObjStm /Filter /FlateDecode >>\nstream\n".to_vec();
        pdf.extend_from_slice(&objects);
        let bomb = pages(&pdf.repeat(3));
        assert!((1_000_000..2_000_000).contains(&bomb), "{bomb}");
        for end in 0..60 {
            let _ = pages(&pdf[..end]);
        }
        assert_eq!(pages(&b"/ObjStm".repeat(50_000)), 0);
    }
}
