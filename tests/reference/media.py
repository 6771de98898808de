"""Pictures, documents, sound and video: which of them a value contains, their size, and their price.

Data is a `data:` URL or base64 under a key for data; a reference is an address or an id. The members around it say
what it is: the type of the part, a media type, a format, a file name. The first bytes of data decide over them.
Base64 is decoded as a whole here and every rule is a loop over a list.
"""

from __future__ import annotations

import base64
import math
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

PICTURE: Final = "picture"
DOCUMENT: Final = "document"
SOUND: Final = "sound"
VIDEO: Final = "video"
PLAIN: Final = "plain text"


@dataclass(frozen=True)
class Medium:
    """One medium: a picture of this size, or an amount of pages, seconds or bytes."""

    sort: str
    amount: int = 0
    size: tuple[int, int] | None = None
    is_low: bool = False
    """Whether a picture was asked for at low detail."""


# --- what a medium is ---------------------------------------------------------------------------------------

URL_KEYS: Final = "url image_url file_url document_url audio_url video_url"
"""Keys of a URL, which is an address or contains the data."""

DATA_KEYS: Final = f"data base64 bytes blob file_data fileData image audio input_audio result {URL_KEYS}"
"""Keys of data."""

ADDRESS_KEYS: Final = f"uri file_id fileId fileUri file_uri {URL_KEYS}"
"""Keys of an address or of the id of a file."""

DATA_OR_ADDRESS_KEYS: Final = "image data input_audio"
"""Keys of data that may be an address instead."""

PART_TYPES: Final = {
    PICTURE: "image image_url input_image computer_screenshot image-data image-url image-file-id image_file",
    DOCUMENT: "document document_url file input_file file-data file-url file-id file_url pdf",
    SOUND: "audio input_audio audio_url inputAudio",
    VIDEO: "video video_url input_video",
}

EXTENSIONS: Final = {
    PICTURE: "png jpg jpeg gif webp bmp heic avif",
    DOCUMENT: "pdf doc docx xls xlsx ppt pptx odt epub",
    SOUND: "wav mp3 flac ogg opus m4a aac pcm16 pcm",
    VIDEO: "mp4 mov webm mkv avi mpeg mpg three_gp flv wmv",
    PLAIN: "txt md csv json xml yaml yml html",
}

GROUPS: Final = {"image": PICTURE, "audio": SOUND, "video": VIDEO, "text": PLAIN, "application": DOCUMENT}
PLAIN_APPLICATIONS: Final = ("json", "xml", "yaml", "x-yaml", "javascript")


def by_name(name: str, names: Mapping[str, str]) -> str | None:
    """The sort whose list contains the name."""
    return next((sort for sort, known in names.items() if name in known.split()), None)


def by_media_type(media_type: str) -> str | None:
    """The sort of a media type, such as `image/png`."""
    group, slash, kind = media_type.partition("/")
    if not slash:
        return None
    return PLAIN if group == "application" and kind in PLAIN_APPLICATIONS else GROUPS.get(group)


def by_extension(extension: str) -> str | None:
    """The sort of a format or of the end of a file name."""
    return by_name(extension.lower(), EXTENSIONS)


