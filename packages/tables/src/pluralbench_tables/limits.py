"""How large what is read may be. A file beyond these is refused before more of it is read."""

FILE_BYTES = 2_000_000_000  # also of what a compressed file expands to
LINE_CHARACTERS = 50_000_000  # of a line of JSON, which is a row
CELL_CHARACTERS = 10_000_000  # a long book has a million
DEPTH = 50  # of lists and objects within one another
COLUMNS = 10_000
CELLS = 500_000_000  # rows times columns
