"""Limits that keep a file or a reply from taking all memory. A larger one is refused before more of it is read."""

FILE_BYTES = 1_000_000_000  # also after decompression
CELLS = 50_000_000  # of a table
MEMORY_BYTES = 3_000_000_000  # of a Parquet file, unpacked; its table takes up to 4 GB
# Of a parsed JSON text; see `estimate_parsed_bytes`. A million pairs have 1.7 GB; a table takes up to twice the values.
JSON_MEMORY_BYTES = 2_000_000_000
DEPTH = 50  # of nested lists and objects
# Of one text: a cell or a conversation. "War and Peace" has 3 million; tokenizing takes about 200 bytes of memory per
# character.
TEXT_CHARACTERS = 5_000_000


def estimate_parsed_bytes(text: str) -> int:
    """Estimate the memory of a parsed JSON text without the characters of its strings, half of which are keys."""
    return 240 * text.count("{") + 250 * text.count("[") + 40 * text.count(",") + 25 * text.count('"')
