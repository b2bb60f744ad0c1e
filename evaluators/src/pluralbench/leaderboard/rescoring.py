"""Score or judge a random sample of items again, which is the only check that the scores are the model's own.

A run with exchanged scores, or with labels in place of scores, passes all other checks.
"""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, get_args

import polars as pl
from pluralbench_calls import Backend, ConnectionConfig, Ledger
from pluralbench_calls.chat import LOCAL
from pluralbench_local.served.config import described
from pluralbench_policies.language_models import LanguageModel, Library
from pluralbench_rewards import AnyRewardModel, Group, MeasuresPairTolerance, MeasuresTolerance, RewardModel, Scored
from pluralbench_rewards.served.engine import ServingConfig
from pluralbench_runs import UserError

from pluralbench.data.texts import first_ids
from pluralbench.errors import RunError
from pluralbench.evaluation.judge import judge_chat_model
from pluralbench.evaluation.models import Scorable, find_model
from pluralbench.evaluation.pairwise import (
    compare_items,
    compared_pairs,
    in_both_orders,
)
from pluralbench.evaluation.reloading import RunData, check_prompts, check_same_model, reload_model
from pluralbench.leaderboard.reproduction import judge_from_ledger, recorded_probabilities, recorded_scores
from pluralbench.results.checks import Finding
from pluralbench.results.evaluations import JudgingRunConfig
from pluralbench.results.runs import Run

EPSILON = {"float32": 2**-23, "float16": 2**-10, "bfloat16": 2**-7}
"""Machine epsilon of the precision in which scores were computed; other scores have 64 bits."""

RARE = 0.01
"""Significance level at which a drop of a judge's accuracy refutes its recorded replies."""

SAME_VERDICTS = 0.75
"""Minimum share of equal verdicts to verify a judge whose replies are sampled."""


@dataclass(frozen=True)
class Rescoring:
    """Settings for scoring items of a run again.

    Attributes:
        seed: Seed of the draw. The author of the run must not know it in advance.
        model: Model to load. Default: the name or directory that the run records.
        connection: Endpoint of a judge. The endpoint that the run records is never called, since its author chose it.
    """

    items: int
    seed: int
    model: Scorable | None = None
    serving: ServingConfig = field(default_factory=ServingConfig)
    connection: ConnectionConfig | None = None
    trust_remote_code: bool = False


def check_rescored(run: Run, data: RunData, rescoring: Rescoring) -> tuple[list[Finding], str]:
    """Score or judge drawn items again and compare with the run.

    Returns:
        Findings, and a phrase that says how many items were scored again; empty if that does not verify the run.
    """
    total = data.frame.height
    places = sorted(random.Random(rescoring.seed).sample(range(total), min(rescoring.items, total)))  # noqa: S311 - not a secret
    drawn = f"{len(places):,} of {total:,} items were {{}} again (seed {rescoring.seed})"
    try:
        if run.scored is not None:
            text, rescored = _rescore(run, data, rescoring, places), drawn.format("scored")
            return ([Finding("error", f"{rescored}, {text}")], "") if text else ([], rescored)
        level, text = _rejudge(run, data, rescoring, places)
    except UserError as error:
        return [Finding("note", f"It was not scored again. {error}")], ""
    rejudged = f"{drawn.format('judged')}, {text}"
    return ([], rejudged) if level is None else ([Finding(level, f"{rejudged}.")], "")


def _rescore(run: Run, data: RunData, rescoring: Rescoring, places: Sequence[int]) -> str:
    """Score items again; return the differences as a phrase, empty if there are none."""
    assert run.scored is not None  # noqa: S101 - checked by the caller
    config: Any = run.config
    groups, named = check_prompts(config, data).groups(), rescoring.model
    if named is None or isinstance(named, str | Path):
        name = None if named is None else str(named)
        local = reload_model(run, name, trust_remote_code=rescoring.trust_remote_code)
        named = described(local, rescoring.serving)
    found = find_model(named, config.scoring)
    check_same_model(run, found.record)
    model = found.load()
    check_same_model(run, model.record())
    again, measured = _score_again(model, [groups[place] for place in places], data.frame[list(places)])
    sizes = [score for scores in again.scores for score in scores if math.isfinite(score)] or [0.0]
    typical = math.sqrt(sum(score * score for score in sizes) / len(sizes))
    least = max(measured or 0.0, 4 * EPSILON.get(run.result.model.dtype or "", 2**-52) * typical)
    # The recorded tolerance is bounded: a large one could hide anything. That of servers is measured on few items.
    tolerance = 4 * least if again.served is not None else max(least, min(run.scored.tolerance or 0.0, 4 * least))
    recorded = recorded_scores if isinstance(model, RewardModel) else recorded_probabilities
    before = recorded(run.items, data.frame).scores
    other = [
        (data.frame["id"][place], before[place], scores)
        for place, scores in zip(places, again.scores, strict=True)
        if not _close(before[place], scores, tolerance)
    ]
    if not other:
        return ""
    name, ours, theirs = other[0]
    ids = first_ids([item for item, _, _ in other])
    return f"{len(other):,} with other scores (ids {ids}): {name} had {_listed(ours)}, now {_listed(theirs)}."


