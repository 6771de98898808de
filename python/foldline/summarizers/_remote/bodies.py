"""Bounds HTTP bodies after decompression, and checks that they are UTF-8."""

from __future__ import annotations

import asyncio
import codecs
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from foldline.errors import SummaryError
from foldline.summarizers._remote.remote import extra_package

__all__ = ["bounding"]


def bounding(max_bytes: int) -> Callable[[Any], Awaitable[None]]:
    """A response hook for `httpx2.AsyncClient` that bounds and checks bodies.

    It decompresses the body itself, at most a MiB at a time, so that neither this package nor an SDK ever stores more
    than ``max_bytes`` and a MiB of a decompression bomb.

    Readers get a `SummaryError`: ``response_too_large``, or ``bad_utf8`` if an answer is not UTF-8.
    """
    httpx2 = extra_package("httpx2", "llm")

    class Bounded(httpx2.AsyncByteStream):  # type: ignore[misc, name-defined]
        """The decompressed body of a response."""

        def __init__(self, packed: Any) -> None:
            self._packed = packed
            self._is_answer = packed.status_code == 200

        async def __aiter__(self) -> AsyncIterator[bytes]:
            size_bytes = 0
            utf8 = codecs.getincrementaldecoder("utf-8")()
            async for piece in self._packed.aiter_bytes():
                size_bytes += len(piece)
                if size_bytes > max_bytes:
                    raise SummaryError(f"the answer has more than {max_bytes} bytes", code="response_too_large")
                # Bodies of error statuses are not used as text, so any encoding is accepted.
                if self._is_answer and not _decodes(utf8, piece):
                    raise SummaryError("the answer is not in UTF-8", code="bad_utf8")
                yield piece
                # A small compressed piece may expand a lot: yields to deadlines and other calls.
                await asyncio.sleep(0)
            if self._is_answer and not _decodes(utf8, b"", final=True):
                raise SummaryError("the answer is not in UTF-8", code="bad_utf8")

        async def aclose(self) -> None:
            await self._packed.aclose()

    async def bound(response: Any) -> None:
        packed = httpx2.Response(
            response.status_code, headers=response.headers, stream=response.stream, request=response.request
        )
        response.stream = Bounded(packed)
        for header in ("content-encoding", "content-length"):  # they describe the compressed body
            if header in response.headers:
                del response.headers[header]

    return bound


def _decodes(decoder: codecs.IncrementalDecoder, piece: bytes, *, final: bool = False) -> bool:
    try:
        decoder.decode(piece, final)
    except UnicodeDecodeError:  # not chained: the error contains the bytes
        return False
    return True
