"""What is scored, what the prompt shows and how a judge is asked, as frozen descriptions.

A run's settings record them, and the options of the command are made from them. Nothing heavy is imported here, so that
`--help` is quick.
"""

from pathlib import Path
from typing import Literal

from pluralbench_calls.chat import ChatConnection
from pluralbench_local import LocalModel
from pluralbench_local.training_options import TrainingOptions
from pluralbench_rewards import Scoring
from pluralbench_runs import Table
from pydantic import Field

__all__ = [
    "ChatConnection",
    "Data",
    "Judging",
    "LocalModel",
    "PersonaData",
    "PersonaJudging",
    "Prompt",
    "Scoring",
    "TrainingOptions",
]

OnEmpty = Literal["error", "drop", "keep"]
Profile = Literal["none", "raw", "plan"]
AnswerLanguage = Literal["target", "english"]
Reply = Literal["reasoned", "brief", "structured"]
Orders = Literal["both", "one"]
Criterion = Literal["quality", "person"]
Reading = Literal["lenient", "strict"]
Setting = Literal["standard", "certainty", "tie"]
Variables = Literal["all", "key", "least", "none", "key-code", "least-code"]

PLACE = "DIR|FILE|ORG/NAME[@REVISION]"
ATTEMPTS = "Tries for a reply that can be parsed."
MAX_TOKENS = "Tokens of a reply."


class Data(Table):
    """Which items of a benchmark are scored, and where they are.

    location: a release or another directory, a file (.parquet, .jsonl, .json, .csv), or ORG/NAME[@REVISION] on the Hub.
    columns: which column is what, such as "prompt=text".
    """

    location: str | None = Field(
        None,
        description="Where the items are; without it on the Hub.",
        json_schema_extra={"flag": "--data", "metavar": PLACE},
    )
    configs: tuple[str, ...] = Field(
        (), description="Only this config; may be given more than once.", json_schema_extra={"flag": "--config"}
    )
    split: str | None = Field(None, description="Another split than the benchmark's.")
    columns: tuple[str, ...] = Field(
        (),
        description="Which column is what, such as prompt=text; repeatable.",
        json_schema_extra={"flag": "--column", "metavar": "WHAT=COLUMN"},
    )
    limit: int | None = Field(None, ge=1, description="At most so many items of each config.")
    on_empty: OnEmpty | None = Field(
        None,
        description="What to do with an empty prompt or response; without it error for data of your own.",
    )
    english: str | None = Field(
        None,
        description="The English original of multilingual data that has none, for the drop from English.",
        json_schema_extra={"metavar": PLACE},
    )
    legacy: bool = Field(default=False, description="Count as the authors' code does: multilingual, chinese.")


class Prompt(Table):
    """What the prompt says about the person."""

    profile: Profile = Field("none", description="Tell the model the person's posts, or what a planner inferred.")
    profile_size: int = Field(10, ge=1, description="Posts of a profile.")
    plans: Path | None = Field(None, description="JSON Lines with id and aspects, for --profile plan.")


class PersonaData(Table):
    """Which items of the persona judge are asked about, and where they are; see `Data`."""

    location: str | None = Field(
        None,
        description="A release of build-persona-judge.",
        json_schema_extra={"flag": "--data", "metavar": PLACE},
    )
    configs: tuple[str, ...] = Field(
        (), description="Only this task; may be given more than once.", json_schema_extra={"flag": "--config"}
    )
    split: str = Field("test", description="Which split.")


class Judging(Table):
    """How a judge is asked.

    orders: "both" asks twice with the responses swapped, and calls it a tie where the verdicts disagree; "one" asks
    once, in an order drawn by the seed (the way of the paper of Personalized RewardBench, section 4.1). criterion:
    what the judge goes by, see `pluralbench_rewards.judge.Criterion`. oracle: show it the rubric aspects that the
    benchmark scores by; the paper's oracle sees the posts too (`Prompt(profile="raw")`). answer_language: of a
    benchmark in many languages, see `pluralbench.data.prompts.languages_told`.
    """

    orders: Orders = Field(
        "both", description="both: asked twice with the answers swapped; one: in an order drawn by the seed."
    )
    reply: Reply = Field(
        "reasoned", description="With reasons, the verdict alone, or JSON by a schema that the server enforces."
    )
    pointwise: bool = Field(default=False, description="Rate each answer by itself, from 1 to 10.")
    criterion: Criterion = Field(
        "quality",
        description="quality: what is said about the person decides, else the quality of the answer; person: what this "
        "very person most likely expects, also where nothing is said about them.",
    )
    oracle: bool = Field(
        default=False,
        description="Show the judge the true rubric aspects. The oracle of the paper also has --profile raw and "
        "--criterion person.",
    )
    verdicts: Reading = Field(
        "lenient",
        description="Where a verdict is read: strict, alone in the last line; lenient, wherever it is unambiguous.",
    )
    answer_language: AnswerLanguage = Field(
        "target",
        description="Which language multilingual's judges expect; english is what the authors' runner says.",
    )
    temperature: float = Field(0.0, ge=0, description="Of the first try; each further one is warmer.")
    top_p: float | None = Field(None, gt=0, le=1, description="Nucleus sampling; not sent without it.")
    max_tokens: int = Field(512, ge=1, description=MAX_TOKENS)
    attempts: int = Field(4, ge=1, description=ATTEMPTS)


class PersonaJudging(Table):
    """How a judge for persons is asked. The sampling is that of "Can LLM be a Personalized Judge?" (section 4).

    setting: "standard" asks for a choice, "certainty" also for a certainty from 1 to 100, "tie" allows a tie as an
    answer. variables: which of the persona's sentences the judge is told. samples: at most so many items of each task.
    orders: "one" shows the options as the data places them; "both" asks again with them swapped.
    """

    setting: Setting = Field(
        "certainty", description="A choice alone (standard), with a certainty, or with a tie as an answer."
    )
    variables: Variables = Field("all", description="Which of the persona's variables the judge is told.")
    samples: int | None = Field(None, ge=1, description="At most so many items of each task, drawn by the seed.")
    orders: Orders = Field(
        "one", description="one: as the data places the options; both: asked twice with the options swapped."
    )
    reply: Reply = Field(
        "brief", description="With reasons, the verdict alone, or JSON by a schema that the server enforces."
    )
    temperature: float = Field(0.7, ge=0, description="Of every try.")
    top_p: float | None = Field(0.95, gt=0, le=1, description="Nucleus sampling.")
    max_tokens: int = Field(512, ge=1, description=MAX_TOKENS)
    attempts: int = Field(4, ge=1, description=ATTEMPTS)
