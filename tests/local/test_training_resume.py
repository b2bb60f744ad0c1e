"""Training again, or on from where it was stopped or killed, ends in the same weights to the last bit."""

import json
import shutil
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from case_marks import heavy
from commands import environment, without_status
from killing import stopped_at
from pluralbench_local import LoraOptions, Trained, train, training
from pluralbench_runs import OutputError
from reward_models import Folders, save_language_model
from safetensors.torch import load_file
from training_runs import HELD_OUT, QUICK, RANKINGS, SMALL, log_of, options, weights

PEFT = pytest.mark.skipif(find_spec("peft") is None, reason="peft is not installed: the extra `lora`")


def stored(folder: str) -> "set[torch.dtype]":
    """The types of the weights on disk."""
    return {weights.dtype for weights in load_file(Path(folder) / "model.safetensors").values()}


ADAPTERS = {"lora": LoraOptions(rank=4, dropout=0.1), "learning_rate": 5e-3}
GPT2 = {"n_layer": 1, "n_embd": 32}
# By architecture, type as saved, and sizes: what draws numbers, is computed twice, is added to the weights.
CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "dropout": ("gpt2", {"dtype": "float16"} | GPT2, {}),
    "gradient checkpointing": ("llama", {"dtype": "float32"} | SMALL, {"gradient_checkpointing": True}),
    "lora": ("llama", {"dtype": "bfloat16"} | SMALL, ADAPTERS),
}


@pytest.mark.parametrize(
    "case", ["dropout", *heavy("gradient checkpointing"), pytest.param("lora", marks=[PEFT, pytest.mark.heavy])]
)
def test_stopped_twice_it_ends_in_the_same_weights(language_models: Folders, tmp_path: Path, case: str) -> None:
    architecture, sizes, settings = CASES[case]
    # Saved as trained: rounded to half precision, weights could look the same that are not.
    base, chosen = language_models(architecture, **sizes), options(save_dtype="float32", **settings)
    assert stored(base) == {getattr(torch, sizes["dtype"])}

    def run(out: str) -> "Trained":
        return train(base, RANKINGS, tmp_path / out, held_out=HELD_OUT, options=chosen, device="cpu")

    whole = run("whole")
    assert whole.record["steps"] > 9
    assert stored(str(whole.folder)) == {torch.float32}
    for before in (6, 4):  # in the middle, so that the steps after a checkpoint are taken again; then right after one
        with stopped_at(before, training, "_step"):
            run("stopped")
        assert not (tmp_path / "stopped").exists()
    assert [path.name for path in (tmp_path / "stopped.work").glob("checkpoint*")] == ["checkpoint-6"]
    stopped = run("stopped")
    assert weights(stopped) == weights(whole)
    assert stopped.accuracy == whole.accuracy
    assert log_of(stopped.folder) == log_of(whole.folder)
    assert not (tmp_path / "stopped.work").exists()


def test_another_base_under_the_same_path_is_refused_by_name(small: str, tmp_path: Path) -> None:
    base, out = shutil.copytree(small, tmp_path / "base"), tmp_path / "out"
    other = Path(save_language_model(tmp_path / "other", seed=2, **SMALL))

    def run() -> "Trained":
        return train(base, RANKINGS, out, options=QUICK, device="cpu")

    with stopped_at(5, training, "_step"):
        run()
    was = {path: path.read_bytes() for path in base.iterdir()}
    for name, content in (
        ("model.safetensors", (other / "model.safetensors").read_bytes()),
        ("chat_template.jinja", b"{{ messages[-1]['content'] }}{{ eos_token }}"),
    ):
        (base / name).write_bytes(content)
        with pytest.raises(OutputError) as failed:
            run()
        assert f"An unfinished run in {out} was made with other settings (model.digest " in str(failed.value)
        (base / name).write_bytes(was[base / name])
    assert run().folder == out
    shutil.copytree(other, base, dirs_exist_ok=True)
    with pytest.raises(OutputError, match=r"out was made with other settings \(model.digest "):
        run()


KILLED = """
import json, sys, time
import torch
from pluralbench_local import Ranking, TrainingConfig, load, score, train, training
from pluralbench_rewards import Group
torch.set_num_threads(1)
base, out, options, kinds, *both = json.loads(sys.stdin.read())
for folder, kind in kinds.items():
    model = load(folder, kind=kind, device="cpu")
    for mode in ("fast", "exact"):
        for length in (3, 200):
            group = Group("q", [{"role": "user", "content": "a quiet hobby " * length}], ["origami", ""])
            score(model, [group], mode=mode, on_overflow="truncate-left")
step = training._step
def slow(*values):
    time.sleep(0.05)
    return step(*values)
training._step = slow
data, held_out = ([Ranking(**ranking) for ranking in several] for several in both)
train(base, data, out, held_out=held_out, options=TrainingConfig(**options), device="cpu")
"""


@pytest.mark.heavy
def test_killed_it_goes_on_and_ends_in_the_same_weights_and_said_nothing(
    classifiers: Folders, language_models: Folders, tmp_path: Path
) -> None:
    """One process, since starting it is dear: it loads, scores and trains, and writes nothing but lines of progress."""
    base, out, chosen = language_models(dtype="bfloat16", **SMALL), tmp_path / "killed", options(save_dtype="float32")
    kinds = {classifiers(name): "classifier" for name in ("mistral", "bert", "gpt-oss")} | {base: "implicit"}
    asked: list[Any] = [base, str(out), chosen.model_dump(), kinds]
    asked += [[vars(ranking) for ranking in several] for several in (RANKINGS, HELD_OUT)]
    env = environment({"OMP_NUM_THREADS": "1", "HF_MODULES_CACHE": str(tmp_path)})
    with (tmp_path / "said").open("w", encoding="utf-8") as said:
        process = subprocess.Popen(
            [sys.executable, "-W", "always", "-c", KILLED], stdin=subprocess.PIPE, stderr=said, env=env, text=True
        )
    assert process.stdin is not None
    process.stdin.write(json.dumps(asked))
    process.stdin.close()
    work, until = tmp_path / "killed.work", time.monotonic() + 240
    while not list(work.glob("checkpoint-[1-9]*")):
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert without_status((tmp_path / "said").read_text(encoding="utf-8")) == ""
    assert not out.exists()
    whole, done = (
        train(base, RANKINGS, folder, held_out=HELD_OUT, options=chosen, device="cpu")
        for folder in (tmp_path / "whole", out)
    )
    assert weights(done) == weights(whole)
    assert log_of(done.folder) == log_of(whole.folder)
