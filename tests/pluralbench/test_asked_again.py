"""Verbs that ask servers: stopped halfway, gone on with, asked for again, or asked for under other settings."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pluralbench
import pytest
import verbs
from chat_server import ChatServer, Reply, Script, serve
from downstream_runs import World, by_letter, is_judged, sampled
from persona_tables import knows, release, rows
from planned_users import people as planned_people
from pluralbench import ConnectionConfig
from pluralbench.config import PlanConfig, SynthesizeConfig
from pluralbench.contract import Group, ModelRecord, Scored
from pluralbench.results import Downstream, Run
from pluralbench_calls import CallsError
from pluralbench_rewards import Cached, FunctionModel, OnScored
from pluralbench_runs import OutputError
from verbs import by_length
from written_tables import write

Row = dict[str, Any]
ONE_BY_ONE = {"concurrency": 1}


@dataclass
class Dying:
    """A script that refuses the key after so many requests for a judge, or for anything else. answered: the others."""

    script: Script
    left: int | None
    judge: bool | None = None
    answered: list[Row] = field(default_factory=list)

    def __call__(self, body: Row, number: int) -> Reply:
        if self.left is not None and self.judge in {None, is_judged(body)}:
            if not self.left:
                return Reply("no such key", status=401)
            self.left -= 1
        self.answered.append(body)
        return self.script(body, number)


def judged(server: ChatServer, data: Path, out: Path, **options: Any) -> Run:
    asked = {"benchmark": "pairs", "base_url": server.base_url} | ONE_BY_ONE | options
    return verbs.judge("judge-1", data=data / "pairs.jsonl", out=out, **asked)


def judged_for_persons(server: ChatServer, data: Path, out: Path, **options: Any) -> Run:
    asked = {"base_url": server.base_url} | ONE_BY_ONE | options
    return verbs.judge_personas("judge-1", data=data / "personas", out=out, **asked)


def best(server: ChatServer, data: Path, out: Path, **options: Any) -> Downstream:
    return sampled(server, data / "people.jsonl", out, **options)


def synthesized(server: ChatServer, data: Path, out: Path, **options: Any) -> Run[Any, Any]:
    reached = ConnectionConfig(base_url=server.base_url, **ONE_BY_ONE)
    given: Row = {"data": data / "arena.jsonl", "out": out, "connection": reached}
    return pluralbench.synthesize("m", benchmark="arena-personalized", **given, **options)


def planned(server: ChatServer, data: Path, out: Path, **options: Any) -> Run[Any, Any]:
    reached = ConnectionConfig(base_url=server.base_url, **ONE_BY_ONE)
    return pluralbench.plan("m", data=data / "people.jsonl", out=out, connection=reached, **options)


def prefers(body: Row, _: int) -> Reply:
    """A model that writes personas, and takes the first answer."""
    system = body["messages"][0]["content"]
    if '"persona"' in system:
        return Reply(json.dumps({"persona": ["I like it long."]}))
    chosen = {"reasoning": "They take the first one.", "preference": "First"}
    return Reply(json.dumps(chosen) if '"preference"' in system else "[[A]]")


class Verb(NamedTuple):
    """calls: of a whole run. stops: after how many, of which model, and what is then said. changes: settings that a run
    is not gone on with, and what is said of them."""

    make: Callable[..., Run[Any, Any]]
    script: Callable[[], Script]
    calls: int
    stops: Sequence[tuple[int, bool | None, str]]
    changes: Sequence[tuple[Row, str]]


VERBS: Mapping[str, Verb] = {
    "judge": Verb(
        judged, lambda: lambda *_: Reply("[[A]]"), 20, [(7, None, "7 of 20 verdicts")],
        [
            ({"temperature": 0.5}, "temperature 0.0, now 0.5"),
            ({"top_p": 0.5}, "top_p none, now 0.5"),
            ({"max_tokens": 7}, "max_tokens 512, now 7"),
            ({"attempts": 2}, "attempts 4, now 2"),
            ({"orders": "one"}, "orders both, now one"),
            ({"protocol": "pointwise"}, "protocol pairwise, now pointwise"),
            ({"criterion": "person"}, "criterion quality, now person"),
            ({"verdict_parsing": "strict"}, "verdict_parsing lenient, now strict"),
            ({"seed": 3}, "seed 0, now 3"),
            ({"limit": 3}, "limit none, now 3"),
        ],
    ),
    "judge-personas": Verb(
        judged_for_persons, lambda: lambda body, _: Reply(f"[[{knows(body)}]] [[80]]"), 10,
        [(4, None, "4 of 10 verdicts")],
        [
            ({"setting": "standard"}, "setting certainty, now standard"),
            ({"variables": "key"}, "variables all, now key"),
            ({"limit": 2}, "limit none, now 2"),
            ({"orders": "both"}, "orders one, now both"),
        ],
    ),
    "best-of-n": Verb(
        best, World, 40, [(7, False, "7 of 20 candidates"), (4, True, "4 of 20 rubrics")],
        [
            ({"n": 6}, "n 5, now 6"),
            ({"k": (1, 5)}, "k [1, 2, 4], now [1, 5]"),
            ({"temperature": 0.5}, "temperature 1.0, now 0.5"),
            ({"rewards": {"length": by_length}}, "rewards.letter.kind function, now none; "),
            ({"judged": "selected"}, "judged all, now selected"),
            ({"seed": 1}, "seed 0, now 1"),
        ],
    ),
    "synthesize": Verb(
        synthesized, lambda: prefers, 24, [(7, None, "rerun the same command to resume")],
        [({"synthesizing": SynthesizeConfig(num_candidates=3)}, "num_candidates 10, now 3")],
    ),
    "plan": Verb(
        planned, lambda: lambda *_: Reply("- low expenses"), 4, [(3, None, "3 of 4 plans")],
        [
            ({"sampling": PlanConfig(temperature=0.5)}, "temperature 0.1, now 0.5"),
            ({"profile_size": 1}, "profile_size 10, now 1"),
        ],
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def data(pairs: Callable[..., list[Row]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data for each verb. Not to be changed."""
    folder = tmp_path_factory.mktemp("data")
    write(folder / "pairs.jsonl", pairs(10))
    release(folder / "personas", prism=rows("prism", 6, ties=2), opinion_qa=rows("opinion_qa", 4))
    write(folder / "people.jsonl", planned_people(4))
    asked = [
        {"split": "train" if place < 5 else "test", "context": [{"role": "user", "content": f"Question {place}?"}]}
        | {"chosen": f"Long, and longer still, no. {place}.", "rejected": f"Short {place}.", "user_id": user}
        for user in ("ana", "bo")
        for place in range(7)
    ]
    write(folder / "arena.jsonl", asked)
    return folder


