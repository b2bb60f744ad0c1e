"""Notes on a judge's verdicts in both orders and on its picks from lists."""

from pluralbench.results.runs import Run
from pluralbench.results.summary import items_text

VOTES = {
    "signed": "a right verdict with a tie or an invalid one is right (signed vote)",
    "mean": "each order counts by itself, as half of the pair",
}


def vote(run: Run) -> str:
    """Describe how verdicts in both orders count, if not only pairs that are right in both are right."""
    if run.config.judge_setting("orders") != "both":
        return ""
    return VOTES.get(run.config.benchmark.description.vote, "")


def changed(run: Run) -> str:
    """Count the pairs whose verdict changed with the order."""
    both, changed = (run.count(name) for name in ("asked_in_both_orders", "changed_with_the_order"))
    return f"{changed:,} of {both:,} pairs" if both else ""


def first(run: Run) -> str:
    """Describe how often the judge chose the response that it saw first."""
    share = run.estimate("share_of_first").value
    return "" if share is None else f"{share:.0%} of its valid verdicts"


def first_picks(run: Run) -> str:
    """Describe how often the judge picked the first response of a list."""
    share, chance = (run.estimate(f"picks_of_first{end}") for end in ("", "_by_chance"))
    if share.value is None or chance.value is None:
        return ""
    return f"{share.value:.0%} of {share.n:,} valid picks ({chance.value:.0%} by chance)"


def rated(run: Run) -> str:
    """Count the items that a pick cannot rank, so that their responses were rated."""
    count = run.count("rated")
    return items_text([count], count) if count else ""


def reasons(run: Run) -> str:
    """List the reasons for invalid replies."""
    judging = run.judged
    return ", ".join(f"{reason} {count:,}" for reason, count in judging.invalid_reasons.items()) if judging else ""
