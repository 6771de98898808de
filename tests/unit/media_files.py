"""Files for tests: the smallest of each kind that has the measures asked for."""

from __future__ import annotations

import base64
import struct
import zlib


def base64_of(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def picture(width: int = 1024, height: int = 768, size: int = 0) -> bytes:
    """A PNG with this size in its header; padded to ``size`` bytes."""
    head = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sIIBBBBB", 13, b"IHDR", width, height, 8, 6, 0, 0, 0)
    return head + bytes(max(0, size - len(head)))


def sound(seconds: int = 60, rate: int = 16_000, size: int | None = None) -> bytes:
    """A WAVE file of 16 bits, mono; padded to ``size`` bytes."""
    length = seconds * rate * 2 if size is None else size - 44
    format_chunk = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, rate, rate * 2, 2, 16)
    riff = struct.pack("<4sI4s", b"RIFF", 36 + length, b"WAVE")
    return riff + format_chunk + struct.pack("<4sI", b"data", length) + bytes(length)


def pdf(pages: int = 0, size: int = 0, *, packed: bool = False) -> bytes:
    """A PDF with this many page objects, plain or in a compressed object stream; padded to ``size`` bytes."""
    objects = b"".join(b"<< /Type /Page /Parent 1 0 R /MediaBox [0 0 612 792] >>\n" for _ in range(pages))
    text = b"%PDF-1.7\n1 0 obj\n<< /Type /Pages /Count 1 >>\nendobj\n"
    if packed:
        stream = zlib.compress(objects)
        head = b"2 0 obj\n<< /Type /ObjStm /N %d /Filter /FlateDecode /Length %d >>\nstream\n" % (pages, len(stream))
        text += head + stream + b"\nendstream\nendobj\n"
    else:
        text += b"2 0 obj\n" + objects + b"endobj\n"
    return text + bytes(max(0, size - len(text)))
