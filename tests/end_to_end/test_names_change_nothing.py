"""What ids are called, and in which order files have their rows, changes no number of any member.

Each member gets the same rows twice: as they are, and with other ids in another order.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from build_chinese.annotated_files import annotate
from build_chinese.annotation.forms import pair_field
from build_chinese.annotation.tasks import build_tasks
from build_chinese.audit import audit
from build_chinese.figures import annotator_figures
from build_chinese.lengths import size_figures
from build_chinese.rankings import ranked_pairs, resolve_rows
from build_chinese.recipe import Tasks
from build_multilingual.preferred import PREFERRED, review_figures
from build_persona_judge.labels import LABELS, figures_of
from build_personalized.audit import audit as pair_audit
from build_personalized.sources.loaded import DROPS
from chinese_project import write_rows
from chinese_prompts import prompts_of
from made_runs import decision, run_of
from pluralbench import compare
from pluralbench.data.verdict_tables import check_verdicts
from pluralbench.downstream.correlate import correlate
from pluralbench.downstream.score_series import runs_series
from pluralbench.evaluation.agree import agree
from pluralbench.metrics.best_of_n import OutcomeTable, curve_numbers, index_names
from pluralbench.metrics.certainty import all_verdict_metrics
from pluralbench.metrics.frame import KEY
from pluralbench.metrics.third_person import check_labels, compare_with_people
from pluralbench_measures.rank_intervals import reliability
from pluralbench_studies import agreement, consensus, consensus_counts
from written_verdicts import verdicts

Rename = Callable[[str], str]
Mix = Callable[[Sequence[Any]], list[Any]]
ANNOTATORS = [f"ann-{number}" for number in range(5)]
DRAW = random.Random(7)


def by_value(numbers: Mapping[str, Any]) -> list[Any]:
    """The numbers by name, without the names."""
    return sorted(numbers.values(), key=repr)


CHINESE = prompts_of(
    {
        f"p{number}": [f"答{'好' * quality}{place}" for place, quality in enumerate((0, 3, 1, 4, 2))]
        for number in range(8)
    }
)
CHINESE_TASKS = build_tasks(CHINESE, ANNOTATORS, Tasks(overlap=0.4), seed=1)
LENGTHS = {one["id"]: len(one["content"]) for responses in CHINESE["responses"] for one in responses}


def mark(first: str, second: str) -> str:
    """Mostly that the longer response is better."""
    return DRAW.choice("gbs") if DRAW.random() < 0.1 else "gb"[LENGTHS[first] < LENGTHS[second]]


CHINESE_MARKS = [
    {"task": task, "annotator": annotator}
    | {pair_field(a, b): mark(ids[a], ids[b]) for a, b in combinations(range(len(ids)), 2)}
    for task, annotator, ids in CHINESE_TASKS.select("task", "annotator", "responses").iter_rows()
]


def chinese(name: Rename, mix: Mix, folder: Path) -> Any:
    """Agreement, consensus, rounds, conflicts and biases of annotations."""
    rows = [
        row | {"id": name(row["id"])} | {"responses": mix([one | {"id": name(one["id"])} for one in row["responses"]])}
        for row in CHINESE.iter_rows(named=True)
    ]
    prompts = pl.DataFrame(mix(rows), schema=CHINESE.schema)
    tasks = CHINESE_TASKS.with_columns(
        pl.col("task", "prompt", "annotator").map_elements(name, pl.String),
        responses=pl.Series([[name(one) for one in ids] for ids in CHINESE_TASKS["responses"]]),
    )
    lines = [row | {"task": name(row["task"]), "annotator": name(row["annotator"])} for row in CHINESE_MARKS]
    found = annotate([write_rows(folder / "marks.jsonl", mix(lines))], prompts, tasks, None, Tasks())
    ranked, dropped = resolve_rows(found.rows)
    pairs = [ranked_pairs(row) for row in ranked]
    assert ranked
    return (
        found.agreement["pairs"],
        found.agreement["alpha"],
        by_value(found.agreement["annotators"]),
        found.consensus,
        sorted([pair["agreeing"] for pair in found.rounds.pair_agreement], key=repr),
        (annotator_figures(found.rows), dropped.height, size_figures(ranked, pairs), audit(ranked, pairs)),
    )


REVIEWS = [
    (row, DRAW.choice(["spa_Latn", "arb_Arab"]), who, DRAW.choice(["chosen", "rejected", "same"]), "chosen")
    for row in range(20)
    for who in ("1", "2")
]


def multilingual(name: Rename, mix: Mix, _: Path) -> Any:
    """Preferences of reviewers."""
    ids = {row: place for place, row in enumerate(mix(range(20)))}
    rows = [(ids[row], code, name(who), side, judge) for row, code, who, side, judge in REVIEWS]
    return by_value({entry["language"]: entry for entry in review_figures(
        pl.DataFrame(mix(rows), schema=PREFERRED, orient="row")
    )})  # fmt: skip


PEOPLES_LABELS = [
    (f"i{item}", who, DRAW.choice("AB"), DRAW.randint(1, 100), DRAW.choice("AB"), f"u{item % 4}")
    for item in range(12)
    for who in ANNOTATORS[:3]
]
TRUTH = {f"i{item}": "AB"[item % 2] for item in range(12)}


def persona_judge(name: Rename, mix: Mix, _: Path) -> Any:
    """Third-person labels."""
    rows = [
        ("t", name(item), name(who), answer, certainty, TRUTH[item], name(user))
        for item, who, answer, certainty, _, user in PEOPLES_LABELS
    ]
    return figures_of(pl.DataFrame(mix(rows), schema=LABELS, orient="row"))


def ratings(name: Rename, mix: Mix, _: Path) -> Any:
    """Ratings of a study, and what they come to."""
    rows = [(name(item), name(who), str(1 + level % 5)) for item, who, _, level, _, _ in PEOPLES_LABELS]
    answers = pl.DataFrame(mix(rows), schema=["item", "annotator", "answer"], orient="row")
    found = agreement(answers, "12345")
    return found["pairs"], found["alpha"], by_value(found["annotators"]), consensus_counts(consensus(answers))


def personalized(name: Rename, mix: Mix, _: Path) -> Any:
    """The audit of pairs for people."""
    rows = [
        {
            "config": "c",
            "id": name(f"q{number}"),
            "question": f"question {number % 7}",
            "narrative": "why " * (number % 5),
            "rubric_aspects": [{"aspect": f"word{number}"}],
            "profile": [{"id": name(f"p{place}")} for place in range(number % 4)],
            "chosen": f"an answer with word{number} " + "more " * (number % 3),
            "rejected": "an answer " * (1 + number % 4),
        }
        for number in range(20)
    ]
    drops = pl.DataFrame(
        mix([("c", "source", "empty", name(f"d{number}")) for number in range(5)]), DROPS, orient="row"
    )
    return pair_audit(pl.DataFrame(mix(rows)), drops, questions=25, word_limit=8)


OUTCOMES = [[DRAW.choice(["win", "win", "loss", "tie", "invalid"]) for _ in range(60)] for _ in range(2)]


def runs(name: Rename, mix: Mix, _: Path) -> Any:
    """All metrics of a run, its comparison with another, and their reliability on resampled users."""
    made: list[Any] = []
    for outcomes in OUTCOMES:
        rows = [
            decision(place, outcome, id=name(f"q{place}"), cluster=name(f"u{place // 4}"), config="cd"[place % 2])
            for place, outcome in enumerate(outcomes)
        ]
        made.append(run_of(mix(rows), path=f"runs/{len(made)}"))
    found = compare(*made)
    head = found.headline
    numbers = [run.metrics.sort(*KEY).select(pl.selectors.numeric()).rows() for run in made]
    resampled = runs_series(made, "runs", names="ab").resampled
    assert resampled is not None
    counts = (found.only_first, found.only_second, reliability(resampled))
    return numbers, (head.difference, head.low, head.high, head.p_value), counts


CANDIDATES = np.random.default_rng(3).random((2, 24, 4))


def best_of_n(name: Rename, mix: Mix, _: Path) -> Any:
    """Best-of-k: rewards and outcomes of candidates, with people as clusters."""
    order = mix(range(24))
    cluster, _names = index_names(pl.Series([name(f"u{place // 3}") for place in order]))
    rewards, outcomes = CANDIDATES[:, order]
    table = OutcomeTable(np.zeros(24, dtype=np.int64), cluster, ["c"], {"m": rewards}, outcomes, {})
    numbers = curve_numbers(table, (1, 2, 4), by_config=True)
    return [(place, estimate.value, estimate.low, estimate.high) for place, estimate in numbers]


SCORES = [(f"q{number}", DRAW.random(), DRAW.random()) for number in range(30)]


def published(name: Rename, mix: Mix, folder: Path) -> Any:
    """`agree`: scores against published ones."""
    files = []
    for shift in (0.0, 0.2):
        rows = [
            {"id": name(item), "scores_chosen": one + shift * other, "scores_rejected": other}
            for item, one, other in SCORES
        ]
        files.append(write_rows(folder / f"{shift}.jsonl", mix(rows)))
    found = agree(*files)
    sides = [(side.accuracy, side.unscored) for side in (found.first, found.second)]
    return sides, astuple(found.scores), astuple(found.margins), found.mean_difference, len(found.changed)


def verdict_metrics(name: Rename, mix: Mix, _: Path) -> Any:
    """`judge-metrics`: verdicts with certainty, and people's labels of the same items."""
    places = {f"i{row}": place for row, place in enumerate(mix(range(12)))}
    judged = [
        {"row": places[item], "answer": answer, "certainty": certainty, "truth": TRUTH[item], "user": name(user)}
        for item, _, answer, certainty, _, user in PEOPLES_LABELS[::3]
    ]
    people = [
        {"row": places[item], "annotator": name(who), "answer": answer, "certainty": certainty}
        for item, who, _, certainty, answer, _ in PEOPLES_LABELS
    ]
    table = check_verdicts(verdicts(mix(judged)))
    return all_verdict_metrics(table), compare_with_people(table, check_labels(pl.DataFrame(mix(people))))


