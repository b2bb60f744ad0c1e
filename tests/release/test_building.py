"""What a build does around its method: a directory of its own, calls that are known, and nothing half done."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest
from pluralbench_release import (
    LEDGER,
    Builder,
    Contents,
    ReleaseError,
    ReleaseName,
    ReleaseRecipe,
    building,
    read_manifest,
    verify,
)
from pluralbench_runs import BuildOptions, OutputError, RecipeError, check_recipe
from releases import contents_of, write_ledger

Pairs = Callable[..., pl.DataFrame]
BUILDER = Builder("tiny", "pluralbench-release")


class TinyRecipe(ReleaseRecipe):
    """What these builds are asked for."""

    name: ReleaseName = "tiny"


@dataclass
class Calls:
    """Recorded calls, as `pluralbench_calls` has them."""

    extract: Path
    new: int


def contents(*frames: pl.DataFrame) -> Contents:
    return contents_of(("Art", frame) for frame in frames)


def calls(folder: Path, *frames: pl.DataFrame) -> Calls:
    return Calls(write_ledger(folder / "ledger.parquet", *frames), new=2)


def test_a_release_takes_its_place_whole(pairs: Pairs, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for frame in (pairs("q1"), pairs("q1", "q2")):
        with building(TinyRecipe(), BUILDER, BuildOptions(out=out)) as making:
            assert making.ledgers == ([out / LEDGER] if out.exists() else [])
            made = making.release(contents(frame), calls(making.work, frame))
        assert (made.manifest, made.figures["pairs"], made.new_calls) == (read_manifest(out), 6, 2)
        assert verify(out) == []
        assert [path.name for path in tmp_path.iterdir()] == ["out"]
    manifest = read_manifest(out)
    assert (manifest.name, manifest.version, manifest.recipe["seed"]) == ("tiny", "0.1.0", 42)
    assert (manifest.builder.name, manifest.builder.distribution) == ("tiny", "pluralbench-release")


def test_a_build_that_fails_leaves_the_release_and_its_work(pairs: Pairs, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with building(TinyRecipe(), BUILDER, BuildOptions(out=out)) as making:
        making.release(contents(pairs("q1")), calls(making.work, pairs("q1")))
    before = read_manifest(out)
    with building(TinyRecipe(), BUILDER, BuildOptions(out=out)) as making:
        nothing, made = contents(), calls(making.work)
        with pytest.raises(ReleaseError):
            making.release(nothing, made)
    assert read_manifest(out) == before
    assert (tmp_path / "out.work/ledger.parquet").is_file()
    with (
        pytest.raises(OutputError, match="seed"),
        building(TinyRecipe(seed=7), BUILDER, BuildOptions(out=out)),
    ):
        pass
    with building(TinyRecipe(seed=7), BUILDER, BuildOptions(out=out, fresh=True)) as making:
        assert making.ledgers == []


@pytest.mark.parametrize(
    ("key", "value", "fault"),
    [
        ("name", "../up", "the name '../up' has '/' "),
        ("name", "", "the name '' is empty"),
        ("name", "茶", "String should match pattern"),  # the Hub takes Latin letters alone
        ("version", "1", "String should match pattern"),
    ],
)
def test_a_name_and_a_version_have_their_form(key: str, value: str, fault: str) -> None:
    with pytest.raises(RecipeError, match=f"`{key}`: {fault}"):
        check_recipe(TinyRecipe, {key: value}, "recipe.toml")
