"""Runs as a dataset on the Hub: each run's files as they stand on disk, and tables of all of them that load by config.

`runs/NAME/` has the files of a run, `data/metrics/test.parquet` the long frame of all runs (`report_frame`), and
`data/BENCHMARK_items/test.parquet` the items of a benchmark's runs, with the columns `run` and `model` before the
items' own. The card's `configs:` name the tables.
"""

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl
from huggingface_hub import DatasetCardData
from pluralbench_release import markdown_table
from pluralbench_release.commits import Head, Remote, address, commit, commit_with_retry, open_remote, text_at
from pluralbench_release.content import write_parquet
from pluralbench_release.hub import commit_of, translate_read_errors
from pluralbench_release.leaks import leaks
from pluralbench_release.merging import merge_cards
from pluralbench_release.tables import HUB_REPOSITORY
from pluralbench_runs import check_path_name, file_digest

from pluralbench.errors import RunError
from pluralbench.reports.detail import report_frame
from pluralbench.reports.numbers import with_interval
from pluralbench.results.finding import find_runs
from pluralbench.results.runs import Run, items_text

RUNS, CARD, METRICS_CONFIG = "runs", "README.md", "metrics"


@dataclass(frozen=True)
class PushResult:
    """What was pushed. new: names of the runs that were not there before; all of them: `names`."""

    address: str
    new: list[str]
    names: list[str]


def push_results(paths: Sequence[Path], repository: str, *, create: bool = False, private: bool = False) -> PushResult:
    """Add runs to the Hub's dataset `repository` (ORG/NAME) in one commit, and make its tables and card anew.

    paths: directories of runs, and folders with some. Those of `best-of-n`, `optimize` and `personalize` are left out:
    they hold models. create: make the dataset, where it is not there yet. private: as a private one.

    What people wrote by hand on the card stays (`pluralbench_release.merging`). Raises `RunError` for two runs of one
    name, for one that is there with other results, and for a run with a secret of this environment in it; and
    `pluralbench_release.ReleaseError` for what the Hub does not take.
    """
    runs = _named(find_runs(paths).runs)
    remote = open_remote(repository, create=create, private=private)
    pushed: dict[str, PushResult] = {}

    def send(head: Head) -> str:
        with tempfile.TemporaryDirectory(prefix="pluralbench-results-") as temporary:
            folder = Path(temporary)
            there = _fetched(remote, head, folder / RUNS)
            new = [name for name, run in runs.items() if not _is_there(run, folder / RUNS / name, repository)]
            for name in new:
                _copy(runs[name].path, folder / RUNS / name)
            tables = write_tables(folder)
            text = merge_cards(_card(repository, tables, folder), text_at(remote, head.commit, CARD), None)
            (folder / CARD).write_text(text, encoding="utf-8")
            kept = {f"{RUNS}/{name}" for name in there}
            files = {path: folder / path for path in _files(folder) if path.rpartition("/")[0] not in kept}
            title = f"Add {', '.join(new)}" if new else "Make the tables anew"
            made = commit(remote, head.commit, files, title=title if len(title) < 72 else f"Add {len(new)} runs")
            pushed[made] = PushResult(address(remote, made), new, sorted({*there, *new}))
            return made

    return pushed[commit_with_retry(send, remote)]


def fetch_results(repository: str, revision: str | None = None) -> Path:
    """The folder of a dataset of results from the Hub, in its client's cache, that `find_runs` reads.

    revision: a commit, branch or tag; None is the newest commit. Raises `pluralbench_release.TablesError` for what is
    not there, and `RunError` for a dataset without runs.
    """
    from huggingface_hub import snapshot_download  # noqa: PLC0415 - reads its settings from the environment when imported

    if not HUB_REPOSITORY.fullmatch(repository):
        raise RunError(f"{repository!r} is no name of a dataset on the Hub, which is ORG/NAME.")
    found = commit_of(repository, revision)
    with translate_read_errors(repository, found):
        folder = Path(snapshot_download(repository, repo_type="dataset", revision=found))
    if not (folder / RUNS).is_dir():
        raise RunError(f"{repository} on the Hub has no folder `{RUNS}`, so there are no runs in it.")
    return folder


