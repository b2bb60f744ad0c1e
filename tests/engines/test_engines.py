"""Reward models behind real vLLM and SGLang on the CPU, scored by the command and compared with this process.

Each server starts once for each model, in a minute or two; one runs at a time.
"""

import json
import random
import re
import shutil
import signal
import site
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import command, environment, script
from engine_environments import SGLANG, VLLM, EngineServer, Installed, NotInstalled, free_port, python_of, variables_of
from pluralbench import load_run
from pluralbench.data.votes import SIDES
from pluralbench.results import Run
from pluralbench_rewards import Group
from reward_models import (
    classifier_alone,
    differences,
    implicit_alone,
    load_classifier,
    save_classifier,
    save_language_model,
    undecided,
    user,
    words,
)
from safetensors.numpy import load_file, save_file
from served_contract import (
    CLASSIFIERS,
    GROUPS,
    Running,
    another_model_is_refused,
    scored,
    scores_are_those_of_the_model_here,
)
from verbs import judging
from writing_judges import save_judge, write_prompt
from written_tables import write

pytestmark = [pytest.mark.engines, pytest.mark.timeout(3600)]

HEAD_DIM = 32  # vLLM's attention on a CPU ends at the first request of one of 16
SERVED_POSITIONS = 512  # of the models' 1,024
ALLOWED = 1e-4
VERSIONS = {"vllm": "vllm 0.32.0", "sglang": "sglang 0.5.23"}
INSTALLED = {"vllm": VLLM, "sglang": SGLANG}


@dataclass
class Served:
    """A running engine with a classifier. engine: its name. other: the folder of a model that it does not hold."""

    engine: str
    model: str
    other: str
    server: EngineServer

    @property
    def running(self) -> Running:
        """As the contract takes it."""
        return Running(self.server.url, self.engine, self.model, longest=SERVED_POSITIONS)


def pairs(number: int, seed: int = 0) -> list[dict[str, Any]]:
    """Rows whose prompts are long enough to be found in a prefix cache, in several scripts."""
    draw = random.Random(seed)
    return [
        {
            "id": f"q{place}",
            "prompt": f"{words(draw, 60)} {place}?",
            "chosen": f"{words(draw, 12)} {place}",
            "rejected": f"{words(draw, 12)} {place}!",
        }
        for place in range(number)
    ]


def groups(rows: list[dict[str, Any]]) -> list[Group]:
    """The same as what a model gets."""
    return [Group(row["id"], user(row["prompt"]), [row["chosen"], row["rejected"]]) for row in rows]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Folders of tiny models. "zero" is "qwen3" with a bias of 0 in its head."""
    root = tmp_path_factory.mktemp("models")
    made = {name: save_classifier(root / name, name, seed=1, head_dim=HEAD_DIM) for name in ("llama", "qwen3")}
    made["zero"] = str(shutil.copytree(made["qwen3"], root / "zero"))
    file = Path(made["zero"]) / "model.safetensors"
    save_file(load_file(file) | {"score.bias": np.zeros(1, np.float32)}, file, metadata={"format": "pt"})
    made["language"] = save_language_model(root / "language", "llama", seed=2, head_dim=HEAD_DIM)
    return made


@contextmanager
def started(engine: Installed, model: str, folder: Path, *options: str) -> Iterator[EngineServer]:
    """A running server; where its environment cannot be made, the test fails with a sentence that says why."""
    try:
        python_of(engine)
    except NotInstalled as error:
        pytest.fail(str(error), pytrace=False)
    server = EngineServer(engine, model, folder / "server.log", options, free_port())
    server.start()
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="module")
def served(
    request: pytest.FixtureRequest, models: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    """By the names of an engine and a model."""
    engine, name = request.param
    length = {"vllm": "--max-model-len", "sglang": "--context-length"}[engine]
    folder = tmp_path_factory.mktemp(f"{engine}-{name}")
    with started(INSTALLED[engine], models[name], folder, length, str(SERVED_POSITIONS)) as server:
        yield Served(engine, models[name], models["llama" if name != "llama" else "qwen3"], server)


def score(model: str, server: str, rows: list[dict[str, Any]], folder: Path, *more: str) -> Run:
    """The run of the command."""
    done = command(*scoring(model, server, rows, folder, *more), timeout=900)
    assert done.returncode == 0, done.stderr
    return load_run(folder / "run")


def scoring(model: str, server: str, rows: list[dict[str, Any]], folder: Path, *more: str) -> list[str]:
    """The words of the command."""
    data = write(folder / "pairs.jsonl", rows)
    where = ["--benchmark", "pairs", "--data", str(data), "--out", str(folder / "run")]
    return ["pluralbench", "score", model, "--server", server, "--dtype", "float32", *where, *more]


def refused(words: list[str]) -> str:
    """What the command says as it refuses."""
    done = command(*words, timeout=900)
    assert done.returncode == 2, done.stdout + done.stderr
    return " ".join(done.stderr.split())


def scores(run: Run) -> list[list[float]]:
    """By row, those of the chosen and the rejected response."""
    return [list(row) for row in run.items.select("score_chosen", "score_rejected").iter_rows()]


def told(text: str) -> None:
    """Say what came out, for the job's note (`-rP` shows it)."""
    print(text)  # noqa: T201


