"""Folders of documents as a place to search: registered by name, indexed with SQLite's FTS5, ranked by sections."""

from providers.search.corpus.folders import CorpusDefinition
from providers.search.corpus.library import CorpusLibrary, ingest_file, open_library

__all__ = ["CorpusDefinition", "CorpusLibrary", "ingest_file", "open_library"]
