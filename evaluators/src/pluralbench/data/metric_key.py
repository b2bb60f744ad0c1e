"""How the numbers of runs are named."""

from typing import Annotated, Any, NamedTuple


class MetricKey(NamedTuple):
    """Name of a number: its metric, and the dimensions that it has, coarsest first, each with what it means."""

    metric: str
    config: Annotated[str | None, "Config of the benchmark: a domain or a language."] = None
    task: Annotated[str | None, "Task of the persona judge."] = None
    resource: Annotated[str | None, "Resource level of languages."] = None
    joshi_class: Annotated[str | None, "Joshi's class of languages."] = None
    family: Annotated[str | None, "Family of languages."] = None
    script: Annotated[str | None, "Script of languages."] = None
    section: Annotated[str | None, "Section of the benchmark."] = None
    category: Annotated[str | None, "Category of rankings."] = None
    subset: Annotated[str | None, "Subset of a config."] = None
    level: Annotated[str | None, "Difficulty of pairs by the styles of their responses: easy, normal or hard."] = None
    style: Annotated[str | None, "Styles of the right and of the wrong response, such as 2 against 0."] = None
    policy: Annotated[str | None, "`start` for the policy before `optimize`; empty for the policy of the run."] = None
    model: Annotated[str | None, "Reward model that selects the best of k."] = None
    judge: Annotated[str | None, "Judge of a panel, or the only one."] = None
    consensus: Annotated[str | None, "How far people's votes on an item agree: unanimous, clear or split."] = None
    attribute: Annotated[str | None, "Attribute of people, such as country."] = None
    group: Annotated[str | None, "Group of people with the same value of the attribute."] = None
    other_group: Annotated[str | None, "Group of people whose majority differs."] = None
    k: Annotated[
        int | None,
        "Number of candidates or responses of which the best is selected, or of samples of each judge that vote.",
    ] = None
    set: Annotated[str | None, "Set of items of `personalize`: new, known or scored."] = None
    method: Annotated[str | None, "Personalized reward model."] = None
    condition: Annotated[
        str | None, "User context of a method: with, without, shuffled, posts; or two of them, such as with-without."
    ] = None
    measure: Annotated[str | None, "Measure of user context that bins are of: posts, words or distance."] = None
    bin: Annotated[int | None, "Number of a bin, from 1."] = None
    decile: Annotated[int | None, "Lower end of a decile of certainty: 0, 10, ..., 90."] = None
    certainty: Annotated[float | None, "Certainty of an answer, from 1 to 100."] = None
    matching: Annotated[str | None, "How planned and true aspects are matched: words or embeddings."] = None
    baseline: Annotated[
        str | None, "Baseline on the same items in place of the model: coin, longer, shorter or people."
    ] = None

    def by(self, dimension: str, value: Any) -> "MetricKey":
        """Return the name with another value of a dimension."""
        return self._replace(**{dimension: value})


DIMENSIONS: dict[str, str] = {
    name: kind.__metadata__[0] for name, kind in MetricKey.__annotations__.items() if name != "metric"
}
"""What the columns of the metrics frame mean, coarsest dimension first."""


def finest_dimension(key: MetricKey) -> str | None:
    """Return the last dimension of a number, apart from its baseline; None for a run as a whole."""
    own = [name for name in DIMENSIONS if name != "baseline" and getattr(key, name) is not None]
    return own[-1] if own else None
