"""`score --server` with llama.cpp's real server as the trunk, and the head applied here."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from pluralbench.contract import Group
from pluralbench.results import Run
from pluralbench.results.runs import load_run
from written_tables import write

Rows = list[dict[str, Any]]
Command = Callable[..., tuple[int, str, str]]
OPTIONS = "--embeddings --pooling last --cache-type-k f32 --cache-type-v f32 --flash-attn off"


@pytest.fixture
def data(pairs: Callable[..., Rows], tmp_path: Path) -> Path:
    return write(tmp_path / "p.jsonl", pairs(12))


@pytest.fixture
def command(run: Command, data: Path, tmp_path: Path) -> Command:
    """`command(model, url)`: score it through the server."""

    def scored(model: str, url: str, *more: str) -> tuple[int, str, str]:
        where = ("--benchmark", "pairs", "--data", data, "--out", tmp_path / "run", "--dtype", "float32")
        return run("score", model, "--server", url, *where, *more)

    return scored


def served(folder: Path, model: str, **options: Any) -> AbstractContextManager[str]:
    """A server that holds the model's trunk, which is written to the folder; options as of `serve_states`."""
    from llamacpp_server import serve_states, write_gguf

    return serve_states(write_gguf(model, folder / "trunk.gguf"), **options)


def here(model: str, rows: Sequence[dict[str, Any]]) -> list[list[float]]:
    from reward_models import classifier_alone, user

    return classifier_alone(model, [Group(r["id"], user(r["prompt"]), [r["chosen"], r["rejected"]]) for r in rows])


def scores(run: Run) -> list[list[float]]:
    return [list(row) for row in run.items.select("score_chosen", "score_rejected").iter_rows()]


@pytest.mark.parametrize("architecture", ["llama", "qwen3"])
def test_scores_are_those_of_this_process(
    architecture: str, classifiers: Callable[..., str], command: Command, pairs: Callable[..., Rows], tmp_path: Path
) -> None:
    from reward_models import differences

    model = classifiers(architecture=architecture, head_dim=32)
    with served(tmp_path, model) as url:
        status, _, errors = command(model, url)
    assert status == 0, errors
    run = load_run(tmp_path / "run")
    assert max(differences(scores(run), here(model, pairs(12)))) < 2e-5
    record = run.scored
    assert record is not None
    assert record.served is not None
    assert record.served.engines[0].startswith("llamacpp ")
    assert record.served.check.against == "weights"


@pytest.mark.heavy
def test_what_every_engine_promises(classifiers: Callable[..., str], tmp_path: Path) -> None:
    from served_contract import CLASSIFIERS, Running, another_model_is_refused

    model = classifiers(head_dim=32)
    with served(tmp_path, model) as url:
        running = Running(url, "llamacpp", model)
        for promise in CLASSIFIERS:
            promise(running)
        another_model_is_refused(running, classifiers(head_dim=32, seed=9))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"pooling": "MEAN"}, f"does not pool the last token; start it with {OPTIONS}."),
        ({"pooling": "CLS"}, f"does not pool the last token; start it with {OPTIONS}."),
        ({"pooling": "NONE"}, f"hidden states of one conversation; start it with {OPTIONS}."),
        ({"pooling": "RANK"}, f"pools for ranking, which hides the logits; start it with {OPTIONS}."),
        ({"embeddings": False}, f"returns no hidden states (status 501); start it with {OPTIONS}."),
        ({"trunk": "other"}, "returns hidden states of width 128, but the head of "),
        ({"trunk": "words"}, "it serves another model, precision or version of the weights."),
    ],
)
def test_a_server_that_cannot_be_used_is_refused_with_what_mends_it(
    options: dict[str, Any], said: str, classifiers: Callable[..., str], command: Command, tmp_path: Path
) -> None:
    model = classifiers(head_dim=32)
    trunks = {"other": {"hidden_size": 128}, "words": {"seed": 9}}
    trunk = classifiers(head_dim=32, **trunks.get(options.pop("trunk", ""), {}))
    with served(tmp_path, trunk, **options) as url:
        status, _, errors = command(model, url)
    assert status == 2
    assert said in " ".join(errors.split())
    assert not (tmp_path / "run").exists()


def test_what_fills_the_servers_slot_is_refused_before_it_is_sent(
    classifiers: Callable[..., str], command: Command, data: Path, pairs: Callable[..., Rows], tmp_path: Path
) -> None:
    rows = pairs(12)
    rows[3]["prompt"] = "tea " * 200
    write(data, rows)
    model = classifiers(head_dim=32)
    with served(tmp_path, model, context=256) as url:
        status, _, errors = command(model, url)
    assert status == 2
    assert "1 of 12 prompts have conversations of more than 255 tokens" in errors
    assert "(ids q3)" in errors


def test_a_head_of_several_layers_is_not_applied(classifiers: Callable[..., str], tmp_path: Path) -> None:
    import shutil

    from pluralbench_local import LocalModel
    from pluralbench_local.errors import LocalError
    from pluralbench_local.served.checking import load_head
    from safetensors.numpy import load_file, save_file

    folder = shutil.copytree(classifiers(head_dim=32), tmp_path / "model")
    weights = load_file(folder / "model.safetensors")
    head = weights.pop("score.weight")
    save_file(weights | {"score.0.weight": head, "score.2.weight": head}, folder / "model.safetensors")
    with pytest.raises(LocalError, match=r"has no head of one linear layer \(score\.weight in \*\.safetensors\)"):
        load_head(LocalModel(name=str(folder)), "http://127.0.0.1:1")
