"""Benchmarks: the entries of `benchmarks.toml`, or of a file of the same form."""

from collections import Counter
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Annotated, Self

from pluralbench_runs import FrozenModel
from pluralbench_tables import Dialect, Quoting, Separator
from pydantic import Field, field_validator, model_validator

from pluralbench.config import OnEmpty
from pluralbench.config.judges import Vote
from pluralbench.data.fields import (
    Annotations,
    Columns,
    HistoryRows,
    Reference,
    Stratum,
    Turns,
    is_none,
)
from pluralbench.data.labels import FIRST, SECOND, Labels, Values

Weight = Annotated[float, Field(ge=0, le=1_000_000)]
"""Weight of a subset; published weights are 1, or numbers of items."""


class Benchmark(FrozenModel):
    """A benchmark, as described by an entry of `benchmarks.toml` or by a TOML file with the same keys.

    Attributes:
        title: Title in reports.
        data: Default dataset on the Hub. Default: none; the caller names the data.
        sample: Directory of its sample in `pluralbench.data.samples`.
        split: Split of the data, or "all"; of several, joined by commas, each is a config.
        configs: Default configs of the data. Default: all.
        train_split: Split to train on. Default: `train` if the data has it, else `split`.
        columns: Columns of its tables.
        required: Fields of `columns` whose columns must be in every table, beside those of the layout. Those that the
            caller names are added.
        labels: Meaning of the values in the columns of labels.
        multiple_responses: Whether `chosen` and `rejected` are lists of responses; every chosen response is better than
            every rejected one.
        excluded_configs: Configs that are not part of the overall number, with the columns that differ there.
        sections: Weights of subsets, by section.
        groups: Sections whose subsets weigh by their number of items, as shell patterns of subsets. They become
            `sections` once the items are known.
        user_turns: Whether a list of texts in the prompt has the user's turns. Otherwise it is refused.
        separator: Separator of CSV and TSV files, see `pluralbench_tables.Dialect`.
        quoting: Quoting of CSV and TSV files, see there.
        join_configs: Whether all tables of the data are one config, named "all".
        rows: Values of columns in the rows to keep; other rows are counted and left out.
        credit: How an item counts (see `pluralbench.data.credits`), by shell patterns of subsets; the first that
            matches decides. Default: each pair of a better and a worse response counts.
        metrics: Metrics beside the accuracy.
        overall: Rule of the overall number: the mean over "items", the unweighted mean over "configs", or another one
            of `pluralbench.data.rules`.
        step_threshold: Score below which a step is wrong. Default: 0.5, for scores that are probabilities.
        tune_step_threshold: Config on whose items this threshold is tuned, which are test data. Default: none.
        on_empty: Default handling of items with an empty prompt or response.
        reference: Original of a translated benchmark, which is not part of the overall number.
        group_by_prompt: Whether rows with the same prompt are one item with the responses of all of them.
        legacy: Benchmark whose legacy weights of subsets replace its own for `legacy=True`.
        legacy_sections: Sections whose legacy weights differ from `sections`.
        ties_break_exact_match: Whether an exact match requires at least one pair and a strictly higher score in every
            pair (CHEEMS, section 3.3). If false, tied scores match and prompts without a pair count, as in its code.
        prompts_only: Whether items are prompts without responses, for policies to answer.
        persona_items: Whether items are those of `PERSONA_ITEMS`, for `judge_personas`.
        history: Rows that are earlier pairs of the same user. Default: none.
        annotations: Votes of people, whose majority decides. Default: none.
        turns: How rows that are conversations become a row for each turn. Default: rows stay as they are.
        strata: Drawn items by subset, whose weights pooled numbers use; empty if all items are scored.
        vote: How a judge's verdicts on both orders of a pair count. "unanimous": right if both are right. "signed":
            JudgeBench's vote, by which a right verdict and a tie or an invalid one are right
            (`pluralbench.data.votes.signed_vote`). "mean": the share of the two that are right (LLMBar,
            PersonalRewardBench).
    """

    title: str
    data: str | None = None
    sample: str | None = None
    split: str = "test"
    configs: tuple[str, ...] = ()
    train_split: str | None = None
    columns: Columns = Columns()
    required: tuple[str, ...] = ()
    labels: Labels = Labels()
    multiple_responses: bool = False
    excluded_configs: dict[str, dict[str, str]] = Field(default_factory=dict)
    sections: dict[str, dict[str, Weight]] = Field(default_factory=dict)
    groups: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    user_turns: bool = False
    separator: Separator | None = None
    quoting: Quoting | None = None
    join_configs: bool = False
    rows: dict[str, Values] = Field(default_factory=dict)
    credit: dict[str, str] = Field(default_factory=dict)
    metrics: tuple[str, ...] = ()
    overall: str = "items"
    step_threshold: float | None = Field(None, allow_inf_nan=False)
    tune_step_threshold: str | None = None
    on_empty: OnEmpty = "error"
    reference: Reference | None = None
    group_by_prompt: bool = False
    legacy: str | None = None
    legacy_sections: dict[str, dict[str, Weight]] = Field(default_factory=dict)
    ties_break_exact_match: bool = True
    prompts_only: bool = False
    persona_items: bool = False
    history: HistoryRows | None = None
    annotations: Annotations | None = Field(None, exclude_if=is_none)
    turns: Turns | None = Field(None, exclude_if=is_none)
    strata: tuple[Stratum, ...] = ()
    vote: Vote = "unanimous"

    @field_validator("sections", "legacy_sections")
    @classmethod
    def _weigh(cls, sections: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
        for section, weights in sections.items():
            if weights and not any(weights.values()):  # a section of groups may have no subset in the data
                raise ValueError(f"the section {section} has no weight above 0")
        return sections

    @field_validator("required")
    @classmethod
    def _fields(cls, required: tuple[str, ...]) -> tuple[str, ...]:
        unknown = next((field for field in required if field not in Columns.model_fields), None)
        if unknown is not None:
            raise ValueError(f"`{unknown}` is not a field of `columns`")
        return required

    @model_validator(mode="after")
    def _votes(self) -> Self:
        if self.annotations is None:
            return self
        pairs = self.columns.first is not None and self.columns.second is not None
        if pairs == (self.columns.responses is not None):
            raise ValueError("`annotations` requires the columns `first` and `second`, or `responses`")
        if self.annotations.picks and pairs:
            raise ValueError("`picks` is of votes on `responses`; give the votes on pairs a meaning in `labels`")
        grades = self.annotations.grades
        if grades and not pairs:
            raise ValueError("`grades` is of votes on pairs, `first` and `second`")
        unknown = next((label for label in grades if self.labels.meaning(label) not in {FIRST, SECOND}), None)
        if unknown is not None:
            raise ValueError(f"`grades` names {unknown}, which `labels` gives to neither response")
        return self

    @property
    def dialect(self) -> Dialect:
        """Separator and quoting of CSV and TSV files."""
        return Dialect(self.separator, self.quoting)

    @property
    def outside_overall(self) -> set[str]:
        """Configs that are not part of the overall number."""
        return {*self.excluded_configs, *([self.reference.config] if self.reference else [])}

    @property
    def credits_items(self) -> bool:
        """Whether items count by a credit from 0 to 1, instead of each decision as right or wrong."""
        return bool(self.credit) or self.vote == "mean"

    @property
    def section_of(self) -> dict[str, str]:
        """Section of each subset; subsets without a section are missing."""
        return {subset: name for name, weights in self.sections.items() for subset in weights}

    def fit_to(self, subsets: Iterable[str | None]) -> Self:
        """Return this benchmark with the sections of its groups, or without sections if no item's subset is in one.

        Your own pairs in the shape of a benchmark are then averaged without weights.
        """
        counts = Counter(subset for subset in subsets if subset is not None)
        sections = self.sections | {
            name: {
                subset: n for subset, n in sorted(counts.items()) if any(fnmatchcase(subset, one) for one in patterns)
            }
            for name, patterns in self.groups.items()
        }
        inside = any(weights.keys() & counts.keys() for weights in sections.values())
        fitted = sections if inside else {}
        return self if fitted == self.sections else self.model_copy(update={"sections": fitted})

    def columns_of(self, config: str) -> Columns:
        """Return the columns of a config."""
        return self.columns.model_copy(update=self.excluded_configs.get(config, {}))