def write_tables(folder: Path) -> dict[str, str]:
    """Write the tables of the runs in `folder/runs`; the path of each by its config."""
    found = find_runs([folder / RUNS]).runs
    metrics = report_frame(found).with_columns(pl.col("run").str.split("/").list.last())
    tables = {METRICS_CONFIG: metrics}
    for benchmark in sorted({run.config.benchmark.name for run in found}):
        own = [run for run in found if run.config.benchmark.name == benchmark]
        about = ([pl.lit(run.path.name).alias("run"), pl.lit(run.name).alias("model")] for run in own)
        items = [run.items.select(*columns, pl.all()) for run, columns in zip(own, about, strict=True)]
        tables[check_path_name(f"{benchmark}_items", "A config")] = pl.concat(items, how="diagonal_relaxed")
    paths = {config: f"data/{config}/test.parquet" for config in tables}
    for config, frame in tables.items():
        write_parquet(frame, folder / paths[config])
    return paths


def _named(runs: Sequence[Run]) -> dict[str, Run]:
    """Runs by the names of their directories."""
    if not runs:
        raise RunError(
            "There is no run to push; those of best-of-n, optimize and personalize hold models and stay here."
        )
    named: dict[str, Run] = {}
    for run in runs:
        name = check_path_name(run.path.resolve().name, f"The run {run.path}")
        if name in named:
            raise RunError(f"{named[name].path} and {run.path} are both named {name}; rename one of them.")
        if told := leaks(run.path, [path.name for path in sorted(run.path.iterdir()) if path.is_file()], {}):
            raise RunError(f"{run.path}: {told[0]}")
        named[name] = run
    return named


def _fetched(remote: Remote, head: Head, to: Path) -> list[str]:
    """Copy the runs that are on the Hub; their names."""
    from huggingface_hub import snapshot_download  # noqa: PLC0415 - as above

    to.mkdir(parents=True)
    if not any(path.startswith(f"{RUNS}/") for path in head.files):
        return []
    with translate_read_errors(remote.name, head.commit):
        kept = snapshot_download(remote.name, repo_type="dataset", revision=head.commit, allow_patterns=f"{RUNS}/*")
    shutil.copytree(Path(kept) / RUNS, to, dirs_exist_ok=True)
    return sorted(path.name for path in to.iterdir() if path.is_dir())


def _is_there(run: Run, folder: Path, repository: str) -> bool:
    """Whether this very run is there. Raises `RunError` where another of its name is."""
    if not folder.exists():
        return False
    if _digests(run.path) != _digests(folder):
        raise RunError(f"{repository} has another run of the name {folder.name}; rename {run.path}.")
    return True


def _digests(folder: Path) -> dict[str, str]:
    return {path.name: file_digest(path) for path in folder.iterdir() if path.is_file()}


def _copy(run: Path, to: Path) -> None:
    to.mkdir()
    for path in run.iterdir():
        if path.is_file():
            shutil.copyfile(path, to / path.name)


def _files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def _card(repository: str, tables: dict[str, str], folder: Path) -> str:
    configs = [
        {"config_name": config, "data_files": [{"split": "test", "path": path}]} for config, path in tables.items()
    ]
    title = repository.partition("/")[2]
    data = DatasetCardData(pretty_name=title, tags=["pluralbench", "evaluation"], configs=configs)
    runs = find_runs([folder / RUNS]).runs
    rows = [
        (
            run.path.name,
            run.name,
            run.config.benchmark.title,
            items_text([run.items_counted], run.items_total),
            with_interval(run.headline) or "-",
            run.provenance.finished[:10],
        )
        for run in sorted(runs, key=lambda run: (run.config.benchmark.name, -(run.headline.value or 0), run.path.name))
    ]
    table = pl.DataFrame(rows, schema=["run", "model", "benchmark", "size", "overall, %", "finished"], orient="row")
    return f"""---
{data}
---

# {title}

Results of reward models and judges, made with [PluralBench](https://github.com/pluralbench/pluralbench).

```python
from datasets import load_dataset

metrics = load_dataset("{repository}", "{METRICS_CONFIG}", split="test")
```

## Runs

{markdown_table(table)}

Each lies in `{RUNS}/NAME` as it was made, with its items, settings and versions. `{METRICS_CONFIG}` has every number of
all runs, a row each; the other configs have the items of a benchmark's runs. Intervals are 95 % ones.
"""
