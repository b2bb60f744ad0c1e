"""Types of the verbs' parameters, with the marks that their options need."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pluralbench_runs.options import Flag, Options
from pydantic import Field

from pluralbench.config import ConnectionConfig, DataConfig, DownstreamPromptConfig, Profile, PromptConfig

OF_STEPS = ("step_threshold", "tune_step_threshold")
"""Fields of `DataConfig` of answers in steps, which only `score` has."""
WITHOUT_DRAW = ("english", "legacy", *OF_STEPS, "items", "items_seed")
"""Fields of `DataConfig` that only verbs with a benchmark's number have."""
CONNECTION = ("timeout", "max_retries", "requests_per_minute", "tokens_per_minute")

ShardText = Annotated[str | None, Flag(metavar="I/N")]
Runs = Annotated[Sequence[str | Path], Flag(metavar="RUN...")]
Out = Annotated[str | Path, Flag("--out")]
HeldOut = Annotated[float | str | Path | None, Flag(metavar="SHARE|FILE")]
ProfileSize = Annotated[int, Field(ge=1)]
Columns = Annotated[str | Sequence[str], Flag(metavar="A,B,C")]
Judged = Annotated[str | Path | DataConfig | None, Options(left_out=OF_STEPS)]
Undrawn = Annotated[str | Path | DataConfig | None, Options(left_out=WITHOUT_DRAW)]
PlannerItems = Annotated[str | Path | DataConfig | None, Options(left_out=("on_empty", *WITHOUT_DRAW))]
UserContext = Annotated[DownstreamPromptConfig | Profile | PromptConfig | None, Options("Data")]
PolicyConnection = Annotated[ConnectionConfig | None, Options("Policy", CONNECTION, "policy-")]
JudgeConnection = Annotated[ConnectionConfig | None, Options("Judge", CONNECTION, "judge-")]
