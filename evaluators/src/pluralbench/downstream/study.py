"""Steps of a study: whether a benchmark's ranking of reward models predicts their effect on a policy.

Every step writes its own directory atomically. The same call resumes an interrupted study with the missing steps.
"""

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pluralbench_local
import polars as pl
from pluralbench_local import LocalModel
from pluralbench_measures.bootstrap import Estimate
from pluralbench_rewards import Message
from pluralbench_runs import (
    OutputError,
    RecipeError,
    check_recipe,
    describe_difference,
    has_work,
    keeping_work,
    locked,
    log_status,
    move_aside,
    read_recipe,
    rng_for,
    write_recipe,
    write_text,
)
from pluralbench_tables import csv_text, write_jsonl

from pluralbench.config import DataConfig, TrainingConfig
from pluralbench.downstream.best_of_n import best_of_n
from pluralbench.downstream.correlate import Correlation, correlate
from pluralbench.downstream.optimization import optimize
from pluralbench.downstream.score_series import downstream_series, optimized_series, runs_series
from pluralbench.downstream.study_plan import (
    BENCHMARKS,
    BEST_OF_N,
    MODELS,
    OPTIMIZATION,
    PAIRS_FILE,
    SAMPLES,
    Step,
    ahead_lines,
    check_inputs,
    study_steps,
)
from pluralbench.downstream.study_recipe import Items, Model, StudyRecipe, Training, read_study
from pluralbench.errors import EvaluationError, RunError
from pluralbench.evaluation.loading import load_benchmark
from pluralbench.evaluation.models import local_model
from pluralbench.evaluation.score import score
from pluralbench.evaluation.train import data_origin, flip_labels, items_to_rankings
from pluralbench.results.downstream import THREAD_KEY, BestOfNRunConfig, OptimizeRunConfig
from pluralbench.results.evaluations import ScoreRunConfig
from pluralbench.results.finding import STUDY_FILE
from pluralbench.results.runs import Downstream, Run, load_run

PAGE_FILE, LOCK = "README.md", ".lock"
FIGURES, CORRELATIONS_FILE, SCORES_FILE = "figures", "correlations.json", "scores.csv"
# What a study writes into its directory beside the recipe and the lock.
OWN = (
    *(BENCHMARKS, BEST_OF_N, f"{BEST_OF_N}.work", OPTIMIZATION, MODELS, SAMPLES, FIGURES),
    *(PAGE_FILE, CORRELATIONS_FILE, SCORES_FILE),
)


@dataclass
class Study:
    """Results of a study, by benchmark and reward model; `best_of_n` is None if the recipe has none.

    `correlations` are of the first benchmark with each downstream result (`best-of-n`, `optimization`); the other
    benchmarks are the baselines.
    """

    path: Path
    recipe: StudyRecipe
    runs: dict[str, dict[str, Run]] = field(default_factory=dict)
    best_of_n: Downstream | None = None
    optimized: dict[str, Downstream] = field(default_factory=dict)
    correlations: dict[str, Correlation] = field(default_factory=dict)

    def scores(self, model: str) -> dict[str, Estimate]:
        """Return the scores of a reward model by benchmark, and its results in `best-of-n` and `optimization`."""
        scores = {name: runs[model].headline for name, runs in self.runs.items()}
        if self.best_of_n is not None:
            most = self.best_of_n.result.sampling.sizes[-1]
            scores["best-of-n"] = self.best_of_n.estimate("outcome", model=model, k=most)
        if self.optimized:
            scores["optimization"] = self.optimized[model].estimate("outcome")
        return scores


