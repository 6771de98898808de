"""Where the frames of a zstd file end (RFC 8878, section 3.1), to know a file that was cut off."""

from __future__ import annotations

from typing import IO

__all__ = ["Frames"]

_MAGIC = b"\x28\xb5\x2f\xfd"
#: The last three bytes of the magic of a skippable frame; the first one varies.
_SKIPPABLE = b"\x2a\x4d\x18"
_RLE = 1


class Frames:
    """A stream that follows the frames of what is read from it.

    Args:
        source: The compressed bytes.
    """

    def __init__(self, source: IO[bytes]) -> None:
        self._source = source
        self._head = b""  # the read part of the next header
        self._to_skip = 0  # bytes until the next header
        self._is_in_frame = False
        self._has_checksum = False
        self._is_unknown = False

    @property
    def are_whole(self) -> bool:
        """Whether what was read so far ends where a frame ends; true if it is not zstd, which is reported elsewhere."""
        return self._is_unknown or not (self._is_in_frame or self._to_skip or self._head)

    def read(self, size: int = -1) -> bytes:
        """The next bytes of the source."""
        data = self._source.read(size)
        self._follow(data)
        return data

    def _follow(self, data: bytes) -> None:
        at = 0
        while at < len(data) and not self._is_unknown:
            if self._to_skip:
                step = min(self._to_skip, len(data) - at)
                self._to_skip -= step
            else:
                step = self._length_of_header() - len(self._head)
                self._head += data[at : at + step]
                if len(self._head) == self._length_of_header():
                    self._begin()
                    self._head = b""
            at += step

    def _length_of_header(self) -> int:
        """Bytes of the header that begins, as far as its first bytes say it."""
        if self._is_in_frame:
            return 3
        if len(self._head) < 5:
            return 5
        if self._head[1:4] == _SKIPPABLE:
            return 8
        descriptor = self._head[4]
        is_single = descriptor >> 5 & 1
        size_of_content = (is_single, 2, 4, 8)[descriptor >> 6]
        return 5 + (1 - is_single) + (0, 1, 2, 4)[descriptor & 3] + size_of_content

    def _begin(self) -> None:
        """A block, a frame or a skippable frame, whose header was read."""
        head = self._head
        if self._is_in_frame:
            header = int.from_bytes(head, "little")
            self._to_skip = 1 if header >> 1 & 3 == _RLE else header >> 3
            if header & 1:
                self._is_in_frame = False
                self._to_skip += 4 * self._has_checksum
        elif head[:4] == _MAGIC:
            self._is_in_frame = True
            self._has_checksum = bool(head[4] >> 2 & 1)
        elif head[1:4] == _SKIPPABLE and head[0] >> 4 == 5:
            self._to_skip = int.from_bytes(head[4:8], "little")
        else:
            self._is_unknown = True
