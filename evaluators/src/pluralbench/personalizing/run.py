"""`personalize`: personalized reward models trained with and without a profile, and what they decide."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
from pluralbench_local import LocalModel
from pluralbench_local.personal.options import PersonalConfig
from pluralbench_rewards import ScoringConfig, model_digest
from pluralbench_runs import FrozenModel, Output, log_status, write_text

from pluralbench.config import DataConfig, PersonalizeConfig, PromptConfig
from pluralbench.errors import DataError
from pluralbench.evaluation.folders import file_name, run_folder
from pluralbench.evaluation.loading import as_data_config, run_directory
from pluralbench.evaluation.models import base_model_path
from pluralbench.evaluation.timing import stopwatch
from pluralbench.metrics.personalize import method_numbers
from pluralbench.personalizing.users import (
    HAS,
    TEST,
    TRAIN,
    VALIDATION,
    ContextNeeds,
    Users,
    UserSplit,
    context_sizes,
    kept,
    load_users,
    with_context,
)
from pluralbench.reports.figures.personalize import draw_personalized
from pluralbench.reports.personalize import page
from pluralbench.results.decisions import decide
from pluralbench.results.metrics_frame import metrics_frame
from pluralbench.results.personalize import (
    EMBEDDINGS_FOLDER,
    FIGURES_FOLDER,
    KNOWN,
    MODELS_FOLDER,
    NEW,
    PAGE_FILE,
    PERSONALIZE_ITEMS,
    SCORED,
    Condition,
    ContextSource,
    PersonalizeResult,
    PersonalizeRunConfig,
    SetRecord,
    TrainedOn,
    TrainedRecord,
)
from pluralbench.results.record import CostRecord
from pluralbench.results.runs import Personalized, load_run, write_run

if TYPE_CHECKING:
    from pluralbench_local.personal.points import Corpus
    from pluralbench_local.personal.saved import SavedPersonal

BENCHMARK = "personalized-training"
TITLES = {NEW: "New users", KNOWN: "Known users"}
CONDITIONS: dict[str, tuple[Condition, ...]] = {
    "both": ("without", "with"),
    "without": ("without",),
    "with": ("with",),
    "all": ("without", "with", "shuffled"),
}


class Model(FrozenModel):
    """A model to train; `user_context` is what it reads: posts (raw) or the persona."""

    method: str
    condition: Condition
    seed: int
    options: PersonalConfig
    user_context: ContextSource

    @property
    def name(self) -> str:
        """Of its folder."""
        return f"{self.method}-{self.condition}-{self.seed}"


class EmbeddedSplits(NamedTuple):
    """Items and their vectors, in the same order."""

    part: UserSplit
    corpus: "Corpus"


def personalize(
    backbone: str | Path | LocalModel,
    *,
    data: str | Path | DataConfig | None,
    benchmark: str = BENCHMARK,
    held_out: float | str | Path | None = None,
    score_on: str | Path | DataConfig | None = None,
    score_benchmark: str = "personalized",
    personalizing: PersonalizeConfig | None = None,
    options: PersonalConfig | None = None,
    personas: Path | None = None,
    scoring: ScoringConfig | None = None,
    embeddings: Path | None = None,
    out: str | Path | None = None,
    fresh: bool = False,
) -> Personalized:
    """Train personalized reward models with and without a profile, and compare what they decide.

    Personalized RewardBench, appendices A.3 and B: the ablation and the layout of its Table 6.

    backbone: a language model or a sentence encoder whose vectors all of them read, and which stays as it is; "local"
    is the small embedded one. data: users to train on and new ones, in splits or to be divided by `held_out`, which is
    a share of the users, or where others are. The latest pairs of users with three or more are held out too, as those
    of known users. score_on, score_benchmark: another benchmark that is decided, config by config.
    personalizing: methods, conditions and seeds. options: how each is trained; what it reads of the person is not
    taken from there. personas: descriptions of users, by the id of an item or a person, where the data has none.
    scoring: how the backbone runs. embeddings: a folder of vectors that runs share; without it they are in `out`.

    `out` holds `report.md`, the numbers, each decision, and the models in folders that `score` takes. What was
    interrupted goes on with the same call. Raises a `UserError` for every mistake of the caller.
    """
    personalizing, options = personalizing or PersonalizeConfig(), options or PersonalConfig()
    held_out = str(held_out) if isinstance(held_out, Path) else held_out
    models = models_of(personalizing, options)
    users = load_users(
        benchmark,
        as_data_config(data),
        needs_of(models),
        held_out=held_out,
        scored=None if score_on is None else (score_benchmark, as_data_config(score_on)),
        personas=personas,
    )
    described = backbone if isinstance(backbone, LocalModel) else LocalModel(name=str(backbone))
    described = described.model_copy(update={"name": base_model_path(described.name)})
    config = PersonalizeRunConfig(
        backbone=described.record().model_copy(update={"kind": "backbone"}),
        benchmark=users.loaded[TEST].benchmark_record(),
        data={name: loaded.data_record() for name, loaded in users.loaded.items()},
        scored_benchmark=None if users.scored is None else users.scored.benchmark_record(),
        scored_data=None if users.scored is None else users.scored.data_record(),
        prompt=users.described().prompt_record(),
        held_out=None if held_out is None else str(held_out),
        personalizing=personalizing,
        options=options,
        scoring=scoring or ScoringConfig(),
    )
    name = f"personalize-{file_name(Path(described.name).name)}"
    target = Path(out or run_folder(name, config, users.loaded[TEST].data, personalizing))
    with run_directory(target, config, fresh=fresh) as output:
        if output is not None:
            _carried_out(output, config, described, users, models, embeddings)
    done: Personalized = load_run(target, PersonalizeRunConfig)
    if not (target / PAGE_FILE).exists():
        drawn = draw_personalized(done, target / FIGURES_FOLDER)
        figures = [path.relative_to(target) for path in drawn if path.suffix == ".png"]
        write_text(target / PAGE_FILE, page(done, figures))
    return done


def conditions_of(personalizing: PersonalizeConfig) -> tuple[Condition, ...]:
    """The conditions in their order; where models with a profile read the persona too, `posts` is that without it."""
    conditions = CONDITIONS[personalizing.profile]
    if not personalizing.persona or "with" not in conditions:
        return conditions
    place = conditions.index("with")
    return (*conditions[:place], "posts", *conditions[place:])


def models_of(personalizing: PersonalizeConfig, options: PersonalConfig) -> list[Model]:
    """The models to train; shuffled profiles are told to those with one."""
    trained = [one for one in conditions_of(personalizing) if one != "shuffled"]
    models = []
    for method, condition, seed in product(personalizing.methods, trained, range(personalizing.seeds)):
        # Beside posts SynthesizeMe reads the persona as every other method does (appendix B), else in their place.
        how: ContextSource = "persona" if method == "synthesizeme" and not personalizing.persona else "raw"
        told = {"profile": condition != "without", "persona": condition == "with" and personalizing.persona}
        own = PersonalConfig.model_validate(options.model_dump() | {"method": method, "seed": seed} | told)
        models.append(Model(method=method, condition=condition, seed=seed, options=own, user_context=how))
    return models


def needs_of(models: Sequence[Model]) -> ContextNeeds:
    """What has to be known of people, so that these models can be told of them."""
    told = {model.user_context for model in models if model.options.profile}
    second = any(model.options.persona for model in models)
    posts = ("posts",) if "raw" in told else ()
    return ContextNeeds(
        told=(*posts, *(("persona",) if "persona" in told or second else ())),
        prompt=PromptConfig(profile="raw" if "raw" in told else "none"),
        # Personas are rare in benchmarks: who has none is told by posts there.
        scored=(("posts",) if told else ()) + (("persona",) if second else ()),
        scored_prompt=PromptConfig(profile="raw" if told else "none"),
    )


def _carried_out(
    output: Output,
    config: PersonalizeRunConfig,
    described: LocalModel,
    users: Users,
    models: list[Model],
    embeddings: Path | None,
) -> None:
    from pluralbench_local.personal.backbones import load_backbone  # noqa: PLC0415 - needs torch
    from pluralbench_local.personal.embedding import embed  # noqa: PLC0415 - the same
    from pluralbench_local.personal.saved import read_personal  # noqa: PLC0415 - the same
    from pluralbench_local.personal.store import EmbeddingStore  # noqa: PLC0415 - the same
    from pluralbench_local.personal.training import train_personal  # noqa: PLC0415 - the same

    with stopwatch(output.work) as seconds:
        backbone = load_backbone(described, scoring=config.scoring)
        store = EmbeddingStore(embeddings or output.work / EMBEDDINGS_FOLDER, backbone.record)

        def embedded(name: str, part: UserSplit, told: ContextSource) -> EmbeddedSplits:
            log_status(f"Vectors of {name} (--profile {told}): {len(part.groups):,} items")
            part = with_context(part, told)
            corpus = embed(
                part.groups, part.items["rank"].to_list(), backbone, posts=config.options.profile_size, store=store
            )
            return EmbeddedSplits(kept(part, corpus.places), corpus)

        parts = {TRAIN: users.train, VALIDATION: users.validation, **users.sets}
        vectors = {
            told: {name: embedded(name, part, told) for name, part in parts.items() if part is not None}
            for told in dict.fromkeys(model.user_context for model in models)
        }
        data = config.data[TRAIN]
        trained: list[TrainedRecord] = []
        decided: list[pl.DataFrame] = []
        for number, model in enumerate(models, 1):
            log_status(f"Model {number} of {len(models)}: {model.name}")
            folder, own = output.work / MODELS_FOLDER / model.name, vectors[model.user_context]
            done = train_personal(
                own[TRAIN].corpus,
                folder,
                options=model.options,
                backbone=backbone.record,
                held_out=own[VALIDATION].corpus if VALIDATION in own else None,
                origin={"benchmark": config.benchmark.name, "location": data.location, "digest": data.digest},
            )
            sets = {name: own[name] for name in users.sets}
            decided += _decided(model, read_personal(done.folder), sets, config)
            trained.append(_trained_record(model, folder, done.record))
        items = pl.concat(decided)
        first = next(iter(vectors.values()))
        users = replace(users, train=first[TRAIN].part, sets={name: first[name].part for name in users.sets})
        result = _result(config, users, trained, backbone.record.model_dump(mode="json"), seconds())
    metrics = metrics_frame(method_numbers(items, {name: one.by_config for name, one in result.sets.items()}))
    folders = (MODELS_FOLDER,) if embeddings is not None else (MODELS_FOLDER, EMBEDDINGS_FOLDER)
    write_run(output, config, result, metrics, {"items": items}, folders=folders)


def _decided(
    model: Model, saved: "SavedPersonal", sets: Mapping[str, EmbeddedSplits], config: PersonalizeRunConfig
) -> Iterator[pl.DataFrame]:
    """The decisions of a model on all sets, and with other users' profiles where that is asked."""
    from pluralbench_local.personal.items import shuffle_profiles  # noqa: PLC0415 - the same
    from pluralbench_local.personal.saved import rewards_of  # noqa: PLC0415 - needs torch

    also = model.condition == "with" and config.personalizing.profile == "all"
    conditions: list[Condition] = [model.condition, *(["shuffled"] if also else [])]  # type: ignore[list-item]
    for (name, (part, corpus)), condition in product(sets.items(), conditions):
        if condition == "shuffled" and part.items["person"].n_unique() < 2:
            raise DataError(
                f"The set {TITLES.get(name, name)!r} has a single user, so nobody else's profile can be shown; choose "
                "--profile both."
            )
        shown = shuffle_profiles(corpus, model.seed) if condition == "shuffled" else corpus
        yield _rows(part, rewards_of(saved, shown), _told_of(part, corpus, config.options.profile_size)).select(
            *(
                pl.lit(value).cast(PERSONALIZE_ITEMS[column]).alias(column)
                for column, value in (("method", model.method), ("condition", condition), ("seed", model.seed))
            ),
            pl.lit(name).alias("set"),
            *list(PERSONALIZE_ITEMS)[4:],
        )