# What starts a server of its own comes first: one of the fixture `served` stays until another is wanted.


def test_a_head_whose_bias_sglang_draws_at_random_is_refused(models: dict[str, str], tmp_path: Path) -> None:
    with started(SGLANG, models["qwen3"], tmp_path) as server:
        said = refused(scoring(models["qwen3"], server.url, pairs(20), tmp_path))
    told(said)
    assert re.search(rf"All scores of {server.url} differ from those of the local weights of .* by [+-]0\.\d+: ", said)
    assert "score.bias" in said


def test_vllms_batch_runner_answers_a_judges_calls(tmp_path: Path) -> None:
    model = save_language_model(tmp_path / "judge", seed=3, head_dim=HEAD_DIM, max_position_embeddings=4096)
    rows = pairs(6)
    rows[4]["chosen"] = " ".join(["tea"] * 5000)
    data = write(tmp_path / "pairs.jsonl", rows)
    calls, results = tmp_path / "calls.jsonl", tmp_path / "results.jsonl"
    words = ["pluralbench", "judge", "tiny", "--base-url", "http://127.0.0.1:9/v1", "--api-key-env", ""]
    words += ["--benchmark", "pairs", "--data", str(data), "--out", str(tmp_path / "run")]
    written = command(*words, "--pending", calls)
    assert written.returncode == 75, written.stderr
    asked = read_lines(calls)
    answer(calls, results, model, tmp_path)
    came = {row["custom_id"]: row for row in read_lines(results)}
    assert came.keys() == {row["custom_id"] for row in asked}
    refused = [row for row in came.values() if row["response"]["status_code"] == 400]
    assert len(refused) == 2  # both orders of the row that is too long
    assert all(row["response"]["body"] is None and "message" in row["error"]["error"] for row in refused)
    # What was refused stays refused. The others are answers without a verdict, which a judge is asked for once more.
    again = tmp_path / "again.jsonl"
    taken = command(*words, "--import", results, "--pending", again)
    assert taken.returncode == 75, taken.stderr
    new = {row["custom_id"] for row in read_lines(again)}
    told(f"{len(came)} calls answered by vLLM's run_batch, {len(refused)} refused, {len(new)} asked again")
    assert len(new) == len(came) - len(refused)
    assert not new & came.keys()


def answer(calls: Path, results: Path, model: str, folder: Path) -> None:
    """Run vLLM over a file of calls."""
    python = [str(python_of(VLLM)), "-m", "vllm.entrypoints.openai.run_batch", "-i", str(calls), "-o", str(results)]
    options = ["--model", model, "--served-model-name", "tiny", "--dtype", "float32", "--enforce-eager"]
    with (folder / "batch.log").open("wb") as log:
        done = subprocess.run(
            [*python, *options], stdout=log, stderr=log, env=variables_of(VLLM), cwd=folder, timeout=900, check=False
        )
    assert done.returncode == 0, (folder / "batch.log").read_text(encoding="utf-8")[-3000:]


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The rows of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_implicit_rewards_of_vllm_are_those_of_this_process(models: dict[str, str], tmp_path: Path) -> None:
    rows = pairs(30)
    with started(VLLM, models["language"], tmp_path) as server:
        scores_are_those_of_the_model_here(Running(server.url, "vllm", models["language"], "implicit"))
        cold = score(models["language"], server.url, rows, tmp_path / "cold", "--kind", "implicit")
        cached = score(models["language"], server.url, rows, tmp_path / "cached", "--kind", "implicit")
    here = implicit_alone(models["language"], groups(rows))
    largest = [max(differences(scores(run), here)) for run in (cold, cached)]
    told(f"implicit rewards differ by {largest[0]:.2g}, and {largest[1]:.2g} with what the cache held")
    assert max(largest) < 1e-3  # sums of some 60 log-probabilities


