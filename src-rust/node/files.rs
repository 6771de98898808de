//! Media in a value of any dialect: the one place that knows under which keys dialects store files.
//!
//! A file is data (a `data:` URL or base64 under a key for data) or a reference (an address or an id). The type of the
//! part, a media type, a format or a file name says what it is, and so do the first bytes of data, which decide.

use super::{Key, Kind, Node, is_data};
use crate::media::{Detail, Media, Sort, encode_base64};

/// Deepest nesting that is searched.
const MAX_LEVELS: usize = 16;

/// Most values that are searched.
const MAX_SEARCHED: u32 = 1 << 20;

/// What the members around a file say about it.
#[derive(Clone, Copy, Debug, Default)]
struct Stated {
    /// By the type of the part.
    part: Option<Sort>,
    /// By a media type, a format or a file name, which are more specific.
    file: Option<Sort>,
    detail: Detail,
    /// Inside a `source`, which has a type of its own: base64, url, file.
    is_source: bool,
}

impl Stated {
    fn sort(self) -> Option<Sort> {
        self.file.or(self.part)
    }
}

/// A search for media.
struct Search<'f> {
    found: &'f mut dyn FnMut(Media),
    /// Whether the items of lists are searched.
    enters_lists: bool,
    left: u32,
}

/// Calls `found` for every medium in a value, in order. O(values), and the bytes of documents.
pub fn media_in<N: Node>(value: &N, found: &mut dyn FnMut(Media)) {
    let mut search = Search { found, enters_lists: true, left: MAX_SEARCHED };
    search.value(value, Stated::default(), 0);
}

/// Whether a content part is a picture itself, not a container of a list with one.
pub fn is_picture<N: Node>(part: &N) -> bool {
    let part_type =
        part.get(Key::TYPE).and_then(|kind| kind.with_text(|kind, _| Sort::of_part(kind)).flatten());
    let mut is_picture = part_type == Some(Sort::Picture);
    let mut found = |medium| is_picture |= matches!(medium, Media::Picture(_));
    let mut search = Search { found: &mut found, enters_lists: false, left: MAX_SEARCHED };
    search.value(part, Stated::default(), 0);
    is_picture
}

/// Whether data is stored under this key.
fn is_data_key(key: &str) -> bool {
    matches!(
        key,
        "data"
            | "base64"
            | "bytes"
            | "blob"
            | "file_data"
            | "fileData"
            | "image"
            | "audio"
            | "input_audio"
            | "url"
            | "image_url"
            | "file_url"
            | "document_url"
            | "audio_url"
            | "video_url"
            | "result"
    )
}

/// Whether the address or id of a file is stored under this key.
fn is_reference_key(key: &str) -> bool {
    matches!(
        key,
        "url"
            | "uri"
            | "image_url"
            | "file_url"
            | "document_url"
            | "audio_url"
            | "video_url"
            | "file_id"
            | "fileId"
            | "fileUri"
            | "file_uri"
            | "image"
            | "input_audio"
            | "data"
    )
}

