"""What runs are called beside each other: by their model, and by what else tells them apart."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pluralbench.results.evaluations import ScoreRunConfig
from pluralbench.results.runs import Run


def cut_by(run: Run) -> str | None:
    """The overflow rule that an item of the run met; None where none did, so that every rule gives the same run."""
    scored = run.scored
    if (
        not isinstance(run.config, ScoreRunConfig)
        or scored is None
        or not scored.items_truncated + scored.items_dropped
    ):
        return None
    return run.config.scoring.on_overflow


ASKED: dict[str, Callable[[Run], Any]] = {
    "profile": lambda run: run.config.prompt.profile,
    "variables": lambda run: run.config.judge_setting("variables"),
}
"""What changes what a model is asked, so that it is told wherever runs differ in it."""

TOLD: dict[str, Callable[[Run], Any]] = {
    "setting {}": lambda run: run.config.judge_setting("setting"),
    "{} posts": lambda run: run.config.prompt.profile_size,
    "oracle {}": lambda run: run.config.judge_setting("oracle"),
    "answers in {}": lambda run: run.config.judge_setting("answer_language"),
    "criterion {}": lambda run: run.config.judge_setting("criterion"),
    "{}": lambda run: run.config.judge_setting("reply_format"),
    "orders {}": lambda run: run.config.judge_setting("orders"),
    "pointwise {}": lambda run: run.config.judge_setting("pointwise"),
    "verdicts {}": lambda run: run.config.judge_setting("verdict_parsing"),
    "temperature {}": lambda run: run.config.judge_setting("temperature"),
    "mode {}": lambda run: isinstance(run.config, ScoreRunConfig) and run.config.scoring.mode,
    "{} if too long": cut_by,
    "seed {}": lambda run: getattr(run.config, "seed", None),
    "{} rules": lambda run: "its own" if run.config.benchmark.description.ties_break_exact_match else "legacy",
    "data {}": lambda run: Path(run.config.data.location).name,
    "limit {} per config": lambda run: run.config.data.limit,
}
"""What else can tell runs of one model apart, and how that is said."""

FEW = 2  # so many differences are told; for more the run's folder stands


def asked_differently(runs: Sequence[Run]) -> list[str]:
    """In what of `ASKED` some runs differ; `row_names` has its values in brackets."""
    return [what for what, of in ASKED.items() if len({of(run) for run in runs}) > 1]


def row_names(runs: Sequence[Run]) -> list[str]:
    """What each run is called in a table: its model, and in brackets what tells it from the others."""
    short = [Path(run.name).name or run.name for run in runs]
    whole: dict[str, set[str]] = {}
    for run, name in zip(runs, short, strict=True):
        whole.setdefault(name, set()).add(run.name)
    names = [run.name if len(whole[name]) > 1 else name for run, name in zip(runs, short, strict=True)]
    apart = differences(runs, lambda _, value: value)
    return [f"{name} ({more})" if more else name for name, more in zip(names, apart, strict=True)]


def differences(runs: Sequence[Run], said: Callable[[str, str], str] = "{} {}".format) -> list[str]:
    """What each run was asked that others were not, and what else tells it from other runs of its model, if any."""
    differ = asked_differently(runs)
    asked = [tuple(said(what, _word(ASKED[what](run))) for what in differ) for run in runs]
    keys = [(run.name, values) for run, values in zip(runs, asked, strict=True)]
    found = []
    for run, values, key in zip(runs, asked, keys, strict=True):
        same = [other for other, one in zip(runs, keys, strict=True) if one == key]
        found.append(", ".join([*values, *(_apart(run, same) if len(same) > 1 else ())]))
    return found


def _apart(run: Run, same: Sequence[Run]) -> Iterator[str]:
    """What tells a run from others of its model that are asked alike: settings, or where these do not, its folder."""
    differ = {how: of for how, of in TOLD.items() if len({of(other) for other in same}) > 1}
    if len(differ) <= FEW and len({tuple(of(other) for of in differ.values()) for other in same}) == len(same):
        yield from (how.format(_word(of(run))) for how, of in differ.items())
    else:
        by_name = len({other.path.name for other in same}) == len(same)
        yield run.path.name if by_name else str(run.path)


def _word(value: Any) -> str:
    return "none" if value is None else {"True": "yes", "False": "no"}.get(str(value), str(value))
