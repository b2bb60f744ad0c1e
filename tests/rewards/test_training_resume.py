"""Training again, or on from where it was stopped or killed, ends in the same weights to the last bit."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate import Accelerator
from commands import environment
from pluralbench_rewards import Lora, Trained, train, training
from pluralbench_runs import OutputError
from safetensors.torch import load_file
from training_runs import (
    HELD_OUT,
    QUICK,
    RANKINGS,
    log,
    one_thread,  # noqa: F401 - a fixture of the module
    options,
    weights,
    without_times,
)

Folders = Callable[..., str]
PEFT = pytest.mark.skipif(find_spec("peft") is None, reason="peft is not installed: the extra `lora`")


@pytest.fixture(scope="module")
def trained(language_models: Folders, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """A model that was trained without interruption; not to be changed."""
    out = tmp_path_factory.mktemp("trained") / "out"
    return train(language_models(), RANKINGS, out, held_out=HELD_OUT, options=QUICK, device="cpu")


def test_the_same_seed_gives_the_same_weights_and_another_others(
    trained: Trained, language_models: Folders, tmp_path: Path
) -> None:
    again = train(language_models(), RANKINGS, tmp_path / "again", held_out=HELD_OUT, options=QUICK, device="cpu")
    assert weights(again) == weights(trained)
    assert without_times(log(again.folder)) == without_times(log(trained.folder))
    chosen = options(seed=1)
    other = train(language_models(), RANKINGS, tmp_path / "other", options=chosen, device="cpu")
    assert weights(other) != weights(trained)


def stored(folder: str) -> set[torch.dtype]:
    """The types of the weights on disk."""
    return {weights.dtype for weights in load_file(Path(folder) / "model.safetensors").values()}


class Stop(BaseException):
    """As a kill, between two steps."""


def stopping(monkeypatch: pytest.MonkeyPatch, before: int) -> None:
    """Let training stop before this step of those that are left to it."""
    step = training._step
    taken = 0

    def counted(*values: Any) -> dict[str, Any]:
        nonlocal taken
        taken += 1
        if taken == before:
            raise Stop
        return step(*values)

    monkeypatch.setattr(training, "_step", counted)


ADAPTERS = {"lora": Lora(rank=4, dropout=0.1), "learning_rate": 5e-3}
CASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "llama": ("llama", "float32", {}),
    "dropout": ("gpt2", "float32", {}),
    "gradient checkpointing": ("llama", "float32", {"gradient_checkpointing": True}),
    "lora": ("llama", "float32", ADAPTERS),
    "bfloat16": ("llama", "bfloat16", {}),
    "float16": ("gpt2", "float16", {}),
    "bfloat16, lora": ("llama", "bfloat16", ADAPTERS),
}


@pytest.mark.parametrize("case", [pytest.param(case, marks=PEFT if "lora" in case else ()) for case in CASES])
def test_stopped_twice_it_ends_in_the_same_weights(
    language_models: Folders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    architecture, dtype, settings = CASES[case]
    # Saved as trained: rounded to half precision, weights could look the same that are not.
    base, chosen = language_models(architecture, dtype=dtype), options(save_dtype="float32", **settings)
    assert stored(base) == {getattr(torch, dtype)}

    def run(out: str) -> Trained:
        return train(base, RANKINGS, tmp_path / out, held_out=HELD_OUT, options=chosen, device="cpu")

    whole = run("whole")
    assert whole.record["steps"] > 9
    for before in (6, 4):  # in the middle, so that the steps after a checkpoint are taken again; then right after one
        with monkeypatch.context() as patch:
            stopping(patch, before)
            with pytest.raises(Stop):
                run("stopped")
        assert not (tmp_path / "stopped").exists()
    assert [path.name for path in (tmp_path / "stopped.work").glob("checkpoint*")] == ["checkpoint-6"]
    stopped = run("stopped")
    assert weights(stopped) == weights(whole)
    assert stopped.accuracy == whole.accuracy
    assert without_times(log(stopped.folder)) == without_times(log(whole.folder))
    assert not (tmp_path / "stopped.work").exists()


KILLED = """
import json, sys, time
import torch
from pluralbench_rewards import Ranking, TrainingOptions, train, training
torch.set_num_threads(1)
step = training._step
def slow(*values):
    time.sleep(0.05)
    return step(*values)