def by_bytes(head: bytes) -> str | None:
    """The sort that the first bytes of a file show."""
    brand = head[8:12] if head[4:8] == b"ftyp" else b""
    riff = head[8:12] if head[:4] == b"RIFF" else b""
    if head.startswith((b"%PDF", b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")):
        return DOCUMENT
    if head.startswith((b"\x89PNG\r\n\x1a\n", b"GIF8", b"\xff\xd8\xff")) or riff == b"WEBP":
        return PICTURE
    if brand in (b"avif", b"heic", b"heix", b"mif1"):
        return PICTURE
    if brand[:3] in (b"M4A", b"M4B"):
        return SOUND
    if brand or head.startswith(b"\x1a\x45\xdf\xa3") or riff == b"AVI ":
        return VIDEO
    is_frame = len(head) > 1 and head[0] == 0xFF and head[1] & 0xE6 == 0xE2
    if head.startswith((b"ID3", b"fLaC", b"OggS")) or riff == b"WAVE" or is_frame:
        return SOUND
    return None


# --- media in a value ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stated:
    """What the members around a file say: the type of the part, what is more specific, the detail."""

    part: str | None = None
    file: str | None = None
    is_low: bool = False

    @property
    def sort(self) -> str | None:
        """What the file is, as stated."""
        return self.file or self.part


def media_in(value: Any) -> tuple[Medium, ...]:
    """Every medium in a value of any dialect."""
    return tuple(medium for medium, _ in files_in(value))


def files_in(value: Any) -> list[tuple[Medium, str | None]]:
    """Every medium with its data; None for an address."""
    return list(_search(value, Stated()))


def _search(value: Any, outer: Stated, is_source: bool = False) -> Iterator[tuple[Medium, str | None]]:
    if isinstance(value, list | tuple):
        for item in value:
            if isinstance(item, str) and is_data_url(item):
                yield of_data(item, Stated()), item
            yield from _search(item, Stated())
    if not isinstance(value, Mapping):
        return
    stated = _stated(value, outer, is_source)
    files = {key: text for key, text in value.items() if isinstance(text, str) and is_file(text, stated)}
    found: list[tuple[Medium, str | None]] = []
    seen: set[str] = set()
    for key, inner in value.items():
        if key in files and (key in DATA_KEYS.split() or is_data_url(inner)):
            if inner not in seen:  # the same data under two keys is one file
                found.append((of_data(inner, stated), inner))
            seen.add(inner)
        elif isinstance(inner, Mapping):
            # The key says what the object under it is, as in `{"file": {"file_id": …}}`.
            found.extend(_search(inner, replace(stated, part=by_name(key, PART_TYPES) or stated.part), key == "source"))
        elif isinstance(inner, list | tuple):
            found.extend(_search(inner, Stated()))
    yield from found
    if not found:
        addresses = [text for key, text in value.items() if isinstance(text, str) and is_address(key, text)]
        if addresses and stated.sort is not None:
            yield at_address(stated), None
        elif any(re.match(r"(https://)?(www\.|m\.)?(youtube\.com|youtu\.be)/", each) for each in addresses):
            yield at_address(replace(stated, file=VIDEO)), None


def _stated(value: Mapping[str, Any], outer: Stated, is_source: bool) -> Stated:
    stated = outer
    for key, text in value.items():
        if not isinstance(text, str):
            continue
        if key in ("media_type", "mediaType", "mime_type", "mimeType"):
            stated = replace(stated, file=by_media_type(text) or stated.file)
        elif key == "format":
            stated = replace(stated, file=by_extension(text) or stated.file)
        elif key in ("filename", "file_name", "fileName") and "." in text:
            stated = replace(stated, file=by_extension(text.rsplit(".", 1)[1]) or stated.file)
        elif key == "type" and not is_source:
            # A source has a type of its own: base64, url, file.
            stated = replace(stated, part=by_name(text, PART_TYPES) or stated.part)
        elif key == "detail" and text == "low":
            stated = replace(stated, is_low=True)
    return stated


def is_data_url(text: str) -> bool:
    """Whether a text is a `data:` URL in base64."""
    return re.match(r"data:[^,]*;base64,", text) is not None


def is_data(text: str) -> bool:
    """Whether a text is data: a `data:` URL in base64, or a long text of nothing else but base64."""
    return is_data_url(text) or (len(text) >= 256 and re.fullmatch(r"[A-Za-z0-9+/\-_=\r\n]*", text) is not None)


def is_file(text: str, stated: Stated) -> bool:
    """Whether a text under a key for data is a file: data that is stated to be one, or recognised."""
    if is_data(text) and (text.startswith("data:") or stated.sort not in (None, PLAIN)):
        return True
    if re.fullmatch(r"[A-Za-z0-9+/\-_=]*", text[:64]) is None:
        return False
    head = decoded(text)[:16]
    # The two bytes of a frame of MP3 are too few to tell it from text.
    is_frame = head[:1] == b"\xff" and head[1:2] not in (b"", b"\xd8")
    return by_bytes(head) is not None and not is_frame


def is_address(key: str, text: str) -> bool:
    """Whether a text is the address or the id of a file."""
    # Data may be a plain text with an address in it.
    is_whole_url = re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*://\S+", text) is not None
    return text != "" and (key in ADDRESS_KEYS.split() or (key in DATA_OR_ADDRESS_KEYS.split() and is_whole_url))


# --- measures -----------------------------------------------------------------------------------------------


def decoded(text: str) -> bytes:
    """The bytes of base64 in either alphabet, up to the first character that is none."""
    (digits,) = re.findall(r"^[A-Za-z0-9+/\-_\r\n ]*", text)
    digits = re.sub(r"[\r\n ]", "", digits).replace("-", "+").replace("_", "/")
    digits = digits[:-1] if len(digits) % 4 == 1 else digits
    return base64.b64decode(digits + "=" * (-len(digits) % 4))


def of_data(text: str, stated: Stated) -> Medium:
    """The medium in a `data:` URL or in base64."""
    head, comma, rest = text.partition(",")
    is_url = text.startswith("data:") and comma == ","
    content = decoded(rest if is_url else text)
    named = by_media_type(head[len("data:") :].split(";")[0]) if is_url else None
    sort = by_bytes(content) or named or stated.sort or DOCUMENT
    if sort == PICTURE:
        return Medium(PICTURE, size=picture_size(content), is_low=stated.is_low)
    amounts = {DOCUMENT: pages, SOUND: seconds_of_sound, VIDEO: seconds_of_video, PLAIN: len}
    return Medium(sort, amounts[sort](content))


def at_address(stated: Stated) -> Medium:
    """A medium that is somewhere else: one page, a minute, or a picture of unknown size."""
    sort = DOCUMENT if stated.sort in (None, PLAIN) else stated.sort
    return Medium(sort, {PICTURE: 0, DOCUMENT: 1}.get(sort, 60), is_low=stated.is_low and sort == PICTURE)


def pages(content: bytes) -> int:
    """The page objects of a PDF, within its first 4 MB, or one for each 100 KB."""
    found = 0
    if content.startswith(b"%PDF"):
        file = content[: 4 << 20]
        page = rb"/Type[ \t\r\n\x0c\x00]*/Page(?![A-Za-z0-9#])"
        found = len(re.findall(page, file))
        # Later versions compress objects.
        for each in re.finditer(rb"\bobj((?:(?!endobj|stream).)*)stream(?:\r\n|\n)?", file, re.DOTALL):
            if b"/ObjStm" in each[1] and b"FlateDecode" in each[1]:
                found += len(re.findall(page, zlib.decompressobj().decompress(file[each.end() :])))
    return found or max(1, -(-len(content) // 100_000))


def seconds_of_sound(content: bytes) -> int:
    """From the rate of WAVE or MP3, or at 128 kbit/s; rounded up."""
    rate = 16_000
    if content[:4] == b"RIFF" and b"fmt " in content[:4096]:
        at = content.index(b"fmt ") + 16
        rate = int.from_bytes(content[at : at + 4], "little") or rate
    else:
        rate = _mp3_rate(content) or rate
    return _movie_seconds(content) or max(1, -(-len(content) // rate))


def seconds_of_video(content: bytes) -> int:
    """From the header of a movie, or at 1 Mbit/s; rounded up."""
    return _movie_seconds(content) or max(1, -(-len(content) // 125_000))


def _mp3_rate(content: bytes) -> int:
    at = 0
    if content.startswith(b"ID3"):
        at = 10 + sum((byte & 0x7F) << shift for byte, shift in zip(content[6:10], (21, 14, 7, 0), strict=True))
    frame = content[:4096][at : at + 3]
    if len(frame) < 3 or frame[0] != 0xFF or frame[1] & 0xE6 != 0xE2:
        return 0
    mpeg1 = (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 0)
    mpeg2 = (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160, 0)
    return (mpeg1 if frame[1] & 0x18 == 0x18 else mpeg2)[frame[2] >> 4] * 125


def _movie_seconds(content: bytes) -> int:
    at = content[:4096].find(b"mvhd") + 4
    if at < 4:
        return 0
    wide = content[at] != 0
    from_, width = (at + 20, 8) if wide else (at + 12, 4)
    scale = int.from_bytes(content[from_ : from_ + 4], "big")
    duration = int.from_bytes(content[from_ + 4 : from_ + 4 + width], "big")
    return -(-duration // scale) if scale else 0


def picture_size(content: bytes) -> tuple[int, int] | None:
    """Width and height from the header of PNG, JPEG, GIF or WebP."""
    size = _header_size(content)
    return size if size is not None and all(1 <= side <= 100_000 for side in size) else None


def _header_size(content: bytes) -> tuple[int, int] | None:
    def little(at: int, width: int = 2) -> int:
        return int.from_bytes(content[at : at + width], "little")

    def big(at: int, width: int = 2) -> int:
        return int.from_bytes(content[at : at + width], "big")

    if content.startswith(b"\x89PNG\r\n\x1a\n") and content[12:16] == b"IHDR":
        return big(16, 4), big(20, 4)
    if content.startswith(b"GIF8"):
        return little(6), little(8)
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        if content[12:16] == b"VP8 ":
            return little(26) & 0x3FFF, little(28) & 0x3FFF
        if content[12:16] == b"VP8L":
            return (little(21, 4) & 0x3FFF) + 1, (little(21, 4) >> 14 & 0x3FFF) + 1
        return (little(24, 3) + 1, little(27, 3) + 1) if content[12:16] == b"VP8X" else None
    if not content.startswith(b"\xff\xd8"):
        return None
    at = 2
    while at + 9 <= min(len(content), 256 << 10) and content[at] == 0xFF:
        marker = content[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            return big(at + 7), big(at + 5)
        if marker in (0xD9, 0xDA):
            return None
        # Fill bytes and markers without a length.
        at += 1 if marker == 0xFF else 2 if marker == 0x01 or 0xD0 <= marker <= 0xD8 else 2 + max(2, big(at + 2))
    return None


# --- prices -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Prices:
    """Tokens of a page, of a second of sound and of video, and the name of the rule for pictures."""

    pictures: str
    page: int
    sound: int
    video: int


OPENAI: Final = Prices("tiles", page=765 + 500, sound=10, video=263)
"""A page is a picture of 768 x 1024 and 500 of text. Also the prices where the provider is not known."""

ANTHROPIC: Final = Prices("area", page=2333, sound=32, video=263)
GOOGLE: Final = Prices("tiles of Gemini", page=258, sound=32, video=263)


def price(medium: Medium, prices: Prices) -> int:
    """Tokens of a medium, never 0."""
    if medium.sort == PICTURE:
        return picture_price(medium, prices.pictures)
    if medium.sort == PLAIN:
        return max(1, -(-medium.amount // 4))
    return medium.amount * {DOCUMENT: prices.page, SOUND: prices.sound, VIDEO: prices.video}[medium.sort]


def picture_price(picture: Medium, rule: str) -> int:
    """Tokens of a picture; one of unknown size is 1024 x 1024, or costs 1568 at Anthropic."""
    width, height = picture.size or (1024, 1024)
    if rule == "tiles":
        # Into 2048 x 2048, then to 768 on the short side; never enlarged.
        scale = min(1, 2048 / max(width, height))
        scale *= min(1, 768 / (min(width, height) * scale))
        return 85 + (0 if picture.is_low else 170 * _cover(width * scale, 512) * _cover(height * scale, 512))
    if rule == "area":
        scale = min(1, 1568 / max(width, height))
        area = math.ceil(width * height * scale * scale / 750)
        return 1568 if picture.size is None else min(1568, max(1, area))
    if width <= 384 and height <= 384:
        return 258
    tile = math.floor(min(768, max(256, min(width, height) / 1.5)))
    return 258 * (1 + _cover(width, tile) * _cover(height, tile))


def _cover(length: float, tile: int) -> int:
    """Tiles that cover a length; a thousandth of a pixel is an error of rounding."""
    return max(1, math.ceil((length - 1e-3) / tile))