@pytest.fixture(scope="module")
def whole(data: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run[Any, Any]]:
    """A run of each verb that nothing stopped. Not to be changed."""
    made = {}
    for name, verb in VERBS.items():
        with serve(verb.script()) as server:
            made[name] = verb.make(server, data, tmp_path_factory.mktemp(name) / "run")
        assert len(server.requests) == verb.calls, name
    return made


def same(found: Run[Any, Any], other: Run[Any, Any]) -> None:
    """Assert that two runs found the same: all of their files, but for the record and the times in the calls."""
    names = {path.name for path in found.path.iterdir()}
    assert names == {path.name for path in other.path.iterdir()}
    for name in names - {"run.json", "ledger.parquet"}:
        if name.endswith(".parquet"):
            assert found.frame(name[:-8]).equals(other.frame(name[:-8])), name
        else:
            assert (found.path / name).read_bytes() == (other.path / name).read_bytes(), name


def refused(verb: Verb, data: Path, out: Path) -> None:
    """Assert that a run is not gone on with under any other setting, and that nothing is asked."""
    with serve(lambda *_: Reply("down", status=503)) as server:
        for options, said in verb.changes:
            with pytest.raises(OutputError) as caught:
                verb.make(server, data, out, **options)
            differs, _, mend = str(caught.value).partition(" was made with other settings (")[2].partition("); ")
            assert differs == said or (said.endswith("; ") and differs.startswith(said))
            assert mend.endswith("or start over with `fresh=True`.")
    assert server.requests == []


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("name", "stop"), [(name, stop) for name, verb in VERBS.items() for stop in verb.stops], ids=str
)
def test_a_server_that_dies_loses_and_repeats_nothing(
    whole: dict[str, Run[Any, Any]], data: Path, tmp_path: Path, name: str, stop: tuple[int, bool | None, str]
) -> None:
    verb, (left, judge, said) = VERBS[name], stop
    script = Dying(verb.script(), left, judge)
    with serve(script) as server, pytest.raises(CallsError) as caught:
        verb.make(server, data, tmp_path / "run")
    assert said in str(caught.value)
    assert str(caught.value).endswith("rerun the same command to resume.")
    assert not (tmp_path / "run").exists()
    refused(verb, data, tmp_path / "run")
    script.left = None
    with serve(script) as mended:  # at another port
        found = verb.make(mended, data, tmp_path / "run")
    assert len(script.answered) == verb.calls, "nothing is asked twice"
    same(found, whole[name])


