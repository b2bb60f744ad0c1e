"""What models gain where they are told of the person: each told run against the same model's run with nothing told.

Personalized RewardBench, section 4.3 and Figure 2. Which runs belong together is read from them: the same model, asked
alike but for the profile, on the same items.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from pluralbench_measures.bootstrap import CONFIDENCE, Estimate

from pluralbench.evaluation.compare import Difference, compare
from pluralbench.reports.layout import DASH, Heading, Line, Page
from pluralbench.reports.names import TOLD, row_names
from pluralbench.reports.notes import with_interval
from pluralbench.reports.sheets import Sheet
from pluralbench.results.runs import Run

NONE = "none"
MODES = (NONE, "raw", "plan", "persona")
MODES_NOTE = (
    "Against none: points that a model gains over its run with nothing told of the person, on the same items, "
    f"with {CONFIDENCE:.0%} intervals; p by exchanging the two runs within people, not adjusted for several."
)
OF_THE_PROFILE = "{} posts"
"""What in `TOLD` is of the profile itself."""


class Told(NamedTuple):
    """A run that tells its model something of the person. without: the run that tells it nothing; None for this one."""

    run: Run
    mode: str
    against_none: Difference | None = None


def modes_of(runs: Sequence[Run]) -> list[list[Told]]:
    """The modes of each model that has a run with nothing told and others, that one first.

    runs: on the same items. A model's runs are in the order of `MODES`, those of one mode in that of their folders.
    """
    by_model: dict[tuple[Any, ...], list[Run]] = {}
    for run in runs:
        if run.record.prompt.profile is not None and run.record.prompt.setting is None:
            by_model.setdefault(_asked(run), []).append(run)
    found = []
    for ours in by_model.values():
        ordered = sorted(ours, key=_order)
        bare = [run for run in ordered if run.record.prompt.profile == NONE]
        if len(bare) == 1 and len(ordered) > 1:
            told = [Told(run, str(run.record.prompt.profile), compare(bare[0], run).headline) for run in ordered[1:]]
            found.append([Told(bare[0], NONE), *told])
    return found


def _asked(run: Run) -> tuple[Any, ...]:
    return run.name, run.record.model.kind, *(str(of(run)) for how, of in TOLD.items() if how != OF_THE_PROFILE)


def _order(run: Run) -> tuple[int, str, str]:
    mode = str(run.record.prompt.profile)
    return MODES.index(mode) if mode in MODES else len(MODES), mode, str(run.path)


def mode_page(sheet: Sheet, models: Sequence[Sequence[Told]]) -> Page:
    """A row for each model and mode of a sheet: accuracy, and the paired difference to nothing told."""
    rows = [one for own in models for one in own]
    names = row_names([one.run for one in rows])
    lines = [
        Line(name, (with_interval(one.run.headline, 100, ".1f") or DASH, *_cells(one.against_none)))
        for name, one in zip(names, rows, strict=True)
    ]
    heads = (Heading("overall"), Heading("against none"), Heading("p"))
    return Page(f"{sheet.heading}: what is told of the person", "model", heads, tuple(lines))


def _cells(found: Difference | None) -> tuple[str, str]:
    if found is None or found.difference is None:
        return "", ""
    change = with_interval(Estimate(found.difference, found.low, found.high), 100, "+.1f")
    p = found.p_value
    return change, DASH if p is None else f"{p:.3f}" if p >= 0.001 else "<0.001"


def mode_notes(pages: Sequence[Page]) -> Iterator[str]:
    """What a reader of these pages has to know."""
    if pages:
        yield MODES_NOTE


def mode_fields(models: Sequence[Sequence[Told]]) -> dict[str, dict[str, Any]]:
    """For programs: the difference to nothing told, by a run's directory."""
    found = {str(one.run.path): one.against_none for own in models for one in own if one.against_none is not None}
    return {
        path: {"difference": one.difference, "low": one.low, "high": one.high, "p_value": one.p_value}
        for path, one in found.items()
    }
