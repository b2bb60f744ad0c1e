"""What `personalize` leaves, made without a model: decisions that are right as often as the profile tells."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from pluralbench.config import PersonalizeConfig
from pluralbench.data.benchmark_entries import find_benchmark
from pluralbench.data.rules import overall_rule
from pluralbench.evaluation.loading import run_directory
from pluralbench.metrics.frame import metrics_frame
from pluralbench.metrics.personalize import method_numbers
from pluralbench.results.personalize import (
    PERSONALIZE_ITEMS,
    PersonalizeResult,
    PersonalizeRunConfig,
    SetRecord,
    TrainedOn,
    TrainedRecord,
)
from pluralbench.results.record import BenchmarkRecord, CostRecord, PromptRecord
from pluralbench.results.run_files import write_run
from pluralbench.results.runs import Personalized, load_run
from pluralbench_local.personal.options import PersonalConfig
from pluralbench_rewards import ModelRecord, ScoringConfig
from pluralbench_runs import rng_for
from some_words import WORDS
from written_tables import write

METHODS = ("bt", "gpo", "vpl", "pal", "synthesizeme")
DOMAINS = ("Art_and_Entertainment", "Lifestyle_and_Personal_Development", "Society_and_Culture")
SETS: dict[str, tuple[str, ...]] = {"new": ("default",), "known": ("default",), "scored": DOMAINS}
TITLES = {"new": "New users", "known": "Known users", "scored": "Personalized RewardBench"}


def made_items(
    *,
    methods: Sequence[str] = METHODS,
    conditions: Sequence[str] = ("without", "with"),
    seeds: int = 2,
    users: int = 20,
    sets: Mapping[str, Sequence[str]] = SETS,
    better: float = 0.3,
) -> pl.DataFrame:
    """Two decisions of each user. With a profile they are right more often, and more so with more posts."""
    rows = []
    for name, configs in sets.items():
        for config in configs:
            for number in range(2 * users):
                draw = rng_for(0, "item", f"{name} {config} {number}")
                posts, words, distance = draw.randint(1, 9), draw.randint(5, 400), draw.random()
                item: dict[str, Any] = {"set": name, "config": config, "item": f"q{number}", "pair": 0}
                item |= {"cluster": f"{name} {config} u{number // 2}"}
                item |= {"posts": posts, "words": words, "distance": distance}
                for method in methods:
                    for condition in conditions:
                        share = 0.5 + (better * posts / 9 if condition == "with" else 0.0)
                        for seed in range(seeds):
                            drawn = rng_for(seed, f"{method} {condition}", f"{name} {config} {number}").random()
                            margin = share - drawn
                            who = {"method": method, "condition": condition, "seed": seed}
                            rows.append(item | who | {"margin": margin, "correct": margin > 0})
    return pl.DataFrame(rows).select(list(PERSONALIZE_ITEMS)).cast(dict(PERSONALIZE_ITEMS))  # type: ignore[arg-type]


def made_personalized(out: Path, items: pl.DataFrame, *, persona: bool = False, **changes: Any) -> Personalized:
    """A finished directory with these items. changes: of what came of it."""
    config = config_of(items, persona=persona)
    result = result_of(items).model_copy(update=changes)
    metrics = metrics_frame(method_numbers(items, {name: one.by_config for name, one in result.sets.items()}))
    with run_directory(out, config, fresh=False) as output:
        assert output is not None
        write_run(output, config, result, metrics, {"items": items})
    return load_run(out, PersonalizeRunConfig)


def config_of(items: pl.DataFrame, *, persona: bool = False) -> PersonalizeRunConfig:
    """What a directory with these items was asked."""
    benchmark = find_benchmark("personalized")
    methods = tuple(items["method"].unique(maintain_order=True))
    return PersonalizeRunConfig(
        backbone=ModelRecord(name="org/backbone", kind="backbone"),
        benchmark=BenchmarkRecord(name="personalized", title="P", rule=overall_rule(benchmark), description=benchmark),
        data={},
        prompt=PromptRecord(),
        personalizing=PersonalizeConfig(methods=methods, persona=persona, seeds=items["seed"].n_unique()),
        options=PersonalConfig(),
        scoring=ScoringConfig(),
    )


def result_of(items: pl.DataFrame) -> PersonalizeResult:
    """What would have come of it."""
    which = items.select("method", "condition", "seed").unique(maintain_order=True)
    return PersonalizeResult(
        conditions=tuple(which["condition"].unique(maintain_order=True)),
        trained_on=TrainedOn(items=100, users=30),
        sets={
            name: _set_of(items.filter(pl.col("set") == name), name)
            for name in items["set"].unique(maintain_order=True)
        },
        models=tuple(
            TrainedRecord(
                method=method,
                condition=condition,
                seed=seed,
                user_context="persona" if method == "synthesizeme" else "raw",
                folder=f"models/{method}-{condition}-{seed}",
            )
            for method, condition, seed in which.filter(pl.col("condition") != "shuffled").iter_rows()
        ),
        cost=CostRecord(seconds=3.0),
    )


def _set_of(items: pl.DataFrame, name: str) -> SetRecord:
    decided = items.select("config", "item", "pair", "cluster").unique(maintain_order=True)
    configs = tuple(decided["config"].unique(maintain_order=True))
    users = decided["cluster"].n_unique()
    return SetRecord(title=TITLES[name], items=decided.height, users=users, configs=configs, by_config=name == "scored")


def user_rows(users: int, pairs: int, *, prefix: str = "u", persona: bool = True) -> list[dict[str, Any]]:
    """Rows of a training release: users who like tea or chess, and answers that speak of the one or the other."""
    rows = []
    for user in range(users):
        likes, other = ("tea", "chess") if user % 2 else ("chess", "tea")
        for number in range(pairs):
            draw = rng_for(0, prefix, user, number)
            asked = " ".join(draw.choices(WORDS, k=4))
            rows.append(
                {
                    "id": f"{prefix}{user}-{number}",
                    "user_id": f"{prefix}{user}",
                    "prompt": [{"role": "user", "content": f"{asked}?"}],
                    "chosen": f"{likes} {' '.join(draw.choices(WORDS, k=3))}",
                    "rejected": f"{other} {' '.join(draw.choices(WORDS, k=3))}",
                    "profile": [
                        {"id": f"{prefix}{user}-post{post}", "category": None, "text": f"I think of {likes}, {post}."}
                        for post in range(1 + user % 3)
                    ],
                    "persona": f"They like {likes} best." if persona else None,
                }
            )
    return rows


def users_folder(folder: Path, *, users: int = 8, pairs: int = 4, **options: Any) -> Path:
    """The same in splits, whose users are apart."""
    for split, number in (("train", users), ("validation", 2), ("test", users // 2)):
        write(folder / f"{split}.jsonl", user_rows(number, pairs, prefix=split, **options))
    return folder
