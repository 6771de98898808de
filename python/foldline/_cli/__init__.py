"""The commands behind `foldline.cli`. Private."""
