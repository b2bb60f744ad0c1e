"""Run one step in its own process and measure it: `python -m scaling.steps JOB` (see `protocol.Job`).

A step is a generator: it prepares until its first yield, and the rest is measured.
"""

import json
import resource
import shutil
import sys
import time
from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from hashlib import sha256
from itertools import islice
from pathlib import Path
from unittest.mock import patch

import polars as pl
from keeping.worker import by_length

from scaling.made import LANGUAGE_FOLDER, PAIRS, answers, keys
from scaling.protocol import Job, Took

KIB = 1 if sys.platform == "darwin" else 1024
RELEASE, RUN, LANGUAGES_RUN = "release", "run", "run-languages"
LEDGER, EXTRACT = "ledger.sqlite", "ledger.parquet"
AT_ONCE = 64
Step = Generator[None, None, None]


def validate(job: Job) -> Step:
    """Validate the table against its schema."""
    from pluralbench_schemas import SCHEMAS
    from pluralbench_schemas import validate as check

    frame = pl.read_parquet(Path(job.folder) / PAIRS)
    yield
    check(frame, SCHEMAS["MultilingualPairs"], file=PAIRS, rows=job.rows)


def digest(job: Job) -> Step:
    """Compute the content digest of the table."""
    from pluralbench_release import content_digest

    frame = pl.read_parquet(Path(job.folder) / PAIRS)
    yield
    content_digest(frame)


def release(job: Job) -> Step:
    """Write a release of the table, with a ledger of one call."""
    from pluralbench_calls import Ledger
    from pluralbench_release import (
        Builder,
        Card,
        Contents,
        ReleaseRecipe,
        ReleaseTable,
        Source,
        write,
    )

    folder = Path(job.folder)
    frame = pl.read_parquet(folder / PAIRS)
    with Ledger(folder / "one.sqlite") as ledger:
        ledger.record(*answers(1))
        ledger.export(folder / "one.parquet")
    source = Source(
        name="made",
        location="made",
        digest=sha256(b"made").hexdigest(),
        rows=job.rows,
        license="cc0-1.0",
        attribution="made",
    )
    card = Card(
        pretty_name="Made",
        summary="Made.",
        languages=["en"],
        tasks=["text-classification"],
        tags=[],
        annotations_creators=("machine-generated",),
        columns=dict.fromkeys(frame.columns, "made"),
        sections=[],
        citation="None.",
    )
    out = _empty_folder(folder / RELEASE)
    yield
    tables = [ReleaseTable("eng_Latn", "test", frame, "MultilingualPairs")]
    builder = Builder("multilingual", "build-multilingual")
    recipe = ReleaseRecipe(name="made")
    write(
        out, Contents(tables, [source], {"rows": job.rows}, card), recipe=recipe, builder=builder,
        ledger=folder / "one.parquet",
    )  # fmt: skip


def verify(job: Job) -> Step:
    """Verify the release."""
    from pluralbench_release import verify as check

    yield
    problems = check(Path(job.folder) / RELEASE)
    assert not problems, problems  # noqa: S101


def read(job: Job) -> Step:
    """Read the items of the pairs."""
    from pluralbench.evaluation.loading import load_benchmark

    yield
    load_benchmark("pairs", Path(job.folder) / PAIRS, None)


def score(job: Job) -> Step:
    """Score the pairs with a function that costs nothing."""
    return _score(job, "pairs", PAIRS, RUN)


def score_languages(job: Job) -> Step:
    """Score as many pairs in 24 languages and 23 subsets with weighted sections."""
    return _score(job, "multilingual", LANGUAGE_FOLDER, LANGUAGES_RUN)


def _score(job: Job, benchmark: str, data: str, out: str) -> Step:
    from pluralbench import score as verb

    folder = Path(job.folder)
    shutil.rmtree(folder / out, ignore_errors=True)
    yield
    verb(by_length, benchmark=benchmark, data=folder / data, out=folder / out)


def go_on(job: Job) -> Step:
    """Resume a run that stopped after scoring."""
    import pluralbench
    import pluralbench.evaluation.scores as work

    folder = Path(job.folder)

    class Stopped(Exception):
        """Raised to interrupt the run."""

    def stop(*_: object, **__: object) -> None:
        raise Stopped

    shutil.rmtree(folder / "again", ignore_errors=True)
    score = partial(pluralbench.score, by_length, benchmark="pairs", data=folder / PAIRS, out=folder / "again")
    with patch.object(work, "decide", stop), suppress(Stopped):
        score()
    yield
    run = score()
    assert run.result.items_resumed == job.rows  # noqa: S101


def metrics(job: Job) -> Step:
    """Compute the metrics of the run from its items."""
    return _measure(job, RUN)