LOG_ODDS = {"positive_token": "y", "negative_token": "n", "question": "Good (y or n)?"}
ROWS = {"architectures": ["LlamaForSequenceClassification"], "method": "no_post_processing"}
VLLM_GENERATES = (VLLM, ("--runner", "generate"))
VLLM_ROWS = (VLLM, ("--runner", "pooling", "--hf-overrides", json.dumps(ROWS | {"classifier_from_token": ["y", "n"]})))
VLLM_ROW = (VLLM, ("--runner", "pooling", "--hf-overrides", json.dumps(ROWS | {"classifier_from_token": ["<s>"]})))
SGLANG_GENERATES = (
    replace(SGLANG, options=tuple(option for option in SGLANG.options if option != "--is-embedding")),
    (),
)


@pytest.mark.parametrize(
    ("started_as", "fields"),
    [
        (VLLM_GENERATES, LOG_ODDS),
        (VLLM_ROWS, LOG_ODDS),
        (VLLM_ROW, {"positive_token": "id:0", "token_position": "end"}),
        (SGLANG_GENERATES, LOG_ODDS),
    ],
    ids=["vllm generates", "vllm rows", "vllm row", "sglang"],
)
def test_token_rewards_are_those_of_this_process(
    started_as: tuple[Installed, tuple[str, ...]], fields: dict[str, str], models: dict[str, str], tmp_path: Path
) -> None:
    engine, options = started_as
    with started(engine, models["language"], tmp_path, *options) as server:
        name = next(name for name, installed in INSTALLED.items() if installed.module == engine.module)
        found = scored(Running(server.url, name, models["language"], "token", fields=fields))
    here = load_classifier(models["language"], kind="token", **fields).score(GROUPS).scores
    largest = max(differences(found.scores, here))
    told(f"token rewards of {name} differ by {largest:.2g}")
    assert largest < ALLOWED


EACH = [("vllm", "llama"), ("vllm", "qwen3"), ("sglang", "llama"), ("sglang", "zero")]
FIRST = [("vllm", "llama"), ("sglang", "llama")]
each = pytest.mark.parametrize("served", EACH, indirect=True, ids="-".join)
first = pytest.mark.parametrize("served", FIRST, indirect=True, ids="-".join)


@each
def test_scores_are_those_of_this_process_in_their_order(served: Served, tmp_path: Path) -> None:
    rows = pairs(80)
    begun = time.monotonic()
    run = score(served.model, served.server.url, rows, tmp_path)
    wall = time.monotonic() - begun
    assert run.items["id"].to_list() == [row["id"] for row in rows]
    here = classifier_alone(served.model, groups(rows))
    largest = max(differences(scores(run), here))
    told(f"{served.engine} {Path(served.model).name}: {2 * len(rows)} scores differ by {largest:.2g}, {wall:.0f} s")
    assert largest < ALLOWED
    assert undecided(scores(run), here) < ALLOWED
    record = run.scored
    assert record is not None
    assert record.served is not None
    assert record.served.engines == (VERSIONS[served.engine],)
    assert (record.served.check.against, record.served.check.decisions_changed) == ("weights", 0)
    assert record.served.check.largest_difference < ALLOWED


@first
@pytest.mark.parametrize("promise", CLASSIFIERS, ids=lambda promise: promise.__name__)
def test_what_every_engine_promises(promise: Callable[[Running], None], served: Served) -> None:
    promise(served.running)


@first
def test_another_model_is_refused(served: Served) -> None:
    another_model_is_refused(served.running, served.other)


