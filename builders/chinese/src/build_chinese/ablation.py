"""Ablation of the strategies of the preference set (CHEEMS, section 6.3, table 4).

A reward model is trained on each variant of the set and evaluated on the benchmarks.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from pluralbench_calls import Ledger, Replay, working_ledger
from pluralbench_measures.rankings import overall_estimate, ranking_metrics
from pluralbench_release import LEDGER, RECIPE
from pluralbench_release.errors import BuildError, SourceError
from pluralbench_release.manifest import json_text
from pluralbench_rewards import Group
from pluralbench_runs import output_directory, write_recipe
from pluralbench_tables import read_jsonl, write_jsonl

from build_chinese import reward_model, source
from build_chinese.preference_set import PreferenceSet, build_preference_set
from build_chinese.rankings import Row, preferred_pairs
from build_chinese.recipe import ChineseRecipe, PreferenceTable, RewardTable
from build_chinese.reward_model import TrainingRows
from build_chinese.votes import votes

ROWS_FILE, FIGURES_FILE, MODELS = "rows.jsonl", "ablation.json", "models"
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
    """Train a reward model on each variant of a release's preference set and evaluate it on the benchmarks.

    The results, whose path is returned, and the trained models (`models/VARIANT`) go to a folder next to the release.
    An interrupted run resumes after the last variant that it finished. Variants without distant supervision resolve
    cycles and train on the votes that the ranks keep. The human part trains with `[reward.training]`; variants with the
    judge's votes also use `[reward.large]`. All share one seed.

    Args:
        release: Directory of the release.
        recipe: Recipe of the release, with the locations of its files.
        people: Resolved rows by benchmark, for evaluation.
        human: Resolved rows of the human part.
        fresh: Discard an interrupted ablation and replace a finished one.

    Raises:
        UserError: See `check`.
    """
    reward = check(recipe, people, human)
    benchmarks = {name: rows for name, rows in people.items() if rows}
    recipe = recipe.model_copy(update={"reward": reward})
    target = release.with_name(f"{release.name}-ablation")
    with output_directory(target, recipe, recipe_file=RECIPE, fresh=fresh) as output:
        if (target / FIGURES_FILE).exists() and not fresh:
            return target / FIGURES_FILE
        with working_ledger(output.work / "ledger.sqlite") as ledger:
            ledger.add_from(release / LEDGER)
            variants = _variants(recipe, reward, human, ledger, output.work)
        path = output.work / ROWS_FILE
        rows = read_jsonl(path, SourceError) if path.exists() else []
        rows = [row for row in rows if "not_trained" in row or _model_folder(output.work, row["variant"]).is_dir()]
        measured = {row["variant"] for row in rows}
        for name, training in variants.items():
            if name not in measured:
                table = reward if name == HUMAN else reward.for_large_set()
                folder = _model_folder(output.work, name)
                rows.append({"variant": name} | _evaluate(training, benchmarks, table, folder))
                write_jsonl(rows, path)
        staged = output.staging()
        (staged / FIGURES_FILE).write_text(json_text(rows), encoding="utf-8")
        (staged / RECIPE).parent.mkdir()
        write_recipe(recipe, staged / RECIPE)
        (staged / MODELS).mkdir()
        for row in rows:
            if "not_trained" not in row:
                _model_folder(output.work, row["variant"]).rename(_model_folder(staged, row["variant"]))
        output.publish(staged)
    return target / FIGURES_FILE


def check(recipe: ChineseRecipe, people: Mapping[str, Sequence[Row]], human: Sequence[Row]) -> RewardTable:
    """Check what `ablate` needs, before votes are paid for; return the reward model with the digest of its base.

    Raises:
        BuildError: There is no benchmark, or nothing to vote on.
        UserError: The base, a training option or the size of the human part does not allow a training.
    """
    has_benchmark = any(people.values())
    if not has_benchmark or recipe.reward is None or recipe.unlabeled is None or recipe.judge is None:
        raise BuildError(
            f"{recipe.name} has no {'votes to train on' if has_benchmark else 'benchmark to evaluate on'}; "
            "`ablate=True` needs an annotated benchmark, prompts to vote on, a judge and a base model for the reward "
            "model."
        )
    reward = reward_model.with_base_digest(recipe.reward)
    if recipe.reward.digest is not None:  # with recorded rewards, such as the sample's, nothing has needed the base yet
        reward_model.check_base(reward)
    reward_model.training_options(reward.for_large_set())
    options, part = reward_model.training_options(reward), reward_model.with_ranked_pairs(human)
    reward_model.check_size(part, reward)
    from pluralbench_local import check_steps

    check_steps(reward_model.rankings_of(part), options)
    return reward


def _model_folder(output: Path, variant: str) -> Path:
    return output / MODELS / variant.replace(" + ", "-")


def _variants(
    recipe: ChineseRecipe, reward: RewardTable, human: Sequence[Row], ledger: Ledger, work: Path
) -> dict[str, TrainingRows]:
    """The training rows of each variant, from the recorded votes and rewards."""
    if recipe.unlabeled is None or recipe.judge is None:
        return {}
    taxonomy = source.taxonomy_of(recipe.unlabeled.taxonomy)
    rows = source.unlabeled_rows(recipe.unlabeled, taxonomy).rows
    limits = recipe.connection.limits()
    cast = votes(rows, taxonomy, recipe.judge, Replay(), ledger, limits=limits, seed=recipe.seed)
    human_part = reward_model.with_ranked_pairs(human)
    scores = reward_model.rewards(rows, human_part, reward, ledger, work, replaying=recipe.preference.distant)

    def preference_set(strategy: PreferenceTable) -> PreferenceSet:
        rewards = scores if strategy.distant else None
        return build_preference_set(rows, cast, rewards, strategy, margin=reward.margin, seed=recipe.seed)

    variants = {HUMAN: human_part}
    for name, strategy in STRATEGIES.items():
        part = preference_set(strategy)
        variants[name] = TrainingRows(part.rows, [preferred_pairs(row) for row in part.rows])
    best = variants[list(STRATEGIES)[-1]]
    return variants | {FULL: TrainingRows([*human, *best.rows], [*human_part.pairs, *best.pairs])}


def _evaluate(
    training: TrainingRows, benchmarks: Mapping[str, Sequence[Row]], reward: RewardTable, folder: Path
) -> dict[str, Any]:
    """Train on one variant and evaluate the model on the benchmarks."""
    from pluralbench_local import TrainingError

    size: dict[str, Any] = {"prompts": len(training.rows), "pairs": training.size, "training": reward.training}
    if training.size < reward.least_pairs:
        return size | {"not_trained": f"fewer than {reward.least_pairs:,} pairs"}
    try:
        reward_model.train_base(training, reward, folder)
    except TrainingError as error:  # a variant too small for the recipe's training does not stop the others
        return size | {"not_trained": str(error)}
    rows = [(config, row) for config, own in benchmarks.items() for row in own]
    groups = [
        Group(row["id"], reward_model.messages_of(row), [response["content"] for response in row["responses"]])
        for _, row in rows
    ]
    scores = [[value for value, _ in values] for values in reward_model.scores_of(folder, groups)]
    items = []
    for (config, row), values in zip(rows, scores, strict=True):
        rank = {place: row["rank"].get(response["id"]) for place, response in enumerate(row["responses"])}
        ranked = [place for place, level in rank.items() if level is not None]
        both = {"rank": [rank[place] for place in ranked], "reward": [values[place] for place in ranked]}
        items.append({"config": config, "category": row["category"][0]} | both)
    too_long = sum(value is None for values in scores for value in values)  # their pairs count as wrong
    frame = pl.DataFrame(items)
    overall = overall_estimate(frame)
    return size | ranking_metrics(frame) | {"too_long": too_long, "interval": [overall.low, overall.high]}


def table(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Format the results of `ablate` as the paper's table 4: accuracy, exact match and overall number in percent."""
    configs = dict.fromkeys(config for row in rows for config in row.get("configs", ()))
    lines = []
    for row in rows:
        line = {"variant": row["variant"], "pairs": f"{row['pairs']:,}"}
        for config in configs:
            cell = row.get("configs", {}).get(config, {})
            line[f"{config}: accuracy, exact"] = _percent(cell.get("accuracy"), cell.get("exact_match"))
        low, high = row.get("interval", (None, None))
        bounds = "" if low is None else f" [{100 * low:.0f}, {100 * high:.0f}]"
        lines.append(line | {"overall": _percent(row.get("overall")) + bounds})
    return pl.DataFrame(lines)


def _percent(*values: float | None) -> str:
    return ", ".join("none" if value is None else f"{100 * value:.1f}" for value in values)
