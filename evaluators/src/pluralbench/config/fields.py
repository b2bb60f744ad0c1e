"""Fields that several configurations share."""

from typing import Annotated

from pluralbench_calls.chat import MAX_ATTEMPTS
from pluralbench_runs import PathText
from pydantic import Field

PLACE = "DIR|FILE|ORG/NAME"
Location = Annotated[
    PathText | None,
    Field(
        description="Dataset: directory, file, or ORG/NAME[@REVISION] on the Hub; sample: bundled rows. Default: Hub.",
        json_schema_extra={"flag": "--data", "metavar": PLACE},
    ),
]
Configs = Annotated[
    tuple[str, ...],
    Field(description="Config to include; repeatable. Default: all.", json_schema_extra={"flag": "--config"}),
]
SPLIT = "Split of the data; all: every split. Default: the benchmark's."
Limit = Annotated[int | None, Field(ge=1, description="Maximum items per config.")]
Temperature = Annotated[float, Field(ge=0, description="Sampling temperature; 0 is greedy.")]
TopP = Annotated[float | None, Field(gt=0, le=1, description="Nucleus sampling: cumulative probability.")]
MaxTokens = Annotated[int, Field(ge=1, description="Maximum tokens per reply.")]
Logprobs = Annotated[
    bool,
    Field(description="Record the probability of each verdict; the server must send logprobs."),
]
Attempts = Annotated[
    int, Field(ge=1, le=MAX_ATTEMPTS, description="Maximum requests per item until a reply can be parsed.")
]