@pytest.mark.parametrize("served", [("vllm", "llama")], indirect=True, ids="-".join)
def test_one_prompts_responses_meet_in_the_prefix_cache(served: Served, tmp_path: Path) -> None:
    def counted(name: str) -> float:
        with urllib.request.urlopen(f"{served.server.url}/metrics", timeout=30) as response:  # noqa: S310 - loopback
            found = re.search(rf"^vllm:{name}_total{{.*}} (\S+)$", response.read().decode(), re.MULTILINE)
        assert found
        return float(found[1])

    before = counted("prefix_cache_hits"), counted("prefix_cache_queries")
    rows = pairs(60, seed=5)
    run = score(served.model, served.server.url, rows, tmp_path, "--verify-items", "0")
    hits, asked = counted("prefix_cache_hits") - before[0], counted("prefix_cache_queries") - before[1]
    told(f"{hits:.0f} of {asked:.0f} tokens came from the prefix cache")
    assert hits > 0.2 * asked
    assert max(differences(scores(run), classifier_alone(served.model, groups(rows)))) < ALLOWED


@first
def test_a_run_goes_on_after_its_server_was_started_again(served: Served, tmp_path: Path) -> None:
    rows = pairs(1500, seed=7)
    more = ("--concurrency", "1", "--batch-size", "2", "--max-retries", "1")
    words = scoring(served.model, served.server.url, rows, tmp_path, *more)
    journal = tmp_path / "run.work" / "scores.jsonl"
    with subprocess.Popen(
        [script(words[0]), *words[1:]], env=environment(), stderr=subprocess.PIPE, text=True, encoding="utf-8"
    ) as running:
        while running.poll() is None and not (journal.exists() and journal.stat().st_size > 5_000):
            time.sleep(0.05)
        served.server.stop(signal.SIGKILL)
        _, said = running.communicate(timeout=300)
    assert running.returncode == 2, said
    assert "Scores are kept: rerun the same command to resume." in " ".join(said.split())
    served.server.start()
    run = score(served.model, served.server.url, rows, tmp_path, *more)
    record = run.scored
    assert record is not None
    told(f"{record.items_resumed} of {len(rows)} rows were scored before the server was killed")
    assert 0 < record.items_resumed < len(rows)
    assert max(differences(scores(run), classifier_alone(served.model, groups(rows)))) < ALLOWED


BESIDE = """\
import site, sys
site.addsitedir(sys.argv.pop(1))  # ours come after vLLM's own
from pluralbench.commands.app import main
main()
"""


def test_verdicts_of_vllm_in_this_process_are_those_of_transformers(tmp_path: Path) -> None:
    model = save_judge(tmp_path / "judge", seed=5, head_dim=HEAD_DIM)
    data, prompt = write(tmp_path / "pairs.jsonl", pairs(24)), write_prompt(tmp_path / "letters.toml")
    asking = ("--benchmark", "pairs", "--data", data, "--prompt", prompt, "--max-tokens", "40", "--attempts", "1")
    words = ("judge", model, *asking, "--orders", "one", "--dtype", "float32")
    done = command("pluralbench", *words, "--device", "cpu", "--out", tmp_path / "transformers")
    assert done.returncode == 0, done.stderr
    alone = {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "PYTHONPATH": ""}
    beside = [str(python_of(VLLM)), "-c", BESIDE, site.getsitepackages()[0], *map(str, words)]
    with_vllm = subprocess.run(
        [*beside, "--library", "vllm", "--out", str(tmp_path / "vllm")],
        env=variables_of(VLLM) | alone,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert with_vllm.returncode == 0, with_vllm.stderr[-3000:]
    runs = [load_run(tmp_path / name) for name in ("transformers", "vllm")]
    columns = ["id", "verdict", "outcome", *(letter for letter, _ in SIDES)]
    here, vllm = (run.items.select(columns) for run in runs)
    told(f"{here.height} verdicts of vLLM's offline engine: {here['outcome'].value_counts().rows()}")
    assert here.equals(vllm)
    assert {"win", "loss"} <= set(here["outcome"])
    assert [judging(run).model.provider for run in runs] == ["transformers", "vllm"]