def study(recipe: str | Path | StudyRecipe, *, out: str | Path | None = None, fresh: bool = False) -> Study:
    """Run a study: train, score, sample, optimize, judge and correlate.

    Finished steps are kept. Call it again with the same arguments to resume an interrupted study. The command also
    writes the report, README.md.

    Args:
        recipe: Name of a built-in study (`tiny`, `paper`, `cheems-sets`, `cheems-scaling`, `cheems-models`), a TOML
            file, or a recipe.
        out: Directory of the study. Default: `studies/NAME`.
        fresh: Start over, and move earlier results to a new directory beside `out`, `OUT.kept-...`.

    Returns:
        The study with its scores and correlations.

    Raises:
        UserError: If the recipe, its data or models, or the directory cannot be used. The message names the fix.
    """
    loaded = recipe if isinstance(recipe, StudyRecipe) else read_study(recipe)
    target = study_folder(recipe, out)
    missing = missing_steps(loaded, target, fresh=fresh)
    lines = ahead_lines(loaded, missing, check_inputs(loaded, missing))
    with _locked_directory(target, loaded, fresh=fresh):
        for line in lines if missing else ():
            log_status(line)
        done, steps, every = Study(target, loaded), _StudySteps(target, loaded), study_steps(loaded)
        for number, one in enumerate(every, start=1):
            if not one.done(target):
                log_status(f"Step {number} of {len(every)}: {one}")
            elif one.kind in {"sample", "train"}:
                continue  # a done step of the other kinds is read
            steps.run(one, done)
        done.correlations = dict(_correlations(done))
        _write_numbers(done)
    return done


def _write_numbers(done: Study) -> None:
    rows = [
        {"model": model.name} | {name: one.value for name, one in done.scores(model.name).items()}
        for model in done.recipe.models
    ]
    write_text(done.path / SCORES_FILE, csv_text(pl.DataFrame(rows, infer_schema_length=None)))
    if done.correlations:
        numbers = {name: correlation.as_dict() for name, correlation in done.correlations.items()}
        text = json.dumps(numbers, indent=2, ensure_ascii=False, allow_nan=False)
        write_text(done.path / CORRELATIONS_FILE, text + "\n")


def study_folder(recipe: str | Path | StudyRecipe, out: str | Path | None) -> Path:
    """Return the directory of a study. Default: `studies/NAME`."""
    return Path(out or Path("studies") / (Path(recipe).stem if isinstance(recipe, str | Path) else "study"))


def study_ahead(recipe: str | Path, *, out: str | Path | None = None, fresh: bool = False) -> list[str]:
    """Check the inputs of a study without running it, and return what is ahead, in lines. Arguments as for `study`.

    Raises:
        UserError: The recipe or an input of a missing step cannot be used.
    """
    loaded, target = read_study(recipe), study_folder(recipe, out)
    missing = missing_steps(loaded, target, fresh=fresh)
    lines = ahead_lines(loaded, missing, check_inputs(loaded, missing))
    return [*(f"{number:3} {one}" for number, one in enumerate(missing, start=1)), *lines]


def missing_steps(recipe: StudyRecipe, target: Path, *, fresh: bool) -> list[Step]:
    """Return the steps of a study that are not done in a directory."""
    return [one for one in study_steps(recipe) if fresh or not one.done(target)]


def load_study(path: Path) -> Study:
    """Read the directory of a finished study.

    Raises:
        RunError: The recipe cannot be read, or a step is missing.
        DataError: The scores cannot be correlated.
    """
    try:
        study = Study(path, read_recipe(StudyRecipe, path / STUDY_FILE))
    except RecipeError as error:
        raise RunError(str(error)) from None
    models = [model.name for model in study.recipe.models]
    for name in study.recipe.benchmarks:
        study.runs[name] = {model: load_run(path / BENCHMARKS / name / model, ScoreRunConfig) for model in models}
    if study.recipe.best_of_n is not None:
        study.best_of_n = load_run(path / BEST_OF_N, BestOfNRunConfig)
    if study.recipe.optimization is not None:
        study.optimized = {model: load_run(path / OPTIMIZATION / model, OptimizeRunConfig) for model in models}
    study.correlations = dict(_correlations(study))
    return study


