"""How large what is read may be. What is larger is refused before more of it is read."""

FILE_BYTES = 1_000_000_000  # also of what a compressed file expands to
LINE_CHARACTERS = 50_000_000  # of a line of a text file
CELL_CHARACTERS = 10_000_000  # a long book has a million
CELLS = 50_000_000  # in all of a file
MEMORY_BYTES = 4_000_000_000  # of a Parquet file, unpacked
COLUMNS = 10_000
DEPTH = 50  # of lists and objects within one another
