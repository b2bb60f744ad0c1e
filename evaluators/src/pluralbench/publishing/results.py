"""Runs as a dataset on the Hub: the files of each run, and tables of all runs as configs.

`runs/NAME/` has the files of a run, `data/metrics/test.parquet` the metrics of all runs (`report_frame`), and
`data/BENCHMARK_items/test.parquet` the items of a benchmark's runs with the columns `run` and `model` in front. The
card lists the tables under `configs:`.
"""

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl
from huggingface_hub import DatasetCardData
from pluralbench_release import markdown_table
from pluralbench_release.card import merge_cards
from pluralbench_release.commits import Head, Remote, address, commit, commit_with_retry, open_remote, text_at
from pluralbench_release.content import write_parquet
from pluralbench_release.hub import commit_of, translate_read_errors
from pluralbench_release.leaks import leaks
from pluralbench_release.tables import HUB_REPOSITORY
from pluralbench_runs import check_path_name, plural

from pluralbench.errors import RunError
from pluralbench.reports.runs import report_frame
from pluralbench.results.finding import find_runs
from pluralbench.results.numbers import with_interval
from pluralbench.results.run_files import files_digest
from pluralbench.results.runs import Run

RUNS, CARD, METRICS_CONFIG = "runs", "README.md", "metrics"


@dataclass(frozen=True)
class PushResult:
    """The result of a push."""

    address: str
    new: list[str]
    names: list[str]


def push_results(paths: Sequence[Path], repository: str, *, create: bool = False, private: bool = False) -> PushResult:
    """Add runs to a dataset on the Hub in one commit, and rebuild its tables and card.

    Text that people added to the card stays (`pluralbench_release.card`).

    Args:
        paths: Run directories, or directories that contain them. Runs of `best-of-n`, `optimize` and `personalize`
            contain models and are left out.
        repository: The dataset (ORG/NAME).
        create: Create the dataset if it does not exist.
        private: Make a new dataset private.

    Raises:
        RunError: If two runs have one name, the dataset has another run of a name, or a run contains a secret of this
            environment.
        pluralbench_release.ReleaseError: If the Hub refuses the commit.
    """
    runs = _named(find_runs(paths).runs)
    remote = open_remote(repository, create=create, private=private)
    pushed: dict[str, PushResult] = {}

    def send(head: Head) -> str:
        with tempfile.TemporaryDirectory(prefix="pluralbench-results-") as temporary:
            folder = Path(temporary)
            existing = _fetch_runs(remote, head, folder / RUNS)
            new = [name for name, run in runs.items() if not _is_pushed(run, folder / RUNS / name, repository)]
            for name in new:
                _copy(runs[name].path, folder / RUNS / name)
            tables = write_tables(folder)
            text = merge_cards(_card(repository, tables, folder), text_at(remote, head.commit, CARD), None)
            (folder / CARD).write_text(text, encoding="utf-8")
            unchanged = {f"{RUNS}/{name}" for name in existing}
            files = {path: folder / path for path in _files(folder) if path.rpartition("/")[0] not in unchanged}
            title = f"Add {', '.join(new)}" if new else "Rebuild the tables"
            sha = commit(
                remote, head.commit, files, title=title if len(title) < 72 else f"Add {plural(len(new), 'run')}"
            )
            pushed[sha] = PushResult(address(remote, sha), new, sorted({*existing, *new}))
            return sha

    return pushed[commit_with_retry(send, remote)]


def fetch_results(repository: str, revision: str | None = None) -> Path:
    """Download a dataset of results from the Hub.

    Args:
        repository: The dataset (ORG/NAME).
        revision: Commit, branch or tag. Default: the newest commit.

    Returns:
        The directory in the client's cache, which `find_runs` reads.

    Raises:
        RunError: If the dataset has no runs.
        pluralbench_release.TablesError: If the dataset or the revision does not exist.
    """
    from huggingface_hub import snapshot_download

    if not HUB_REPOSITORY.fullmatch(repository):
        raise RunError(f"{repository!r} is not the name of a dataset on the Hub (ORG/NAME).")
    sha = commit_of(repository, revision)
    with translate_read_errors(repository, sha):
        folder = Path(snapshot_download(repository, repo_type="dataset", revision=sha))
    if not (folder / RUNS).is_dir():
        raise RunError(f"{repository} on the Hub has no directory `{RUNS}`, so it contains no runs.")
    return folder


def write_tables(folder: Path) -> dict[str, str]:
    """Write the tables of the runs in `folder/runs`; return the path of each table by its config."""
    runs = find_runs([folder / RUNS]).runs
    metrics = report_frame(runs).with_columns(pl.col("run").str.split("/").list.last())
    tables = {METRICS_CONFIG: metrics}
    for benchmark in sorted({run.config.benchmark.name for run in runs}):
        items = [
            run.items.select(pl.lit(run.path.name).alias("run"), pl.lit(run.name).alias("model"), pl.all())
            for run in runs
            if run.config.benchmark.name == benchmark
        ]
        tables[check_path_name(f"{benchmark}_items", "A config")] = pl.concat(items, how="diagonal_relaxed")
    paths = {config: f"data/{config}/test.parquet" for config in tables}
    for config, frame in tables.items():
        write_parquet(frame, folder / paths[config])
    return paths


def _named(runs: Sequence[Run]) -> dict[str, Run]:
    """Return runs by the names of their directories. Raises `RunError` for duplicates and secrets."""
    if not runs:
        raise RunError(
            "There is no run to push; runs of best-of-n, optimize and personalize contain models and are not pushed."
        )
    named: dict[str, Run] = {}
    for run in runs:
        name = check_path_name(run.path.resolve().name, f"The run {run.path}")
        if name in named:
            raise RunError(f"{named[name].path} and {run.path} are both named {name}; rename one of them.")
        if secrets := leaks(run.path, [path.name for path in sorted(run.path.iterdir()) if path.is_file()], {}):
            raise RunError(f"{run.path}: {secrets[0]}")
        named[name] = run
    return named


def _fetch_runs(remote: Remote, head: Head, to: Path) -> list[str]:
    """Download the runs of the dataset, and return their names."""
    from huggingface_hub import snapshot_download

    to.mkdir(parents=True)
    if not any(path.startswith(f"{RUNS}/") for path in head.files):
        return []
    with translate_read_errors(remote.name, head.commit):
        cached = snapshot_download(remote.name, repo_type="dataset", revision=head.commit, allow_patterns=f"{RUNS}/*")
    shutil.copytree(Path(cached) / RUNS, to, dirs_exist_ok=True)
    return sorted(path.name for path in to.iterdir() if path.is_dir())


def _is_pushed(run: Run, folder: Path, repository: str) -> bool:
    """Return whether the dataset has this run. Raises `RunError` if it has another run of this name."""
    if not folder.exists():
        return False
    if files_digest(run.path) != files_digest(folder):
        raise RunError(f"{repository} has another run named {folder.name}; rename {run.path}.")
    return True


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
            run.size,
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

`{RUNS}/NAME` has the files of a run with its items, settings and versions. The config `{METRICS_CONFIG}` has one row
per number of all runs; the other configs have the items of a benchmark's runs. Intervals are 95% confidence intervals.
"""