@contextmanager
def _locked_directory(target: Path, recipe: StudyRecipe, *, fresh: bool) -> Iterator[None]:
    recipe_file = target / STUDY_FILE
    if target.exists() and not target.is_dir():
        raise OutputError(f"{target} is a file; choose another output directory.")
    if target.is_dir() and not recipe_file.exists() and {path.name for path in target.iterdir()} - {LOCK}:
        raise OutputError(f"{target} contains files that are not part of a study; choose another output directory.")
    target.mkdir(parents=True, exist_ok=True)
    with locked(target / LOCK, target):
        own = [target / name for name in OWN if (target / name).exists()]
        if fresh and own:
            kept = move_aside(own, target)
            shutil.copyfile(recipe_file, kept / STUDY_FILE)  # not moved, since it marks the directory as a study
            log_status(f"The results that were in {target} are in {kept} now.")
        elif not fresh and recipe_file.exists():
            differs = describe_difference(recipe, read_recipe(StudyRecipe, recipe_file))
            if differs:
                raise OutputError(
                    f"The study in {target} has other settings ({differs}); use the same settings, choose another "
                    "output directory, or start over with `fresh=True`."
                )
        write_recipe(recipe, recipe_file)
        with keeping_work(target, lambda: any(has_work(target / name) for name in OWN if (target / name).exists())):
            yield


