"""Fields that several configurations share."""

from typing import Annotated

from pluralbench_calls.chat import MAX_ATTEMPTS
from pluralbench_runs import PathText
from pydantic import Field

PLACE = "DIR|FILE|ORG/NAME[@REVISION]"
Location = Annotated[
    PathText | None,
    Field(
        description="Dataset location: directory, file or ORG/NAME on the Hub; sample: bundled rows. Default: the Hub.",
        json_schema_extra={"flag": "--data", "metavar": PLACE},
    ),
]
Configs = Annotated[
    tuple[str, ...],
    Field(description="Config to include; repeatable. Default: all.", json_schema_extra={"flag": "--config"}),
]
SPLIT = "Split of the data; all: every split. Default: the benchmark's."
Limit = Annotated[int | None, Field(ge=1, description="Maximum number of items per config.")]
Temperature = Annotated[float, Field(ge=0, description="Sampling temperature; 0 is greedy.")]
TopP = Annotated[
    float | None, Field(gt=0, le=1, description="Nucleus sampling: cumulative probability to sample from.")
]
MaxTokens = Annotated[int, Field(ge=1, description="Maximum tokens per reply.")]
Logprobs = Annotated[
    bool,
    Field(description="Record the probability of each verdict; needs a server that sends logprobs."),
]
Attempts = Annotated[
    int, Field(ge=1, le=MAX_ATTEMPTS, description="Maximum number of requests per item until a reply can be parsed.")
]
