"""Recipe of a build of Personalized RewardBench."""

import os
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self, get_args

from pluralbench_calls import ChatModel, ConnectionConfig, check_connection
from pluralbench_release import LICENSE, SOURCE_NAME, PairLimits, ReleaseName, ReleaseRecipe
from pluralbench_release.errors import SourceError
from pluralbench_runs import FrozenModel, Location, PathName, SplitName, check_path_name, public_location
from pydantic import Field, PlainSerializer, model_validator

RECIPES = Path(__file__).parent / "recipes"


def public_source(location: str) -> str:
    """Return a location of `SourceTable` without private paths; a dump named Posts.xml keeps its directory's name."""
    kind, _, path = location.partition(":")
    public = public_location(location)
    if public == location or not public.endswith(":Posts.xml"):
        return public
    return f"{kind}:{Path(path).resolve().parent.name}/Posts.xml"


def site_of(path: Path) -> str:
    """Return the site of a dump: `beer` for `beer.stackexchange.Posts.xml` or `beer.stackexchange.com/Posts.xml`."""
    name = _folder_of(path) if path.name == "Posts.xml" else path.name
    return name.removesuffix(".Posts.xml").removesuffix(".com").removesuffix(".stackexchange").removesuffix(".xml")


def check_site(path: Path) -> None:
    """Raise `SourceError` if a dump named Posts.xml is not in a folder named after its site; posts do not name it."""
    folder = _folder_of(path)
    if path.name == "Posts.xml" and path.exists() and not folder.endswith((".com", ".net")):
        raise SourceError(
            f"The community of {path} is unknown: its folder {folder!r} is not named after a site; rename it to the "
            "site's address, such as `beer.stackexchange.com`."
        )


def _folder_of(path: Path) -> str:
    return Path(os.path.realpath(path)).parent.name


Rule = Literal["echo", "asking back"]
"""Rule that an answer breaks: it repeats seven consecutive words of the instructions, or most of it is questions."""
RULES: tuple[Rule, ...] = get_args(Rule)


Locations = list[Annotated[str, PlainSerializer(public_source, when_used="json")]]


class UserSource(FrozenModel):
    """A source of users.

    Attributes:
        name: Name of the source on the card; for a single location only.
        attribution: Attribution on the card; for a single location only.
        language: BCP 47 code of the texts, for the card and for splitting texts into sentences.
        config_names: New names of configs, by their name in the source.
    """

    extendable: ClassVar[frozenset[str]] = frozenset({"limit"})

    locations: Locations
    limit: int | None
    name: str | None = SOURCE_NAME
    attribution: str | None = Field(None, min_length=1)
    license: str | None = LICENSE
    language: str = Field("en", pattern=r"^[a-z]{2,3}(-[A-Za-z0-9]+)*$")
    config_names: dict[str, PathName] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_name(self) -> Self:
        if len(self.locations) > 1 and (self.name is not None or self.attribution is not None):
            raise ValueError(
                "`name` and `attribution` describe one source, but `locations` has several; build them separately"
            )
        return self


class SourceTable(UserSource):
    """Source of the questions and profiles.

    Attributes:
        split: Split of LaMP-QA to read.
        evidence: Whether the source's evidence quotes the narrative (which is checked) or paraphrases it.
        min_questions: Minimum number of questions of a Stack Exchange user, one of which becomes the question.
        max_posts: Maximum number of a Stack Exchange user's earlier questions to keep, newest first. Default: all.
    """

    locations: Locations = Field(
        min_length=1,
        description="`sample`, `lamp-qa`, `lamp-qa:DIRECTORY`, `lamp-qa:ORG/NAME@REVISION` or "
        "`stack-exchange:POSTS_XML`; repeatable.",
        json_schema_extra={"flag": "--source"},
    )
    limit: int | None = Field(None, ge=1, description="Maximum items per config, in the order of the source.")
    split: SplitName = "test"
    evidence: Literal["verbatim", "paraphrased"] = "verbatim"
    min_questions: int = Field(4, ge=2)
    max_posts: int | None = Field(None, ge=1)


def check_config(config: str, source: str) -> None:
    """Raise `UserError` if a config's name in `source` cannot be used as a directory (see `check_path_name`)."""
    check_path_name(config, f"A config of {source} (which `config_names` can rename)")


class LlmTable(ChatModel):
    """Model that extracts aspects and writes answers, with its sampling settings.

    Attributes:
        provider: `hand-written` (the sample's own answers), `local` (the embedded model) or the host of an
            OpenAI-compatible endpoint.
        aspects_max_tokens: Maximum tokens of a list of aspects.
    """

    aspects_max_tokens: int = Field(1024, ge=1)


class PersonalizedRecipe(ReleaseRecipe):
    """Recipe of a build of Personalized RewardBench. Defaults are those of the paper where it states a value.

    Attributes:
        profile_size: Number of ranked posts in a prompt (10 in the paper's code); the data keeps all posts.
        word_limit: Maximum words of an answer (section 3.1).
        attempts: Maximum calls until an answer is valid. The default is ours: neither the paper nor its code says what
            happens to an answer over the limit.
        screening: Rules that reject answers, see `Rule`. An empty list accepts all.
        max_aspects: Maximum number of rubric aspects to extract from a narrative.
    """

    runtime_only: ClassVar[frozenset[str]] = ReleaseRecipe.runtime_only | {"connection", "audit"}

    name: ReleaseName = "personalized-rewardbench"
    retriever: Location = Field("bm25", description="`bm25`, `contriever[:MODEL]` or `sentence-transformers:MODEL`.")
    profile_size: int = Field(10, ge=1, description="Number of posts of a profile in a prompt.")
    word_limit: int = Field(100, ge=1)
    attempts: int = Field(5, ge=1)
    screening: list[Rule] = Field(default_factory=lambda: [*RULES])
    max_aspects: int = Field(6, ge=1)
    source: SourceTable
    llm: LlmTable = Field(
        description="`hand-written`, `local` (the embedded model), or a model served at --base-url.",
        json_schema_extra={"as_text": True, "flag": "--llm", "text_key": "model"},
    )
    connection: ConnectionConfig = ConnectionConfig()
    audit: PairLimits = PairLimits()

    @model_validator(mode="after")
    def _consistent(self) -> "PersonalizedRecipe":
        check_connection(self.llm, self.connection, own=["hand-written"])
        return self
