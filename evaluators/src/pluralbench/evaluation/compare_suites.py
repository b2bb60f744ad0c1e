"""`compare` of two suites: the paired test of each benchmark, and the differences of the columns and of the mean."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pluralbench_measures.bootstrap import Estimate
from pluralbench_measures.independent import independent_mean
from pluralbench_measures.paired import holm

from pluralbench.errors import RunError
from pluralbench.evaluation.compare import Difference, RunComparison, compare, difference_sentence
from pluralbench.results.suite import SuiteRun


@dataclass(frozen=True)
class SuiteComparison:
    """The differences of two suites on the benchmarks that both have run.

    Attributes:
        p_holm: The benchmarks' p-values, adjusted for their number.
        means: The difference of each column with all its benchmarks, and last that of the "mean" over these columns.
            Their intervals assume that benchmarks of different data are independent.
        left_out: Benchmarks that only one of the suites has run.
    """

    first: str
    second: str
    names: tuple[str, str]
    benchmarks: Mapping[str, RunComparison]
    p_holm: Mapping[str, float | None]
    means: Mapping[str, Difference]
    left_out: Sequence[str]

    @property
    def sentence(self) -> str:
        """The difference of the means in a sentence: which model is better, or that the two cannot be told apart."""
        number = len(self.benchmarks)
        sample = f"on {number:,} benchmark{'s' * (number != 1)}"
        none = [name for name, one in self.benchmarks.items() if one.headline.low is None]
        reason = f"of which {' and '.join(none)} {'has' if len(none) == 1 else 'have'} no interval"
        return difference_sentence(self.names, self.means[MEAN], sample, reason)

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        values = {name: getattr(self, name) for name in ("first", "second", "names", "p_holm", "left_out")}
        return values | {
            "benchmarks": {name: one.as_dict() for name, one in self.benchmarks.items()},
            "means": {name: asdict(one) for name, one in self.means.items()},
        }


MEAN = "mean"


def compare_suites(first: SuiteRun, second: SuiteRun, *, differing_text: bool = False) -> SuiteComparison:
    """Compare two runs of one suite by paired tests on the decisions that they share.

    Raises:
        RunError: The suites differ, share no benchmark, or a benchmark cannot be compared; see `compare`.
    """
    if first.suite != second.suite:
        raise RunError(f"{first.path} and {second.path} are different suites; compare their runs one by one.")
    keys = [one.key for one in first.suite.benchmarks]
    shared = [key for key in keys if key in first.runs and key in second.runs]
    if not shared:
        raise RunError(f"{first.path} and {second.path} have run no benchmark in common; finish one of them first.")
    compared = {key: compare(first.runs[key], second.runs[key], differing_text=differing_text) for key in shared}
    adjusted = holm([one.headline.p_value for one in compared.values()])
    columns = {
        column.name: {one.key: 1 / len(column.benchmarks) for one in column.benchmarks}
        for column in first.suite.columns
        if all(one.key in compared for one in column.benchmarks)
    }
    columns[MEAN] = {key: weight for own in columns.values() for key, weight in own.items()}
    data = {key: first.runs[key].config.data.digest for key in shared}
    means = {name: _mean(compared, own, data) for name, own in columns.items()}
    return SuiteComparison(
        first=str(first.path),
        second=str(second.path),
        names=(first.model, second.model),
        benchmarks=compared,
        p_holm=dict(zip(compared, adjusted, strict=True)),
        means=means,
        left_out=[key for key in keys if key not in shared and (key in first.runs or key in second.runs)],
    )


def _mean(compared: Mapping[str, RunComparison], weight_of: Mapping[str, float], data: Mapping[str, str]) -> Difference:
    """The weighted mean of both numbers and of the difference."""
    parts, weights = [compared[key].headline for key in weight_of], [*weight_of.values()]
    ours, theirs = (
        independent_mean([Estimate(getattr(one, side)) for one in parts], weights).value for side in ("first", "second")
    )
    estimates = [part.estimate for part in parts]
    return Difference.of(ours, theirs, independent_mean(estimates, weights, [data[key] for key in weight_of]))
