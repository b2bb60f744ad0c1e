"""The steps of a study: does a benchmark's ranking of reward models predict what they do to a policy?

Every step leaves a directory of its own that is whole or not there, so a study that was interrupted goes on with the
same call: it makes what is missing.
"""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl
from filelock import FileLock, Timeout
from pluralbench_local import LocalModel, train, untrained
from pluralbench_rewards import Message
from pluralbench_runs import (
    OutputError,
    check_recipe,
    describe_difference,
    read_recipe,
    rng_for,
    write_recipe,
)
from pluralbench_tables import write_jsonl

from pluralbench.config import DataConfig, TrainingConfig
from pluralbench.downstream.best_of_n import best_of_n
from pluralbench.downstream.candidates import THREAD_KEY
from pluralbench.downstream.correlate import Correlation, correlate
from pluralbench.downstream.optimization import optimize
from pluralbench.downstream.score_series import downstream_series, optimized_series, runs_series
from pluralbench.downstream.study_recipe import Items, Model, StudyRecipe, Training, read_study
from pluralbench.errors import DataError, EvaluationError
from pluralbench.evaluation.loading import LoadedBenchmark, load_benchmark
from pluralbench.evaluation.models import base_model_path
from pluralbench.evaluation.score import score
from pluralbench.evaluation.train import data_origin, flip_labels, items_to_rankings
from pluralbench.results.runs import Downstream, Run

RECIPE_FILE, PAGE_FILE, LOCK = "study.toml", "README.md", ".lock"
MODELS, PAIRS_FILE = "models", "pairs.jsonl"


@dataclass
class Study:
    """What a study found. runs: by benchmark and reward model. optimized: by reward model.

    correlations: of the first benchmark with each downstream result, "best-of-n" and "optimization", with the other
    benchmarks as baselines.
    """

    path: Path
    recipe: StudyRecipe
    runs: dict[str, dict[str, Run]] = field(default_factory=dict)
    best_of_n: Downstream | None = None
    optimized: dict[str, Downstream] = field(default_factory=dict)
    correlations: dict[str, Correlation] = field(default_factory=dict)


@contextmanager
def run_study(
    recipe: str | Path | StudyRecipe, *, out: str | Path | None = None, fresh: bool = False
) -> Iterator[Study]:
    """Make what a study is missing; while the context lasts, no other process is at work in its directory.

    See `pluralbench.study`, which also writes the page.
    """
    read = recipe if isinstance(recipe, StudyRecipe) else read_study(recipe)
    target = Path(out or Path("studies") / (Path(recipe).stem if isinstance(recipe, str | Path) else "study"))
    with _directory(target, read, fresh=fresh):
        work = _StudySteps(target, read)
        work.check()
        found = Study(target, read)
        for name, items in read.benchmarks.items():
            found.runs[name] = {model.name: work.scored(model, name, items) for model in read.models}
        if read.best_of_n is not None:
            found.best_of_n = work.best_of_n(read.best_of_n.items)
        if read.optimization is not None:
            found.optimized = {model.name: work.optimized(model) for model in read.models}
        found.correlations = dict(_correlations(found))
        yield found


@contextmanager
def _directory(target: Path, recipe: StudyRecipe, *, fresh: bool) -> Iterator[None]:
    """The study's directory, for one process and under one recipe. Raises `OutputError`."""
    made = target / RECIPE_FILE
    if target.exists() and not target.is_dir():
        raise OutputError(f"{target} is a file; choose another output directory.")
    if target.is_dir() and not made.exists() and {path.name for path in target.iterdir()} - {LOCK}:
        raise OutputError(f"{target} holds files that no study wrote; choose another output directory.")
    target.mkdir(parents=True, exist_ok=True)
    lock = FileLock(target / LOCK)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise OutputError(f"Another process is at work in {target}; wait for it.") from None
    try:
        if fresh:  # but for the lock, and the recipe, which says that a study wrote here
            for path in target.iterdir():
                if path.is_dir():
                    shutil.rmtree(path)
                elif path.name not in {LOCK, RECIPE_FILE}:
                    path.unlink()
        elif made.exists():
            differs = describe_difference(recipe, read_recipe(StudyRecipe, made))
            if differs:
                raise OutputError(
                    f"The study in {target} was begun with other settings ({differs}); give the same again to go on, "
                    "choose another output directory, or start over with `fresh`."
                )
        write_recipe(recipe, made)
        yield
    finally:
        lock.release()


