"""The steps of a study: which there are, what they need, and how much work they are."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import pluralbench_policies
import polars as pl
from pluralbench_calls.chat import LOCAL, check_endpoint
from pluralbench_local import LocalModel
from pluralbench_rewards import ScoringConfig
from pluralbench_runs import UserError, plural

from pluralbench.downstream.candidates import user_turns
from pluralbench.downstream.outcomes import OVERLAP, aspect_titles, conversation_text, outcome_judge
from pluralbench.downstream.study_recipe import Items, Model, StudyRecipe
from pluralbench.errors import DataError
from pluralbench.evaluation.loading import load_benchmark
from pluralbench.evaluation.models import POLICY, find_chat_model, find_model

BENCHMARKS, BEST_OF_N, OPTIMIZATION, MODELS, SAMPLES = "benchmarks", "best-of-n", "optimization", "models", "samples"
PAIRS_FILE = "pairs.jsonl"
PLACEHOLDER = "YOUR-PREFERENCES"
"""Location in a study of this package that stands for data of the user."""

JUDGE_PROMPT_TOKENS = 300  # of the judge's own words, about
CHARACTERS_PER_TOKEN = 4

Kind = Literal["sample", "train", "score", "best-of-n", "optimize"]


class Step(NamedTuple):
    """A step of a study, whose result is in a folder of the study.

    It may be of a reward model, and has the name of a benchmark, of a sample, or of a policy that was trained
    elsewhere.
    """

    kind: Kind
    folder: str
    model: Model | None = None
    name: str = ""

    def done(self, target: Path) -> bool:
        """Whether the study in `target` has the result, which is written as a whole."""
        return (target / self.folder / (PAIRS_FILE if self.kind == "sample" else "")).exists()

    def __str__(self) -> str:
        model = "" if self.model is None else self.model.name
        match self.kind:
            case "sample":
                return f"draw the pairs of {self.name}"
            case "train":
                return f"train {model}"
            case "score":
                return f"score {model} on {self.name}"
            case "best-of-n":
                return "best-of-n"
        return f"judge {self.name}, trained against {model}" if self.name else f"optimize against {model}"


def study_steps(recipe: StudyRecipe) -> list[Step]:
    """Return the steps of a study in their order: a model is trained before it is first used."""
    steps: dict[str, Step] = {}

    def add(kind: Kind, folder: str, model: Model | None = None, name: str = "") -> None:
        steps.setdefault(folder, Step(kind, folder, model, name))

    def add_sample(items: Items) -> None:
        if items.sample is not None:
            add("sample", f"{SAMPLES}/{items.sample}", name=items.sample)

    def add_model(model: Model) -> None:
        if model.train is not None:
            add_sample(model.train.items)
            add("train", f"{MODELS}/{model.name}", model)

    for name, items in recipe.benchmarks.items():
        for model in recipe.models:
            add_model(model)
            add_sample(items)
            add("score", f"{BENCHMARKS}/{name}/{model.name}", model, name)
    for model in recipe.models:
        add_model(model)
    if recipe.best_of_n is not None:
        add("best-of-n", BEST_OF_N)
    if recipe.optimization is not None:
        for model in recipe.models:
            trained = recipe.optimization.trained.get(model.name, "")
            add("optimize", f"{OPTIMIZATION}/{model.name}", model, trained)
    return list(steps.values())


@dataclass
class Ahead:
    """The work of steps, at most: conversations of several turns may end early, and judged pairs may be fewer.

    Calls of the judge are without repetitions, and tokens of its prompts are estimated by their characters.
    """

    models: int = 0
    answers: int = 0
    calls: int = 0
    prompt_tokens: int = 0
    reply_tokens: int = 0


def ahead_lines(recipe: StudyRecipe, steps: Sequence[Step], ahead: Ahead) -> Iterator[str]:
    """Say what steps are ahead, and their work, in lines."""
    yield f"Ahead: {plural(len(steps), 'step')}, {plural(ahead.models, 'model')} to train."
    if ahead.answers:
        yield f"At most {plural(ahead.answers, 'answer')} of the policy."
    if ahead.calls:
        price = recipe.judge_connection.price
        dollars = price.cost(ahead.prompt_tokens, ahead.reply_tokens)
        cost = f", about ${dollars:,.2f} by `price` in [judge_connection]" if dollars else ""
        yield (
            f"At most {plural(ahead.calls, 'call')} of the judge, with about {ahead.prompt_tokens:,} tokens of prompts "
            f"and at most {ahead.reply_tokens:,} of replies{cost}."
        )


def check_inputs(recipe: StudyRecipe, steps: Sequence[Step]) -> Ahead:
    """Check what steps that are not done need: data, models, libraries, the policy, and the judge. Return their work.

    Raises:
        UserError: Something cannot be used; the message names the part of the study.
    """
    ahead, kinds = Ahead(), [step.kind for step in steps]
    trained = [step.model for step in steps if step.kind == "train" and step.model is not None]
    policies = [step.name for step in steps if step.kind == "optimize"]
    if "" in policies and recipe.optimization is not None:
        pluralbench_policies.check_installed(recipe.optimization.options)
    _check_placeholders(trained)
    _check_training(recipe, trained)
    used = recipe.models if "best-of-n" in kinds else [step.model for step in steps if step.model is not None]
    for model in {model.name: model for model in used}.values():
        with _part(f"the model {model.name!r}"):
            _check_model(recipe, model.path if model.train is None else model.train.base)
    if {"sample", "best-of-n", "optimize"} & {*kinds}:
        _check_policy(recipe, trained="optimize" in kinds)
        for name in filter(None, policies):
            with _part("`trained` of [optimization]"):
                _check_model(recipe, name)
        _check_judge(recipe)
    ahead.models = len(trained)
    for name in dict.fromkeys(step.name for step in steps if step.kind == "score"):
        items = recipe.benchmarks[name]
        if items.sample is None:
            with _part(f"the benchmark {name!r}"):
                load_benchmark(**items.arguments)
    for step in steps:
        if step.kind == "sample":
            with _part(f"the sample {step.name!r}"):
                _add_answers(ahead, recipe, recipe.samples[step.name].items, recipe.sampling.n)
    if "best-of-n" in kinds and recipe.best_of_n is not None:
        with _part("[best_of_n]"):
            selections = len(recipe.models) * len(recipe.sampling.sizes)
            _add_answers(ahead, recipe, recipe.best_of_n.items, recipe.sampling.n, selections)
    if "optimize" in kinds and recipe.optimization is not None:
        with _part("[optimization]"):
            train = recipe.optimization.train
            if train is not None:
                load_benchmark(
                    **recipe.optimization.items.arguments | {"data": train.arguments["data"]}, prompts_only=True
                )
            for _ in range(2 * kinds.count("optimize")):  # before and after
                _add_answers(ahead, recipe, recipe.optimization.items, 1)
    return ahead


@contextmanager
def _part(name: str) -> Iterator[None]:
    """Name the part of the study that an error is about."""
    try:
        yield
    except UserError as error:
        error.args = (f"{name[0].upper()}{name[1:]}: {error}",)
        raise


def _check_placeholders(trained: Sequence[Model]) -> None:
    for model in trained:
        if model.train is not None and model.train.items.location == PLACEHOLDER:
            raise DataError(
                f"The model {model.name!r} is to be trained on a set of yours: save the output of `pluralbench study "
                f"cheems-sets --show`, put the set's location in place of {PLACEHOLDER}, and run that file."
            )


def _check_model(recipe: StudyRecipe, name: str | None) -> None:
    if name is not None and name != LOCAL:
        model = LocalModel(name=name, **recipe.runtime.model_dump(exclude_defaults=True))
        find_model(model, ScoringConfig()).check_folders()
        if not Path(name).is_dir():
            model.check_on_hub()


def _check_policy(recipe: StudyRecipe, *, trained: bool) -> None:
    served = recipe.policy_connection.base_url is not None
    with _part("the policy"):
        if served:
            options = recipe.sampling.model_dump(include={"temperature", "top_p", "max_tokens"})
            chat, connection, _ = find_chat_model(str(recipe.policy), recipe.policy_connection, options, POLICY)
            check_endpoint(chat, connection)
        if trained or not served:
            _check_model(recipe, recipe.policy)


def _check_judge(recipe: StudyRecipe) -> None:
    with _part("the judge"):
        no_items = pl.DataFrame(schema=["config", "id", "aspects"])
        judge = outcome_judge(recipe.outcome, recipe.judge_connection, no_items)
        if judge is not None:
            judge.check()


def _check_training(recipe: StudyRecipe, trained: Sequence[Model]) -> None:
    available: dict[Items, int] = {}
    for model in trained:
        training = model.train
        assert training is not None  # noqa: S101 - the caller's models are trained
        items, needed = training.items, training.pairs or 0
        sample = None if items.sample is None else recipe.samples[items.sample]
        if items not in available:
            with _part(f"the training items of {model.name!r}"):
                source = items if sample is None else sample.items
                loaded = load_benchmark(
                    **source.arguments, for_training=sample is None, prompts_only=sample is not None
                )
            available[items] = loaded.frame.height * (1 if sample is None else sample.pairs)
        if needed > available[items]:
            place = items.location if sample is None else f"the sample {items.sample}"
            has = "has" if sample is None else "has at most"
            raise DataError(
                f"The model {model.name!r} is to be trained on {needed:,} items (`pairs`), but {place} {has} "
                f"{available[items]:,}; lower `pairs`."
            )


def _add_answers(ahead: Ahead, recipe: StudyRecipe, items: Items, n: int, selections: int = 1) -> None:
    """Check prompts, and add the work of answering each `n` times. Later turns have a thread for each selection."""
    loaded, outcome = load_benchmark(**items.arguments, prompts_only=True), recipe.outcome
    groups, by_model = loaded.groups(), outcome.judge not in {None, OVERLAP}
    aspects = aspect_titles(loaded.items.frame) if outcome.measure == "rubric" else {}
    turns = sum(len(user_turns(group)) for group in groups)
    threads = len(groups) + (turns - len(groups)) * selections
    judged = threads * (n if outcome.judged == "all" else min(n, selections)) * by_model
    characters = sum(len(conversation_text(group)) for group in groups)
    characters += sum(len(title) for titles in aspects.values() for title in titles)
    tokens = characters / CHARACTERS_PER_TOKEN / max(1, len(groups)) + recipe.sampling.max_tokens + JUDGE_PROMPT_TOKENS
    ahead.answers += threads * (n + (outcome.measure == "win"))
    ahead.calls += judged
    ahead.prompt_tokens += round(judged * tokens)
    ahead.reply_tokens += judged * outcome.max_tokens
