"""Two hundred kills: nothing that was recorded is lost or asked again, and what the job leaves is what it always is."""

import random
import shutil
import signal
import time
from pathlib import Path

import pytest
from children import Ended
from conftest import Tried
from jobs import JOBS, NEVER, PATIENCE, Job, Servers, Whole, begun, recorded, result, undisturbed

pytestmark = [pytest.mark.faults, pytest.mark.timeout(3600)]
KILLS = 29
STOPPED = {signal.SIGKILL: {-9}, signal.SIGINT: {130}, signal.SIGTERM: {143}}


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_killed(job: Job, tried: Tried, tmp_path_factory: pytest.TempPathFactory) -> None:
    with undisturbed(job, tmp_path_factory) as (good, servers, whole):
        for number, draw, folder in tried.cases(KILLS):
            shutil.copytree(good, folder, dirs_exist_ok=True)
            lost = _killed(job, servers, whole, folder, draw)
            if lost:
                tried.failure(number, *lost)
            else:
                shutil.rmtree(folder)


def _killed(job: Job, servers: Servers, whole: Whole, folder: Path, draw: random.Random) -> tuple[str, str] | None:
    """Disturb a job once or twice, let it end, and say what is otherwise than it should be."""
    said = []
    for _ in range(draw.choice([1, 1, 1, 2])):
        number = draw.choice([signal.SIGKILL] * 8 + [signal.SIGINT, signal.SIGTERM])
        at = draw.randrange(whole.operations)
        if number == signal.SIGKILL and draw.random() < 0.6:
            ended = begun(job, servers, folder, at).end(PATIENCE)
            said.append(f"killed at operation {at} of {whole.operations}")
        else:
            child = begun(job, servers, folder, NEVER)
            seconds = draw.uniform(0.1, 1.0) * whole.seconds
            time.sleep(seconds)
            child.signal(number)
            ended = child.end(PATIENCE)
            said.append(f"{number.name} after {seconds:.2f} s of {whole.seconds:.2f}")
        if ended.status not in STOPPED[number] | {0}:
            return ended.fault or "lost", f"{said}: exit status {ended.status}: {ended.last_line[:300]}"
    kept, before = recorded(folder / "out"), servers.asked(job)
    finished = (folder / "out").exists()
    last = begun(job, servers, folder, NEVER).end(PATIENCE)
    return _wrong(job, whole, folder, last, kept, finished, servers.asked(job) - before, ", ".join(said))


def _wrong(
    job: Job, whole: Whole, folder: Path, last: Ended, kept: int, finished: bool, asked: int, said: str
) -> tuple[str, str] | None:
    if last.status != 0:
        return last.fault or "lost", f"{said}: then exit status {last.status}: {last.last_line[:300]}"
    if (folder / "out.work").exists():
        left = sorted(path.name for path in (folder / "out.work").iterdir())
        return "lost", f"{said}: out.work stays with {left}"
    expected = 0 if finished else whole.asked - kept
    if job.asked and asked != expected:
        return "lost", f"{said}: {asked} were asked, where {kept} of {whole.asked} were recorded (finished: {finished})"
    found = result(job, folder / "out")
    differing = [name for name in whole.result.keys() | found.keys() if whole.result.get(name) != found.get(name)]
    return ("lost", f"{said}: {differing} differ") if differing else None