class _StudySteps:
    """Steps of a study. Each writes its directory, or reads the existing one."""

    def __init__(self, target: Path, recipe: StudyRecipe) -> None:
        self._target, self._recipe = target, recipe

    def run(self, step: Step, study: Study) -> None:
        """Run a step, and add its result to the study."""
        model = step.model
        match step.kind:
            case "sample":
                self._arguments(Items(sample=step.name))
            case "train":
                assert model is not None and model.train is not None  # noqa: PT018, S101 - so are these steps made
                self._train(model.name, model.train)
            case "score":
                assert model is not None  # noqa: S101
                run = self.score(model, step.name, self._recipe.benchmarks[step.name])
                study.runs.setdefault(step.name, {})[model.name] = run
            case "best-of-n":
                assert self._recipe.best_of_n is not None  # noqa: S101
                study.best_of_n = self.best_of_n(self._recipe.best_of_n.items)
            case "optimize":
                assert model is not None  # noqa: S101
                study.optimized[model.name] = self.optimize(model)

    def score(self, model: Model, benchmark: str, items: Items) -> Run:
        """Score a reward model on a benchmark."""
        return score(
            self._local(self._model_path(model)),
            **self._arguments(items),
            scoring=self._recipe.scoring,
            out=self._target / BENCHMARKS / benchmark / model.name,
        )

    def best_of_n(self, items: Items) -> Downstream:
        """Run best-of-N with all reward models."""
        return self._sample(BEST_OF_N, items, {m.name: self._local(self._model_path(m)) for m in self._recipe.models})

    def optimize(self, model: Model) -> Downstream:
        """Optimize the policy against a reward model, and judge it."""
        optimization = self._recipe.optimization
        assert optimization is not None  # noqa: S101 - checked by the caller
        trained = optimization.trained.get(model.name)
        best_of_n_run = self._target / BEST_OF_N  # may have the initial policy's answers to the same prompts
        return optimize(
            local_model(self._trainable(str(self._recipe.policy))),
            {model.name: self._local(self._model_path(model))},
            trained=trained,
            **optimization.items.arguments,
            train=None if optimization.train is None else optimization.train.arguments["data"],
            options=optimization.options if trained is None else None,
            sampling=self._recipe.sampling.model_copy(update={"n": 1, "k": ()}),
            scoring=self._recipe.scoring,
            outcome=self._recipe.outcome,
            judge_connection=self._recipe.judge_connection,
            seed=self._recipe.seed,
            reuse=best_of_n_run if best_of_n_run.exists() else None,
            out=self._target / OPTIMIZATION / model.name,
        )

    def _sample(self, name: str, items: Items, models: Mapping[str, Any]) -> Downstream:
        served = self._recipe.policy_connection.base_url is not None
        policy = str(self._recipe.policy) if served else local_model(self._local(str(self._recipe.policy)))
        return best_of_n(
            policy,
            models,
            **items.arguments,
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

    def _trainable(self, name: str) -> LocalModel:
        """Return a model for training, which chooses its own precision."""
        return LocalModel(name=name, **self._recipe.runtime.model_dump(exclude_defaults=True, exclude={"dtype"}))

    def _model_path(self, model: Model) -> str:
        return str(model.path) if model.train is None else str(self._target / MODELS / model.name)

    def _train(self, name: str, training: Training) -> None:
        folder = self._target / MODELS / name
        items = load_benchmark(**self._arguments(training.items), for_training=True)
        rankings = items_to_rankings(items)
        origin = data_origin(items, rankings) | {"limit": training.pairs, "label_noise": training.label_noise}
        rankings = flip_labels(rankings, training.label_noise, self._recipe.seed)
        base = local_model(self._trainable(training.base))
        if training.pairs == 0:
            pluralbench_local.untrained(base, folder, seed=self._recipe.seed)
            return
        if training.pairs is not None:
            rankings.sort(key=lambda one: (rng_for(self._recipe.seed, "learned", one.id).random(), one.id))
            rankings = rankings[: training.pairs]
        options = check_recipe(TrainingConfig, {"seed": self._recipe.seed, **training.options}, "of the training")
        pluralbench_local.train(base, rankings, folder, options=options, origin=origin)

    def _arguments(self, items: Items) -> dict[str, Any]:
        """Return benchmark, data and prompt as arguments; sample the pairs first if the items are a sample."""
        if items.sample is None:
            return items.arguments
        path = self._target / SAMPLES / items.sample / PAIRS_FILE
        if not path.exists():
            sample = self._recipe.samples[items.sample]
            run = self._sample(f"{SAMPLES}/{items.sample}/candidates", sample.items, {})
            loaded = load_benchmark(**sample.items.arguments, prompts_only=True)
            keys = loaded.items.frame.select("config", "id").iter_rows()
            prompts = {key: group.messages for key, group in zip(keys, loaded.groups(), strict=True)}
            write_jsonl(preference_pairs(run, prompts, sample.pairs, seed=self._recipe.seed), path)
        data = DataConfig(location=str(path), columns=("cluster=cluster",), limit=items.limit)
        return {"benchmark": "pairs", "data": data, "prompt": None}


def preference_pairs(
    run: Downstream, prompts: Mapping[tuple[str, str], Sequence[Message]], limit: int, *, seed: int
) -> list[dict[str, Any]]:
    """Draw preference pairs of candidates that the judge gives different values, at most `limit` per prompt.

    `prompts` are the messages of each prompt by config and id; of conversations the first turn.

    Returns:
        Rows with `id`, `cluster`, `prompt`, `chosen` and `rejected`.

    Raises:
        EvaluationError: No two candidates of a prompt have different values.
    """
    judged = (
        run.frame("candidates")
        .join(run.frame("outcomes"), on=[*THREAD_KEY, "sample"])
        .filter(pl.col("turn") == 0, pl.col("value").is_not_null())
    )
    rows = []
    for (config, item_id), own in judged.partition_by("config", "id", as_dict=True, maintain_order=True).items():
        texts = list(own.select("sample", "text", "value", "cluster").iter_rows())
        pairs = [(a, b) for a in texts for b in texts if a[2] > b[2] and a[1] != b[1]]
        draw = rng_for(seed, "pairs", str(config), str(item_id))
        for better, worse in draw.sample(pairs, min(limit, len(pairs))):
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
        raise EvaluationError(f"{run.path}: the judge gives all candidates of each prompt the same value.")
    return rows


def _correlations(study: Study) -> Iterator[tuple[str, Correlation]]:
    seed = study.recipe.seed
    sides = {
        benchmark: runs_series(list(runs.values()), benchmark, names=list(runs), seed=seed)
        for benchmark, runs in study.runs.items()
    }
    if not sides or len(study.recipe.models) < 2:
        return
    first, *others = sides.values()
    baselines = dict(zip([*sides][1:], others, strict=True))
    if study.best_of_n is not None:
        side = replace(downstream_series(study.best_of_n, seed=seed), source="best-of-n")
        yield "best-of-n", correlate(first, side, baselines=baselines, seed=seed)
    if study.optimized:
        side = optimized_series(list(study.optimized.values()), "optimization", seed=seed)
        yield "optimization", correlate(first, side, baselines=baselines, seed=seed)
