"""The reward model that learns from the human part and tells which of a judge's votes to believe (section 4.2).

What it says of a response is recorded like any model's answer, so a build can be repeated without training.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
from pluralbench_calls import Answer, Ledger, Replay, Request, ask
from pluralbench_release.errors import BuildError, SourceError
from pluralbench_rewards import Group, RewardModel, ScoringConfig, model_digest
from pluralbench_rewards.cluster import on_cluster
from pluralbench_runs import ClusterConfig, canonical_json, check_recipe, digest, file_digest, install_command

from build_chinese.errors import TrainingDataError
from build_chinese.rankings import Row, ranked_pairs
from build_chinese.recipe import RewardTable

if TYPE_CHECKING:
    from pluralbench_local import Ranking, TrainingConfig

KIND, PROVIDER = "reward", "pluralbench-rewards"  # by which rewards are recorded, whatever the package is called
REWARDS = pl.Schema(
    {"prompt": pl.String, "response": pl.String, "reward": pl.Float64, "cut": pl.Int64, "call": pl.String}
)
"""A reward, null where the response alone is too long for the model. cut: tokens that its prompt lost for it."""

PAPERS = {"head_init": "large"}
"""What a recipe need not say: the paper's, where the package has another default. Rewards are recorded without it."""

MODEL = ("*.safetensors", "*.bin", "config.json")


@dataclass(frozen=True)
class TrainingRows:
    """Rows that a reward model learns from. pairs: by row, (better, worse) ids; None for all that `order` names."""

    rows: Sequence[Row]
    pairs: Sequence[Sequence[tuple[str, str]]] | None = None

    @property
    def size(self) -> int:
        """How many pairs there are."""
        if self.pairs is not None:
            return sum(map(len, self.pairs))
        return sum(len(ranked_pairs(row)) for row in self.rows)


def messages_of(row: Row) -> list[dict[str, str]]:
    """A row's prompt as messages."""
    system = [{"role": "system", "content": row["sys_prompt"]}] if row.get("sys_prompt") else []
    return [*system, {"role": "user", "content": row["input"]}]


def rankings_of(taught: TrainingRows) -> "list[Ranking]":
    """What `pluralbench_local.train` takes; responses in no pair are left out."""
    from pluralbench_local import Ranking  # noqa: PLC0415 - an extra

    rankings = []
    for number, row in enumerate(taught.rows):
        pairs = ranked_pairs(row) if taught.pairs is None else list(taught.pairs[number])
        inside = {name for pair in pairs for name in pair}
        content = {response["id"]: response["content"] for response in row["responses"] if response["id"] in inside}
        place = {name: position for position, name in enumerate(content)}
        rankings.append(
            Ranking(
                row["id"],
                messages_of(row),
                list(content.values()),
                [row["rank"][name] for name in content],
                [(place[better], place[worse]) for better, worse in pairs],
            )
        )
    return rankings


def pin(reward: RewardTable, *, replaying: bool = False) -> RewardTable:
    """The table with the digest of the base's folder (`pluralbench_rewards.model_digest`), which rewards are known by.

    Raises `SourceError` for a base that is neither a folder nor pinned by a digest already, unless `replaying`.
    """
    folder = Path(reward.base)
    if reward.digest is not None or (replaying and not folder.is_dir()):
        return reward
    if not folder.is_dir():
        raise SourceError(
            f"There is no folder {reward.base} with a model to train; download it first, such as with "
            "`hf download ORG/NAME --local-dir FOLDER`."
        )
    if not any(path for pattern in MODEL for path in folder.glob(pattern)):
        raise SourceError(f"{folder} holds no model: it has neither weights nor a configuration.")
    return reward.model_copy(update={"digest": model_digest(folder)})


def rewards(
    rows: Sequence[Row],
    human: TrainingRows,
    reward: RewardTable,
    ledger: Ledger,
    work: Path,
    cluster: ClusterConfig | None = None,
    *,
    replaying: bool,
) -> pl.DataFrame:
    """The reward of each response (`REWARDS`), by the model that was trained on the human part.

    Rewards that the ledger knows are taken from it, and only where some are missing is the model trained, in `work`.
    cluster: where it then scores, if not in this process.

    Raises `TrainingDataError` for a human part that is too small, `BuildError` where the extra `train` is missing, and
    the errors of `pluralbench_rewards`.
    """
    enough(human, reward)
    learned = digest(
        [
            [row["id"], messages_of(row), [[one["id"], one["content"]] for one in row["responses"]], row["rank"]]
            for row in human.rows
        ]
    )
    places = [(row, response) for row in rows for response in row["responses"]]
    requests = [
        Request(
            KIND,
            PROVIDER,
            reward.shown,
            {
                "base": reward.digest,
                "training": reward.training,
                "human": learned,
                "messages": messages_of(row),
                "response": response["content"],
            },
            label=f"reward of {row['id']}: {response['id']}",
        )
        for row, response in places
    ]
    known = ledger.find({request.key for request in requests})
    missing = list({request.key: request for request in requests if request.key not in known}.values())
    if missing and not replaying:
        folder = trained(human, reward, work / "reward-model")
        ledger.record(*_scored(missing, folder, cluster))
    answers = ask(requests, ledger, Replay(), label="rewards")
    found = [
        (row["id"], response["id"], float(answer.text), int(answer.finish_reason.removeprefix("cut ")), answer.key)
        if answer.outcome == "answer"
        else (row["id"], response["id"], None, 0, answer.key)
        for (row, response), answer in zip(places, answers, strict=True)
    ]
    return pl.DataFrame(found, schema=REWARDS, orient="row")


