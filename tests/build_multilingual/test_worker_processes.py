"""What worker processes check is what this process would have: the same release, and the same sentences."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest
from build_multilingual import MultilingualRecipe, build
from build_multilingual.recipe import RECIPES
from pluralbench_release import LEDGER
from pluralbench_runs import UserError, read_recipe


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Build the sample with so many processes, however little there is to do, and a changed recipe."""
    monkeypatch.setattr(import_module("build_multilingual.build"), "MIN_TEXTS_FOR_WORKERS", 0)

    def made(out: Path, processes: int, changes: dict[str, object] | None = None, replay: Path | None = None) -> None:
        recipe = read_recipe(MultilingualRecipe, RECIPES / "sample.toml", changes)
        build(recipe, out, replay=replay, processes=processes)

    return made


def content(release: Path) -> dict[str, bytes]:
    return {path.relative_to(release).as_posix(): path.read_bytes() for path in release.rglob("*") if path.is_file()}


@pytest.mark.heavy
def test_with_and_without_worker_processes_every_file_is_the_same(tmp_path: Path, built: Callable[..., None]) -> None:
    releases = [tmp_path / "one" / "release", tmp_path / "two" / "release"]
    for processes, release in enumerate(releases, start=1):
        built(release, processes)
    one, two = map(content, releases)
    assert one.keys() == two.keys()
    assert [path for path in one if one[path] != two[path]] == []

    changes = {"audit": {"max_mean_length_gap": 0.001}}
    message = []
    for processes in (1, 2):
        with pytest.raises(UserError) as failed:
            built(tmp_path / f"audited-{processes}", processes, changes, releases[0] / LEDGER)
        message.append((type(failed.value), str(failed.value)))
    assert message[0] == message[1]
    assert "max_mean_length_gap" in message[0][1]