@pytest.mark.parametrize("name", VERBS)
def test_a_finished_run_is_read_without_asking(whole: dict[str, Run[Any, Any]], data: Path, name: str) -> None:
    run = whole[name]
    with serve(lambda *_: Reply("down", status=503)) as server:
        again = VERBS[name].make(server, data, run.path)
    assert server.requests == []
    assert (again.config, again.result, again.provenance) == (run.config, run.result, run.provenance)
    same(again, run)
    refused(VERBS[name], data, run.path)


def test_the_calls_of_a_finished_directory_serve_another(
    whole: dict[str, Run[Any, Any]], data: Path, tmp_path: Path
) -> None:
    found = whole["best-of-n"]
    with serve(lambda *_: Reply("down", status=503)) as server:
        other = best(server, data, tmp_path / "run", rewards=[by_length], reuse=found.path)
    assert server.requests == []
    for name in ("candidates", "outcomes"):
        assert other.frame(name).equals(found.frame(name))
    assert list(other.result.rewards) == ["by_length"]
    assert other.result.outcome == found.result.outcome


@dataclass
class Counted:
    """A reward model that counts what it computes."""

    function: Any
    stops: bool = False
    computed: list[int] = field(default_factory=list)

    def record(self) -> ModelRecord:
        return ModelRecord(name=self.function.__name__, kind="table")

    def score(self, groups: Sequence[Group], *, cached: Cached = None, on_scored: OnScored = None) -> Scored:
        self.computed.append(len(groups) - len(cached or {}))
        if self.stops:
            raise KeyboardInterrupt
        return FunctionModel(self.function).score(groups, cached=cached, on_scored=on_scored)


@pytest.mark.heavy
def test_what_one_reward_model_scored_is_not_scored_again(
    whole: dict[str, Run[Any, Any]], data: Path, tmp_path: Path
) -> None:
    first, second = Counted(by_length), Counted(by_letter, stops=True)
    models = {"length": first, "letter": second}
    with serve(World()) as server:
        with pytest.raises(KeyboardInterrupt):
            best(server, data, tmp_path / "run", rewards=models)
        second.stops = False
        found = best(server, data, tmp_path / "run", rewards=models)
    assert (first.computed, second.computed) == ([4, 0], [4, 4])
    assert len(server.requests) == VERBS["best-of-n"].calls
    same(found, whole["best-of-n"])
