"""What can be scored beside a model's name: a plain function, and anything that keeps to the contract."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import pluralbench
import pytest
from chat_server import Reply, serve
from pluralbench import check_submission, compare, merge
from pluralbench.config import ScoringConfig
from pluralbench.contract import Group, ModelRecord, Scored
from pluralbench.errors import EvaluationError
from pluralbench.reports.runs import overview
from pluralbench.results import Run
from pluralbench_rewards import MISSING_CONTEXT, Cached, OnScored, RewardsError
from pluralbench_runs import OutputError
from session_folder import CACHE, session_folder
from verbs import by_text, judge, scoring, value
from written_tables import write

Rows = list[dict[str, Any]]


@pytest.fixture
def data(people: Callable[..., Rows], tmp_path: Path) -> Path:
    """A release of three configs, with more items than a function is given at once."""
    for number, config in enumerate(("Art", "Life", "Society")):
        write(tmp_path / "data" / config / "test.parquet", people(30, seed=number))
    return tmp_path / "data"


@pytest.mark.smoke
@pytest.mark.parametrize("kind", [str, Path])
def test_a_function_on_a_release_gives_a_run_like_any_other(
    data: Path, tmp_path: Path, kind: Callable[[Path], str | Path]
) -> None:
    run = pluralbench.score(
        lambda groups: [[float(len(r)) for r in g.responses] for g in groups],
        benchmark="personalized",
        data=kind(data),
        out=kind(tmp_path / "runs" / "length"),
    )
    assert (run.path, run.items.height) == (tmp_path / "runs" / "length", 90)
    rows = run.items.rows(named=True)
    right = [row["score_chosen"] > row["score_rejected"] for row in rows]
    assert value(run, "pooled_accuracy") == pytest.approx(sum(right) / 90)
    assert run.headline.value == pytest.approx(sum(right) / 90), "the configs have as many items"
    assert run.headline.low is not None
    assert run.headline.high is not None
    assert run.headline.low <= (run.headline.value or 0) <= run.headline.high
    assert [run.estimate("accuracy", config=config).n for config in ("Art", "Life", "Society")] == [30, 30, 30]


def test_another_function_in_the_same_place_is_refused_by_name(
    score: Callable[..., Run], data: Path, tmp_path: Path
) -> None:
    def length(groups: Sequence[Group]) -> list[list[float]]:
        return [[float(len(answer)) for answer in group.responses] for group in groups]

    first = length

    def length(groups: Sequence[Group]) -> list[list[float]]:  # type: ignore[no-redef]
        return [[-float(len(answer)) for answer in group.responses] for group in groups]

    score("personalized", data, by=first, out=tmp_path / "run")
    with pytest.raises(OutputError, match=r"other settings \(model\.digest .*`fresh=True`"):
        score("personalized", data, by=length, out=tmp_path / "run")
    with pytest.raises(OutputError, match=r"other settings \(model\.name "):
        score("personalized", data, out=tmp_path / "run")


def test_a_function_of_another_shape_is_one_sentence_and_leaves_nothing(
    score: Callable[..., Run], data: Path, tmp_path: Path
) -> None:
    def single(groups: Sequence[Group]) -> list[list[float]]:
        return [[1.0] for _ in groups]

    with pytest.raises(RewardsError) as caught:
        score("personalized", data, by=single, out=tmp_path / "run")
    name = "test_a_function_of_another_shape_is_one_sentence_and_leaves_nothing.<locals>.single"
    assert str(caught.value) == f"The function {name} returned 1 score for the 2 responses of the group Art/p0-0."
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


class Fixed:
    """A reward model of one's own. known: what it was told of an earlier run."""

    def __init__(self, name: str = "fixed", *, stop_after: int = 10**9) -> None:
        self.name, self.stop_after = name, stop_after
        self.groups: list[Group] = []
        self.known: dict[int, list[float]] = {}

    def record(self) -> ModelRecord:
        return ModelRecord(name=self.name, kind="table", settings={"version": 2})

    def score(self, groups: Sequence[Group], *, cached: Cached = None, on_scored: OnScored = None) -> Scored:
        self.groups, self.known = list(groups), dict(cached or {})
        scores = dict(self.known)
        for place, values in enumerate(by_text(groups)):
            if place not in scores:
                if len(scores) >= self.stop_after:
                    raise KeyboardInterrupt
                scores[place] = values
                if on_scored is not None:
                    on_scored({place: values})
        return Scored([scores[place] for place in range(len(groups))])


