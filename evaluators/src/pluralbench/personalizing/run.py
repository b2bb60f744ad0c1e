"""`personalize`: train personalized reward models with and without a profile, and compare their decisions."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import numpy as np
import polars as pl
from pluralbench_local import LocalModel
from pluralbench_local.config import READING_FIELDS
from pluralbench_local.personal.options import PersonalConfig
from pluralbench_rewards import ScoringConfig, model_digest
from pluralbench_runs import FrozenModel, Output, log_status, plural
from pluralbench_runs.options import Flag, Options

from pluralbench.arguments import WITHOUT_DRAW, HeldOut
from pluralbench.config import DataConfig, PersonalizeConfig, as_data_config
from pluralbench.config.fields import PLACE
from pluralbench.data.decisions import decide
from pluralbench.data.rules import rule_of
from pluralbench.errors import DataError
from pluralbench.evaluation.folders import file_name, run_folder
from pluralbench.evaluation.loading import run_directory
from pluralbench.evaluation.models import local_model
from pluralbench.evaluation.work import stopwatch
from pluralbench.personalizing.users import (
    HAS_CONTEXT,
    TEST,
    TRAIN,
    VALIDATION,
    Users,
    UserSplit,
    context_sizes,
    load_users,
    select,
    with_context,
)
from pluralbench.results.kinds import numbers_of_run
from pluralbench.results.personalize import (
    EMBEDDINGS_FOLDER,
    KNOWN,
    MODELS_FOLDER,
    NEW,
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
from pluralbench.results.run_files import write_run
from pluralbench.results.runs import Personalized, load_run

if TYPE_CHECKING:
    from pluralbench_local.personal.corpus import Corpus
    from pluralbench_local.personal.scoring import SavedPersonal

    EmbeddedSplit = tuple[UserSplit, Corpus]
    """Items of some users and their vectors, in the same order."""

BENCHMARK = "personalized-training"
TITLES = {NEW: "New users", KNOWN: "Known users"}
CONTEXT_NAMES: dict[ContextSource, str] = {"raw": "posts", "persona": "persona"}
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
        """Name of its folder."""
        return f"{self.method}-{self.condition}-{self.seed}"


def personalize(
    backbone: Annotated[str | Path | LocalModel, Options("Backbone", READING_FIELDS)],
    *,
    data: Annotated[str | Path | DataConfig | None, Options(left_out=("split", *WITHOUT_DRAW))],
    benchmark: str = "personalized-training",
    held_out: HeldOut = None,
    score_on: Annotated[str | Path | None, Flag(metavar=PLACE)] = None,
    score_benchmark: str = "personalized",
    personalizing: Annotated[PersonalizeConfig | None, Options("Methods")] = None,
    options: Annotated[PersonalConfig | None, Options("Training", ("method", "profile", "persona", "seed"))] = None,
    personas: Path | None = None,
    scoring: ScoringConfig | None = None,
    embeddings: Path | None = None,
    out: str | Path | None = None,
    fresh: bool = False,
) -> Personalized:
    """Train personalized reward models with and without a user profile, and compare their accuracy.

    Follows the ablation of Personalized RewardBench (appendices A.3 and B; the report has the layout of its Table 6).
    Pairs of new users are decided, and the latest pairs of training users with three or more pairs ("known users").

    Writes a run directory with the models, which `score` accepts, decisions and metrics; the command also writes
    report.md. Repeat it with the same arguments to resume.

    Args:
        backbone: Frozen language model or sentence encoder that computes the embeddings: directory, ORG/NAME on the
            Hub, or `local` (small embedded language model). In Python also a `LocalModel`.
        data: Location of the users' items, or a `DataConfig`. Its splits are training users and new users, unless
            `held_out` says otherwise.
        benchmark: Name, such as personalized, multilingual, chinese, reward-bench-2 or pairs (`pluralbench list` shows
            all), or a TOML file.
        held_out: Measure accuracy on this fraction of the training users, such as 0.2, or on the items of a file.
            Default: the test split.
        score_on: Also score the items of another benchmark at this location. Default: none.
        score_benchmark: Benchmark of `score_on`.
        personalizing: Methods, conditions and seeds. Default: `PersonalizeConfig()`.
        options: Training of each model, except what it reads of the user. Default: `PersonalConfig()`.
        personas: Output of `synthesize`, or JSON Lines with persona and the id of an item or a user. Default: the
            data's personas.
        scoring: How the backbone runs. Default: `ScoringConfig()`.
        embeddings: Directory of embeddings, which runs can share. Default: in the run directory.
        out: Run directory. Default: a name under runs/ that lists the backbone and the other settings.
        fresh: Start over, and replace existing output.

    Returns:
        The run, as `load_run` reads it.

    Raises:
        UserError: An argument or the data is not valid.

    Examples:
        pluralbench personalize local --data sample --methods bt,pal --seeds 1 --out personal
        pluralbench personalize ORG/NAME --data dist/training --score-on dist/personalized-rewardbench --out personal
        pluralbench personalize ORG/ENCODER --data pairs.parquet --held-out 0.2 --methods bt,gpo,vpl,pal --profile all
    """
    personalizing, options = personalizing or PersonalizeConfig(), options or PersonalConfig()
    held_out = str(held_out) if isinstance(held_out, Path) else held_out
    models = models_to_train(personalizing, options)
    required, scored = required_context(models)
    users = load_users(
        benchmark,
        as_data_config(data),
        required,
        held_out=held_out,
        scored=None if score_on is None else (score_benchmark, as_data_config(score_on), scored),
        personas=personas,
    )
    source = local_model(backbone)
    if not Path(source.name).is_dir():  # a sentence encoder's folder needs no config.json
        source.check_location()
    config = PersonalizeRunConfig(
        backbone=source.record().model_copy(update={"kind": "backbone"}),
        benchmark=users.loaded[TEST].benchmark_record(),
        data={name: loaded.data_record() for name, loaded in users.loaded.items()},
        scored_benchmark=None if users.scored is None else users.scored.benchmark_record(),
        scored_data=None if users.scored is None else users.scored.data_record(),
        prompt=users.test_split().prompt_record(),
        held_out=None if held_out is None else str(held_out),
        personalizing=personalizing,
        options=options,
        scoring=scoring or ScoringConfig(),
    )
    name = f"personalize-{file_name(Path(source.name).name)}"
    target = Path(out or run_folder(name, config, users.loaded[TEST].data, personalizing))
    with run_directory(target, config, fresh=fresh) as output:
        if output is not None:
            _train_and_decide(output, config, source, users, models, embeddings)
    return load_run(target, PersonalizeRunConfig)


def conditions_of(personalizing: PersonalizeConfig) -> tuple[Condition, ...]:
    """Return the conditions in order. If models also read the persona, `posts` is the condition without it."""
    shown = CONDITIONS[personalizing.profile]
    with_posts = personalizing.persona and "with" in shown
    return tuple(one for one in get_args(Condition) if one in shown or (one == "posts" and with_posts))


def models_to_train(personalizing: PersonalizeConfig, options: PersonalConfig) -> list[Model]:
    """Return the models to train. The condition `shuffled` trains none: it uses those of `with`."""
    conditions = [condition for condition in conditions_of(personalizing) if condition != "shuffled"]
    models = []
    for method, condition, seed in product(personalizing.methods, conditions, range(personalizing.seeds)):
        # With `persona`, SynthesizeMe reads posts and persona as the others do (appendix B), else only the persona.
        source: ContextSource = "persona" if method == "synthesizeme" and not personalizing.persona else "raw"
        values = {"profile": condition != "without", "persona": condition == "with" and personalizing.persona}
        model_options = PersonalConfig.model_validate(options.model_dump() | {"method": method, "seed": seed} | values)
        models.append(Model(method=method, condition=condition, seed=seed, options=model_options, user_context=source))
    return models


def required_context(models: Sequence[Model]) -> tuple[list[str], list[str]]:
    """Return the kinds of user context that these models read of their users, and of those of another benchmark."""
    sources = {model.user_context for model in models if model.options.profile}
    with_persona = any(model.options.persona for model in models)
    required = {"posts": "raw" in sources, "persona": "persona" in sources or with_persona}
    # Personas are rare in other benchmarks: users without one keep their posts there.
    scored = {"posts": bool(sources), "persona": with_persona}
    return [kind for kind in required if required[kind]], [kind for kind in scored if scored[kind]]


def _train_and_decide(
    output: Output,
    config: PersonalizeRunConfig,
    source: LocalModel,
    users: Users,
    models: list[Model],
    embeddings: Path | None,
) -> None:
    from pluralbench_local.personal.backbones import load_backbone
    from pluralbench_local.personal.embedding import EmbeddingStore, embed
    from pluralbench_local.personal.scoring import read_personal
    from pluralbench_local.personal.training import train_personal

    with stopwatch(output.work) as seconds:
        backbone = load_backbone(source, scoring=config.scoring)
        store = EmbeddingStore(embeddings or output.work / EMBEDDINGS_FOLDER, backbone.record)

        def embed_part(name: str, part: UserSplit, context: ContextSource) -> "EmbeddedSplit":
            log_status(f"Embedding {name} (user context: {CONTEXT_NAMES[context]}): {plural(len(part.groups), 'item')}")
            part = with_context(part, context)
            corpus = embed(
                part.groups, part.items["rank"].to_list(), backbone, posts=config.options.profile_size, store=store
            )
            return select(part, corpus.places), corpus

        parts = {TRAIN: users.train, VALIDATION: users.validation, **users.sets}
        vectors = {
            context: {name: embed_part(name, part, context) for name, part in parts.items() if part is not None}
            for context in dict.fromkeys(model.user_context for model in models)
        }
        data = config.data[TRAIN]
        records: list[TrainedRecord] = []
        decisions: list[pl.DataFrame] = []
        for number, model in enumerate(models, 1):
            log_status(f"Model {number} of {len(models)}: {model.name}")
            folder, splits = output.work / MODELS_FOLDER / model.name, vectors[model.user_context]
            trained = train_personal(
                splits[TRAIN][1],
                folder,
                options=model.options,
                backbone=backbone.record,
                held_out=splits[VALIDATION][1] if VALIDATION in splits else None,
                origin={"benchmark": config.benchmark.name, "location": data.location, "digest": data.digest},
            )
            sets = {name: splits[name] for name in users.sets}
            decisions += _decide(model, read_personal(trained.folder), sets, config)
            records.append(_trained_record(model, folder, trained.record))
        items = pl.concat(decisions)
        first = next(iter(vectors.values()))
        users = replace(users, train=first[TRAIN][0], sets={name: first[name][0] for name in users.sets})
        result = PersonalizeResult(
            embedding=backbone.record.model_dump(mode="json"),
            conditions=conditions_of(config.personalizing),
            trained_on=TrainedOn(items=users.train.items.height, users=users.train.items["person"].n_unique()),
            excluded={name: one.excluded for name, one in {TRAIN: users.train, **users.sets}.items() if one.excluded},
            sets={name: _set_record(name, part, users) for name, part in users.sets.items()},
            models=tuple(records),
            cost=CostRecord(seconds=seconds()),
        )
    folders = (MODELS_FOLDER,) if embeddings is not None else (MODELS_FOLDER, EMBEDDINGS_FOLDER)
    frames = {"items": items}
    write_run(output, config, result, numbers_of_run(config, result, frames), frames, folders=folders)


def _decide(
    model: Model, saved: "SavedPersonal", sets: Mapping[str, "EmbeddedSplit"], config: PersonalizeRunConfig
) -> Iterator[pl.DataFrame]:
    from pluralbench_local.personal.corpus import shuffle_profiles
    from pluralbench_local.personal.scoring import rewards_of

    shuffled = model.condition == "with" and config.personalizing.profile == "all"
    conditions: list[Condition] = [model.condition, *(["shuffled"] if shuffled else [])]  # type: ignore[list-item]
    for (name, (part, corpus)), condition in product(sets.items(), conditions):
        if condition == "shuffled" and part.items["person"].n_unique() < 2:
            raise DataError(
                f"The set {TITLES.get(name, name)!r} has a single user, so profiles cannot be shuffled; set "
                '`profile="both"`.'
            )
        visible = shuffle_profiles(corpus, model.seed) if condition == "shuffled" else corpus
        decisions = decide(part.items, rewards_of(saved, visible)).filter(pl.col("outcome") != "equal")
        rows = decisions.with_columns(
            method=pl.lit(model.method),
            condition=pl.lit(condition),
            seed=pl.lit(model.seed),
            set=pl.lit(name),
            item="id",
            pair=pl.int_range(pl.len()).over("config", "id"),
            correct=pl.col("outcome") == "win",
        )
        contexts = part.items.select("config", item="id").hstack(
            _context_columns(part, corpus, config.options.profile_size)
        )
        rows = rows.join(contexts, on=["config", "item"], how="left", maintain_order="left")
        yield rows.select(pl.col(column).cast(kind) for column, kind in PERSONALIZE_ITEMS.items())


def _context_columns(part: UserSplit, corpus: "Corpus", posts: int) -> pl.DataFrame:
    """Number of posts, words of the user context, and its cosine distance to the question, by item."""
    vectors = corpus.vectors.numpy().astype(np.float64)
    directions = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.finfo(np.float64).tiny)
    distances = [
        None if context is None else float(1 - directions[query] @ directions[context])
        for query, context in zip(corpus.query, corpus.about, strict=True)
    ]
    counts, words = zip(*context_sizes(part, posts), strict=True)
    columns = {"posts": counts, "words": words, "distance": distances}
    return pl.DataFrame(columns, {name: PERSONALIZE_ITEMS[name] for name in columns})


def _trained_record(model: Model, folder: Path, record: Mapping[str, object]) -> TrainedRecord:
    names = ("epoch", "held_out_accuracy", "parameters", "seconds", "data", "options")
    return TrainedRecord(
        **model.model_dump(exclude={"options"}),
        folder=f"{MODELS_FOLDER}/{model.name}",
        digest=model_digest(str(folder)),
        training={name: record[name] for name in names if name in record},
    )


def _set_record(name: str, part: UserSplit, users: Users) -> SetRecord:
    other = users.scored if name == SCORED else None
    return SetRecord(
        title=TITLES.get(name) or ("" if other is None else other.benchmark_record().title),
        items=part.items.height,
        users=part.items["cluster"].n_unique(),
        personas=sum(map(HAS_CONTEXT["persona"], part.groups)),
        configs=tuple(part.items["config"].unique(maintain_order=True)),
        by_config=other is not None and rule_of(other.benchmark).by_config,
    )
