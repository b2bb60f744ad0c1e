"""A walk through conversations, turn by turn: sample, score, select, judge, and let the user go on.

A conversation of one turn is sampled once for all reward models. In one of several turns, what is selected is what the
next turn goes on from: conversations part there, and those that are alike stay one.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from pluralbench_calls import Ledger, working_ledger
from pluralbench_rewards import Group, ModelRecord, Scored, ScoringConfig
from pluralbench_runs import ClusterConfig, digest

from pluralbench.config import SamplingConfig
from pluralbench.downstream.candidates import (
    THREAD_KEY,
    Policy,
    Thread,
    check_candidates,
    initial_threads,
    next_thread,
    sample,
)
from pluralbench.downstream.outcomes import Aspects, JudgedCandidate, OutcomeJudge
from pluralbench.downstream.selection import best_of_first
from pluralbench.evaluation.journal import open_journal
from pluralbench.evaluation.models import Scorable, as_local_model, resolve_model
from pluralbench.results.downstream import REWARDS, SELECTED
from pluralbench.results.runs import LEDGER_FILE


@dataclass(frozen=True)
class RolloutSetup:
    """What a walk needs. models: reward models by name. work: a folder for the scores on the way.

    cluster: where reward models run, if not in this process.
    """

    policy: Policy
    models: Mapping[str, Scorable]
    scoring: ScoringConfig
    sampling: SamplingConfig
    judge: OutcomeJudge | None
    ledger: Ledger
    work: Path
    seed: int
    cluster: ClusterConfig | None = None


@dataclass
class RewardedCandidates:
    """What a reward model is, and what it gave the candidates of each turn."""

    record: ModelRecord
    scored: list[Scored] = field(default_factory=list)


Positions = Mapping[tuple[str, int], Mapping[tuple[str, str], Thread]]
"""The conversation in which each reward model stands with each k, by config and id."""


class Rollout(NamedTuple):
    """What was found, as frames. outcomes: None where nobody judged."""

    candidates: pl.DataFrame
    rewards: pl.DataFrame
    selected: pl.DataFrame
    outcomes: pl.DataFrame | None
    rewarded: Mapping[str, RewardedCandidates]


def model_record(model: Scorable, scoring: ScoringConfig) -> ModelRecord:
    """What is known of a reward model before it is loaded. scoring: only what runs in this process takes it."""
    return resolve_model(model, scoring_config(model, scoring))[0]


def scoring_config(model: Scorable, scoring: ScoringConfig) -> ScoringConfig:
    """How a reward model is run: only what is made into tokens in this process takes any choices."""
    return scoring if isinstance(model, str | Path) or as_local_model(model) is not None else ScoringConfig()


def default_model_name(model: Scorable) -> str:
    """What a reward model is called where nobody gave it a name."""
    described = as_local_model(model)
    name = model if described is None else described.name
    return Path(name).name if isinstance(name, str | Path) else model_record(model, ScoringConfig()).name


@contextmanager
def reused_ledger(work: Path, reuse: Path | None) -> Iterator[Ledger]:
    """The ledger of some work, with the calls of another ledger or finished directory to begin with."""
    with working_ledger(work / "ledger.sqlite") as ledger:
        if reuse is not None:
            ledger.add_from(reuse / LEDGER_FILE if reuse.is_dir() else reuse)
        yield ledger


def rollout(setup: RolloutSetup, items: pl.DataFrame, groups: Sequence[Group], aspects: Aspects) -> Rollout:
    """Take all turns of all conversations. items, groups: in one order. Raises a `UserError`."""
    wholes = dict(zip(items.select("config", "id").iter_rows(), groups, strict=True))
    rewarded: dict[str, RewardedCandidates] = {}
    threads = initial_threads(items, groups)
    # Where each reward model stands with each k, by conversation; in the first turn all stand at the same place.
    places = [(name, k) for name in setup.models for k in setup.sampling.sizes] or [("", 1)]
    standing: Positions = {place: {thread.key[:2]: thread for thread in threads} for place in places}
    parts: list[Rollout] = []
    while threads:
        part = _turn(setup, threads, standing, aspects, rewarded)
        parts.append(part)
        said = _said(part)
        standing = {
            place: {
                key: following
                for key, thread in own.items()
                if (text := said.get((*place, *thread.key))) is not None
                and (following := next_thread(thread, text, wholes[key])) is not None
            }
            for place, own in standing.items()
        }
        threads = list({thread.key: thread for own in standing.values() for thread in own.values()}.values())
    judged = [part.outcomes for part in parts if part.outcomes is not None]
    return Rollout(
        pl.concat([part.candidates for part in parts]),
        pl.concat([part.rewards for part in parts]),
        pl.concat([part.selected for part in parts]),
        pl.concat(judged) if judged else None,
        rewarded,
    )


def _turn(
    setup: RolloutSetup,
    threads: Sequence[Thread],
    standing: Positions,
    aspects: Aspects,
    rewarded: dict[str, RewardedCandidates],
) -> Rollout:
    """One turn of some conversations; what reward models gave is added to `rewarded`."""
    n = setup.sampling.n
    compared = setup.judge is not None and setup.judge.outcome.measure == "win"
    sampled = sample(setup.policy, threads, n + compared, setup.ledger, seed=setup.seed)
    check_candidates(sampled, setup.policy.record.name)
    candidates = sampled.filter(pl.col("sample") < n)
    parts = []
    for name in setup.models:  # in conversations in which it stands with some k
        own = [thread for (model, _), threads in standing.items() if model == name for thread in threads.values()]
        apart = list({thread.key: thread for thread in own}.values())
        parts.append(_scored(setup, name, apart, candidates, rewarded))
    rewards = pl.concat([pl.DataFrame(schema=REWARDS), *parts])
    selected = _selected(setup, standing, candidates, rewards)
    if setup.judge is None:
        return Rollout(sampled, rewards, selected, None, rewarded)
    wanted = _judgeable(threads, sampled, n, compared=compared)
    if setup.judge.outcome.judged == "selected":
        chosen = set(selected.drop_nulls("sample").select(*THREAD_KEY, "sample").iter_rows())
        wanted = [one for one in wanted if (*one.thread.key, one.sample) in chosen]
    outcomes = setup.judge.values(wanted, aspects, setup.ledger, seed=setup.seed)
    return Rollout(sampled, rewards, selected, outcomes, rewarded)


def _scored(
    setup: RolloutSetup,
    name: str,
    threads: Sequence[Thread],
    candidates: pl.DataFrame,
    rewarded: dict[str, RewardedCandidates],
) -> pl.DataFrame:
    """The rewards of the candidates that have a text, scored as groups (`REWARDS`)."""
    with_text = candidates.drop_nulls("text").group_by(THREAD_KEY, maintain_order=True).agg("sample", "text")
    texts = {tuple(key): (numbers, said) for *key, numbers, said in with_text.iter_rows()}
    there = [thread for thread in threads if thread.key in texts]
    if not there:
        return pl.DataFrame(schema=REWARDS)
    scoring = scoring_config(setup.models[name], setup.scoring)
    model = resolve_model(setup.models[name], scoring, setup.cluster)[1]()
    groups = [replace(thread.group, responses=texts[thread.key][1]) for thread in there]
    folder = setup.work / "rewards" / digest([name, threads[0].turn])[:16]
    folder.mkdir(parents=True, exist_ok=True)
    with open_journal(folder) as (known, record):
        scored = model.score(groups, known=known, on_scored=record)
    rewarded.setdefault(name, RewardedCandidates(model.record())).scored.append(scored)
    missing: list[float | None] = [None] * setup.sampling.n  # of a prompt that was dropped
    rows = [
        {"model": name, **dict(zip(THREAD_KEY, thread.key, strict=True)), "sample": number, "reward": value}
        for thread, values in zip(there, scored.scores, strict=True)
        for number, value in zip(texts[thread.key][0], values or missing[: len(texts[thread.key][0])], strict=True)
    ]
    frame = pl.DataFrame(rows, schema=REWARDS)
    return frame.with_columns(reward=pl.when(pl.col("reward").is_finite()).then("reward"))


def _selected(
    setup: RolloutSetup, standing: Positions, candidates: pl.DataFrame, rewards: pl.DataFrame
) -> pl.DataFrame:
    """What each reward model takes of the first k candidates of the conversations in which it stands (`SELECTED`).

    Without reward models, as the model "", the first candidate.
    """
    n = setup.sampling.n
    if not setup.models:
        rewards = candidates.drop_nulls("text").select(
            pl.lit("").alias("model"), *THREAD_KEY, "sample", reward=pl.lit(0.0)
        )
    arrays: dict[tuple[Any, ...], Any] = {}
    for *key, number, reward in rewards.select("model", *THREAD_KEY, "sample", "reward").iter_rows():
        arrays.setdefault(tuple(key), np.full(n, np.nan))[number] = np.nan if reward is None else reward
    nothing = np.full(n, np.nan)
    rows = [
        {
            "model": name,
            "k": k,
            **dict(zip(THREAD_KEY, thread.key, strict=True)),
            "sample": best_of_first(arrays.get((name, *thread.key), nothing), k),
        }
        for (name, k), threads in standing.items()
        for thread in threads.values()
    ]
    return pl.DataFrame(rows, schema=SELECTED)


def _judgeable(threads: Sequence[Thread], sampled: pl.DataFrame, n: int, *, compared: bool) -> list[JudgedCandidate]:
    """The candidates that have a text, and, where they are compared, something to be compared with."""
    texts = {tuple(key): text for *key, text in sampled.select(*THREAD_KEY, "sample", "text").iter_rows()}
    return [
        JudgedCandidate(thread, number, text, texts.get((*thread.key, n)))
        for thread in threads
        if not compared or texts[(*thread.key, n)] is not None
        for number in range(n)
        if (text := texts[(*thread.key, number)]) is not None
    ]


def _said(part: Rollout) -> dict[tuple[Any, ...], str]:
    """The text that each reward model selects with each k, by model, k and conversation."""
    texts = {tuple(key): text for *key, text in part.candidates.select(*THREAD_KEY, "sample", "text").iter_rows()}
    chosen = part.selected.drop_nulls("sample").select("model", "k", *THREAD_KEY, "sample")
    return {row[:-1]: texts[row[2:]] for row in chosen.iter_rows()}
