"""How much user context helps a model: runs with a profile against the same model's run without one.

Personalized RewardBench, section 4.3 and Figure 2. Runs are matched by their records: the same model on the same items,
with the same settings except for the profile.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from pluralbench_measures.bootstrap import CONFIDENCE

from pluralbench.evaluation.compare import Difference, compare
from pluralbench.results.names import OTHER_SETTINGS, applied_overflow
from pluralbench.results.runs import Run

NONE = "none"
MODES = (NONE, "raw", "plan", "persona")
MODES_TERMS = {
    "against none": "points gained over the same model without user context, on the same items, with "
    f"{CONFIDENCE:.0%} intervals; p follows from the interval and is not adjusted for multiple comparisons."
}
MAY_DIFFER = ("{} posts", "{} if too long")
"""Entries of `OTHER_SETTINGS` that matched runs need not share; `_base` checks the overflow rule."""


class ModeRun(NamedTuple):
    """A run in a profile mode, and its difference to the run without user context."""

    run: Run
    mode: str
    against_none: Difference | None = None


def modes_of(runs: Sequence[Run]) -> list[list[ModeRun]]:
    """Match runs of a model on the same items in several profile modes.

    Each model that has runs without and with user context has a list: first the run without, then the others in the
    order of `MODES`, and within a mode by directory.
    """
    by_model: dict[tuple[Any, ...], list[Run]] = {}
    for run in runs:
        if run.config.prompt.profile is not None and run.config.judge_setting("setting") is None:
            by_model.setdefault(_settings(run), []).append(run)
    models = []
    for own in by_model.values():
        ordered = sorted(own, key=_order)
        bases = [run for run in ordered if run.config.prompt.profile == NONE]
        for base in bases:
            others = [
                ModeRun(run, str(run.config.prompt.profile), compare(base, run).headline)
                for run in ordered
                if run.config.prompt.profile != NONE and _base(run, bases) is base
            ]
            models += [[ModeRun(base, NONE), *others]] if others else []
    return models


def _settings(run: Run) -> tuple[Any, ...]:
    shared = (str(of(run)) for form, of in OTHER_SETTINGS.items() if form not in MAY_DIFFER)
    prompts = getattr(run.config, "prompts_digest", None)  # two prompts may have the same name
    return run.name, run.result.model.kind, prompts, *shared


def _base(run: Run, bases: Sequence[Run]) -> Run | None:
    """The only run without user context that can be compared to a run; overflow rules count if both applied theirs."""
    rule = applied_overflow(run)
    comparable = [base for base in bases if None in (applied_overflow(base), rule) or applied_overflow(base) == rule]
    same = [base for base in comparable if _rule(base) == _rule(run)] or comparable
    return same[0] if len(same) == 1 else None


def _order(run: Run) -> tuple[int, str, str]:
    mode = str(run.config.prompt.profile)
    return [*MODES, mode].index(mode), mode, str(run.path)


def _rule(run: Run) -> str | None:
    scoring = getattr(run.config, "scoring", None)
    return None if scoring is None else str(scoring.on_overflow)


def mode_fields(models: Iterable[Sequence[ModeRun]]) -> dict[str, dict[str, Any]]:
    """Return the difference to the run without user context, by a run's directory, as JSON has it."""
    fields = ("difference", "low", "high", "p_value")
    return {
        str(mode.run.path): {name: getattr(mode.against_none, name) for name in fields}
        for own in models
        for mode in own
        if mode.against_none is not None
    }
