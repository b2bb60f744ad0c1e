"""CSV dialects."""

from typing import Literal, NamedTuple

Separator = Literal["comma", "semicolon", "tab", "bar"]
"""The character between cells."""
Quoting = Literal["doubled", "backslash", "none"]
"""How a quotation mark in a quoted cell is escaped; see `Dialect`."""


class Dialect(NamedTuple):
    """How a CSV file separates and quotes cells.

    Attributes:
        separator: Character between cells. Default: a tab in a `.tsv` file, otherwise the only separator in the header,
            or a comma.
        quoting: How a quotation mark in a quoted cell is escaped: "doubled", as in spreadsheets; "backslash", as in R
            and Spark (other backslashes are text); "none" for files without quoting, such as those of MQM. Default:
            "doubled". In a `.tsv` file with a cell that begins with a quotation mark, there is no default.
    """

    separator: Separator | None = None
    quoting: Quoting | None = None


SPREADSHEET = Dialect()
