"""How large what is read may be. What is larger is refused before more of it is read."""

FILE_BYTES = 1_000_000_000  # also of what a compressed file expands to
LINE_CHARACTERS = 100_000_000  # of a line of a text file
# Of one text: a cell, a message, a post. "War and Peace" has 3 million, an answer of a server 4 million at most, and
# what tokenizes or compares a text takes some 200 bytes of memory for each of its characters.
TEXT_CHARACTERS = 5_000_000
CELLS = 50_000_000  # in all of a file
MEMORY_BYTES = 4_000_000_000  # of a Parquet file, unpacked
# How many times its own size a Parquet file that is read in parts may unpack to. What models write, with the digests of
# calls, comes nowhere near it; what does is made to fill a disk.
GROWTH = 100
COLUMNS = 10_000
JSON_MEMORY_BYTES = 8_000_000_000  # of what a JSON text becomes once it is parsed, see `estimate_parsed_bytes`
DEPTH = 50  # of lists and objects within one another


def estimate_parsed_bytes(text: str) -> int:
    """About how much memory the values of a JSON text take beside its letters: an object some 240 bytes, and so on."""
    return 240 * text.count("{") + 64 * text.count("[") + 32 * text.count(",")


def length_error(characters: int | None = None) -> str:
    """How a sentence ends on a text beyond `TEXT_CHARACTERS`, without the full stop; None where its length is unknown.

    It goes on after "has" or "of".
    """
    count = f"more than {TEXT_CHARACTERS:,}" if characters is None else f"{characters:,}"
    most = "which are as many as are read" if characters is None else f"and at most {TEXT_CHARACTERS:,} are read"
    return f"{count} characters, {most}; shorten it, or leave it out"
