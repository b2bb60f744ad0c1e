"""Models in workers on a Ray cluster: nothing lost, nothing twice, and the numbers of one process."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pluralbench
import polars as pl
import psutil
import pytest
from commands import environment
from pluralbench import LocalModel
from pluralbench.config import OutcomeConfig, SamplingConfig
from pluralbench.contract import Group
from pluralbench.errors import EvaluationError
from pluralbench.results import Run
from pluralbench.results.record import ScoringRecord
from pluralbench_rewards import FunctionModel, RewardsError
from pluralbench_rewards.cluster import on_cluster
from pluralbench_runs import ClusterConfig, ClusterError
from pluralbench_runs.cluster import cluster_workers
from ray_models import Elsewhere, by_bytes
from written_tables import write

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(600)]
Rows = list[dict[str, Any]]
SIZE: dict[str, Any] = {"num_cpus": 1, "object_store_memory": 100_000_000, "node_ip_address": "127.0.0.1"}
SUPPORT = Path(__file__).parents[1] / "support"


@pytest.fixture(scope="module")
def nodes() -> Iterator[Any]:
    """Two nodes of one core each, with room for one worker each, on loopback alone.

    They have some ten processes, which would go on computing to the end of the session. Those that nobody asks for,
    such as the readers of logs and workers for plain tasks, do not start.
    """
    before = psutil.Process().children()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
        patch.setenv("RAY_DEDUP_LOGS_SKIP_REGEX", ".")
        patch.setenv("PYTHONPATH", str(SUPPORT))
        patch.setenv("OMP_NUM_THREADS", "1")
        patch.setenv("RAY_worker_niceness", "0")
        patch.setenv("RAY_prestart_worker_first_driver", "0")
        import ray
        from ray.cluster_utils import Cluster as Nodes

        unasked = {"include_dashboard": False, "include_log_monitor": False, "no_monitor": True}
        cluster = Nodes(initialize_head=True, head_node_args={**SIZE, **unasked})
        cluster.add_node(**SIZE)
        yield cluster
        started = [process for process in psutil.Process().children() if process not in before]
        ray.shutdown()
        cluster.shutdown()  # type: ignore[no-untyped-call]
        psutil.wait_procs(started, timeout=10)  # so that no later test is charged with what they computed


@pytest.fixture(scope="module")
def two(nodes: Any) -> ClusterConfig:
    return ClusterConfig(address=str(nodes.address), workers=2)


@pytest.fixture
def groups() -> list[Group]:
    return [
        Group(
            f"q{place}", [{"role": "user", "content": f"推荐 {place}?"}], ["🍵", f"龙井 {place}", ""][: place % 3 + 1]
        )
        for place in range(300)
    ]


def scored_there(
    cluster: ClusterConfig, groups: list[Group], function: Any, came: Callable[[int], None] = lambda _: None
) -> tuple[list[list[float]], Counter[int]]:
    """The scores, and how often each group was told of."""
    told: Counter[int] = Counter()

    def on_scored(scores: Mapping[int, list[float]]) -> None:
        for place in scores:
            told[place] += 1
            came(told.total())

    model = on_cluster(cluster, lambda: FunctionModel(function), FunctionModel(function).record())
    scores = model.score(groups, on_scored=on_scored).scores
    return scores, told


def numbers(run: Run) -> tuple[Any, ...]:
    """All that a run found, without what its work took."""
    assert isinstance(run.scored, ScoringRecord)
    return run.items.to_dicts(), run.metrics.to_dicts(), run.scored.tolerance


def test_a_worker_that_is_killed_costs_nothing_but_its_part(
    two: ClusterConfig, groups: list[Group], tmp_path: Path
) -> None:
    here, one = by_bytes(tmp_path / "here")(groups), two.model_copy(update={"workers": 1})
    there, told = scored_there(one, groups, by_bytes(tmp_path / "there", deadly="q100"))
    assert (tmp_path / "there.killed").exists()
    assert there == here
    assert told == dict.fromkeys(range(300), 1)


def test_a_node_may_go_and_another_come(nodes: Any, two: ClusterConfig, groups: list[Group], tmp_path: Path) -> None:
    def change(count: int) -> None:
        if count == 60:
            nodes.remove_node(next(iter(nodes.worker_nodes)), allow_graceful=False)
        if count == 180:  # which one worker has to reach by itself
            nodes.add_node(**SIZE)

    there, told = scored_there(two, groups, by_bytes(tmp_path / "there", pause=0.01), change)
    assert there == by_bytes(tmp_path / "here")(groups)
    assert told == dict.fromkeys(range(300), 1)


def test_a_killed_driver_goes_on_with_the_same_command(
    two: ClusterConfig, pairs: Callable[..., Rows], tmp_path: Path
) -> None:
    data, out, log = write(tmp_path / "pairs.jsonl", pairs(200)), tmp_path / "run", tmp_path / "log"
    command = [sys.executable, str(SUPPORT / "scored_on_ray.py"), str(two.address), str(data), str(out), str(log)]
    journal = out.with_name("run.work") / "scores.jsonl"
    driver = subprocess.Popen([*command, "0.05"], env=environment())
    while not (journal.exists() and b"\n" in journal.read_bytes()):
        assert driver.poll() is None
        time.sleep(0.05)
    os.kill(driver.pid, signal.SIGKILL)
    driver.wait()
    known = {place for line in journal.read_text(encoding="utf-8").splitlines() for place, _ in json.loads(line)}
    log.rename(tmp_path / "before")
    one = two.model_copy(update={"workers": 1})
    run = pluralbench.score(by_bytes(log), benchmark="pairs", data=data, out=out, cluster=one)
    again = set(log.read_text(encoding="utf-8").split())
    assert not again & {f"q{place}" for place in known}
    whole = pluralbench.score(by_bytes(tmp_path / "whole"), benchmark="pairs", data=data, out=tmp_path / "here")
    assert numbers(run) == numbers(whole)
    assert run.scored is not None
    assert len(known) <= run.scored.items_resumed < 200


@pytest.mark.parametrize(
    ("loading", "times", "when"), [(False, 1, "at the same part of the work"), (True, 2, "before it could begin")]
)
def test_what_brings_down_every_worker_ends_the_run_with_a_sentence(
    two: ClusterConfig, groups: list[Group], monkeypatch: pytest.MonkeyPatch, times: int, when: str, *, loading: bool
) -> None:
    monkeypatch.setattr("pluralbench_runs.cluster.MAX_LOST_WORKERS", times)

    def deadly(_: Sequence[Group]) -> list[list[float]]:
        os.kill(os.getpid(), signal.SIGKILL)
        return []

    def load() -> Any:
        return deadly([]) if loading else FunctionModel(deadly)

    one = two.model_copy(update={"workers": 1})
    with pytest.raises(ClusterError, match=f"^A worker of the cluster ended {times} times {when}, "):
        on_cluster(one, load, FunctionModel(deadly).record()).score(groups[:1])


def test_what_a_model_or_a_function_refuses_is_said_as_in_one_process(two: ClusterConfig, groups: list[Group]) -> None:
    two = two.model_copy(update={"workers": 1})
    with pytest.raises(RewardsError) as caught:
        pluralbench.score(Elsewhere(), data="sample", cluster=two)
    assert str(caught.value) == (
        "A worker of the cluster has another model at ./model than this process (digest); put the same files "
        "on every node."
    )
    with pytest.raises(RewardsError, match="returned scores of 0 groups for"):
        scored_there(two, groups, lambda groups: [])


def test_a_worker_with_another_version_is_refused(two: ClusterConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    from pluralbench_runs import cluster, versions

    monkeypatch.setattr(cluster, "versions", lambda names: versions(names) | {"pluralbench-rewards": "0.0.9"})
    with pytest.raises(ClusterError) as caught:
        scored_there(two.model_copy(update={"workers": 1}), [], lambda groups: [])
    assert str(caught.value).partition(" has ")[2] == (
        "pluralbench-rewards 0.1.0, and this process has 0.0.9; install the same version on every node of the cluster."
    )


def test_a_loaded_model_cannot_be_sent(two: ClusterConfig) -> None:
    with pytest.raises(EvaluationError, match="is loaded in this process, so a worker of a cluster cannot load it"):
        pluralbench.score(FunctionModel(by_bytes(Path())), data="sample", cluster=two)


def test_checks_come_back_in_their_order(two: ClusterConfig) -> None:
    with cluster_workers(two) as each:
        assert list(each(abs, range(-50, 50))) == [*range(50, 0, -1), *range(50)]


def test_the_rewards_of_best_of_n_come_from_the_cluster(two: ClusterConfig, talker: str, tmp_path: Path) -> None:
    from small_world import people_file

    given: dict[str, Any] = {
        "data": people_file(tmp_path / "people.jsonl", 3),
        "sampling": SamplingConfig(n=4, max_tokens=12),
        "outcome": OutcomeConfig(judge="rubric-overlap"),
    }
    policy = LocalModel(name=talker, device="cpu")
    log, one = tmp_path / "log", two.model_copy(update={"workers": 1})
    there = pluralbench.best_of_n(policy, {"a": by_bytes(log)}, out=tmp_path / "there", cluster=one, **given)
    here = pluralbench.best_of_n(policy, {"a": by_bytes(log)}, out=tmp_path / "here", **given)
    for name in ("candidates", "rewards", "selected", "outcomes"):
        found = [pl.read_parquet(done.path / f"{name}.parquet").to_dicts() for done in (there, here)]
        assert found[0] == found[1]
        assert found[0]
    assert there.metrics.to_dicts() == here.metrics.to_dicts()


def test_a_classifier_scores_to_the_bit_as_in_one_process(
    two: ClusterConfig,
    classifiers: Callable[..., str],
    pairs: Callable[..., Rows],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data, folder = write(tmp_path / "pairs.jsonl", pairs(40)), Path(classifiers())
    monkeypatch.chdir(folder.parent)  # the nodes were started elsewhere
    model = LocalModel(name=f"./{folder.name}", dtype="float32", device="cpu")
    given: dict[str, Any] = {"benchmark": "pairs", "data": data}
    one = two.model_copy(update={"workers": 1})  # as each loads torch for many seconds
    there = pluralbench.score(model, out=tmp_path / "there", cluster=one, **given)
    here = pluralbench.score(model, out=tmp_path / "here", **given)
    assert numbers(there) == numbers(here)
    assert there.result.model == here.result.model
    works = [run.scored.work for run in (there, here) if run.scored]
    counted = [(work.conversations, work.unique_tokens, work.computed_tokens) for work in works if work]
    assert counted[0] == counted[1]