def _rows(part: UserSplit, rewards: list[list[float]], told: pl.DataFrame) -> pl.DataFrame:
    """A row a decision."""
    decisions = decide(part.items, rewards).filter(pl.col("outcome") != "equal")
    rows = decisions.select(
        "config",
        pl.col("id").alias("item"),
        pl.int_range(pl.len()).over("config", "id").alias("pair"),
        "cluster",
        "margin",
        (pl.col("outcome") == "win").alias("correct"),
    )
    keys = part.items.select("config", pl.col("id").alias("item"))
    return rows.join(keys.hstack(told), on=["config", "item"], how="left", maintain_order="left")


def _told_of(part: UserSplit, corpus: "Corpus", posts: int) -> pl.DataFrame:
    """How many posts a user has, how much is told, and how far that is from the question."""
    vectors = corpus.vectors.numpy().astype(np.float64)
    directions = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.finfo(np.float64).tiny)
    distances = [
        None if told is None else float(1 - directions[query] @ directions[told])
        for query, told in zip(corpus.query, corpus.about, strict=True)
    ]
    counts = list(context_sizes(part, posts))
    columns = {"posts": [one for one, _ in counts], "words": [one for _, one in counts], "distance": distances}
    return pl.DataFrame(columns, {name: PERSONALIZE_ITEMS[name] for name in columns})


