"""What every training promises of its folder, its checkpoints and its log, on a job that trains nothing."""

import hashlib
import json
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from killing import Stop, killed_when
from pluralbench_local import LocalError, Trained, TrainingError
from pluralbench_local.training_job import (
    CheckpointClock,
    Kind,
    Result,
    restore,
    run_job,
    save_checkpoint,
    step_log,
)
from pluralbench_runs import OutputError, Recipe, recipe_values
from pluralbench_runs.meters import interruption
from training_runs import log_of

KIND = Kind("made.json", "pluralbench-local", ("safetensors",))


STEPS, EVERY = 10, 3
Line = Callable[[int], dict[str, float]]


class Settings(Recipe):
    data: str = "these"
    rate: float = 1.0


class States:
    """In place of accelerate: it keeps one number. cut: at this step a checkpoint is begun and never whole."""

    def __init__(self, cut: int = 0) -> None:
        self.sum, self.cut = 0, cut

    def save_state(self, folder: str) -> None:
        Path(folder).mkdir()
        if self.cut and self.sum >= self.cut:
            raise Stop
        (Path(folder) / "sum").write_text(str(self.sum), encoding="utf-8")

    def load_state(self, folder: str) -> None:
        self.sum = int((Path(folder) / "sum").read_text(encoding="utf-8"))


def steady(step: int) -> dict[str, float]:
    return {"loss": 1 / step, "gradient_norm": 1.0} | ({"held_out_loss": 2 / step} if step % 5 == 0 else {})


def made(
    out: Path, *, stop: int = 0, cut: int = 0, line: Line = steady, fresh: bool = False, **settings: Any
) -> "Trained":
    """Ten steps that add up their numbers, with a checkpoint after each third."""
    asked = Settings(**settings)

    def learn(work: Path) -> "Result":
        states: Any = States(cut)
        done = restore(states, work)
        with step_log(work, "adding", done, STEPS) as write:
            for step in range(done + 1, STEPS + 1):
                if step == stop:
                    raise Stop
                states.sum += step
                write(line(step) | {"seconds": 1.0})
                if step % EVERY == 0:
                    save_checkpoint(states, work, step)
        weights = str(states.sum).encode()
        return Result(
            lambda folder: (folder / "model.safetensors").write_bytes(weights), {"settings": recipe_values(asked)}
        )

    return run_job(KIND, out, asked, learn, too_large="Give it less.", fresh=fresh)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


def test_the_folder_has_the_model_its_log_its_settings_and_who_made_it(out: Path) -> None:
    done = made(out)
    names = {"model.safetensors", "log.jsonl", "settings.toml", "made.json"}
    assert {path.name for path in out.iterdir()} == names
    assert done.record == json.loads((out / "made.json").read_text(encoding="utf-8"))
    assert done.record["weights"] == {"model.safetensors": hashlib.sha256(b"55").hexdigest()}
    assert (done.record["steps"], done.record["seconds"], done.record["format"]) == (10, 10.0, 1)
    assert done.record["made_by"] == f"pluralbench-local {version('pluralbench-local')}"
    assert (done.record["packages"]["torch"], done.record["threads"]) == (torch.__version__.partition("+")[0], 1)
    assert done.record["settings"]["data"] == "these"
    assert {"pluralbench-local", "torch", "accelerate", "safetensors"} == set(done.record["packages"])
    assert [line["step"] for line in log_of(out)] == list(range(1, STEPS + 1))
    assert not out.with_name("out.work").exists()


@pytest.mark.parametrize(
    ("first", "second"), [({"stop": 8}, {"stop": 7}), ({"cut": 20}, {"stop": 5}), ({"stop": 4}, {})]
)
def test_stopped_twice_it_ends_as_without(out: Path, first: dict[str, Any], second: dict[str, Any]) -> None:
    whole = made(out.with_name("whole"))
    for way in (first, second):
        if way:
            with pytest.raises(Stop):
                made(out, **way)
            assert not out.exists()
    assert len(list(out.with_name("out.work").glob("checkpoint-*"))) == 1
    done = made(out)
    assert done.record["weights"] == whole.record["weights"]
    assert log_of(out) == log_of(whole.folder)
    assert made(out, stop=1) == done  # nothing is trained again


def test_other_settings_are_refused_by_name_until_it_starts_over(out: Path) -> None:
    with pytest.raises(Stop):
        made(out, stop=5)
    with pytest.raises(OutputError, match=r"An unfinished run in .*out was made with other settings \(data "):
        made(out, data="those")
    made(out)
    with pytest.raises(OutputError, match=r"out was made with other settings \(rate 1\.0, now 2\.0\)"):
        made(out, rate=2.0)
    assert made(out, rate=2.0, fresh=True).record["settings"]["rate"] == 2.0


def test_before_its_first_checkpoint_a_stopped_run_binds_nothing(out: Path) -> None:
    with pytest.raises(Stop):
        made(out, stop=3)
    assert list(out.parent.iterdir()) == []


def test_slow_saving_makes_checkpoints_by_time_rarer(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter([119.0, 120.0, 130.0, 329.0, 330.0])
    monkeypatch.setattr("pluralbench_local.training_job.time", SimpleNamespace(monotonic=lambda: next(now)))
    clock = CheckpointClock(100, 0.0)
    assert not clock.due(1)
    assert clock.due(2)  # saved from second 120 to 130
    clock.saved()
    assert not clock.due(3)
    assert clock.due(4)


def test_a_kill_once_the_model_is_in_its_place_leaves_no_checkpoints(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with killed_when(out.exists, monkeypatch) as killed:
        made(out)
    assert killed()
    assert [*out.with_name("out.work").glob("checkpoint-*")]
    assert made(out, stop=1).record["steps"] == STEPS
    assert not out.with_name("out.work").exists()


@pytest.mark.parametrize("wrong", [{"loss": float("nan")}, {"gradient_norm": float("inf")}])
def test_a_loss_that_is_no_number_stops_training_and_leaves_the_checkpoint_before(
    out: Path, wrong: dict[str, float]
) -> None:
    said = r"^The loss or its gradient is not finite at step 5 of 10; lower `learning_rate=\.\.\.` and start over\.$"
    with pytest.raises(TrainingError, match=said):
        made(out, line=lambda step: steady(step) | (wrong if step == 5 else {}))
    assert len(log_of(out.with_name("out.work"))) == 4
    assert (out.with_name("out.work") / "checkpoint-3").is_dir()


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory")])
def test_too_little_memory_is_said_in_a_sentence_and_binds_no_next_run(out: Path, error: Exception) -> None:
    def full(_: int) -> dict[str, float]:
        raise error

    with pytest.raises(LocalError, match=r"^Give it less\.$"):
        made(out, line=full)
    assert list(out.parent.iterdir()) == []


@pytest.mark.parametrize(
    ("stop", "said"), [(3, " Nothing of this step is kept; rerun the same command."), (5, " Finished work is kept in ")]
)
def test_an_interruption_says_what_is_kept(out: Path, stop: int, said: str) -> None:
    told = []

    def line(step: int) -> dict[str, float]:
        told.append(interruption())
        return steady(step)

    with pytest.raises(Stop):
        made(out, stop=stop, line=line)
    assert said in told[-1]
    assert out.with_name("out.work").exists() == ("Finished" in said)
