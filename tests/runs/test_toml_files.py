"""TOML from anybody is read within limits, or refused in one sentence; so is a recipe that holds a key."""

import os
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from hypothesis import given, settings
from hypothesis import strategies as st
from pluralbench_runs import Recipe, RecipeError, UserError, check_recipe, output_directory, parse_toml, read_recipe
from pluralbench_runs.toml_files import MAX_BYTES, MAX_DEPTH, read_toml
from pydantic import Field

TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
VALUES = st.recursive(
    TEXTS | st.integers(-(2**53) + 1, 2**53 - 1) | st.booleans() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=10,
)


class Asked(Recipe):
    """A recipe whose key may hold anything."""

    model: str = "m"
    extra: dict[str, Any] = Field(default_factory=dict)
    api_key_env: str | None = None


@given(st.dictionaries(TEXTS, VALUES, max_size=4))
def test_what_is_within_the_limits_is_read_as_it_is(values: dict[str, Any]) -> None:
    assert parse_toml(tomli_w.dumps(values)) == values


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = " + "[" * 5000, "tables or lists are nested deeper than 32"),
        ("a = " + "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1), "tables or lists are nested deeper than 32"),
        ("x = 1\n" + ".".join("a" * 200_000) + " = 1", "a key has more than 32 parts (line 2)"),
        ("extra = {'a b' = 9223372036854775808}", "`extra.a b` is an integer beyond 2**53"),
        ("a = " + "9" * 5000, "an integer has too many digits"),
        ("a = 1e999", "`a` is not a finite number"),
        ("a = 1979-05-27", "`a` is a date or a time; write it in quotes"),
        ('a = "\\u0000"', "`a` has a null character"),
        ('"\\u0000" = 1', "`'\\x00'` has a null character"),
        ("a = [", "Invalid value (at end of document)"),
        ("#" * (MAX_BYTES + 1), "it is longer than 500,000 characters"),
    ],
    ids=range(11),
)
def test_what_is_beyond_the_limits_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=r"\w") as refused:
        parse_toml(text)
    assert str(refused.value) == message
    path = tmp_path / "r.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(RecipeError) as unread:
        read_recipe(Asked, path)
    larger = f"The recipe {path} is larger than 500,000 bytes; shorten it."
    assert str(unread.value) in {f"The recipe {path} is not valid TOML: {message}.", larger}


def test_what_is_no_readable_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "gbk.toml").write_bytes("a = 1\nb = '中'".encode("gbk"))
    (tmp_path / "loop.toml").symlink_to("loop.toml")
    os.mkfifo(tmp_path / "pipe.toml")
    for name, message in {
        "": f"The taxonomy {tmp_path} is a folder; give a file.",
        "none.toml": f"There is no taxonomy {tmp_path}/none.toml.",
        "gbk.toml": f"The taxonomy {tmp_path}/gbk.toml is not UTF-8 (line 2); save it as UTF-8.",
        "pipe.toml": f"The taxonomy {tmp_path}/pipe.toml cannot be read: it is not a regular file; save its",
        "loop.toml": "Too many levels of symbolic links",
        "a\0b": "embedded null byte",
        "x" * 300: "File name too long",
    }.items():
        with pytest.raises(UserError) as refused:
            read_toml(tmp_path / name, "taxonomy", UserError)
        assert message in str(refused.value)
    (tmp_path / "marked.toml").write_bytes("a = '中'".encode("utf-8-sig"))
    assert read_toml(tmp_path / "marked.toml") == {"a": "中"}


def test_a_value_from_a_command_line_that_is_not_utf_8_is_refused() -> None:
    for value, problem in (
        ("caf\udce9", "a byte that is not text here; use UTF-8, or set PYTHONUTF8=1"),
        ("\ud83d", "half a character"),
    ):
        with pytest.raises(RecipeError, match=rf"^Recipe of the model: `model` has {problem}\.$"):
            check_recipe(Asked, {"model": value}, "of the model")


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"model": "https://example.org/sk%2f12345678"}, "model"),
        ({"extra": {"headers": ["Bearer sk/12345678"]}}, "extra.headers.0"),
        ({"extra": {"sk/12345678": 1}}, "extra.[key]"),
    ],
)
@pytest.mark.parametrize("variable", ["SOME_API_KEY", "ENDPOINT"])
def test_a_recipe_that_holds_a_key_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, values: dict[str, Any], key: str, variable: str
) -> None:
    values = values | {"api_key_env": "ENDPOINT"}
    recipe = check_recipe(Asked, values, "r.toml")
    monkeypatch.setenv(variable, "sk/12345678")
    fault = (
        f"`{key}` contains the value of the environment variable {variable}; remove it, because recipes are published."
    )
    with pytest.raises(RecipeError) as refused:
        check_recipe(Asked, values, "r.toml")
    assert str(refused.value) == f"Recipe r.toml: {fault}"
    with (
        pytest.raises(RecipeError) as unopened,
        output_directory(tmp_path / "out", recipe, recipe_file="recipe.toml"),
    ):
        pass
    assert str(unopened.value) == f"Recipe of {tmp_path / 'out'}: {fault}"
    assert not [*tmp_path.iterdir()]


MARKS = [*"=[]{}.,\n\"'\\#-_\0\ufeff", "[[", "]]", '"""', "'''"]


WORDS = ["a", "1", "e9", "9" * 5000, "0x" + "f" * 40, "nan", "1979-05-27", "a.a = 1\n", "[a]\n", "\\u0000", "中"]


PIECES = st.sampled_from(MARKS + WORDS)


@given(st.lists(PIECES | TEXTS, max_size=12).map("".join) | st.binary().map(lambda data: data.decode("latin-1")))
@settings(max_examples=300)
def test_any_text_is_read_or_refused_in_a_sentence(text: str) -> None:
    try:
        check_recipe(Asked, parse_toml(text), "r.toml")
        said = "read"
    except (ValueError, UserError) as error:
        said = str(error)
    assert "\n" not in said
    assert "\0" not in said
    assert 0 < len(said) < 700
