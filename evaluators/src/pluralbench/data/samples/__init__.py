"""The samples: for each benchmark a few rows of ours that come with this package, read where the data is "sample".

A folder here is a sample: its card (`README.md`, with the license) and a JSON Lines file for each config, or each split
of it. Those of the personalized, multilingual, Chinese and persona-judge benchmarks, and of the personalized training
pairs, are the rows of the releases that the builders make without options; a test compares them.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pluralbench_release import Tables, TablesError, read_tables

from pluralbench.errors import DataError

SAMPLE = "sample"
FOLDER = Path(__file__).parent
NONE_OF_ITS_OWN = (
    "{title} has no data on the Hub; say where yours is with --data, or take the few rows that come with this package "
    "with --data sample."
)


def read_data(
    location: str | None, *, title: str, sample: str | None, split: str, configs: Sequence[str] | None = None
) -> Tables:
    """The tables at a location, or those of a sample where it is "sample"; its location is called that, too.

    title: what the benchmark is called in errors. sample: the folder of its sample here, if it has one. split, configs:
    as of `read_tables`; a sample has the split that is asked for.

    Raises `DataError` without a location and for a benchmark without a sample, and `TablesError` as `read_tables` does.
    """
    if location is None:
        raise DataError(NONE_OF_ITS_OWN.format(title=title))
    if location != SAMPLE:
        return read_tables(location, split=split, configs=configs)
    if sample is None or not (FOLDER / sample).is_dir():
        raise DataError(f"{title} has no sample; say where its data is with --data (a folder of this name: ./sample).")
    folder = str(FOLDER / sample)
    try:
        tables = read_tables(folder, split=split, configs=configs)
    except TablesError as error:
        raise type(error)(str(error).replace(folder, f"The sample of {title}")) from None
    return replace(tables, location=SAMPLE, paths={config: f"the sample's {config}" for config in tables.frames})