def test_a_reward_model_of_ones_own_is_scored_and_goes_on(data: Path, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        pluralbench.score(Fixed(stop_after=50), data=data, out=tmp_path / "run")
    model = Fixed()
    run = pluralbench.score(model, data=data, out=tmp_path / "run")
    assert len(model.known) == scoring(run).items_resumed == 50
    assert run.result.model == model.record()
    assert run.items["score_chosen"].to_list() == [values[0] for values in by_text(model.groups)]
    with pytest.raises(OutputError, match=r"other settings \(model\.name "):
        pluralbench.score(Fixed("another"), data=data, out=tmp_path / "run")


class Reads(Fixed):
    """A personalized reward model that drops the items of people of whom nothing is known."""

    def score(self, groups: Sequence[Group], *, cached: Cached = None, on_scored: OnScored = None) -> Scored:
        dropped = {place: MISSING_CONTEXT for place, group in enumerate(groups) if group.id in {"q1", "q4"}}
        scores = [[] if place in dropped else values for place, values in enumerate(by_text(groups))]
        return Scored(scores, dropped=dropped)


def test_items_without_the_context_that_a_model_reads_are_counted_and_named(
    pairs: Callable[..., list[dict[str, Any]]], tmp_path: Path
) -> None:
    made: dict[str, Any] = {"benchmark": "pairs", "data": write(tmp_path / "p.jsonl", pairs(6))}
    run = pluralbench.score(Reads(), **made, out=tmp_path / "run")
    assert (scoring(run).items_without_context, scoring(run).items_dropped, run.headline.n) == (2, 0, 4)
    note = "Excluded from accuracy: 2 items without what the model reads of their users."
    assert note in overview([run]).notes
    assert check_submission(run).state == "checked"
    shards = [pluralbench.score(Reads(), **made, shard=f"{n}/2", out=tmp_path / f"{n}").path for n in (1, 2)]
    merged = merge(shards, out=tmp_path / "merged")
    assert (merged.metrics.equals(run.metrics), scoring(merged).items_without_context) == (True, 2)
    compared = compare(run, pluralbench.score(by_text, **made, out=tmp_path / "other"))
    assert (compared.decisions, compared.left_out) == (4, 2)


def test_how_a_model_runs_is_said_to_those_alone_that_are_loaded_here(data: Path) -> None:
    for model in (Fixed(), by_text):
        with pytest.raises(EvaluationError, match="applies to models that are loaded in this process"):
            pluralbench.score(model, data=data, scoring=ScoringConfig(mode="exact"))


def test_what_cannot_score_is_refused(data: Path) -> None:
    with pytest.raises(EvaluationError, match=r"^int is not a model; pass a name or directory, a `LocalModel`, "):
        pluralbench.score(5, data=data)  # type: ignore[arg-type]


@pytest.mark.parametrize("profile", ["none", "raw", "plan"])
def test_a_group_has_of_the_person_what_the_prompt_tells_and_no_more(
    score: Callable[..., Run], people: Callable[..., Rows], tmp_path: Path, profile: str
) -> None:
    rows = people(2)
    for row in rows:
        row |= {"user": "u7", "persona": ["I am brief."]}
    data = write(tmp_path / "p.jsonl", rows)
    plans = write(tmp_path / "plans.jsonl", [{"id": row["id"], "aspects": ["few words"]} for row in rows])
    seen: list[Group] = []

    def see(groups: Sequence[Group]) -> list[list[float]]:
        seen.extend(groups)
        return by_text(groups)

    score(
        "personalized",
        data,
        by=see,
        profile=profile,
        profile_size=2,
        columns=["cluster=user", "persona=persona"],
        plans=plans if profile == "plan" else None,
    )
    for group, row in zip(seen, rows, strict=True):
        assert group.person is not None
        raw = profile == "raw"
        assert (group.person.id, list(group.person.profile)) == ("u7", row["profile"][:2] if raw else [])
        assert (group.person.plan, group.person.persona) == (
            "few words" if profile == "plan" else None,
            ("I am brief.",) if raw else (),
        )
        assert list(group.prompt) == [{"role": "user", "content": row["question"]}]
    posts = [f"[Post {number}, Tea]\nPost no. {number} of 1." for number in (1, 2)]
    shown = {
        "none": [],
        "raw": [f"Posts I wrote earlier:\n{posts[0]}", posts[1]],
        "plan": ["What I expect of an answer: few words"],
    }
    assert list(seen[1].context) == shown[profile]


def test_verbs_work_inside_a_running_event_loop(
    score: Callable[..., Run], data: Path, pairs: Callable[..., Rows], tmp_path: Path
) -> None:
    table = write(tmp_path / "p.jsonl", pairs(4))

    async def both(base_url: str) -> tuple[Run, Run]:
        scored = score("personalized", data)
        await asyncio.sleep(0)
        return scored, judge("j", benchmark="pairs", data=table, base_url=base_url, out=tmp_path / "judged")

    with serve(lambda *_: Reply("[[A]]")) as server:
        scored, judged = asyncio.run(both(server.base_url))
    assert (scored.items.height, judged.count("ties")) == (90, 4)


@pytest.mark.heavy
def test_local_is_the_embedded_model(score: Callable[..., Run], monkeypatch: pytest.MonkeyPatch) -> None:
    """Its log-probabilities are the reward, since it has no head."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(session_folder(CACHE)))
    run = score("personalized", "sample", by="local", mode="exact", limit=1, configs=["Art_and_Entertainment"])
    assert run.result.model.kind == "implicit"
    assert Path(run.name).name == "SmolLM2-135M-Instruct"
    assert run.items["score_chosen"].is_finite().all()


class Plain:
    """A reward model of one's own that returns numbers."""

    def __init__(self, name: str = "plain", *, stop_after: int = 10**9) -> None:
        self.name, self.stop_after, self.scored = name, stop_after, 0

    def record(self) -> ModelRecord:
        return ModelRecord(name=self.name, kind="rule", settings={"version": 2})

    def score(self, groups: Sequence[Group]) -> list[list[float]]:
        if self.scored >= self.stop_after:
            raise KeyboardInterrupt
        self.scored += len(groups)
        return by_text(groups)


def test_a_reward_model_that_returns_numbers_is_scored_and_goes_on(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pluralbench_rewards.functions.GROUPS_PER_CALL", 10)
    first, model = Plain(stop_after=20), Plain()
    with pytest.raises(KeyboardInterrupt):
        pluralbench.score(cast("Any", first), data=data, out=tmp_path / "run")
    run = pluralbench.score(cast("Any", model), data=data, out=tmp_path / "run")
    assert (first.scored, scoring(run).items_resumed) == (20, 20)
    assert run.result.model == model.record()
    assert model.scored == run.items.height - 20
    assert run.items["score_chosen"].equals(
        pluralbench.score(by_text, data=data, out=tmp_path / "f").items["score_chosen"]
    )
