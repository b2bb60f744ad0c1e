"""A name that passes is one part of a path and a config that `datasets` loads; a path that passes stays below."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pluralbench_runs import (
    FrozenModel,
    PathName,
    RecipeError,
    SplitName,
    UserError,
    check_path_name,
    check_recipe,
    safe_join,
)
from pluralbench_runs.path_names import MAX_NAME_BYTES, check_split_name, validate_folder_name

WHATEVER = st.text(max_size=8) | st.text(st.sampled_from("ab.-_/\\:*?[]{}|<>~ \0\n中é"), max_size=8)
PLAIN = st.text(st.sampled_from("aZ9_-.中é٣"), min_size=1, max_size=30)


class Named(FrozenModel):
    """What is named in a recipe."""

    name: PathName = "a"
    split: SplitName = "test"


@given(WHATEVER | PLAIN)
def test_a_name_that_passes_is_one_part_of_a_path_and_a_config_of_datasets(name: str) -> None:
    from datasets import BuilderConfig
    from datasets.data_files import contains_wildcards

    try:
        check_path_name(name, "The benchmark")
    except UserError:
        return
    path = Path("folder") / name
    assert path.parent == Path("folder")
    assert os.path.normpath(path) == str(path)
    assert BuilderConfig(name=name).name == name  # it raises InvalidConfigName
    assert not contains_wildcards(f"data/{name}/test.parquet")
    assert safe_join(Path("folder"), f"{name}/test.parquet") == path / "test.parquet"


@given(WHATEVER | PLAIN)
def test_a_split_that_passes_is_one_of_datasets(name: str) -> None:
    from datasets import NamedSplit

    try:
        check_split_name(name, "The split")
    except UserError:
        return
    assert str(NamedSplit(name)) == check_path_name(name, "The split")
    assert name.lower() != "all"


@pytest.mark.parametrize(
    "name", ["a", "LLMEval-2_Law", "Qwen2.5-7B", "中文", "हिन्दी", "__main__", "1.0", "a..b", "x" * MAX_NAME_BYTES]
)
def test_names_of_any_script_pass(name: str) -> None:
    assert check_path_name(name, "The benchmark") == name
    assert Named(name=name).name == name


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("..", "which is the parent folder `..`"),
        ("../../x", "which has '/' (allowed: letters, digits, `_`, `-` and `.`)"),
        ("x[red]y", "which has '[' (allowed:"),
        (".git", "which begins with `.`"),
        ("x.", "which ends with `.`"),
        ("e\u0301", "which is not in Unicode's normal form NFC"),
        ("中" * 34, "which is longer than 100 bytes"),
    ],
)
def test_any_other_name_is_refused_with_what_is_wrong(name: str, fault: str) -> None:
    with pytest.raises(UserError) as refused:
        check_path_name(name, "The benchmark")
    message = str(refused.value)
    assert fault in message
    assert message.startswith("The benchmark is named '")
    assert message.endswith("; rename it.")
    assert "\0" not in message
    with pytest.raises(
        RecipeError, match=r"^Recipe r.toml: `name`(: the name '.*; choose another| has a null character)\.$"
    ):
        check_recipe(Named, {"name": name}, "r.toml")


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("all", "which means every split to `datasets`"),
        ("a-b", "which is not a split name: `datasets` allows letters, digits, `_` and single `.`"),
        ("a..b", "which is not a split name: `datasets`"),
        ("a/b", "which has '/' (allowed:"),
    ],
)
def test_a_split_is_refused_that_datasets_does_not_take(name: str, fault: str) -> None:
    with pytest.raises(UserError) as refused:
        check_split_name(name, "The split")
    assert fault in str(refused.value)
    with pytest.raises(RecipeError, match=r"^Recipe r.toml: `split`: the name "):
        check_recipe(Named, {"split": name}, "r.toml")


@pytest.mark.parametrize(
    "relative", ["", "/etc/passwd", "../x", "a/../../x", "a//b", "a/", "./a", "a/\0", "C:x", "a\\b"]
)
def test_a_path_that_climbs_or_starts_elsewhere_is_refused(tmp_path: Path, relative: str) -> None:
    with pytest.raises(UserError) as refused:
        safe_join(tmp_path, relative)
    assert str(refused.value).startswith(f"{relative!r} is not a path below {tmp_path}: its part '")


def test_a_link_may_lead_elsewhere_in_the_folder_and_not_out_of_it(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    (folder / "data").mkdir(parents=True)
    (folder / "in").symlink_to("data")
    (folder / "out").symlink_to(tmp_path)
    (folder / "loop").symlink_to("loop")
    (folder / "nothing.txt").symlink_to(tmp_path / "nothing.txt")
    assert safe_join(folder, "in/new.txt") == folder / "in/new.txt"
    for relative in ("out/new.txt", "loop/new.txt", "nothing.txt"):
        with pytest.raises(UserError) as refused:
            safe_join(folder, relative)
        assert (
            str(refused.value) == f"The path {folder / relative} leads out of {folder} through a link; remove the link."
        )


@given(WHATEVER | PLAIN)
def test_a_folder_name_that_passes_stays_below_its_parent(name: str) -> None:
    try:
        assert validate_folder_name(name) == name
    except ValueError:
        return
    assert os.path.normpath(Path("folder") / name) == f"folder/{name}"
    assert "/" not in name


@given(st.text(st.sampled_from("./abc\\~\0中"), max_size=12))
def test_a_path_that_passes_lies_below_its_folder(relative: str) -> None:
    try:
        path = safe_join(Path("/srv/folder"), relative)
    except UserError:
        return
    assert Path(os.path.normpath(path)).is_relative_to("/srv/folder/")
    assert path != Path("/srv/folder")


def test_a_folder_that_is_reached_by_a_link_holds_its_files(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "linked").symlink_to("real")
    assert safe_join(tmp_path / "linked", "a.txt") == tmp_path / "linked/a.txt"