class _StudySteps:
    """The steps of a study. Each makes its directory, or reads the one that is there."""

    def __init__(self, target: Path, recipe: StudyRecipe) -> None:
        self._target, self._recipe = target, recipe

    def check(self) -> None:
        """Raise `DataError` where a model is to be trained on more items than there are, before anything is made."""
        most: dict[Items, tuple[int, str]] = {}
        for model in self._recipe.models:
            if model.train is not None and model.train.items.sample is None and model.train.pairs is not None:
                asked = (model.train.pairs, model.name)
                most[model.train.items] = max(asked, most.get(model.train.items, asked))
        for items, (number, name) in most.items():
            there = self._learned(items).frame.height
            if there < number:
                raise DataError(
                    f"The model {name!r} is to be trained on {number:,} items (`pairs`), and {items.location} has "
                    f"{there:,}; lower it."
                )

    def scored(self, model: Model, benchmark: str, items: Items) -> Run:
        """A reward model on a benchmark."""
        return score(
            self._local(self._model(model)),
            **self._asked(items),
            scoring=self._recipe.scoring,
            out=self._target / "benchmarks" / benchmark / model.name,
        )

    def best_of_n(self, items: Items) -> Downstream:
        """Best-of-N by all reward models."""
        return self._sampled("best-of-n", items, {m.name: self._local(self._model(m)) for m in self._recipe.models})

    def optimized(self, model: Model) -> Downstream:
        """The policy, optimised against a reward model, and judged."""
        wanted = self._recipe.optimization
        assert wanted is not None  # noqa: S101 - the caller looked
        answered = self._target / "best-of-n"  # where the policy's own answers to the same prompts may stand
        return optimize(
            self._changeable(self._policy()),
            self._local(self._model(model)),
            name=model.name,
            **wanted.items.asked,
            train=None if wanted.train is None else wanted.train.asked["data"],
            options=wanted.options,
            sampling=self._recipe.sampling.model_copy(update={"n": 1, "k": ()}),
            scoring=self._recipe.scoring,
            outcome=self._recipe.outcome,
            judge_connection=self._recipe.judge_connection,
            seed=self._recipe.seed,
            reuse=answered if answered.exists() else None,
            out=self._target / "optimization" / model.name,
        )

    def _sampled(self, name: str, items: Items, models: Mapping[str, Any]) -> Downstream:
        served = self._recipe.policy_connection.base_url is not None
        policy = str(self._recipe.policy) if served else self._local(self._policy())
        return best_of_n(
            policy,
            models,
            **items.asked,
            sampling=self._recipe.sampling,
            scoring=self._recipe.scoring,
            outcome=self._recipe.outcome,
            policy_connection=self._recipe.policy_connection if served else None,
            judge_connection=self._recipe.judge_connection,
            seed=self._recipe.seed,
            out=self._target / name,
        )

    def _local(self, name: str) -> LocalModel:
        return LocalModel(name=name, **self._recipe.runtime.model_dump(exclude_defaults=True))

    def _changeable(self, name: str) -> LocalModel:
        """A model that is trained here, which chooses its precision itself."""
        return LocalModel(name=name, **self._recipe.runtime.model_dump(exclude_defaults=True, exclude={"dtype"}))

    def _policy(self) -> str:
        return base_model_path(str(self._recipe.policy))

    def _model(self, model: Model) -> str:
        """The folder or name of a reward model, trained where the study trains it."""
        return str(model.path) if model.train is None else self._trained(model.name, model.train)

    def _trained(self, name: str, training: Training) -> str:
        folder = self._target / MODELS / name
        items = self._learned(training.items)
        rankings = items_to_rankings(items)
        origin = data_origin(items, rankings) | {"limit": training.pairs, "label_noise": training.label_noise}
        rankings = flip_labels(rankings, training.label_noise, self._recipe.seed)
        if training.pairs == 0:
            return str(untrained(self._changeable(base_model_path(training.base)), folder, seed=self._recipe.seed))
        if training.pairs is not None:
            rankings.sort(key=lambda one: (rng_for(self._recipe.seed, "learned", one.id).random(), one.id))
            rankings = rankings[: training.pairs]
        options = check_recipe(TrainingConfig, {"seed": self._recipe.seed, **training.options}, "of the training")
        base = self._changeable(base_model_path(training.base))
        return str(train(base, rankings, folder, options=options, origin=origin).folder)

    def _learned(self, items: Items) -> LoadedBenchmark:
        return load_benchmark(**self._asked(items), for_training=True)

    def _asked(self, items: Items) -> dict[str, Any]:
        """Which items, as the verbs take it; pairs of a sample are made first."""
        if items.sample is None:
            return items.asked
        place = self._target / "samples" / items.sample / PAIRS_FILE
        if not place.exists():
            sample = self._recipe.samples[items.sample]
            found = self._sampled(f"samples/{items.sample}/candidates", sample.items, {})
            loaded = load_benchmark(**sample.items.asked, prompts_only=True)
            keys = loaded.items.frame.select("config", "id").iter_rows()
            prompts = {key: group.messages for key, group in zip(keys, loaded.groups(), strict=True)}
            write_jsonl(preference_pairs(found, prompts, sample.pairs, seed=self._recipe.seed), place)
        data = DataConfig(location=str(place), columns=("cluster=cluster",), limit=items.limit)
        return {"benchmark": "pairs", "data": data, "prompt": None}