training._step = slow
base, out, options, *both = json.loads(sys.stdin.read())
data, held_out = ([Ranking(**ranking) for ranking in several] for several in both)
train(base, data, out, held_out=held_out, options=TrainingOptions(**options), device="cpu")
"""


@pytest.mark.heavy
def test_killed_it_goes_on_and_ends_in_the_same_weights(language_models: Folders, tmp_path: Path) -> None:
    base, out, chosen = language_models(dtype="bfloat16"), tmp_path / "killed", options(save_dtype="float32")
    asked: list[Any] = [base, str(out), chosen.model_dump()]
    asked += [[vars(ranking) for ranking in several] for several in (RANKINGS, HELD_OUT)]
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED], stdin=subprocess.PIPE, env=environment({"OMP_NUM_THREADS": "1"}), text=True
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(asked))
    process.stdin.close()
    work, until = tmp_path / "killed.work", time.monotonic() + 120
    while not list(work.glob("checkpoint-[1-9]*")):
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert not out.exists()
    whole, done = (
        train(base, RANKINGS, folder, held_out=HELD_OUT, options=chosen, device="cpu")
        for folder in (tmp_path / "whole", out)
    )
    assert weights(done) == weights(whole)
    assert without_times(log(done.folder)) == without_times(log(whole.folder))


def test_a_checkpoint_that_was_cut_short_is_not_used(
    trained: Trained, language_models: Folders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run() -> Trained:
        return train(language_models(), RANKINGS, tmp_path / "out", held_out=HELD_OUT, options=QUICK, device="cpu")

    save = Accelerator.save_state

    def cut(self: Any, folder: str) -> None:
        save(self, folder)
        if (tmp_path / "out.work" / "checkpoint-3").exists():
            (Path(folder) / "optimizer.bin").unlink()
            raise Stop

    with monkeypatch.context() as patch:
        patch.setattr(Accelerator, "save_state", cut)
        with pytest.raises(Stop):
            run()
    assert (tmp_path / "out.work" / "checkpoint.new").exists()
    assert weights(run()) == weights(trained)


def test_a_finished_folder_is_not_trained_again_and_other_options_are_refused(
    trained: Trained, language_models: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    base, out = language_models(), trained.folder
    with monkeypatch.context() as patch:
        stopping(patch, 1)
        assert train(base, RANKINGS, out, held_out=HELD_OUT, options=QUICK, device="cpu") == trained
    chosen = options(seed=7, epochs=3)
    with pytest.raises(OutputError) as failed:
        train(base, RANKINGS, out, held_out=HELD_OUT, options=chosen, device="cpu")
    assert str(failed.value) == (
        f"The recipe differs from that of the run in {out} in `options.epochs`, `options.seed`; give the same recipe "
        "to go on, choose another output directory, or start over with `fresh`."
    )
    with pytest.raises(OutputError, match="in `data`;"):
        train(base, RANKINGS[1:], out, held_out=HELD_OUT, options=QUICK, device="cpu")


def test_fresh_replaces_what_was_made_by_other_options(language_models: Folders, tmp_path: Path) -> None:
    out = tmp_path / "out"
    train(language_models(), RANKINGS, out, options=QUICK, device="cpu")
    chosen = options(epochs=1)
    again = train(language_models(), RANKINGS, out, options=chosen, device="cpu", fresh=True)
    assert again.record["settings"]["options"]["epochs"] == 1
    assert again.accuracy is None


def test_a_folder_with_something_else_in_it_is_left_alone(language_models: Folders, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(OutputError, match="holds files that no build wrote"):
        train(language_models(), RANKINGS, tmp_path, options=QUICK, device="cpu")
