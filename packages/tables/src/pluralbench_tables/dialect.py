"""How a file separates and quotes its cells."""

from typing import Literal, NamedTuple

Separator = Literal["comma", "semicolon", "tab", "bar"]
"""What stands between the cells."""
Quoting = Literal["doubled", "backslash", "none"]
"""How a quotation mark in a quoted cell is written, see `Dialect`."""


class Dialect(NamedTuple):
    """How a file separates and quotes its cells.

    separator: by default a tab in a `.tsv`, else the only one that the header has, or a comma. quoting: how a quotation
    mark in a quoted cell is written: "doubled", as spreadsheets write it; "backslash" for one before it, as R and Spark
    write it, any other backslash being one of the text; "none" for files that never quote, as those of MQM. By default
    "doubled", but in a `.tsv` with a cell that begins with a quotation mark it has to be named.
    """

    separator: Separator | None = None
    quoting: Quoting | None = None


SPREADSHEET = Dialect()
