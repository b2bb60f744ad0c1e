"""Recipes: read from TOML, overridden by flags, written whole, compared."""

from pathlib import Path
from typing import ClassVar

import pytest
from pluralbench_runs import (
    FrozenModel,
    Recipe,
    RecipeError,
    describe_difference,
    differing_keys,
    read_recipe,
    write_recipe,
)
from pydantic import Field

TEXTS = ["中文", "نص عربي", "טקסט", "हिन्दी", "👩‍👩‍👧", 'quo"te \\ \'\'\' """', "line\r\nbreak\u2028", "\x01\x7f"]


class Llm(FrozenModel):
    """A nested table."""

    model: str = "tiny"
    extra: dict[str, object] = Field(default_factory=dict)


class Connection(FrozenModel):
    """An runtime_only table."""

    base_url: str | None = None
    concurrency: int = 8


class Build(Recipe):
    """A recipe with everything that a recipe can have."""

    runtime_only: ClassVar[frozenset[str]] = frozenset({"connection"})

    seed: int
    retriever: str = "bm25"
    names: list[str] = Field(default_factory=list)
    note: str | None = None
    llm: Llm = Llm()
    connection: Connection = Connection()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "recipe.toml"


def message(path: Path, text: str, overrides: dict[str, object] | None = None, model: type[Recipe] = Build) -> str:
    """What `read_recipe` says of `text`, without the name of the file."""
    path.write_text(text, encoding="utf-8")
    with pytest.raises(RecipeError) as caught:
        read_recipe(model, path, overrides)
    assert str(path) in str(caught.value)
    return str(caught.value).replace(str(path), "FILE")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("seed = 1\nretreiver = 'x'", "Recipe FILE: unknown key `retreiver`; did you mean `retriever`?"),
        ("seed = 1\n[llm]\nmodle = 'x'", "Recipe FILE: unknown key `llm.modle`; did you mean `model`?"),
        ("seed = 1\n[llm]\nzzz = 1", "Recipe FILE: unknown key `llm.zzz`; the keys here are model, extra."),
        ("", "Recipe FILE: the key `seed` is missing."),
        (
            "seed = 'one'",
            "Recipe FILE: `seed`: Input should be a valid integer, unable to parse string as an integer.",
        ),
        ("seed = 1\nnames = 'a'", "Recipe FILE: `names` must be a list; it is `a`."),
        ("seed = 1\nnames = ['a', 1]", "Recipe FILE: `names.1`: Input should be a valid string."),
        ("seed = ", "The recipe FILE is not valid TOML: Invalid value (at end of document)."),
    ],
)
def test_a_mistake_gets_one_sentence(path: Path, text: str, expected: str) -> None:
    assert message(path, text) == expected


def test_overrides_win_and_none_is_no_override(path: Path) -> None:
    path.write_text('seed = 1\nretriever = "bm25"\n', encoding="utf-8")
    overrides = {"seed": 2, "retriever": None, "names": ["a"], "llm.model": "large", "llm.extra.top_k": 5}
    assert read_recipe(Build, path, overrides) == Build(
        seed=2, retriever="bm25", names=["a"], llm=Llm(model="large", extra={"top_k": 5})
    )


@pytest.mark.parametrize("text", ["seed = 1", "seed = 'x'"])
def test_a_wrong_override_is_no_fault_of_the_file(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    with pytest.raises(RecipeError) as caught:
        read_recipe(Build, path, {"llm.modle": "x"})
    assert str(caught.value) == "The options: unknown key `llm.modle`; did you mean `model`?"


@pytest.mark.parametrize("text", TEXTS)
def test_what_is_written_reads_back_the_same(path: Path, text: str) -> None:
    recipe = Build(seed=3, retriever=text, names=[text, ""], llm=Llm(extra={text: [1, 0.5, True, {"k": text}]}))
    write_recipe(recipe, path)
    assert read_recipe(Build, path) == recipe
    assert "concurrency = 8" in path.read_text(encoding="utf-8")  # defaults are spelled out
    assert "note" not in path.read_text(encoding="utf-8")  # what is unset is not


class Data(FrozenModel):
    """A table whose digest follows its other keys."""

    location: str = "a"
    limit: int | None = None
    digest: str = "0" * 64


class Made(Recipe):
    """Settings of a run."""

    data: Data = Data()
    languages: tuple[str, ...] = ("deu", "spa")
    first: dict[str, int] = {"limit": 1}  # noqa: RUF012 - never changed
    seed: int = 0


@pytest.mark.parametrize(
    ("theirs", "sentence"),
    [
        (Made(), ""),
        (Made(seed=3), "seed 3, now 0"),
        (Made(data=Data(limit=20, digest="1" * 64)), "limit 20, now none"),
        (Made(data=Data(digest="1" * 64)), "data.digest 11111111…, now 00000000…"),
        (Made(data=Data(location="b")), "data.location b, now a"),
        (Made(first={"limit": 2}, data=Data(limit=4)), "data.limit 4, now none; first.limit 2, now 1"),
        (Made(first={"seed": 3, "limit": 1}, seed=3), "first.seed 3, now none; seed 3, now 0"),
        (Made(data=Data(limit=2), first={"limit": 1, "most": 2}), "limit 2, now none; most 2, now none"),
        (
            Made(languages=("fra", "ita", "nld", "pol", "rus"), seed=1, data=Data(location="/far/" * 9, limit=1)),
            'limit 1, now none; data.location /far//far//far//far//far//far//…, now a; languages ["fra", "ita", '
            '"nld", "pol", "r…, now ["deu", "spa"]; and 1 more',
        ),
    ],
)
def test_what_differs_is_said_in_few_words(theirs: Made, sentence: str) -> None:
    assert describe_difference(Made(), theirs) == sentence


class Scoring(FrozenModel):
    """A table of which one key is runtime_only."""

    token_budget: int = 8
    mode_of_padding: str = "left"
    mode: str = "packed"


class Scored(Recipe):
    """A recipe whose `runtime_only` names a table, a table in a table and a key."""

    runtime_only: ClassVar[frozenset[str]] = frozenset(
        {"connection", "scoring.token_budget", "scoring.mode_of", "llm.extra"}
    )

    scoring: Scoring = Scoring()
    connection: Connection = Connection()
    llm: Llm = Llm()


@pytest.mark.parametrize(
    ("ours", "theirs", "keys"),
    [
        (Build(seed=1), Build(seed=1), []),
        (Build(seed=1), Build(seed=2), ["seed"]),
        (
            Build(seed=1),
            Build(seed=2, llm=Llm(model="m", extra={"k": 1})),
            ["llm.extra.k", "llm.model", "seed"],
        ),
        (Build(seed=1), Build(seed=1, connection=Connection(base_url="http://127.0.0.1", concurrency=1)), []),
        (Scored(), Scored(connection=Connection(base_url="http://127.0.0.1", concurrency=1)), []),
        (Scored(), Scored(llm=Llm(extra={"top_k": 1, "deep": {"er": 2}})), []),
        (Scored(), Scored(scoring=Scoring(mode="padded", token_budget=1)), ["scoring.mode"]),
        (Scored(), Scored(scoring=Scoring(mode_of_padding="right")), ["scoring.mode_of_padding"]),
    ],
)
def test_only_keys_that_change_the_content_differ(ours: Recipe, theirs: Recipe, keys: list[str]) -> None:
    assert differing_keys(ours, theirs) == keys
    assert differing_keys(theirs, ours) == keys
