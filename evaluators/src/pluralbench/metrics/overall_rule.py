"""The rule of a benchmark's overall number in words."""

from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.fields import Credit
from pluralbench.data.layouts import records_responses

PHRASES: dict[Credit, str] = {
    "pairs": "each pair counts",
    "second-on-ties": "equal scores decide for B",
    "best-of-n": "an item is right if its right response is strictly above every wrong one",
    "best-of-n-shared": "1/k credit if k responses tie for the highest score",
    "mean-of-pairs": "an item's number is the share of its pairs that are right",
    "ties": "the score of each prompt with its twin, at most 1.01",
}
"""The rules by which items count, in words."""


def overall_rule(benchmark: Benchmark) -> str:
    """Return the rule of the overall number, as a phrase, and how items count, the rule of most subsets first."""
    rules = {pattern: PHRASES[benchmark.credit[pattern]] for pattern in sorted(benchmark.credit, key="*".__ne__)}
    counted = [rule if pattern == "*" else f"in {pattern}, {rule}" for pattern, rule in rules.items()]
    return "; ".join([_mean_rule(benchmark), *counted])


def _mean_rule(benchmark: Benchmark) -> str:
    if benchmark.overall == "items":
        return mean_over_all(benchmark)
    if benchmark.in_steps:
        return (
            "unweighted mean of the configs, each the F1 (harmonic mean) of the accuracies on erroneous and on correct "
            "answers, by the first step whose score is below the threshold"
        )
    if benchmark.by_category:
        exact = "exact match" if benchmark.ties_break_exact_match else "exact match by the legacy rules"
        return f"mean of accuracy and {exact}, each an unweighted mean over categories; unweighted over configs"
    if benchmark.join_configs and benchmark.sections:
        return "unweighted mean of the sections"
    inner = ", each the unweighted mean of its sections" if benchmark.sections else ""
    return f"unweighted mean of the configs{inner}"


def mean_over_all(benchmark: Benchmark) -> str:
    """Return the words for a mean without weights: over items, or pairs where each pair of a ranking counts."""
    pairs = records_responses(benchmark) and benchmark.credit_of(None) == "pairs"
    return f"mean over all {'pairs of responses' if pairs else 'items'}"
