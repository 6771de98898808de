"""Implementation of the commands of `foldline.cli`. Private."""
