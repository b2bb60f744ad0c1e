"""Which strategy of the preference set is worth what (CHEEMS, section 6.3, table 4).

A reward model is trained on each variant of the set and measured on the benchmarks.
"""

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from pluralbench_calls import Ledger, Replay, working_ledger
from pluralbench_measures.rankings import ranking_metrics
from pluralbench_release import LEDGER, RECIPE
from pluralbench_release.errors import NothingLeft, SourceError
from pluralbench_rewards import Group
from pluralbench_runs import output_directory, progress, rng_for, write_recipe
from pluralbench_tables import read_jsonl, write_jsonl

from build_chinese import reward_model, source
from build_chinese.preference_set import PreferenceSet, judged, pairs_by_row
from build_chinese.rankings import Row, ranked_pairs
from build_chinese.recipe import ChineseRecipe, PreferenceTable, RewardTable
from build_chinese.reward_model import TrainingRows
from build_chinese.votes import votes

ROWS_FILE, TABLE_FILE = "rows.jsonl", "ablation.csv"
RESAMPLES = 500
HUMAN, JUDGE = "human", "judge"
STRATEGIES = {
    JUDGE: PreferenceTable(distant=False, length=False),
    "judge + length": PreferenceTable(distant=False),
    "judge + distant": PreferenceTable(length=False),
    "judge + distant + length": PreferenceTable(),
}
FULL = "judge + distant + length + human"


def ablate(
    release: Path,
    recipe: ChineseRecipe,
    people: Mapping[str, Sequence[Row]],
    human: Sequence[Row],
    *,
    fresh: bool = False,
) -> Path:
    """Measure every strategy of the preference set of a release; the path of the table.

    recipe: what the release was built from, with the places of its files. people: resolved rows by benchmark, to
    measure on. human: those of the human part.

    The table and the figures go to a folder beside the release; what an interrupted run has measured is not measured
    again. Without distant supervision
    cycles are resolved and the votes that the ranks keep are learned from. The human part is trained on as
    [reward.training] says, each variant with the judge's votes with the changes of [reward.large], all at one seed.

    Raises `NothingLeft` for a release without a benchmark or without votes, and the errors of `reward_model`.
    """
    benchmarks = {name: rows for name, rows in people.items() if rows}
    if not benchmarks or recipe.reward is None or recipe.unlabeled is None or recipe.judge is None:
        raise NothingLeft(
            f"{release} has no {'votes to learn from' if benchmarks else 'benchmark to measure on'}; --ablate wants "
            "annotated prompts of a benchmark, prompts to vote on, a judge and a base of the reward model."
        )
    reward = reward_model.pin(recipe.reward)
    recipe = recipe.model_copy(update={"reward": reward})
    for how in (reward, reward.on_large_set()):  # a mistake is to be told before the first of them takes hours
        reward_model.training_options(how)
    target = release.with_name(f"{release.name}-ablation")
    with output_directory(target, recipe, recipe_file=RECIPE, fresh=fresh) as output:
        if (target / TABLE_FILE).exists() and not fresh:
            return target / TABLE_FILE
        with working_ledger(output.work / "ledger.sqlite") as ledger:
            ledger.add_from(release / LEDGER)
            variants = _variants(recipe, reward, human, ledger, output.work)
        path = output.work / ROWS_FILE
        rows = read_jsonl(path, SourceError) if path.exists() else []
        measured = {row["variant"] for row in rows}
        for name, taught in variants.items():
            if name not in measured:
                how = reward if name == HUMAN else reward.on_large_set()
                rows.append({"variant": name} | _measured(taught, benchmarks, how, output.work, recipe.seed))
                write_jsonl(rows, path)
        staged = output.staging()
        _frame(rows).write_csv(staged / TABLE_FILE)
        figures = json.dumps(rows, ensure_ascii=False, indent=2) + "\n"
        (staged / "ablation.json").write_text(figures, encoding="utf-8")
        (staged / RECIPE).parent.mkdir()
        write_recipe(recipe, staged / RECIPE)
        output.publish(staged)
    return target / TABLE_FILE