impl Search<'_> {
    /// Searches a value; true if it holds media.
    fn value<N: Node>(&mut self, value: &N, stated: Stated, level: usize) -> bool {
        let Some(left) = self.left.checked_sub(1) else { return false };
        self.left = left;
        match value.kind() {
            Kind::Object if level < MAX_LEVELS => self.object(value, stated, level),
            Kind::Array if level < MAX_LEVELS && self.enters_lists => {
                let mut any = false;
                let walked = value.each_item(|_, item| {
                    any |= match item.kind() {
                        Kind::String => self.data("", item, Stated::default(), &mut Vec::new()),
                        _ => self.value(item, Stated::default(), level + 1),
                    };
                    Ok(())
                });
                // A list that lost items in the meantime has no further ones.
                drop(walked);
                any
            }
            _ => false,
        }
    }

    fn object<N: Node>(&mut self, object: &N, outer: Stated, level: usize) -> bool {
        let stated = stated_in(object, outer);
        let (mut any, mut seen) = (false, Vec::new());
        let walked = object.each_member(|key, value| {
            match value.kind() {
                Kind::String => any |= self.data(key, value, stated, &mut seen),
                Kind::Object => {
                    let part = Sort::of_part(key).or(stated.part);
                    let inner = Stated { part, is_source: key == "source", ..stated };
                    any |= self.value(value, inner, level + 1);
                }
                Kind::Array => any |= self.value(value, Stated::default(), level + 1),
                Kind::Other => any |= self.bytes(key, value, stated),
                _ => {}
            }
            Ok(())
        });
        drop(walked);
        any || self.reference(object, stated)
    }

    /// Reports the data under a key, unless `seen` has it: the media of the same object. False if there is none. A
    /// `data:` URL is a file under any key.
    fn data<N: Node>(&mut self, key: &str, value: &N, stated: Stated, seen: &mut Vec<Media>) -> bool {
        let medium = value.with_text(|text, _| {
            let is_url = text.starts_with("data:");
            if !(is_url || is_data_key(key)) {
                return None;
            }
            let is_stated = stated.sort().is_some_and(|sort| sort != Sort::Text);
            // The first bytes settle most files; `is_data` reads all of them.
            let is_file = Media::is_recognised(text) || ((is_url || is_stated) && is_data(text));
            is_file.then(|| Media::of_data(text, stated.sort(), stated.detail))
        });
        let Some(medium) = medium.flatten() else { return false };
        if !seen.contains(&medium) {
            seen.push(medium);
            (self.found)(medium);
        }
        true
    }

    /// Reports the bytes under a key for data, which SDKs of Python hold; false if there are none.
    fn bytes<N: Node>(&mut self, key: &str, value: &N, stated: Stated) -> bool {
        let medium = value.with_bytes(|bytes| {
            let is_file = is_data_key(key) && !bytes.is_empty();
            is_file.then(|| Media::of_data(&encode_base64(bytes), stated.sort(), stated.detail))
        });
        medium.flatten().map(|medium| (self.found)(medium)).is_some()
    }

    /// Reports the file that an object without data refers to, if it says that it is one.
    fn reference<N: Node>(&mut self, object: &N, stated: Stated) -> bool {
        let mut medium = None;
        let walked = object.each_member(|key, value| {
            if medium.is_none() && value.kind() == Kind::String && is_reference_key(key) {
                let may_be_data = matches!(key, "data" | "image" | "input_audio");
                medium = value
                    .with_text(|text, _| {
                        let is_given = !text.is_empty() && (!may_be_data || is_url(text));
                        let of_address = || is_video_page(text).then_some(Sort::Video);
                        let sort = stated.sort().or_else(of_address).filter(|_| is_given)?;
                        Some(Media::at_address(text, sort, stated.detail))
                    })
                    .flatten();
            }
            Ok(())
        });
        drop(walked);
        medium.map(|medium| (self.found)(medium)).is_some()
    }
}

/// Whether an address is a video of YouTube, which Gemini reads without a media type.
fn is_video_page(address: &str) -> bool {
    let host = address.strip_prefix("https://").unwrap_or(address);
    let host = host.strip_prefix("www.").or_else(|| host.strip_prefix("m.")).unwrap_or(host);
    host.starts_with("youtube.com/") || host.starts_with("youtu.be/")
}

/// Whether a text is a URL as a whole: data may be a plain text with an address in it.
fn is_url(text: &str) -> bool {
    let is_scheme = |scheme: &str| scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b));
    text.split_once("://").is_some_and(|(scheme, rest)| {
        !scheme.is_empty()
            && is_scheme(scheme)
            && !rest.is_empty()
            && !rest.contains(|c: char| c.is_whitespace())
    })
}

/// What an object says about the file in it, in addition to what was said around it.
fn stated_in<N: Node>(object: &N, outer: Stated) -> Stated {
    let mut stated = outer;
    let walked = object.each_member(|key, value| {
        if value.kind() != Kind::String {
            return Ok(());
        }
        let mut set = |sort: Option<Sort>| stated.file = sort.or(stated.file);
        let read = |of: fn(&str) -> Option<Sort>| value.with_text(|text, _| of(text)).flatten();
        match key {
            "media_type" | "mediaType" | "mime_type" | "mimeType" => set(read(Sort::of_media_type)),
            "format" => set(read(Sort::of_extension)),
            "filename" | "file_name" | "fileName" => {
                set(read(|name| Sort::of_extension(name.rsplit_once('.')?.1)));
            }
            "type" if !outer.is_source => stated.part = read(Sort::of_part).or(stated.part),
            "detail" if value.with_text(|text, _| text == "low") == Some(true) => stated.detail = Detail::Low,
            _ => {}
        }
        Ok(())
    });
    drop(walked);
    stated
}
