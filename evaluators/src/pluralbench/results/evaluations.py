"""Config and result of `score`, `judge` and `judge-personas`: runs of a model on a benchmark."""

from collections.abc import Callable
from typing import Any

import polars as pl
from pluralbench_calls import ChatModel, ConnectionConfig
from pluralbench_rewards import ModelRecord, ScoringConfig
from pluralbench_rewards.chat_client import TEMPERATURE_STEP
from pluralbench_rewards.judge_prompts import prompts_digest
from pluralbench_rewards.prompts import JudgePrompt
from pluralbench_runs import FrozenModel, digest
from pydantic import Field
from typing_extensions import override

from pluralbench.config import JudgeConfig, PersonaJudgeConfig, RubricFile
from pluralbench.config.judges import Variables
from pluralbench.data.persona_items import sample_items
from pluralbench.data.persona_prompts import persona_digest
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

MAX_IDS = 20  # recorded ids of items without a persona
OF_OUR_PROMPT = ("criterion", "verdict_parsing", "answer_language")
"""Settings of a judge that have no effect with a prompt of its own."""


class EvaluationRunConfig(RunConfig):
    """Settings of a benchmark run."""

    benchmark: BenchmarkRecord
    data: DataRecord
    prompt: PromptRecord = PromptRecord()

    @property
    @override
    def shard(self) -> str | None:
        return self.data.shard

    def votes(self, frame: Callable[[str], pl.DataFrame]) -> Votes | None:
        """Return how several replies to a question vote; None if one reply decides."""
        return None

    def items_of(self, data: Any) -> pl.DataFrame:
        """Return the items of the run among those of its data, as `results.examples.reload_items` reads them."""
        frame: pl.DataFrame = data.frame
        return frame

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
    """Settings that determine the numbers of `score`."""

    verb = "score"

    model: ModelRecord
    scoring: ScoringConfig


def step_of_temperature(model: ChatModel) -> float:
    """Return the increase of the temperature at a retry by a prompt of its own: none at a temperature above 0."""
    return 0.0 if model.temperature > 0 else TEMPERATURE_STEP


class JudgingRunConfig(EvaluationRunConfig, ChatRunConfig):
    """Settings of a run whose verdicts a language model gives, or several."""

    model: ChatModel
    judging: JudgeConfig | PersonaJudgeConfig

    @property
    def judges(self) -> dict[str, ChatModel]:
        """The judges by name."""
        return {one.model: one for one in (self.model, *getattr(self, "panel", ()))}

    @staticmethod
    def digest_of_prompts(judging: Any) -> str:
        """Return the digest of the prompts that the judges see by these settings."""
        raise NotImplementedError

    def judge_fields(self, model: ChatModel) -> dict[str, Any]:
        """Return the fields of a `Judge` that these settings give to one of the judges."""
        return {"attempts": self.judging.attempts, "reply": self.judging.chosen_format}

    def rubric_writer(self, connection: ConnectionConfig) -> tuple[ChatModel, ConnectionConfig] | None:
        """Return what writes the rubrics of the prompt, beside judges with this connection; None if nothing does."""
        return None


class JudgeRunConfig(JudgingRunConfig):
    """Settings that determine a judge's verdicts.

    Attributes:
        model: The judge, or the first of a panel.
        rubric_model: Model that writes the rubrics of the judge's prompt.
    """

    verb = "judge"
    panel: tuple[ChatModel, ...] = ()
    judging: JudgeConfig
    rubric_model: ChatModel | None = None

    @staticmethod
    @override
    def digest_of_prompts(judging: JudgeConfig) -> str:
        if judging.prompt is None:
            return prompts_digest(listwise=judging.protocol == "listwise")
        if isinstance(judging.rubric, RubricFile):  # a rubric that all items share is part of the prompts
            return digest([judging.prompt.digest, judging.rubric.text])
        return judging.prompt.digest

    @override
    def judge_fields(self, model: ChatModel) -> dict[str, Any]:
        judging = self.judging
        own = super().judge_fields(model) | {"criterion": judging.criterion, "rule": judging.verdict_parsing}
        if judging.prompt is None:
            return own
        return own | {"prompt": judging.prompt, "temperature_step": step_of_temperature(model)}

    @override
    def rubric_writer(self, connection: ConnectionConfig) -> tuple[ChatModel, ConnectionConfig] | None:
        writer = self.rubric_model
        return None if writer is None else (writer, self.judging.rubric_connection(connection))

    @override
    def votes(self, frame: Callable[[str], pl.DataFrame]) -> Votes | None:
        if len(self.judges) * self.judging.samples == 1 or frame("replies").is_empty():
            return None
        return Votes(frame("items"), frame("replies"), self.judging.vote, self.benchmark.description.vote)


class PersonaJudgeRunConfig(JudgingRunConfig):
    """Settings that determine the verdicts of a persona judge."""

    verb = "judge-personas"
    prompts_version: str
    judging: PersonaJudgeConfig

    @staticmethod
    @override
    def digest_of_prompts(judging: PersonaJudgeConfig) -> str:
        return persona_digest()

    @override
    def judge_fields(self, model: ChatModel) -> dict[str, Any]:
        # A retry samples again at the same temperature.
        return super().judge_fields(model) | {"seed": self.seed, "temperature_step": 0.0}

    @override
    def items_of(self, data: Any) -> pl.DataFrame:
        return sample_items(data, self.judging, configs=self.data.configs, seed=self.seed).frame

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

    @property
    def excluded(self) -> int:
        """Number of items of the data that the verb leaves out."""
        return 0


class ScoreResult(EvaluationResult, ScoringRecord):
    """Result of `score`."""


def count_within_tolerance(decisions: pl.DataFrame, tolerance: float | None) -> int | None:
    """Count the decisions whose margin is at most the tolerance; None if it was not measured."""
    return None if tolerance is None else decisions.filter(pl.col("margin").abs() <= tolerance).height


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

    @classmethod
    def among(cls, items: pl.DataFrame, variables: Variables) -> "WithoutPersona":
        """Count the items of a run whose persona has no sentence of the variables."""
        empty = items.filter(sentences=0) if variables != "none" else items.clear()
        return cls(items=empty.height, ids=tuple(empty["id"].to_list()[:MAX_IDS]))


class PersonaJudgeResult(JudgeResult):
    """Result of a persona judge; see `pluralbench.data.persona_items.sample_items` for excluded items."""

    ties_excluded: dict[str, int] = Field(default_factory=dict)
    tasks_excluded: dict[str, str] = Field(default_factory=dict)
    without_persona: WithoutPersona = WithoutPersona()

    @property
    @override
    def excluded(self) -> int:
        return sum(self.ties_excluded.values())