def enough(human: TrainingRows, reward: RewardTable) -> None:
    """Raise `TrainingDataError` for a human part with fewer pairs than the recipe asks for."""
    if human.size < reward.least_pairs:
        raise TrainingDataError(
            f"The human part has {len(human.rows):,} prompts with {human.size:,} pairs, too few to train a reward "
            f"model on: {reward.least_pairs:,} pairs are the least (`reward.least_pairs`)."
        )


def trained(taught: TrainingRows, reward: RewardTable, folder: Path) -> Path:
    """Train the base on what is taught, into `folder`; training that was interrupted goes on. The model's folder.

    Raises `BuildError` without the extra `train`, `SourceError` for a base that is not there or is not the one whose
    digest the recipe has, and the errors of `pluralbench_local`.
    """
    options = training_options(reward)
    found = model_digest(reward.base)
    if found is None:
        raise SourceError(
            f"There is no folder {reward.base} with a model to train, and rewards by one that was trained like this "
            "are not recorded; give a folder with --reward-base."
        )
    if found != reward.digest:
        raise SourceError(
            f"The model in {reward.base} is not the one that the recipe's `reward.digest` names (weights, "
            "configuration, tokenizer or chat template differ), so what it says is not to be recorded as the other's; "
            "give the folder of that model, or take `digest` out of the recipe."
        )
    from pluralbench_local import train  # noqa: PLC0415 - an extra

    return train(reward.base, rankings_of(taught), folder, options=options, device=reward.device).folder


def training_options(reward: RewardTable) -> "TrainingConfig":
    """The options under `training`. Raises `BuildError` without the extra `train`, `RecipeError` for a wrong option."""
    if find_spec("pluralbench_local") is None:
        raise BuildError(f"Training a reward model needs an extra: {install_command('build-chinese', 'train')}.")
    from pluralbench_local import TrainingConfig  # noqa: PLC0415 - an extra

    return check_recipe(TrainingConfig, PAPERS | reward.training, "[reward.training]")


def _scored(requests: Sequence[Request], folder: Path, cluster: ClusterConfig | None) -> list[Answer]:
    groups: dict[bytes, list[Request]] = {}
    for request in requests:
        groups.setdefault(canonical_json(request.body["messages"]), []).append(request)
    bodies: list[list[Any]] = [[request.body for request in own] for own in groups.values()]
    asked = [
        Group(str(place), own[0]["messages"], [body["response"] for body in own]) for place, own in enumerate(bodies)
    ]
    weights = f"{requests[0].model}, trained, {file_digest(next(folder.glob('*.safetensors')))[:16]}"
    return [
        Answer.to(request, "length", "", model=weights)
        if value is None
        else Answer.to(request, "answer", repr(value), model=weights, finish_reason=f"cut {cut}")
        for own, values in zip(groups.values(), scores_of(folder, asked, cluster), strict=True)
        for request, (value, cut) in zip(own, values, strict=True)
    ]


def scores_of(
    folder: Path, groups: Sequence[Group], cluster: ClusterConfig | None = None
) -> list[list[tuple[float | None, int]]]:
    """By group and response: the score, None where the response alone is too long for the model, and tokens cut off.

    Of a prompt that is too long together with its longest response the beginning is cut off.
    """
    from pluralbench_local import LocalModel, load  # noqa: PLC0415 - an extra

    described, scoring = LocalModel(name=str(folder)), ScoringConfig(on_overflow="truncate-prompt")
    model: RewardModel = (
        load(described, scoring=scoring)
        if cluster is None or cluster.address is None
        else on_cluster(cluster, described, scoring)
    )
    scored = model.score(groups)
    found: list[list[tuple[float | None, int]]] = [
        [(value, cut) for value in values] for values, cut in zip(scored.scores, scored.cut, strict=True)
    ]
    for place in scored.dropped:  # for one response that is too long; the others can be scored
        group = groups[place]
        alone = [Group(f"{group.id}, {number}", group.prompt, [text]) for number, text in enumerate(group.responses)]
        again = model.score(alone)
        found[place] = [(next(iter(values), None), cut) for values, cut in zip(again.scores, again.cut, strict=True)]
    return found
