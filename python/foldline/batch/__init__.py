"""Batches of stored transcripts, row by row; the summary cache is in `cache`, Ray in `ray`."""

from foldline.batch.compactor import BatchCompactor, CompactedRow, error_record, json_text

__all__ = ["BatchCompactor", "CompactedRow", "error_record", "json_text"]
