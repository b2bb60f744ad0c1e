"""Which rows came, went or changed, and building a release again."""

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from pluralbench_release import RECIPE, ReleaseError, TableDiff, diff, rebuild
from releases import Damage, edit_manifest, table

Make = Callable[..., Path]
Pairs = Callable[..., pl.DataFrame]
Run = Callable[..., tuple[int, str]]
ART = "data/Art/test.parquet"
SAME = "The content of 2 tables is the same: digests are equal.\n"
BUILDER = """
import shutil
from pathlib import Path
def build(release, out, sources):
    shutil.copytree(Path(sources[0]) if sources else release, out)
"""


@pytest.fixture
def builder(tmp_path: Path) -> Path:
    """A folder with an installed distribution `build-tiny`, whose builder copies a release (or its first source)."""
    folder = tmp_path / "site"
    info = folder / "build_tiny-1.2.3.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: build-tiny\nVersion: 1.2.3\n", encoding="utf-8")
    (info / "entry_points.txt").write_text("[pluralbench.builders]\ntiny = tiny_builder:build\n", encoding="utf-8")
    (folder / "tiny_builder.py").write_text(BUILDER, encoding="utf-8")
    return folder


def by_tiny(directory: Path) -> Path:
    """The release, which says that it was built by `build-tiny`."""
    tiny = {"name": "tiny", "distribution": "build-tiny", "version": "1.2.3"}
    edit_manifest(directory, lambda values: values.update(builder=tiny))
    return directory


def test_every_difference_is_found(release: Make, pairs: Pairs) -> None:
    old = pairs("q1", "q2", "q3", "q4")
    new = pl.concat([old[1:], pairs("中2", "א1", "q0")]).with_columns(
        chosen=pl.when(pl.col("id") == "q3").then(pl.lit("new")).otherwise("chosen"),
        profile=pl.when(pl.col("id").is_in(["q2", "q3"])).then(pl.col("profile").list.head(1)).otherwise("profile"),
    )
    a, b = release("a", old, pairs("x1")), release("b", new, pairs("x1"), pairs("y1"))
    assert diff(a, b) == [
        TableDiff("Art", "test", ["q0", "א1", "中2"], ["q1"], {"chosen": ["q3"], "profile": ["q2", "q3"]}),
        TableDiff("no", "test"),
        TableDiff("Society", "test", added=["y1"]),
    ]
    assert [bool(table) for table in diff(a, b)] == [True, False, True]
    assert diff(b, a)[2] == TableDiff("Society", "test", removed=["y1"])


def test_the_command_prints_some_ids_or_all_as_json(run: Run, release: Make, pairs: Pairs) -> None:
    a = release("a")
    b = release("b", pairs("q1", "q2", "q3", *(f"新{number}" for number in range(1200))), pairs("ש1", "中2"))
    assert run("diff", a, a) == (0, SAME)
    status, message = run("diff", a, b)
    assert status == 1
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in message.splitlines() if "│" in line]
    assert cells == [
        ["Art/test", "1,200 added", "新0, 新1, 新10, 新100, 新1000, … (1,195 more)"],
        ["Art/test", "1 removed", "q4"],
    ]
    status, message = run("diff", a, b, "--json")
    assert status == 1
    art, same_table = json.loads(message)
    assert len(art["added"]) == 1200
    assert art["removed"] == ["q4"]
    assert same_table == {"config": "no", "split": "test", "added": [], "removed": [], "changed": {}}
    assert "新0" in message


@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        (lambda b: (b / ART).write_bytes(b"garbage"), r" cannot be read as Parquet\.$"),
        (lambda b: (b / ART).unlink(), r" is missing\.$"),
        (table(ART, lambda rows: pl.concat([rows, rows[1:2]])), " does not match its manifest; run "),
    ],
)
def test_a_table_that_is_none_is_named(release: Make, damage: Damage, fault: str) -> None:
    a, b = release("a"), release("b")
    damage(b)
    with pytest.raises(ReleaseError, match=f"b/{ART}{fault}"):
        diff(a, b)


def test_a_builder_that_is_not_installed_is_named_with_the_mend(run: Run, release: Make) -> None:
    directory = release(builder="tiny")
    by_tiny(directory)
    assert run("rebuild", directory) == (
        2,
        f"Error: {directory} was built by build-tiny, which is not installed; if you trust that package, "
        "install build-tiny==1.2.3.\n",
    )


def test_an_installed_builder_rebuilds(
    run: Run, release: Make, pairs: Pairs, builder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(builder))
    monkeypatch.chdir(tmp_path)
    directory, other = by_tiny(release()), release("other", pairs("q1", "q2", "q3"), pairs("ש1", "中2"))
    plan = "Rebuilding with build-tiny 1.2.3, the installed builder.\n"
    assert run("rebuild", directory, "--out", tmp_path / "again") == (0, plan + SAME)
    assert directory.joinpath("README.md").read_bytes() == (tmp_path / "again/README.md").read_bytes()
    assert rebuild(directory, tmp_path / "third") == [TableDiff("Art", "test"), TableDiff("no", "test")]
    status, message = run("rebuild", directory, "--source", other)
    assert (status, "1 removed" in message, "q4" in message) == (1, True, True)

    edit_manifest(directory, lambda values: values["builder"].update(version="1.2.2"))
    plan += "The release was built with version 1.2.2, so its rows may differ.\n"
    assert run("rebuild", directory) == (0, plan + SAME)


def test_a_recipe_that_was_changed_is_not_rebuilt(
    run: Run, release: Make, builder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(builder))
    directory = by_tiny(release())
    recipe = directory / RECIPE
    recipe.write_text(recipe.read_text(encoding="utf-8").replace("中文", "English"), encoding="utf-8")
    problem = f"Error: {recipe} does not match the manifest; run `pluralbench-release verify {directory}`.\n"
    assert run("rebuild", directory) == (2, problem)


def test_order_and_bytes_are_no_difference(release: Make) -> None:
    a, b = release("a"), release("b")
    table(ART, lambda rows: rows.reverse().select(reversed(rows.columns)))(b)
    assert not any(diff(a, b))
