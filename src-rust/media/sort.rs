//! The sort of a medium, from its first bytes or from what a message says about it.

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// A picture.
    Picture,
    /// A document with pages, and any file of an unknown kind.
    Document,
    /// Sound.
    Sound,
    /// Video.
    Video,
    /// Plain text.
    Text,
}

impl Sort {
    /// From the first bytes of a file. `None` if they are not recognised.
    #[must_use]
    pub fn of_bytes(head: &[u8]) -> Option<Sort> {
        let brand = head.get(4..8) == Some(b"ftyp");
        let riff = |kind: &[u8]| head.starts_with(b"RIFF") && head.get(8..12) == Some(kind);
        // The frame sync of MPEG layer III; the other layers are not sent to models.
        let is_mp3 = head.starts_with(b"ID3") || matches!(head, [0xff, second, ..] if second & 0xe6 == 0xe2);
        match () {
            () if head.starts_with(b"%PDF") => Some(Sort::Document),
            // Office documents and other archives; the older office documents.
            () if head.starts_with(b"PK\x03\x04")
                || head.starts_with(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1") =>
            {
                Some(Sort::Document)
            }
            () if head.starts_with(b"\x89PNG\r\n\x1a\n") || head.starts_with(b"GIF8") || riff(b"WEBP") => {
                Some(Sort::Picture)
            }
            () if head.starts_with(b"\xff\xd8\xff") => Some(Sort::Picture),
            () if brand && matches!(head.get(8..12), Some(b"avif" | b"heic" | b"heix" | b"mif1")) => {
                Some(Sort::Picture)
            }
            () if brand && matches!(head.get(8..11), Some(b"M4A" | b"M4B")) => Some(Sort::Sound),
            () if brand || head.starts_with(b"\x1a\x45\xdf\xa3") || riff(b"AVI ") => Some(Sort::Video),
            () if riff(b"WAVE") || head.starts_with(b"fLaC") || head.starts_with(b"OggS") || is_mp3 => {
                Some(Sort::Sound)
            }
            () => None,
        }
    }

    /// From a media type, such as `application/pdf`.
    #[must_use]
    pub fn of_media_type(media_type: &str) -> Option<Sort> {
        let (group, kind) = media_type.split_once('/')?;
        match group {
            "image" => Some(Sort::Picture),
            "audio" => Some(Sort::Sound),
            "video" => Some(Sort::Video),
            "text" => Some(Sort::Text),
            "application" if matches!(kind, "json" | "xml" | "yaml" | "x-yaml" | "javascript") => {
                Some(Sort::Text)
            }
            "application" => Some(Sort::Document),
            _ => None,
        }
    }

    /// From a format or the extension of a file name, such as `pdf`.
    #[must_use]
    pub fn of_extension(extension: &str) -> Option<Sort> {
        match extension.to_ascii_lowercase().as_str() {
            "png" | "jpg" | "jpeg" | "gif" | "webp" | "bmp" | "heic" | "avif" => Some(Sort::Picture),
            "pdf" | "doc" | "docx" | "xls" | "xlsx" | "ppt" | "pptx" | "odt" | "epub" => Some(Sort::Document),
            "wav" | "mp3" | "flac" | "ogg" | "opus" | "m4a" | "aac" | "pcm16" | "pcm" => Some(Sort::Sound),
            "mp4" | "mov" | "webm" | "mkv" | "avi" | "mpeg" | "mpg" | "three_gp" | "flv" | "wmv" => {
                Some(Sort::Video)
            }
            "txt" | "md" | "csv" | "json" | "xml" | "yaml" | "yml" | "html" => Some(Sort::Text),
            _ => None,
        }
    }

    /// From the type of a content part, of any dialect.
    #[must_use]
    pub fn of_part(part_type: &str) -> Option<Sort> {
        match part_type {
            "image"
            | "image_url"
            | "input_image"
            | "computer_screenshot"
            | "image-data"
            | "image-url"
            | "image-file-id"
            | "image_file" => Some(Sort::Picture),
            "document" | "document_url" | "file" | "input_file" | "file-data" | "file-url" | "file-id"
            | "file_url" | "pdf" => Some(Sort::Document),
            "audio" | "input_audio" | "audio_url" | "inputAudio" => Some(Sort::Sound),
            "video" | "video_url" | "input_video" => Some(Sort::Video),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_recognised_by_their_first_bytes() {
        let cases: [(&[u8], Option<Sort>); 12] = [
            (b"%PDF-1.7", Some(Sort::Document)),
            (b"PK\x03\x04word", Some(Sort::Document)),
            (b"\x89PNG\r\n\x1a\n", Some(Sort::Picture)),
            (b"\xff\xd8\xff\xe0", Some(Sort::Picture)),
            (b"RIFF\0\0\0\0WEBPVP8 ", Some(Sort::Picture)),
            (b"RIFF\0\0\0\0WAVEfmt ", Some(Sort::Sound)),
            (b"ID3\x04", Some(Sort::Sound)),
            (b"\xff\xfb\x90\x00", Some(Sort::Sound)),
            (b"\0\0\0\x20ftypM4A \0", Some(Sort::Sound)),
            (b"\0\0\0\x20ftypisom", Some(Sort::Video)),
            (b"plain text", None),
            (b"", None),
        ];
        for (bytes, expected) in cases {
            assert_eq!(Sort::of_bytes(bytes), expected, "{bytes:?}");
        }
    }

    #[test]
    fn names_of_every_dialect_are_known() {
        assert_eq!(Sort::of_media_type("application/pdf"), Some(Sort::Document));
        assert_eq!(Sort::of_media_type("audio/wav"), Some(Sort::Sound));
        assert_eq!(Sort::of_media_type("text/csv"), Some(Sort::Text));
        assert_eq!(Sort::of_media_type("pdf"), None);
        assert_eq!(Sort::of_extension("PDF"), Some(Sort::Document));
        assert_eq!(Sort::of_part("input_audio"), Some(Sort::Sound));
        assert_eq!(Sort::of_part("text"), None);
    }
}
