"""Overview of a page: which model is best on which benchmark, a sentence each with its uncertainty."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from markupsafe import Markup
from pluralbench_measures.bootstrap import CONFIDENCE, Estimate
from pluralbench_runs import plural
from pluralbench_runs.console import clean

from pluralbench.reports.html.board import FEW_ITEMS, Board, benchmark_key
from pluralbench.reports.html.components import Finding, details, findings, join, paragraph
from pluralbench.reports.html.leaderboard import Standings
from pluralbench.reports.ranking import Ranking
from pluralbench.results.names import short_names
from pluralbench.results.numbers import Kind, number, percent, points
from pluralbench.results.runs import MISSING, Run

NAMED = 3  # models that a sentence names
HOW = (
    f"Overall numbers in %, each with its {CONFIDENCE:.0%} interval. Models are compared on the same items by paired "
    "tests (p < 0.05, Holm-corrected)."
)
RELATIONS = ("Better than a coin", "Worse than a coin", "Not told apart from a coin", "Not compared to a coin")
ALONE = f"Overall numbers in %, each with its {CONFIDENCE:.0%} interval."


class Candidate(NamedTuple):
    """A model with its number."""

    name: str
    number: Estimate


def summary(board: Board, standings: Standings) -> Markup:
    """Make the overview of the models on all benchmarks."""
    places = [at for at, sheet in enumerate(board.sheets) if not sheet.other]
    if len(standings.entries) == 1 and len(places) > 1:
        return join([paragraph(ALONE), findings([*_mean(standings), *_against_coins(board, places)])])
    large = [at for at in places if board.sheets[at].items >= FEW_ITEMS] or places
    small = [at for at in places if at not in large]
    lines = [*_mean(standings), *(_of_sheet(board, at) for at in large)]
    parts = [paragraph(HOW if len(standings.entries) > 1 else ALONE), findings(lines)]
    if small:
        text = f"{plural(len(small), 'benchmark')} with fewer than {FEW_ITEMS} items"
        parts.append(details(text, findings([_of_sheet(board, at) for at in small])))
    return join(parts)


def _mean(standings: Standings) -> Iterator[Finding]:
    if standings.ranking is not None:
        names = short_names([clean(entry.name) for entry in standings.entries])
        candidates = [Candidate(*pair) for pair in zip(names, standings.means, strict=True)]
        subject = f"Mean of {plural(len(standings.main), 'benchmark')}"
        yield Finding(best_of(candidates, standings.ranking), subject)


def _against_coins(board: Board, places: Sequence[int]) -> Iterator[Finding]:
    """Group the benchmarks of the only model by how it compares to a coin."""
    groups: dict[str, list[str]] = {}
    for at in places:
        groups.setdefault(_against_coin(board.sheets[at].runs[0]), []).append(clean(board.sheets[at].title))
    for relation in RELATIONS:
        if names := groups.get(relation):
            yield Finding(f"{'; '.join(names)}.", f"{relation} on {plural(len(names), 'benchmark')}")


def _of_sheet(board: Board, at: int) -> Finding:
    sheet = board.sheets[at]
    title = board.sheet_title(at)
    candidates = [Candidate(clean(row.name), row.run.headline) for row in sheet.rows]
    unreadable = [clean(row.name) for row in sheet.rows if row.run.unreadable]
    ranking = board.ranks[at]
    text = best_of(candidates, ranking)
    ranked = [run for run, rank in zip(sheet.runs, ranking.ranks, strict=True) if rank is not None]
    best = max((run.headline.value or 0.0 for run in ranked), default=0.0)
    coin = ranked[0].estimate("overall", baseline="coin") if ranked else MISSING
    if coin.value is not None and (len(ranked) == 1 or best < coin.value):
        relation = _against_coin(ranked[0]) if len(ranked) == 1 else "A coin has more"
        text += f" {relation} ({number(coin).value})."
    text += "".join(
        f" {clean(row.name)}: {row.run.mostly_close_margins}." for row in sheet.rows if row.run.mostly_close_margins
    )
    if unreadable:
        text += f" Most verdicts or scores of {listed(unreadable)} are invalid."
    return Finding(text, title, f"#{benchmark_key(board, at)}")


def best_of(candidates: Sequence[Candidate], ranking: Ranking) -> str:
    """Say in a sentence which model is best, and from which it cannot be told apart.

    Args:
        candidates: The rows of the ranking.
    """
    ranked = [at for at, rank in enumerate(ranking.ranks) if rank is not None]
    if not ranked:
        return ranking.problem or "No model has an overall number."
    best = max(ranked, key=lambda at: candidates[at].number.value or 0.0)
    text = f"{candidates[best].name} has {in_words(candidates[best].number)}"
    others = [at for at in ranked if at != best]
    if not others:
        return f"{text}."
    same = sorted(ranking.indistinct(best), key=lambda at: -(candidates[at].number.value or 0.0))
    if not same:
        second = max(others, key=lambda at: candidates[at].number.value or 0.0)
        gap = in_words(ranking.difference(best, second), points)
        return f"{text} and is best, {gap} points against {candidates[second].name}."
    if len(same) == len(others) > 1:
        return f"{text}, the most, but cannot be told apart from any of the other {len(others)} models."
    names = listed([candidates[at].name for at in same])
    rest = f" It is better than {_others(len(others) - len(same))}." if len(others) > len(same) else ""
    return f"{text}, the most, but cannot be told apart from {names}.{rest}"


def _others(count: int) -> str:
    return "the other model" if count == 1 else f"the other {count} models"


def _against_coin(run: Run) -> str:
    """How a run compares to a coin: one of `RELATIONS`."""
    coin, own = run.estimate("overall", baseline="coin").value, run.headline
    better, worse, same, unknown = RELATIONS
    if coin is None or own.low is None or own.high is None:
        return unknown
    return same if own.low <= coin <= own.high else better if own.low > coin else worse


def in_words(estimate: Estimate, kind: Kind = percent) -> str:
    """Format a number for a sentence, as "55.5 (43.1 to 67.0)"."""
    value, low, high, _ = number(estimate, kind)
    return f"{value} ({low} to {high})" if low else value


def listed(names: Sequence[str]) -> str:
    """List names, as "A, B and 2 more"."""
    if len(names) > NAMED + 1:
        return f"{', '.join(names[:NAMED])} and {len(names) - NAMED} more"
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
