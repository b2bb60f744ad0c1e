"""A model in a process for each device: nothing lost, nothing twice, and the scores of one process."""

import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from functools import partial
from pathlib import Path

import pytest
from pluralbench_rewards import FunctionModel, Group, RewardsError, ScoringConfig
from pluralbench_rewards.cluster import on_devices
from pluralbench_runs.workers import WorkerLost
from ray_models import NOWHERE, Broken, by_bytes, load_broken, load_by_bytes

RECORD = FunctionModel(by_bytes(Path("log"))).record()
PARENT = """
import sys
from functools import partial
from pathlib import Path
from pluralbench_rewards import Group
from pluralbench_rewards.cluster import on_devices
from ray_models import Broken, load_by_bytes

if __name__ == "__main__":
    import signal
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    loads = {name: partial(load_by_bytes, Path(sys.argv[1]), pause=0.2) for name in "ab"}
    groups = [Group(f"q{n}", [{"role": "user", "content": str(n)}], ["a"]) for n in range(40)]
    on_devices(loads, Broken().record()).score(groups, on_scored=lambda *_: print("scored", flush=True))
"""


def groups(number: int = 120) -> list[Group]:
    """Three groups have the same prompt, far apart."""
    prompts = [[{"role": "user", "content": f"推荐 {place % (number // 3)}?"}] for place in range(number)]
    return [Group(f"q{place}", prompt, ["🍵", f"{place}"][: 1 + place % 2]) for place, prompt in enumerate(prompts)]


def test_a_killed_worker_is_named_and_the_other_does_its_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    load = partial(load_by_bytes, tmp_path / "log", deadly="q50")  # only the first that meets it is killed
    reported: Counter[int] = Counter()
    model = on_devices({"cuda:0": load, "cuda:1": load}, RECORD)
    scored = model.score(groups(), on_scored=lambda part: reported.update([*part]))
    assert scored.scores == by_bytes(tmp_path / "here")(groups())
    assert reported == dict.fromkeys(range(120), 1)
    assert model.record().device == "cuda:0, cuda:1"
    lines = re.findall(r"The worker on (.*) was killed, perhaps because memory ran out; (.*)", capsys.readouterr().err)
    assert lines in [[(name, "its work goes to the others.")] for name in ("cuda:0", "cuda:1")]


def test_groups_of_one_prompt_go_to_one_worker(tmp_path: Path) -> None:
    loads = {name: partial(load_by_bytes, tmp_path / name, pause=0.005) for name in "ab"}
    on_devices(loads, RECORD).score(groups())
    scored = [(tmp_path / name).read_text(encoding="utf-8").split() for name in "ab"]
    prompts = [{int(name[1:]) % 40 for name in names} for names in scored]
    assert all(prompts), "both worked"
    assert not prompts[0] & prompts[1]
    assert sum(map(len, scored)) == 120


@pytest.mark.heavy
def test_without_any_worker_left_the_results_stay_for_a_resume(tmp_path: Path) -> None:
    load, kept = partial(load_by_bytes, tmp_path / "log", deadly="q100"), dict[int, list[float]]()
    with pytest.raises(WorkerLost) as failed:
        on_devices({"cuda:0": load}, RECORD).score(groups(), on_scored=kept.update)
    assert str(failed.value) == (
        "All workers were killed (cuda:0), perhaps because memory ran out; free some memory. Earlier results are kept."
    )
    assert 0 < len(kept) < 120
    before = dict(kept)
    scored = on_devices({"cuda:0": load}, RECORD).score(groups(), cached=before, on_scored=kept.update)
    assert scored.scores == by_bytes(tmp_path / "here")(groups()) == [kept[index] for index in range(120)]


def test_the_error_of_a_load_is_raised_here() -> None:
    load = partial(load_broken, Broken(), ScoringConfig())
    with pytest.raises(RewardsError, match=f"^{re.escape(NOWHERE)}$"):
        on_devices({"cuda:0": load}, RECORD).score(groups())  # type: ignore[dict-item]


@pytest.mark.heavy
@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_workers_end_at_once_with_ctrl_c(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(PARENT, encoding="utf-8")
    parent = subprocess.Popen(
        [sys.executable, str(script), str(tmp_path / "log")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # as of a terminal: Ctrl-C reaches the workers too
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert parent.stdout is not None
    assert parent.stdout.readline() == "scored\n"
    os.killpg(parent.pid, signal.SIGINT)
    stderr = parent.communicate(timeout=60)[1]  # which ends when the last worker has closed its standard error
    assert stderr.count("Traceback") == stderr.count("KeyboardInterrupt") == 1  # the parent's
    assert len((tmp_path / "log").read_text(encoding="utf-8").split()) < 40
    until = time.monotonic() + 30
    while _left(parent.pid) and time.monotonic() < until:
        time.sleep(0.05)
    assert not _left(parent.pid)


def _left(session: int) -> bool:
    """Whether a session has any process."""
    try:
        os.killpg(session, 0)
    except ProcessLookupError:
        return False
    return True
