"""Data that does not fit into memory: sources of rows in chunks, and fits that read them."""

from .files import from_files, open_source
from .limits import parse_bytes
from .parquet import from_parquet
from .sources import Chunk, Source, from_arrays
from .user_chunks import from_chunks

__all__ = [
    "Chunk",
    "Source",
    "from_arrays",
    "from_chunks",
    "from_files",
    "from_parquet",
    "open_source",
    "parse_bytes",
]
