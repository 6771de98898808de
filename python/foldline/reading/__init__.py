"""Reads stored transcripts from files."""

from foldline.reading._opencode import is_session, is_storage, sessions_of
from foldline.reading.files import FORMATS, MAX_DOCUMENT_BYTES, read, transcript_of

__all__ = ["FORMATS", "MAX_DOCUMENT_BYTES", "is_session", "is_storage", "read", "sessions_of", "transcript_of"]
