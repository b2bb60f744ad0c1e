"""What `score`, `judge` and `judge-personas` are asked and what comes of it: the numbers of a model on a benchmark."""

from typing import Any, ClassVar

from pluralbench_calls import ChatModel, ConnectionConfig
from pluralbench_rewards import ModelRecord, ScoringConfig
from pluralbench_runs import FrozenModel
from pydantic import Field

from pluralbench.config import JudgeConfig, PersonaJudgeConfig
from pluralbench.results.record import (
    BenchmarkRecord,
    DataRecord,
    PromptRecord,
    RunConfig,
    RunResult,
    ScoringRecord,
    ShardRecord,
)


class EvaluationRunConfig(RunConfig):
    """What a benchmark's run is of."""

    benchmark: BenchmarkRecord
    data: DataRecord
    prompt: PromptRecord = PromptRecord()

    def judge_setting(self, name: str) -> Any:
        """A field of how a judge is asked; None where the verb has none of this name, or it says nothing here."""
        judging = getattr(self, "judging", None)
        if (name == "orders" and getattr(judging, "pointwise", False)) or (
            name == "answer_language" and self.benchmark.description.reference is None
        ):
            return None
        return getattr(judging, name, None)


class ScoreRunConfig(EvaluationRunConfig):
    """All that the numbers of `score` depend on. model: what was known of it before it was loaded."""

    verb = "score"

    model: ModelRecord
    scoring: ScoringConfig


class JudgeRunConfig(EvaluationRunConfig):
    """All that a judge's verdicts depend on. seed: of its draws."""

    verb = "judge"
    runtime_only: ClassVar[frozenset[str]] = frozenset({"connection"})

    model: ChatModel
    prompts_digest: str
    judging: JudgeConfig
    seed: int
    connection: ConnectionConfig = ConnectionConfig()


class PersonaJudgeRunConfig(EvaluationRunConfig):
    """All that the verdicts of a judge for persons depend on."""

    verb = "judge-personas"
    runtime_only: ClassVar[frozenset[str]] = frozenset({"connection"})

    model: ChatModel
    prompts_version: str
    prompts_digest: str
    judging: PersonaJudgeConfig
    seed: int
    connection: ConnectionConfig = ConnectionConfig()


class EvaluationResult(RunResult):
    """What came of all three. model: as it was loaded. invalid_reasons: why scores or verdicts are none, how often.

    shards: what `merge` joined, and nothing else; `cost` is then their sum, and the provenance that of the joining.
    """

    model: ModelRecord
    invalid_reasons: dict[str, int] = Field(default_factory=dict)
    shards: tuple[ShardRecord, ...] = ()


class ScoreResult(EvaluationResult, ScoringRecord):
    """What came of `score`."""


class JudgeResult(EvaluationResult):
    """What came of a judge. calls, prompt_tokens, completion_tokens: of all tries. readings: how many replies each rule
    can read."""

    calls: int
    prompt_tokens: int
    completion_tokens: int
    readings: dict[str, int] = Field(default_factory=dict)


class WithoutPersona(FrozenModel):
    """Items whose person the variable set tells nothing of, though it should; the first of their ids."""

    items: int = 0
    ids: tuple[str, ...] = ()


class PersonaJudgeResult(JudgeResult):
    """What came of a judge for persons; see `pluralbench.data.persona_items.sample_items` for what is left out."""

    ties_excluded: dict[str, int] = Field(default_factory=dict)
    tasks_excluded: dict[str, str] = Field(default_factory=dict)
    without_persona: WithoutPersona = WithoutPersona()
