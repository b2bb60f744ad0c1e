"""What models gain where they are told of the person: each told run against the same model's run with nothing told.

Personalized RewardBench, section 4.3 and Figure 2. Which runs belong together is read from them: the same model, asked
alike but for the profile, on the same items.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from pluralbench_measures.bootstrap import CONFIDENCE, Estimate

from pluralbench.evaluation.compare import Difference, compare
from pluralbench.reports.names import TOLD, cut_by, row_names
from pluralbench.reports.numbers import p_value, points
from pluralbench.reports.sheets import Sheet
from pluralbench.reports.tables import Column, Row, Table, Value
from pluralbench.results.evaluations import ScoreRunConfig
from pluralbench.results.runs import Run

NONE = "none"
MODES = (NONE, "raw", "plan", "persona")
MODES_NOTE = (
    "Against none: points that a model gains over its run with nothing told of the person, on the same items, "
    f"with {CONFIDENCE:.0%} intervals; p by exchanging the two runs within people, not adjusted for several."
)
NOT_ALIKE = ("{} posts", "{} if too long")
"""What in `TOLD` need not be the same: the profile itself, and what `_base` looks at."""


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
        if run.config.prompt.profile is not None and run.config.judge_setting("setting") is None:
            by_model.setdefault(_asked(run), []).append(run)
    found = []
    for ours in by_model.values():
        ordered = sorted(ours, key=_order)
        bare = [run for run in ordered if run.config.prompt.profile == NONE]
        for base in bare:
            told = [
                Told(run, str(run.config.prompt.profile), compare(base, run).headline)
                for run in ordered
                if run.config.prompt.profile != NONE and _base(run, bare) is base
            ]
            found += [[Told(base, NONE), *told]] if told else []
    return found


def _asked(run: Run) -> tuple[Any, ...]:
    return run.name, run.result.model.kind, *(str(of(run)) for how, of in TOLD.items() if how not in NOT_ALIKE)


def _base(run: Run, bare: Sequence[Run]) -> Run | None:
    """The one run with nothing told that a told one is held against; None where there is none, or several.

    Overflow rules have to be the same only where both runs met theirs: the other one would be the same under each.
    """
    alike = [one for one in bare if None in (cut_by(one), cut_by(run)) or cut_by(one) == cut_by(run)]
    same = [one for one in alike if _rule(one) == _rule(run)] or alike
    return same[0] if len(same) == 1 else None


def _order(run: Run) -> tuple[int, str, str]:
    mode = str(run.config.prompt.profile)
    return MODES.index(mode) if mode in MODES else len(MODES), mode, str(run.path)


def _rule(run: Run) -> str | None:
    return run.config.scoring.on_overflow if isinstance(run.config, ScoreRunConfig) else None


def mode_table(sheet: Sheet, models: Sequence[Sequence[Told]]) -> Table:
    """A row for each model and mode of a sheet: accuracy, and the paired difference to nothing told."""
    told = [one for own in models for one in own]
    names = row_names([one.run for one in told])
    rows = [Row(name, (one.run.headline, *_values(one.against_none))) for name, one in zip(names, told, strict=True)]
    columns = (Column("overall"), Column("against none", points), Column("p", p_value))
    return Table(f"{sheet.heading}: what is told of the person", "model", columns, rows)


def _values(found: Difference | None) -> tuple[Value, Value]:
    if found is None or found.difference is None:
        return "", ""
    return Estimate(found.difference, found.low, found.high), found.p_value


def mode_fields(models: Sequence[Sequence[Told]]) -> dict[str, dict[str, Any]]:
    """For programs: the difference to nothing told, by a run's directory."""
    found = {str(one.run.path): one.against_none for own in models for one in own if one.against_none is not None}
    return {
        path: {"difference": one.difference, "low": one.low, "high": one.high, "p_value": one.p_value}
        for path, one in found.items()
    }