def _variants(
    recipe: ChineseRecipe, reward: RewardTable, human: Sequence[Row], ledger: Ledger, work: Path
) -> dict[str, TrainingRows]:
    """What a reward model learns from under each strategy, from the recorded votes and rewards."""
    if recipe.unlabeled is None or recipe.judge is None:
        return {}
    taxonomy = source.taxonomy_of(recipe.unlabeled.taxonomy)
    rows = source.unlabeled_rows(recipe.unlabeled, taxonomy).rows
    limits = recipe.connection.limits()
    found = votes(rows, taxonomy, recipe.judge, Replay(), ledger, limits=limits, seed=recipe.seed)
    taught = TrainingRows(human)
    scores = reward_model.rewards(rows, taught, reward, ledger, work, replaying=recipe.preference.distant)

    def made(strategy: PreferenceTable) -> PreferenceSet:
        by = scores if strategy.distant else None
        return judged(rows, found, by, strategy, margin=reward.margin, seed=recipe.seed)

    variants = {HUMAN: taught}
    for name, strategy in STRATEGIES.items():
        part = made(strategy)
        variants[name] = TrainingRows(part.rows, pairs_by_row(part.rows))
    best = variants[list(STRATEGIES)[-1]]
    both = [*map(ranked_pairs, human), *(best.pairs or [])]
    return variants | {FULL: TrainingRows([*human, *best.rows], both)}


def _measured(
    taught: TrainingRows, benchmarks: Mapping[str, Sequence[Row]], reward: RewardTable, work: Path, seed: int
) -> dict[str, Any]:
    from pluralbench_local import TrainingError  # noqa: PLC0415 - an extra

    size: dict[str, Any] = {"prompts": len(taught.rows), "pairs": taught.size, "training": reward.training}
    if taught.size < reward.least_pairs:
        return size | {"not_trained": f"fewer than {reward.least_pairs:,} pairs"}
    try:
        folder = reward_model.trained(taught, reward, work / "model")
    except TrainingError as error:  # a variant that is too small for the recipe's training leaves the others
        return size | {"not_trained": str(error)}
    rows = [(config, row) for config, own in benchmarks.items() for row in own]
    groups = [
        Group(row["id"], reward_model.messages_of(row), [response["content"] for response in row["responses"]])
        for _, row in rows
    ]
    scores = [[value for value, _ in values] for values in reward_model.scores_of(folder, groups)]
    items = pl.DataFrame(
        [
            {"config": config, "category": row["category"][0]} | _ranked(row, values)
            for (config, row), values in zip(rows, scores, strict=True)
        ]
    )
    shutil.rmtree(folder)
    found = ranking_metrics(items)
    drawn = []
    with progress("resampling", RESAMPLES) as meter:
        for number in range(RESAMPLES):
            draw = rng_for(seed, "ablation", number)
            parts = [part[draw.choices(range(part.height), k=part.height)] for part in items.partition_by("config")]
            drawn.append(ranking_metrics(pl.concat(parts))["overall"])
            meter.advance()
    known = pl.Series([value for value in drawn if value is not None], dtype=pl.Float64)
    too_long = sum(value is None for values in scores for value in values)  # which make their pairs wrong
    return (
        size
        | found
        | {"too_long": too_long, "interval": [known.quantile(0.025, "linear"), known.quantile(0.975, "linear")]}
    )


def _ranked(row: Row, values: Sequence[float | None]) -> dict[str, Any]:
    """The ranks and the rewards of the responses that have a rank."""
    both = [
        (row["rank"][response["id"]], value)
        for response, value in zip(row["responses"], values, strict=True)
        if response["id"] in row["rank"]
    ]
    return {"rank": [rank for rank, _ in both], "reward": [value for _, value in both]}


def _frame(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """A line a variant: the columns of table 4 that the benchmarks give, and the interval of the overall number."""
    lines = []
    for row in rows:
        line: dict[str, Any] = {name: row[name] for name in ("variant", "prompts", "pairs")}
        for config, cell in row.get("configs", {}).items():
            line |= {f"{config} accuracy": cell["accuracy"], f"{config} exact match": cell["exact_match"]}
        low, high = row.get("interval", (None, None))
        lines.append(line | {"overall": row.get("overall"), "low": low, "high": high})
    return pl.DataFrame(lines, infer_schema_length=None)


def table(path: Path) -> pl.DataFrame:
    """The table of `ablate` for the terminal, in percent: accuracy and exact match by benchmark, and the overall."""
    rows = pl.read_csv(path, glob=False).to_dicts()
    configs = [name.removesuffix(" accuracy") for name in rows[0] if name.endswith(" accuracy")]
    lines = []
    for row in rows:
        line = {"variant": row["variant"], "pairs": f"{row['pairs']:,}"}
        for config in configs:
            line[f"{config}: accuracy, exact"] = _percent(row[f"{config} accuracy"], row[f"{config} exact match"])
        bounds = "" if row["low"] is None else f" [{100 * row['low']:.0f}, {100 * row['high']:.0f}]"
        lines.append(line | {"overall": _percent(row["overall"]) + bounds})
    return pl.DataFrame(lines)


def _percent(*values: float | None) -> str:
    return ", ".join("none" if value is None else f"{100 * value:.1f}" for value in values)