def metrics_languages(job: Job) -> Step:
    """Compute the metrics of the run with languages."""
    return _measure(job, LANGUAGES_RUN)


def _measure(job: Job, out: str) -> Step:
    from pluralbench.data.decisions import decisions_of
    from pluralbench.metrics import measure
    from pluralbench.results.runs import load_run

    run = load_run(Path(job.folder) / out)
    yield
    measure(run.config.benchmark.description, decisions_of(run.items))


def report(job: Job) -> Step:
    """Render the run as a table."""
    from pluralbench.reports.runs import overview
    from pluralbench.reports.writing import format_report
    from pluralbench.results.finding import find_runs

    yield
    format_report(overview(find_runs([Path(job.folder) / RUN]).runs), "markdown", None)


def submit(job: Job) -> Step:
    """Check the run against its data."""
    from pluralbench.leaderboard.checks import check_submission
    from pluralbench.results.finding import find_runs

    yield
    check_submission(find_runs([Path(job.folder) / RUN]).runs[0])


def ledger_record(job: Job) -> Step:
    """Record answers in batches."""
    from pluralbench_calls import Ledger

    folder = Path(job.folder)
    _delete(folder / LEDGER)
    coming = answers(job.rows)
    first = [next(coming)]
    yield
    with Ledger(folder / LEDGER) as ledger:
        ledger.record(*first)
        while some := list(islice(coming, AT_ONCE)):
            ledger.record(*some)


def ledger_resume(job: Job) -> Step:
    """Look up all calls, as a resumed build does."""
    from pluralbench_calls import Ledger

    wanted = [*keys(job.rows)]
    yield
    with Ledger(Path(job.folder) / LEDGER) as ledger:
        assert len(ledger.outcomes(wanted)) == job.rows  # noqa: S101


def ledger_find(job: Job) -> Step:
    """Read all answers."""
    from pluralbench_calls import Ledger

    wanted = [*keys(job.rows)]
    yield
    with Ledger(Path(job.folder) / LEDGER) as ledger:
        assert len(ledger.find(wanted)) == job.rows  # noqa: S101


def ledger_export(job: Job) -> Step:
    """Export the ledger of a release."""
    from pluralbench_calls import Ledger

    folder = Path(job.folder)
    yield
    with Ledger(folder / LEDGER) as ledger:
        ledger.export(folder / EXTRACT)


def ledger_import(job: Job) -> Step:
    """Import the ledger of a release, as `rebuild` does."""
    return _import(job, EXTRACT)


def ledger_import_sqlite(job: Job) -> Step:
    """Import a working ledger, as a build with `--reuse` does."""
    return _import(job, LEDGER)


def _import(job: Job, source: str) -> Step:
    from pluralbench_calls import Ledger

    folder = Path(job.folder)
    _delete(folder / "taken.sqlite")
    yield
    with Ledger(folder / "taken.sqlite") as ledger:
        assert ledger.add_from(folder / source) == job.rows  # noqa: S101


def _empty_folder(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


def _delete(path: Path) -> None:
    for file in path.parent.glob(f"{path.name}*"):
        file.unlink()


FUNCTIONS: dict[str, tuple[Callable[[Job], Step], str | None]] = {
    "validate": (validate, None),
    "digest": (digest, None),
    "release": (release, RELEASE),
    "verify": (verify, None),
    "read": (read, None),
    "score": (score, RUN),
    "go on": (go_on, "again"),
    "score, 24 languages": (score_languages, LANGUAGES_RUN),
    "metrics": (metrics, None),
    "metrics, 24 languages": (metrics_languages, None),
    "report": (report, None),
    "submit": (submit, None),
    "ledger: record": (ledger_record, LEDGER),
    "ledger: resume": (ledger_resume, None),
    "ledger: find": (ledger_find, None),
    "ledger: export": (ledger_export, EXTRACT),
    "ledger: import": (ledger_import, "taken.sqlite"),
    "ledger: import SQLite": (ledger_import_sqlite, "taken.sqlite"),
}
"""Function and output of each step."""


def run_step(job: Job) -> Took:
    """Run a step."""
    function, output = FUNCTIONS[job.step]
    step = function(job)
    next(step)
    before = _peak()
    wall, cpu = time.perf_counter(), time.process_time()
    next(step, None)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return Took(wall, cpu, before, _peak(), _bytes(Path(job.folder) / output) if output else 0)


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * KIB


def _bytes(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else path.parent.glob(f"{path.name}*")
    return sum(file.stat().st_size for file in files if file.is_file())


if __name__ == "__main__":
    argument = Job(**json.loads(sys.argv[1]))
    Path(argument.report).write_text(json.dumps(asdict(run_step(argument))), "utf-8")
