"""Config and result of `score`, `judge` and `judge-personas`: runs of a model on a benchmark."""

from typing import Any

import polars as pl
from pluralbench_calls import ChatModel
from pluralbench_rewards import ModelRecord, ScoringConfig
from pluralbench_rewards.prompts import JudgePrompt
from pluralbench_runs import FrozenModel
from pydantic import Field

from pluralbench.config import JudgeConfig, PersonaJudgeConfig, RubricFile
from pluralbench.data.verdict_tables import COLUMNS as VERDICT_COLUMNS
from pluralbench.data.votes import Votes
from pluralbench.results.record import (
    BenchmarkRecord,
    ChatRunConfig,
    DataRecord,
    PromptRecord,
    RunConfig,
    RunResult,
    ScoringRecord,
    ShardRecord,
    UsageRecord,
)

OF_OUR_PROMPT = ("criterion", "verdict_parsing", "answer_language")
"""Settings of a judge that have no effect with a prompt of its own."""


class EvaluationRunConfig(RunConfig):
    """Settings of a benchmark run."""

    benchmark: BenchmarkRecord
    data: DataRecord
    prompt: PromptRecord = PromptRecord()

    def judge_setting(self, name: str) -> Any:
        """Return a setting of the judge; None if the verb has no such setting, or it has no effect in this run.

        A prompt and the file of a rubric are given by their names.
        """
        judging = getattr(self, "judging", None)
        if name in OF_OUR_PROMPT and getattr(judging, "prompt", None) is not None:
            return None
        if (name == "orders" and getattr(judging, "protocol", "pairwise") != "pairwise") or (
            name == "answer_language" and self.benchmark.description.reference is None
        ):
            return None
        value = getattr(judging, name, None)
        return value.name if isinstance(value, JudgePrompt | RubricFile) else value


class ScoreRunConfig(EvaluationRunConfig):
    """Settings that determine the numbers of `score`.

    Attributes:
        model: Record of the model before loading.
        scoring: Options of the model.
    """

    verb = "score"

    model: ModelRecord
    scoring: ScoringConfig


class JudgeRunConfig(EvaluationRunConfig, ChatRunConfig):
    """Settings that determine a judge's verdicts.

    Attributes:
        model: The judge, or the first of a panel.
        panel: The other judges of a panel.
        rubric_model: Model that writes the rubrics of the judge's prompt.
    """

    verb = "judge"
    model: ChatModel
    panel: tuple[ChatModel, ...] = ()
    judging: JudgeConfig
    rubric_model: ChatModel | None = None

    @property
    def judges(self) -> dict[str, ChatModel]:
        """The judges by name."""
        return {one.model: one for one in (self.model, *self.panel)}

    @property
    def has_votes(self) -> bool:
        """Whether several replies to a question vote."""
        return len(self.judges) * self.judging.samples > 1

    def votes_on(self, items: pl.DataFrame, replies: pl.DataFrame | None) -> Votes | None:
        """Return how the replies of a run vote; None if one reply decides, or there is nothing to decide.

        Args:
            items: The rows of `items.parquet`.
            replies: The rows of `replies.parquet`.
        """
        if replies is None or replies.is_empty():
            return None
        return Votes(items, replies, self.judging.vote, self.benchmark.description.vote)


class PersonaJudgeRunConfig(EvaluationRunConfig, ChatRunConfig):
    """Settings that determine the verdicts of a persona judge."""

    verb = "judge-personas"
    model: ChatModel
    prompts_version: str
    judging: PersonaJudgeConfig

    def verdicts(self, items: pl.DataFrame) -> pl.DataFrame:
        """Return the table of verdicts that `judge-metrics` reads, from the rows of `items.parquet`."""
        certainty = pl.col("certainty")
        certainties = items["certainty"].drop_nulls()
        return items.with_columns(
            judge=pl.lit(self.model.model),
            setting=pl.lit(self.judging.setting),
            persona_variables=pl.lit(self.judging.variables),
            certainty=certainty.cast(pl.Int64) if (certainties == certainties.floor()).all() else certainty,
        ).select(*VERDICT_COLUMNS, "id", "user")


class EvaluationResult(RunResult):
    """Result of a benchmark run, without its numbers and items.

    Attributes:
        model: Record of the model after loading.
        invalid_reasons: Number of invalid scores or verdicts, by reason.
        shards: Shards that `merge` joined; empty otherwise. `cost` is then their sum, and the provenance is that of the
            merge.
    """

    model: ModelRecord
    invalid_reasons: dict[str, int] = Field(default_factory=dict)
    shards: tuple[ShardRecord, ...] = ()


class ScoreResult(EvaluationResult, ScoringRecord):
    """Result of `score`."""


class JudgeResult(EvaluationResult, UsageRecord):
    """Result of a judge.

    Attributes:
        readings: Number of replies that each parsing rule can read.
    """

    readings: dict[str, int] = Field(default_factory=dict)


class WithoutPersona(FrozenModel):
    """Number and first ids of items whose persona is empty under the chosen set of variables."""

    items: int = 0
    ids: tuple[str, ...] = ()


class PersonaJudgeResult(JudgeResult):
    """Result of a persona judge; see `pluralbench.data.persona_items.sample_items` for excluded items."""

    ties_excluded: dict[str, int] = Field(default_factory=dict)
    tasks_excluded: dict[str, str] = Field(default_factory=dict)
    without_persona: WithoutPersona = WithoutPersona()
