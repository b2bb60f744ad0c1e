"""Whether a secret of this environment, such as a model's key that its server echoed, stands in a release."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import polars as pl
from pluralbench_runs import environment_secrets, redact
from pluralbench_runs.toml_files import leaves
from pluralbench_tables import TableFileError, iter_parquet

from pluralbench_release.files import existing

KEY_VARIABLE = "api_key_env"
PIECE = 2**24  # bytes of a file that are looked through together
LONGEST_SECRET = 2**16  # bytes; one that lies across the end of a piece is in the next


def leaks(directory: Path, files: Sequence[str], recipe: Mapping[str, Any]) -> list[str]:
    """A sentence for each of the files in which a secret of this environment stands (`pluralbench_runs.secrets`).

    Also what Parquet holds compressed is looked through. recipe: its `api_key_env` keys name further variables.
    """
    named = {text for place, text in leaves(recipe) if place[-1:] == (KEY_VARIABLE,) and isinstance(text, str)}
    variables = sorted(named)
    if not environment_secrets(*variables):
        return []
    return [
        f"{path} holds a key, token or password of this environment; the release is not to be passed on: withdraw the "
        "key, and build again."
        for path in files
        if any(redact(text, *variables) != text for text in _texts(directory, path))
    ]


def _texts(directory: Path, path: str) -> Iterator[str]:
    """The bytes of a file as text, and the texts in a Parquet file, in pieces: a ledger may be larger than memory."""
    file = existing(directory, path)
    with file.open("rb") as opened:
        before = b""
        while piece := opened.read(PIECE):
            yield (before + piece).decode("utf-8", "replace")
            before = piece[-LONGEST_SECRET:]
    if file.suffix != ".parquet":
        return
    with suppress(TableFileError):  # which `verify` says anyway, and nobody can read it
        for part in iter_parquet(file):
            for column in part:
                yield from _strings(column)


def _strings(column: pl.Series) -> Iterator[str]:
    """The texts of a column, joined by line breaks, and those of what is nested in it."""
    kind = column.dtype
    if isinstance(kind, pl.List | pl.Array):
        yield from _strings(column.explode())
    elif isinstance(kind, pl.Struct):
        for field in kind.fields:
            yield from _strings(column.struct.field(field.name))
    elif kind == pl.Binary:
        yield "\n".join(value.decode("utf-8", "replace") for value in column.drop_nulls())
    elif isinstance(kind, pl.String | pl.Categorical | pl.Enum):
        yield "\n".join(column.drop_nulls().cast(pl.String))
