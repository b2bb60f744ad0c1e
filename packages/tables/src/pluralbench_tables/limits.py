"""Limits of file sizes. A larger file is refused before more of it is read."""

FILE_BYTES = 1_000_000_000  # also after decompression
LINE_CHARACTERS = 100_000_000  # of a line of a text file
# Of one text: a cell, a message, a post. "War and Peace" has 3 million, a server's answer at most 4 million. Tokenizing
# or comparing texts takes about 200 bytes of memory per character.
TEXT_CHARACTERS = 5_000_000
CELLS = 50_000_000  # of a file; values of lists count too
MEMORY_BYTES = 3_000_000_000  # of a Parquet file, unpacked; its table takes up to 4 GB
# Maximum ratio of a Parquet file's unpacked to its packed size if it is read in parts. Texts of models, with digests of
# calls, are far below it; a file beyond it is made to fill a disk.
GROWTH = 100
COLUMNS = 10_000
# Of a parsed JSON text; see `estimate_parsed_bytes`. A million pairs have 1.7 GB; a table takes up to twice the values.
JSON_MEMORY_BYTES = 2_000_000_000
DEPTH = 50  # of nested lists and objects
# Of a list within a row; a table takes 150 bytes for each of them at once, and for rows much less. The longest honest
# ones are embeddings and the posts of a person, some thousands.
LIST_VALUES = 1_000_000


def estimate_parsed_bytes(text: str) -> int:
    """Estimate the memory of a parsed JSON text without the characters of its strings, half of which are keys."""
    return 240 * text.count("{") + 250 * text.count("[") + 40 * text.count(",") + 25 * text.count('"')


def length_error(characters: int | None = None) -> str:
    """Return the end of a sentence about a text beyond `TEXT_CHARACTERS`, after "has" or "of", without full stop.

    Args:
        characters: Length of the text. None: unknown.
    """
    count = f"more than {TEXT_CHARACTERS:,}" if characters is None else f"{characters:,}"
    limit = "the maximum" if characters is None else f"more than the maximum of {TEXT_CHARACTERS:,}"
    return f"{count} characters, {limit}; shorten or remove it"
