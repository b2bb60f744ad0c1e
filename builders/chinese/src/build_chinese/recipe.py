"""What a build of CheemsBench and CheemsPreference can be asked to do."""

from pathlib import Path, PurePath
from typing import Any, ClassVar, Literal, Self

from pluralbench_audit import PairLimits
from pluralbench_calls import ChatConnection, ChatModel, check_reachable
from pluralbench_release import ReleaseName, ReleaseRecipe
from pluralbench_runs import PathName, Place, Table
from pydantic import Field, model_validator

from build_chinese.annotation.tasks import Tasks
from build_chinese.screening import Screening

RECIPES = Path(__file__).parent / "recipes"
SAMPLE = "sample"


class PromptsTable(Table):
    """Prompts that people are to rank responses to.

    location: JSONL with `id`, `input`, `category` and `config`, or `sample`. responses: JSONL with `prompt`, `id`,
    `content` and `model`; without it the writers are asked. taxonomy: TOML with the categories. checks: JSONL with the
    `task` and the right `marks` of tasks whose answers are known. assigned: JSONL with `task`, `annotator` and
    `responses`, where somebody else has given the tasks out.
    """

    location: Place
    responses: Place | None = None
    taxonomy: Place = SAMPLE
    checks: Place | None = None
    assigned: Place | None = None


class Writer(ChatModel):
    """A model that answers the prompts. base_url, api_key_env: its endpoint, in place of the connection's."""

    base_url: str | None = None
    api_key_env: str | None = None


class AnnotatedTable(Table):
    """Prompts with people's annotations, as the verb `annotations` writes them, or `sample`.

    A prompt whose `config` is `open`, `human` or another of `benchmarks` is of that benchmark, any other is of the
    human part that the reward model learns from and that the preference set begins with.
    name, licence, attribution: what the card calls the source, under which licence it is, and whom it thanks.
    """

    location: Place
    name: str | None = Field(None, min_length=1)
    benchmarks: list[PathName] = Field(default_factory=lambda: ["open", "human"])
    licence: str | None = None
    attribution: str | None = None


class UnlabelledTable(Table):
    """Prompts with responses that a judge model votes on: JSONL with `input`, `category`, `responses`, or `sample`.

    name, licence, attribution: as of `AnnotatedTable`.
    """

    location: Place
    name: str | None = Field(None, min_length=1)
    taxonomy: Place = SAMPLE
    limit: int | None = Field(None, ge=1)
    licence: str | None = None
    attribution: str | None = None


class JudgeTable(ChatModel):
    """The judge model. provider `recorded` has the sample's own votes. attempts: until a vote can be read.

    reply: a `marker` such as [[A]] in the last line, or `structured`, JSON by a schema that the server enforces, which
    small models need.
    """

    attempts: int = Field(2, ge=1)
    reply: Literal["marker", "structured"] = "marker"


class RewardTable(Table):
    """The reward model that filters votes.

    base: a folder with the model that is trained on the human part. name: what to call it. digest: of its files; the
    builder fills it in. training: options of `pluralbench_local.TrainingOptions` for the human part. large: what of
    them is otherwise for the large set, that of the judge's votes; by default one epoch, where the human part has two.
    margin: a vote stays if the rewards differ by more than this. least_pairs: a human part with fewer is too small.
    """

    base: Place
    name: str | None = None
    digest: str | None = None
    device: str = "auto"
    training: dict[str, Any] = Field(default_factory=dict)
    large: dict[str, Any] = Field(default_factory=lambda: {"epochs": 1})
    margin: float = Field(0.0, ge=0)
    least_pairs: int = Field(50, ge=1)

    @property
    def shown(self) -> str:
        """What to call it."""
        return self.name or PurePath(self.base).name

    def on_large_set(self) -> Self:
        """The table as the large set is trained on."""
        return self.model_copy(update={"training": self.training | self.large})


class PreferenceTable(Table):
    """The strategies of the preference set, each of which can be switched off (CHEEMS, table 4)."""

    distant: bool = True
    length: bool = True
    human: bool = True


class ChineseRecipe(ReleaseRecipe):
    """A build of CheemsBench and CheemsPreference. Defaults are the paper's where it gives a value.

    audit: limits that the pairs of every part have to keep, their lengths in characters.
    """

    operational: ClassVar[frozenset[str]] = ReleaseRecipe.operational | {"connection", "audit"}

    name: ReleaseName = "chinese-rewardbench"
    prompts: PromptsTable | None = None
    writers: list[Writer] = Field(default_factory=list)
    annotators: list[str] = Field(default_factory=list)
    screening: Screening = Screening()
    tasks: Tasks = Tasks()
    annotated: AnnotatedTable | None = None
    unlabelled: UnlabelledTable | None = None
    judge: JudgeTable | None = None
    reward: RewardTable | None = None
    preference: PreferenceTable = PreferenceTable()
    connection: ChatConnection = ChatConnection()
    audit: PairLimits = PairLimits()

    @model_validator(mode="after")
    def _consistent(self) -> "ChineseRecipe":
        if self.unlabelled is not None:
            if self.judge is None:
                raise ValueError("prompts without annotations need a judge: `provider` and `model` under [judge]")
            if self.preference.distant and (self.reward is None or self.annotated is None):
                raise ValueError(
                    "distant supervision needs annotated prompts under [annotated] and a `base` under [reward]; "
                    "`distant = false` under [preference] goes without"
                )
        if self.judge is not None:
            check_reachable(self.judge, self.connection, own=["recorded"])
        for writer in self.writers:
            own = {"base_url": writer.base_url} if writer.base_url is not None else {}
            check_reachable(writer, self.connection.model_copy(update=own))
        return self
