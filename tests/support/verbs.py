"""The evaluator's verbs with loose options, each put into the description that has a field of its name."""

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pluralbench
import pluralbench.data
from pluralbench import ConnectionConfig, DataConfig, JudgeConfig, LocalModel, PromptConfig
from pluralbench.config import PersonaDataConfig, PersonaJudgeConfig, ScoringConfig
from pluralbench.contract import Group
from pluralbench.results import Run
from pluralbench.results.evaluations import JudgeResult, ScoreResult
from pluralbench_rewards import Work
from pluralbench_runs import FrozenModel


def by_text(groups: Sequence[Group]) -> list[list[float]]:
    """Scores drawn by nothing but the texts that a model would read."""
    return [[random.Random(f"{group.messages} {answer}").gauss(0, 1) for answer in group.responses] for group in groups]


def by_length(groups: Sequence[Group]) -> list[list[float]]:
    """The longer an answer, the better."""
    return [[float(len(answer)) for answer in group.responses] for group in groups]


def score(model: Any, *, data: Any = None, **options: Any) -> Run:
    """`pluralbench.score`; options that only a `LocalModel` has make one of a name."""
    described = _taken(LocalModel, options)
    given = LocalModel(name=str(model), **described) if described else model
    return pluralbench.score(
        given,
        data=DataConfig(location=None if data is None else str(data), **_taken(DataConfig, options)),
        prompt=PromptConfig(**_taken(PromptConfig, options)),
        scoring=ScoringConfig(**_taken(ScoringConfig, options)),
        **options,
    )


def judge(model: str | Sequence[str], *, data: Any = None, **options: Any) -> Run:
    """`pluralbench.judge`."""
    return pluralbench.judge(
        model,
        data=DataConfig(location=None if data is None else str(data), **_taken(DataConfig, options)),
        prompt=PromptConfig(**_taken(PromptConfig, options)),
        judging=JudgeConfig(**_taken(JudgeConfig, options)),
        connection=ConnectionConfig(**_taken(ConnectionConfig, options)),
        **options,
    )


def judge_personas(model: str, *, data: Any = None, **options: Any) -> Run:
    """`pluralbench.judge_personas`."""
    return pluralbench.judge_personas(
        model,
        data=PersonaDataConfig(location=None if data is None else str(data), **_taken(PersonaDataConfig, options)),
        judging=PersonaJudgeConfig(**_taken(PersonaJudgeConfig, options)),
        connection=ConnectionConfig(**_taken(ConnectionConfig, options)),
        **options,
    )


def load_items(benchmark: pluralbench.data.Benchmark, data: Any = None, **options: Any) -> pluralbench.data.Items:
    """`pluralbench.load_items`."""
    return pluralbench.load_items(benchmark, DataConfig(location=None if data is None else str(data), **options))


def _taken(description: type[FrozenModel], options: dict[str, Any]) -> dict[str, Any]:
    return {name: options.pop(name) for name in [*options] if name in description.model_fields}


def scoring(run: Run) -> ScoreResult:
    """How a run was scored."""
    assert run.scored is not None
    return run.scored


def work(run: Run) -> Work:
    """What scoring took, of a model in this process."""
    found = scoring(run).work
    assert found is not None
    return found


def judging(run: Run) -> JudgeResult:
    """How a judge was asked."""
    assert run.judged is not None
    return run.judged


def value(run: Run, metric: str, **place: Any) -> float:
    """A number of a run that has to be there."""
    found = run.estimate(metric, **place).value
    assert found is not None, (metric, place)
    return found


def config(run: Path) -> dict[str, Any]:
    """What a run was asked, as its directory has it."""
    found: dict[str, Any] = json.loads((run / "run.json").read_text(encoding="utf-8"))["config"]
    return found
