"""Full disks, replaced files, places that cannot be written, two processes on one output, no home, no letters."""

import shutil

import pytest
from children import ended
from commands import command
from conftest import Tried
from inputs import BUILDERS
from jobs import JOBS, PATIENCE, Job, begun, result, serving, undisturbed
from killed_child import no_larger_files

pytestmark = [pytest.mark.faults, pytest.mark.timeout(3600)]
TIMES = 4
BARE = {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "HOME": "/nonexistent/home"}


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_full_disk(job: Job, tried: Tried, tmp_path_factory: pytest.TempPathFactory) -> None:
    with undisturbed(job, tmp_path_factory) as (good, servers, whole):
        for number, draw, folder in tried.cases(TIMES):
            shutil.copytree(good, folder, dirs_exist_ok=True)
            size = int(2 ** draw.uniform(8, 17))
            full = ended(servers.words(job), folder, patience=PATIENCE, before=no_larger_files, arguments=(size,))
            tried.end(number, full, f"[no file beyond {size} bytes]")
            again = begun(job, servers, folder).end(PATIENCE)
            tried.end(number, again)
            if full.status not in {0, 2} or again.status != 0 or result(job, folder / "out") != whole.result:
                said = f"[no file beyond {size} bytes] {full.status}, then {again.status}"
                tried.failure(number, "lost", f"{said}: {full.last_line[:200]} {again.last_line[:200]}")


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_a_place_that_cannot_be_written(job: Job, tried: Tried) -> None:
    with serving() as servers:
        for number, _, folder in tried.cases(1):
            job.make(folder)
            refused = ended(servers.words(job, "/sys/nobody/out"), folder, patience=PATIENCE)
            if tried.end(number, refused) and (refused.status != 2 or "/sys/nobody" not in refused.said):
                tried.failure(number, "lost", f"exit status {refused.status}: {refused.last_line[:300]}")


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_two_processes_on_one_output(job: Job, tried: Tried, tmp_path_factory: pytest.TempPathFactory) -> None:
    with undisturbed(job, tmp_path_factory) as (good, servers, whole):
        for number, _, folder in tried.cases(2):
            shutil.copytree(good, folder, dirs_exist_ok=True)
            before = servers.asked(job)
            one, other = (begun(job, servers, folder, log=name) for name in ("one.log", "other.log"))
            ends = [one.end(PATIENCE), other.end(PATIENCE)]
            for end in ends:
                tried.end(number, end)
            refused = [end for end in ends if end.status == 2]
            right = all(end.status == 0 or "Another process is writing" in end.said for end in ends)
            asked = servers.asked(job) - before
            if not right or len(refused) > 1 or result(job, folder / "out") != whole.result or asked > whole.asked:
                said = " / ".join(f"{end.status}: {end.last_line[:200]}" for end in ends)
                tried.failure(number, "lost", f"{asked} asked of {whole.asked}; {said}")


@pytest.mark.parametrize("builder", BUILDERS)
def test_no_home_and_no_letters(builder: str, tried: Tried) -> None:
    for number, _, folder in tried.cases(1):
        for words in ((builder, "--out", "out"), ("pluralbench-release", "verify", "out")):
            done = command(*words, cwd=folder, env=BARE)
            if done.returncode != 0:
                tried.failure(number, "lost", f"{' '.join(words)}: {done.returncode}: {done.stderr[-300:]}")