MODELS = {f"m{number}": (DRAW.random(), DRAW.random()) for number in range(11)}  # their orders are drawn


def correlated(name: Rename, mix: Mix, folder: Path) -> Any:
    """`correlate`: a benchmark's ranking of models against another one."""
    files = []
    for side in range(2):
        rows = [{"model": name(model), "score": values[side]} for model, values in MODELS.items()]
        files.append(write_rows(folder / f"side{side}.jsonl", mix(rows)))
    return {name: astuple(statistic) for name, statistic in correlate(*files).statistics.items()}


MEMBERS = [
    chinese,
    multilingual,
    persona_judge,
    personalized,
    ratings,
    runs,
    best_of_n,
    published,
    verdict_metrics,
    correlated,
]


def flat(value: Any) -> list[Any]:
    """The values of nested results in their order."""
    if isinstance(value, Mapping):
        return [one for key in sorted(value, key=str) for one in (key, *flat(value[key]))]
    if isinstance(value, list | tuple):
        return [one for part in value for one in flat(part)]
    return [value]


@pytest.mark.parametrize("member", MEMBERS, ids=lambda member: member.__name__)
@pytest.mark.parametrize("seed", [1, 2])
def test_other_ids_in_another_order_change_no_number(
    member: Callable[[Rename, Mix, Path], Any], seed: int, tmp_path: Path
) -> None:
    draw = random.Random(seed)
    names: dict[str, str] = {}

    def rename(old: str) -> str:
        return names.setdefault(old, f"{draw.choice('azk')}{draw.randrange(10**6)}-{len(names)}")

    def mix(rows: Sequence[Any]) -> list[Any]:
        return draw.sample([*rows], len(rows))

    usual = flat(member(lambda old: old, list, tmp_path))
    other = flat(member(rename, mix, tmp_path))
    assert repr(other) == repr(usual)
