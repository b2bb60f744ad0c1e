"""What a build of Personalized RewardBench can be asked to do."""

import os
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self, get_args

from pluralbench_calls import ChatModel, ConnectionConfig, check_connection
from pluralbench_release import LICENCE, SOURCE_NAME, PairLimits, ReleaseName, ReleaseRecipe
from pluralbench_runs import FrozenModel, Location, PathName, SplitName, UserError, check_path_name, public_location
from pydantic import Field, PlainSerializer, model_validator

RECIPES = Path(__file__).parent / "recipes"


def public_source(location: str) -> str:
    """A location of `SourceTable` as others may read it; a dump that is called Posts.xml is known by its folder."""
    kind, _, path = location.partition(":")
    public = public_location(location)
    if public == location or not public.endswith(":Posts.xml"):
        return public
    return f"{kind}:{Path(path).resolve().parent.name}/Posts.xml"


def site_of(path: Path) -> str:
    """`beer`, the site of the dump `beer.stackexchange.Posts.xml` or `beer.stackexchange.com/Posts.xml`."""
    name = Path(os.path.realpath(path)).parent.name if path.name == "Posts.xml" else path.name
    return name.removesuffix(".Posts.xml").removesuffix(".com").removesuffix(".stackexchange").removesuffix(".xml")


Rule = Literal["echo", "asking back"]
"""Why an answer may be none: it repeats seven words in a row of the instructions, or most of it is questions."""
RULES: tuple[Rule, ...] = get_args(Rule)


class SourceTable(FrozenModel):
    """Where the people, their posts and their questions come from.

    name, attribution: what the card calls a source, and whom it thanks; of a single location.
    evidence: whether the source's evidence is quoted from the narrative (and checked to be) or paraphrased.
    language: of the texts, a BCP 47 code; it goes on the card and decides how narratives are split into sentences.
    config_names: other names for configs, by the name that the source gives.
    min_questions: Stack Exchange users with fewer questions than this are left out (one becomes the question).
    max_posts: of a Stack Exchange user's earlier questions, keep so many of the newest.
    """

    locations: list[Annotated[str, PlainSerializer(public_source, when_used="json")]] = Field(
        min_length=1,
        description="`sample`, `lamp-qa`, `lamp-qa:DIRECTORY`, `lamp-qa:ORG/NAME@REVISION` or "
        "`stack-exchange:POSTS_XML`; repeatable.",
        json_schema_extra={"flag": "--source"},
    )
    split: SplitName = "test"
    limit: int | None = Field(
        None, ge=1, description="At most so many items of each config, in the order of the source."
    )
    evidence: Literal["verbatim", "paraphrased"] = "verbatim"
    name: str | None = SOURCE_NAME
    attribution: str | None = Field(None, min_length=1)
    licence: str | None = LICENCE
    language: str = Field("en", pattern=r"^[a-z]{2,3}(-[A-Za-z0-9]+)*$")
    config_names: dict[str, PathName] = Field(default_factory=dict)
    min_questions: int = Field(4, ge=2)
    max_posts: int | None = Field(None, ge=1)

    @model_validator(mode="after")
    def _sites(self) -> Self:
        for location in self.locations:
            kind, _, path = location.partition(":")
            if kind == "stack-exchange" and path:
                site = site_of(Path(path))
                try:
                    check_config(self.config_names.get(site, site), location)
                except UserError as error:
                    raise ValueError(str(error).rstrip(".")) from None
        return self

    @model_validator(mode="after")
    def _one_name(self) -> "SourceTable":
        if len(self.locations) > 1 and (self.name is not None or self.attribution is not None):
            raise ValueError(
                "`name` and `attribution` are of one source, and `locations` has several; build them apart"
            )
        return self


def check_config(config: str, source: str) -> None:
    """Raise `UserError` if `config`, a name in `source`, cannot be a config's name (see `check_path_name`)."""
    check_path_name(config, f"A config of {source} (which `config_names` can rename)")


class LlmTable(ChatModel):
    """The model that extracts aspects and writes answers, and how it is sampled.

    provider: `hand-written` (the sample's own answers), `local` (the embedded model) or the host of an
    OpenAI-compatible endpoint. aspects_max_tokens: the most tokens of a list of aspects.
    """

    aspects_max_tokens: int = Field(1024, ge=1)


class PersonalizedRecipe(ReleaseRecipe):
    """A build of Personalized RewardBench. Defaults are the paper's where it gives a value.

    profile_size: of the ranked posts (the paper's code uses 10; all posts stay in the data). word_limit: of an answer
    (section 3.1). attempts: how often a call may be made until its answer is valid, five times in all. That rule is
    ours: neither the paper nor its code says what becomes of an answer over the limit. screening: which valid answers
    are taken for none, see `Rule`; an empty list takes all.
    max_aspects: the most rubric aspects to extract from a narrative.
    """

    operational: ClassVar[frozenset[str]] = ReleaseRecipe.operational | {"connection", "audit"}

    name: ReleaseName = "personalized-rewardbench"
    retriever: Location = Field("bm25", description="`bm25`, `contriever[:MODEL]` or `sentence-transformers:MODEL`.")
    profile_size: int = Field(10, ge=1, description="Posts of a profile that go into a prompt.")
    word_limit: int = Field(100, ge=1)
    attempts: int = Field(5, ge=1)
    screening: list[Rule] = Field(default_factory=lambda: [*RULES])
    max_aspects: int = Field(6, ge=1)
    source: SourceTable
    llm: LlmTable = Field(
        description="`hand-written`, `local` (the embedded model), or a model of --base-url.",
        json_schema_extra={"as_text": True, "flag": "--llm", "text_key": "model"},
    )
    connection: ConnectionConfig = ConnectionConfig()
    audit: PairLimits = PairLimits()

    @model_validator(mode="after")
    def _consistent(self) -> "PersonalizedRecipe":
        check_connection(self.llm, self.connection, own=["hand-written"])
        return self
