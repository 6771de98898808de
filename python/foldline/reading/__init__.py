"""Reads stored transcripts from files."""

from foldline.reading.files import FORMATS, MAX_DOCUMENT_BYTES, read, transcript_of

__all__ = ["FORMATS", "MAX_DOCUMENT_BYTES", "read", "transcript_of"]
