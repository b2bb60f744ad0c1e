"""`pluralbench score MODEL --server`: the run of the in-process path, and what it says of the servers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pluralbench
import pytest
from chat_server import serve
from downstream_runs import World, sampled
from pluralbench import LocalModel, ServedModel, load_run
from pluralbench.config import ScoringConfig, ServingConfig
from pluralbench.results import Run
from pluralbench_rewards.served.engine import ServerError
from verbs import scoring
from written_tables import write

Rows = list[dict[str, Any]]


@pytest.fixture
def data(pairs: Callable[..., Rows], tmp_path: Path) -> str:
    return str(write(tmp_path / "p.jsonl", pairs(12)))


def margins(run: Run) -> list[float]:
    return run.items["margin"].to_list()


@pytest.mark.heavy
def test_the_command_gives_the_run_of_the_process_and_records_the_check(
    model: str, data: str, tmp_path: Path, run: Callable[..., tuple[int, str, str]]
) -> None:
    from engine_server import imitate

    out = tmp_path / "run"
    command = ["score", model, "--benchmark", "pairs", "--data", data, "--out", str(out), "--verify-items", "6"]
    command += ["--device", "cpu"]
    with imitate("vllm", model) as server, imitate("sglang", model) as other:
        assert run(*command, "--server", f"{server.url}/v1,{other.url}/")[0] == 0
        done = load_run(out)
        # Finished, it asks nothing again; addresses and engines may differ.
        asked = len(server.posts)
        assert run(*command, "--server", server.url, "--engine", "vllm")[0] == 0
        assert len(server.posts) == asked
    in_process = LocalModel(name=model, device="cpu")
    here = pluralbench.score(in_process, benchmark="pairs", data=data, out=tmp_path / "here")
    assert margins(done) == pytest.approx(margins(here), abs=1e-4)
    served = scoring(done).served
    assert served is not None
    assert served.engines == ("sglang 0.5.23", "vllm 0.32.0")
    assert (served.servers, served.check.against, served.check.items, served.check.decisions) == (2, "weights", 6, 6)
    assert scoring(done).tolerance == served.check.largest_difference < 1e-4
    assert (scoring(done).work, done.result.model.device) == (None, None)
    status, _, said = run(*command, "--engine", "vllm")
    assert (status, "is for models behind a server; give `--server` too" in said) == (2, True)


@pytest.mark.heavy
def test_a_run_goes_on_at_another_server_where_its_server_died(model: str, data: str, tmp_path: Path) -> None:
    from engine_server import imitate

    out = tmp_path / "run"

    def ask(url: str) -> Run:
        serving = ServingConfig(server=(url,), batch_size=2, concurrency=1, verify_items=1, max_retries=0)
        described = ServedModel(model=LocalModel(name=model, device="cpu"), serving=serving)
        return pluralbench.score(described, benchmark="pairs", data=data, out=out)

    with (
        imitate("vllm", model, ends_after=5) as dying,
        pytest.raises(ServerError, match="rerun the same command to resume"),
    ):
        ask(dying.url)
    with imitate("vllm", model) as server:
        run = ask(server.url)
        sent = sum(
            len(body["input"]) - 1 for path, body in server.posts if path == "/classify" and len(body["input"]) > 2
        )
    assert scoring(run).items_resumed > 0
    assert sent < 24
    assert run.items.height == 12


@pytest.mark.heavy
def test_best_of_n_takes_a_served_model(model: str, sample: Path, tmp_path: Path) -> None:
    from engine_server import imitate

    in_process = LocalModel(name=model, device="cpu")
    with imitate("vllm", model) as server, serve(World()) as policy:
        served = ServedModel(model=in_process, serving=ServingConfig(server=(server.url,)))
        models = {"here": in_process, "served": served}
        scoring = ScoringConfig(on_overflow="truncate-prompt", max_length=200)
        found = sampled(policy, sample, tmp_path / "run", models, limit=1, n=3, k=(1, 2), scoring=scoring, judge=None)
    rewards = found.frame("rewards")
    here, there = (rewards.filter(model=name).sort("id", "sample")["reward"].to_list() for name in models)
    assert len(here) >= 3
    assert here == pytest.approx(there, abs=1e-4)