def _trained_record(model: Model, folder: Path, record: Mapping[str, object]) -> TrainedRecord:
    kept = ("epoch", "held_out_accuracy", "parameters", "seconds", "data", "options")
    return TrainedRecord(
        method=model.method,
        condition=model.condition,
        seed=model.seed,
        user_context=model.user_context,
        folder=f"{MODELS_FOLDER}/{model.name}",
        digest=model_digest(str(folder)),
        training={name: record[name] for name in kept if name in record},
    )


def _result(
    config: PersonalizeRunConfig, users: Users, trained: list[TrainedRecord], embedding: dict[str, Any], seconds: float
) -> PersonalizeResult:
    return PersonalizeResult(
        embedding=embedding,
        conditions=conditions_of(config.personalizing),
        trained_on=TrainedOn(pairs=users.train.items.height, users=users.train.items["person"].n_unique()),
        excluded={name: part.left_out for name, part in {TRAIN: users.train, **users.sets}.items() if part.left_out},
        sets={name: _set_record(name, part, users) for name, part in users.sets.items()},
        models=tuple(trained),
        cost=CostRecord(seconds=seconds),
    )


def _set_record(name: str, part: UserSplit, users: Users) -> SetRecord:
    other = users.scored if name == SCORED else None
    return SetRecord(
        title=TITLES.get(name) or ("" if other is None else other.benchmark_record().title),
        items=part.items.height,
        users=part.items["cluster"].n_unique(),
        personas=sum(map(HAS["persona"], part.groups)),
        configs=tuple(part.items["config"].unique(maintain_order=True)),
        by_config=other is not None and other.benchmark.overall == "configs",
    )