def preference_pairs(
    found: Downstream, prompts: Mapping[tuple[str, str], Sequence[Message]], most: int, *, seed: int
) -> list[dict[str, Any]]:
    """At most so many pairs of each prompt, drawn by the seed: `id`, `cluster`, `prompt`, `chosen`, `rejected`.

    prompts: what is asked, as messages, by config and id; of conversations the first turn. Two candidates are a pair
    where the judge gives them different values. Raises `EvaluationError` where there is none.
    """
    judged = (
        found.frame("candidates")
        .join(found.frame("outcomes"), on=[*THREAD_KEY, "sample"])
        .filter(pl.col("turn") == 0, pl.col("value").is_not_null())
    )
    rows = []
    for (config, item_id), own in judged.partition_by("config", "id", as_dict=True, maintain_order=True).items():
        texts = list(own.select("sample", "text", "value", "cluster").iter_rows())
        several = [(a, b) for a in texts for b in texts if a[2] > b[2] and a[1] != b[1]]
        draw = rng_for(seed, "pairs", str(config), str(item_id))
        for better, worse in draw.sample(several, min(most, len(several))):
            rows.append(
                {
                    "id": f"{config}/{item_id}/{better[0]}-{worse[0]}",
                    "cluster": better[3],
                    "prompt": [dict(message) for message in prompts[str(config), str(item_id)]],
                    "chosen": better[1],
                    "rejected": worse[1],
                }
            )
    if not rows:
        raise EvaluationError(f"The judge tells no two candidates of one prompt apart in {found.path}.")
    return rows


def _correlations(found: Study) -> Iterator[tuple[str, Correlation]]:
    """The first benchmark with each downstream result. Raises `DataError` where two sides share too few models."""
    seed = found.recipe.seed
    sides = {
        benchmark: runs_series(list(runs.values()), benchmark, names=list(runs), seed=seed)
        for benchmark, runs in found.runs.items()
    }
    if not sides or len(found.recipe.models) < 2:
        return
    first, *others = sides.values()
    baselines = dict(zip([*sides][1:], others, strict=True))
    if found.best_of_n is not None:
        side = replace(downstream_series(found.best_of_n, seed=seed), source="best-of-n")
        yield "best-of-n", correlate(first, side, baselines=baselines, seed=seed)
    if found.optimized:
        side = optimized_series(list(found.optimized.values()), "optimization", seed=seed)
        yield "optimization", correlate(first, side, baselines=baselines, seed=seed)
