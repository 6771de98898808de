"""Vocabularies of open models: the files beside this one, which foldline finds by the name of the package."""
