"""Full disks, replaced files, places that cannot be written, two processes on one output, no home, no letters."""

import shlex
import shutil
from pathlib import Path

import pytest
from children import ended
from commands import command
from conftest import Tried
from inputs import BUILDERS, KINDS
from jobs import JOBS, PATIENCE, Job, begun, result, serving, undisturbed
from killed_child import no_larger_files

pytestmark = [pytest.mark.faults, pytest.mark.timeout(3600)]
TIMES = 4
# The command, and the file or folder that it replaces.
REPLACING = {
    "pluralbench report runs/a --model-card .": "README.md",
    "pluralbench report runs --html page.html": "page.html",
    "pluralbench report runs --out table.md": "table.md",
    "pluralbench report runs --format csv --out table.csv": "table.csv",
    "pluralbench report runs --plots figures": "figures",
    "pluralbench leaderboard runs --data pairs.jsonl --any-data --site site": "site",
}
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


@pytest.mark.parametrize("line", REPLACING)
def test_full_disk_where_a_file_is_replaced(line: str, tried: Tried, tmp_path: Path) -> None:
    good = tmp_path / "good"
    next(kind for kind in KINDS if kind.name == "runs").make(good)
    if "." in REPLACING[line]:
        (good / REPLACING[line]).write_text("---\nlicense: mit\n---\n" + "By hand. " * 9_000, encoding="utf-8")
    else:
        done = ended(shlex.split(line), good, patience=PATIENCE)
        assert done.status == 0, done.said
    for number, draw, folder in tried.cases(10):
        shutil.copytree(good, folder, dirs_exist_ok=True)
        size = int(2 ** draw.uniform(4, 17))
        full = ended(shlex.split(line), folder, patience=PATIENCE, before=no_larger_files, arguments=(size,))
        tried.end(number, full, f"[no file beyond {size} bytes]")
        place, old = folder / REPLACING[line], good / REPLACING[line]
        files = [path.relative_to(old) for path in sorted(old.rglob("*")) if path.is_file()] or [Path()]
        lost = [path for path in files if (place / path).read_bytes() != (old / path).read_bytes()]
        if [*folder.rglob("*.new")] or (full.status != 0 and (full.status != 2 or lost)):
            tried.failure(number, "lost", f"[no file beyond {size} bytes] {full.status}: {full.last_line[:200]} {lost}")


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


def test_places_stay_as_they_were() -> None:
    assert not Path("/sys/nobody").exists()
