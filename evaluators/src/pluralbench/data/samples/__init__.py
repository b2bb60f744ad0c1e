"""Samples: a few bundled rows of each benchmark, read for the location "sample".

Each directory is a sample with a card (`README.md`, with the license) and a JSON Lines file per config or split. The
samples of the personalized, multilingual, Chinese and persona-judge benchmarks, and of the personalized training pairs,
are the rows that the builders release by default; a test compares them.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from pluralbench_release import Tables, TablesError, read_tables
from pluralbench_tables import SPREADSHEET, Dialect

from pluralbench.errors import DataError

SAMPLE = "sample"
FOLDER = Path(__file__).parent
NO_DEFAULT_DATA = (
    '{title} has no default dataset; pass your own with `data=...`, or use the bundled rows with `data="sample"`.'
)


def read_data(
    location: str | None,
    *,
    title: str,
    sample: str | None,
    split: str,
    configs: Sequence[str] | None = None,
    dialect: Dialect = SPREADSHEET,
    needed: Callable[[str], object] | None = None,
) -> Tables:
    """Read the tables at a location, or the bundled rows for the location "sample", which have any split.

    `title` and `sample` are those of the benchmark; the rest is as in `read_tables`.

    Raises:
        DataError: If there is no location, or the benchmark has no sample.
        TablesError: If the data cannot be read.
    """
    if location is None:
        raise DataError(NO_DEFAULT_DATA.format(title=title))
    if location != SAMPLE:
        return read_tables(location, split=split, configs=configs, dialect=dialect, needed=needed)
    if sample is None or sample not in {folder.name for folder in FOLDER.iterdir() if folder.is_dir()}:
        raise DataError(f"{title} has no sample; pass its data with `data=...` (`./sample` is a folder of that name).")
    folder = str(FOLDER / sample)
    try:
        tables = read_tables(folder, split=split, configs=configs)
    except TablesError as error:
        raise type(error)(str(error).replace(folder, f"The sample of {title}")) from None
    return replace(
        tables,
        location=SAMPLE,
        paths={config: f"the sample's {Path(path).stem}" for config, path in tables.paths.items()},
    )
