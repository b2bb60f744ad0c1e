"""The kinds of run: the settings and the result of each verb, the checks of its frames, and its numbers.

What writes, reads, joins and checks runs asks `RUN_KINDS`, so a verb with a run is an entry here.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import polars as pl
from pluralbench_runs import step
from pluralbench_tables import csv_text

from pluralbench.data.decisions import decisions_of
from pluralbench.data.verdict_tables import check_verdicts
from pluralbench.data.votes import REPLIES_COMPARED, REPLIES_SCORED
from pluralbench.errors import RunError
from pluralbench.metrics import measure
from pluralbench.metrics.calls import call_numbers
from pluralbench.metrics.frame import metrics_frame
from pluralbench.metrics.metric import START
from pluralbench.metrics.personalize import method_numbers
from pluralbench.results.downstream import (
    FRAMES,
    BestOfNRunConfig,
    DownstreamResult,
    DownstreamRunConfig,
    OptimizeRunConfig,
)
from pluralbench.results.evaluations import (
    EvaluationRunConfig,
    JudgeResult,
    JudgeRunConfig,
    PersonaJudgeResult,
    PersonaJudgeRunConfig,
    ScoreResult,
    ScoreRunConfig,
    WithoutPersona,
    count_within_tolerance,
)
from pluralbench.results.item_rows import cast_columns, check_annotations, check_items, votes_on_items
from pluralbench.results.outcomes import best_of_n_numbers, optimize_numbers
from pluralbench.results.personalize import PERSONALIZE_ITEMS, PersonalizeResult, PersonalizeRunConfig
from pluralbench.results.plans import PlanResult, PlanRunConfig, SynthesizeResult, SynthesizeRunConfig
from pluralbench.results.record import RunConfig, RunResult

BENCHMARKS = "runs"
VERDICTS_FILE = "verdicts.csv"
Frame = Callable[[str], pl.DataFrame]
"""Returns a frame of a run by its name."""


class Texts(NamedTuple):
    """What a run does not contain, and some numbers need.

    Attributes:
        items: Items of the benchmark with their texts, for baselines and other metrics of texts. None: without these.
        calls: Recorded calls of a judge. None: without the numbers of calls.
    """

    items: pl.DataFrame | None = None
    calls: pl.DataFrame | None = None


NO_TEXTS = Texts()


class RunKind(NamedTuple):
    """What runs of a verb are.

    Attributes:
        config: Class of the settings, which names the verb.
        result: Class of the result.
        group: Group of kinds that reports show together; `BENCHMARKS` have an overall number. Empty: these runs have no
            numbers to report.
        frames: Frames that are read and checked with the run.
        numbers: Computes the metrics from settings, result, frames and texts. None: the verb computes them from what
            its run does not contain.
        check: Checks a frame and casts its columns; its arguments are those of `check_frame`.
        derive: Returns the fields of the result that follow from settings, result and frames. `merge` computes them;
            other fields are added up.
        texts: Returns further text files by name, from settings and frames.
    """

    config: type[RunConfig]
    result: type[RunResult]
    group: str = "others"
    frames: tuple[str, ...] = ()
    numbers: Callable[[Any, Any, Frame, Texts], pl.DataFrame] | None = None
    check: Callable[[str, pl.DataFrame, Any, str], pl.DataFrame] = lambda name, frame, config, where: frame
    derive: Callable[[Any, Any, Frame], dict[str, Any]] = lambda config, result, frame: {}
    texts: Callable[[Any, Frame], dict[str, str]] = lambda config, frame: {}

    @property
    def has_overall(self) -> bool:
        """Whether its runs are of a model on a benchmark, with an overall number and items."""
        return self.group == BENCHMARKS


def check_frame(name: str, frame: pl.DataFrame, config: RunConfig, where: str) -> pl.DataFrame:
    """Check a frame of a run, and cast its columns.

    Raises:
        RunError: The frame is not valid for the verb.
    """
    return RUN_KINDS[config.verb].check(name, frame, config, where)


def numbers_of_run(
    config: RunConfig, result: RunResult | None, frames: Frame | Mapping[str, pl.DataFrame], texts: Texts = NO_TEXTS
) -> pl.DataFrame:
    """Compute the metrics of a run from its frames; a shard has none, since they would look like the whole run's.

    Raises:
        RunError: The frames do not give metrics.
    """
    numbers = RUN_KINDS[config.verb].numbers
    if numbers is None:
        raise RunError(f"The numbers of `{config.verb}` are not computed from its frames.")
    with step("Computing metrics"):
        return numbers(config, result, frames.__getitem__ if isinstance(frames, Mapping) else frames, texts)


def _evaluation_numbers(config: Any, result: None, frame: Frame, texts: Texts) -> pl.DataFrame:
    if config.shard is not None:
        return metrics_frame(())
    items, description, annotations = frame("items"), config.benchmark.description, None
    if description.annotations is not None:
        annotations = votes_on_items(frame("annotations"), items, "annotations.parquet")
    votes = config.votes(frame)
    metrics = measure(description, decisions_of(items), texts.items, items, votes=votes, annotations=annotations)
    if texts.calls is None:
        return metrics
    return pl.concat([metrics, metrics_frame(call_numbers(items, votes, texts.calls, config.judging))])


def _persona_numbers(config: PersonaJudgeRunConfig, result: None, frame: Frame, texts: Texts) -> pl.DataFrame:
    if config.shard is not None:
        return metrics_frame(())
    verdicts = check_verdicts(config.verdicts(frame("items")))
    return measure(config.benchmark.description, frame("items"), texts.items, verdicts=verdicts)


def _personalize_numbers(
    config: PersonalizeRunConfig, result: PersonalizeResult, frame: Frame, texts: Texts
) -> pl.DataFrame:
    return metrics_frame(method_numbers(frame("items"), {name: one.by_config for name, one in result.sets.items()}))


def _check_evaluation(name: str, frame: pl.DataFrame, config: EvaluationRunConfig, where: str) -> pl.DataFrame:
    if name == "items":
        return check_items(frame, config, where)
    if name == "annotations":
        return check_annotations(frame, config.benchmark.description, where)
    if name == "replies":
        kinds = REPLIES_COMPARED if config.judge_setting("protocol") == "pairwise" else REPLIES_SCORED
        return cast_columns(frame, kinds, where, kinds)
    return frame


def _check_personalize(name: str, frame: pl.DataFrame, config: PersonalizeRunConfig, where: str) -> pl.DataFrame:
    if name == "items":
        if dict(frame.schema) != dict(PERSONALIZE_ITEMS):
            expected, actual = ", ".join(PERSONALIZE_ITEMS), ", ".join(frame.columns)
            raise RunError(f"{where}: expected the columns {expected}, not {actual}.")
        if frame.is_empty():
            raise RunError(f"{where}: the table has no rows.")
    return frame


def _check_downstream(name: str, frame: pl.DataFrame, config: DownstreamRunConfig, where: str) -> pl.DataFrame:
    kinds = FRAMES.get(name.removesuffix(f"_{START}"), pl.Schema())
    return cast_columns(frame, kinds, where, kinds)


def _within_tolerance(config: ScoreRunConfig, result: ScoreResult, frame: Frame) -> dict[str, Any]:
    count = count_within_tolerance(decisions_of(frame("items")), result.tolerance)
    return {"decisions_within_tolerance": count}


def _without_persona(config: PersonaJudgeRunConfig, result: PersonaJudgeResult, frame: Frame) -> dict[str, Any]:
    return {"without_persona": WithoutPersona.among(frame("items"), config.judging.variables)}


def _verdict_file(config: PersonaJudgeRunConfig, frame: Frame) -> dict[str, str]:
    """The table that `judge-metrics` reads; a shard has none."""
    return {} if config.shard is not None else {VERDICTS_FILE: csv_text(config.verdicts(frame("items")))}


_evaluation = partial(RunKind, group=BENCHMARKS, frames=("items",), check=_check_evaluation)
_downstream = partial(RunKind, group="downstream", check=_check_downstream)
RUN_KINDS: Mapping[str, RunKind] = {
    kind.config.verb: kind
    for kind in (
        _evaluation(ScoreRunConfig, ScoreResult, numbers=_evaluation_numbers, derive=_within_tolerance),
        _evaluation(JudgeRunConfig, JudgeResult, numbers=_evaluation_numbers),
        _evaluation(
            PersonaJudgeRunConfig,
            PersonaJudgeResult,
            numbers=_persona_numbers,
            derive=_without_persona,
            texts=_verdict_file,
        ),
        _downstream(BestOfNRunConfig, DownstreamResult, numbers=best_of_n_numbers),
        _downstream(OptimizeRunConfig, DownstreamResult, numbers=optimize_numbers),
        RunKind(
            PersonalizeRunConfig,
            PersonalizeResult,
            "personalized",
            ("items",),
            _personalize_numbers,
            _check_personalize,
        ),
        RunKind(PlanRunConfig, PlanResult, "plans"),
        RunKind(SynthesizeRunConfig, SynthesizeResult, ""),
    )
}
"""The kinds of run by verb."""