def _score_again(model: AnyRewardModel, groups: Sequence[Group], items: pl.DataFrame) -> tuple[Scored, float | None]:
    """Return new scores of items, or probabilities of their pairs, and their tolerance, which few items do not give."""
    if isinstance(model, RewardModel):
        again = model.score(groups)
        if again.tolerance is None and isinstance(model, MeasuresTolerance):
            return again, model.tolerance(groups, again)
        return again, again.tolerance
    pairs = compared_pairs(items)
    again = compare_items(model, groups, pairs, None, None)
    if again.tolerance is None and isinstance(model, MeasuresPairTolerance):
        return again, model.tolerance(groups, [in_both_orders(own) for own in pairs], again)
    return again, again.tolerance


def _close(recorded: Sequence[float], current: Sequence[float], tolerance: float) -> bool:
    return len(recorded) == len(current) and all(
        abs(a - b) <= tolerance if math.isfinite(a) and math.isfinite(b) else math.isfinite(a) == math.isfinite(b)
        for a, b in zip(recorded, current, strict=True)
    )


def _listed(scores: Sequence[float]) -> str:
    return ", ".join(f"{score:.6g}" for score in scores) or "none"


def _judge_again(config: JudgingRunConfig, rescoring: Rescoring) -> tuple[ConnectionConfig, Backend | None]:
    """Return the connection to the judges of a run, or the backend of a judge in this process."""
    models = [config.model, *getattr(config, "panel", ())]
    here = next((one for one in models if one.provider in get_args(Library)), None)
    if here is not None:
        if len(models) > 1 or getattr(config, "rubric_model", None) is not None:
            raise RunError(f"The judge {here.model} ran in its author's process, and only one such model runs again.")
        if not isinstance(rescoring.model, str | Path):
            raise RunError(
                f"The judge {here.model} ran in its author's process; give its directory or name on the Hub as "
                "`model=...`."
            )
        model = LanguageModel(
            name=str(rescoring.model),
            library=here.provider,
            dtype=here.extra.get("dtype", "auto"),
            date=here.extra.get("date"),
            trust_remote_code=rescoring.trust_remote_code,
        )
        judge = judge_chat_model(model, config.judging, None)
        if judge.model.model != here.model:
            raise RunError(f"{model.name} is {judge.model.model}, and the run's judge is {here.model}.")
        if "chat_template" in here.extra:
            raise RunError(f"The judge {here.model} had a chat template of its own, which no run contains.")
        return judge.connection, judge.here and judge.here()
    served = next((one.model for one in models if one.provider != LOCAL), None)
    if rescoring.connection is None and served is not None:
        raise RunError(
            f"The judge {served} needs an endpoint that you trust, since the author of the run chose the "
            "recorded one; give `base_url=...`."
        )
    return judge_chat_model(served or LOCAL, config.judging, rescoring.connection).connection, None


def _rejudge(
    run: Run, data: RunData, rescoring: Rescoring, places: Sequence[int]
) -> tuple[Literal["error", "note"] | None, str]:
    """Judge items again; return what the comparison means, None if it verifies the run, and the comparison."""
    config: Any = run.config
    connection, backend = _judge_again(config, rescoring)
    with TemporaryDirectory() as folder, Ledger(Path(folder) / "ledger.sqlite") as ledger:
        again = judge_from_ledger(config, data, ledger, backend, places=places, connection=connection).frame
    before = run.items.join(data.frame[places], on=["config", "id"], how="semi", maintain_order="left")
    value = next(name for name in ("verdict", "margin", "score") if name in again.columns)
    same = int(before[value].eq_missing(again[value].cast(before[value].dtype)).sum())
    wins = list(zip(before["outcome"] == "win", again["outcome"] == "win", strict=True))
    fell, rose = wins.count((True, False)), wins.count((False, True))
    text = f"{same:,} of {len(wins):,} verdicts are equal"
    # The probability that a coin falls on `rose` or fewer of them.
    chance = sum(math.comb(fell + rose, k) for k in range(rose + 1)) / (1 << (fell + rose))
    if chance < RARE:
        return "error", f"{text}; {fell:,} were right only in the run, {rose:,} only now"
    if same < SAME_VERDICTS * len(wins):
        return "note", f"{text}, too few to verify the run"
    return None, text
