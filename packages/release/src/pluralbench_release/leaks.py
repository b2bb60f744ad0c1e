"""Search a release for secrets of this environment, such as an API key that a server echoed."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import polars as pl
from pluralbench_runs import environment_secrets, open_file, redact
from pluralbench_runs.toml_files import leaves
from pluralbench_tables import TableFileError, iter_parquet

from pluralbench_release.files import existing_file

KEY_VARIABLE = "api_key_env"
CHUNK = 2**24  # bytes that are searched at a time
LONGEST_SECRET = 2**16  # bytes by which chunks overlap


def leaks(directory: Path, files: Sequence[str], recipe: Mapping[str, Any]) -> list[str]:
    """Search files for secrets of this environment (`pluralbench_runs.secrets`), also in compressed Parquet.

    The keys `api_key_env` of the recipe name further variables. Returns one sentence per file that contains a secret.
    """
    names = {text for path, text in leaves(recipe) if path[-1:] == (KEY_VARIABLE,) and isinstance(text, str)}
    variables = sorted(names)
    if not environment_secrets(*variables):
        return []
    return [
        f"{path} contains a key, token or password of this environment; do not share the release, revoke the secret "
        "and build again."
        for path in files
        if any(redact(text, *variables) != text for text in _texts(directory, path))
    ]


def _texts(directory: Path, path: str) -> Iterator[str]:
    """Yield a file's bytes as text, then the strings of a Parquet file, in chunks to save memory."""
    file = existing_file(directory, path)
    with open_file(file) as opened:
        overlap = b""
        while chunk := opened.read(CHUNK):
            yield (overlap + chunk).decode("utf-8", "replace")
            overlap = chunk[-LONGEST_SECRET:]
    if file.suffix != ".parquet":
        return
    with suppress(TableFileError):  # `verify` reports unreadable files
        for part in iter_parquet(file):
            for column in part:
                yield from _strings(column)


def _strings(column: pl.Series) -> Iterator[str]:
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
