"""Options that are made of fields: of a model's, and of a recipe's with what its files say."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import typer
from pluralbench_runs import FrozenModel, Recipe, RecipeError
from pluralbench_runs.options import (
    COLUMNS,
    BuildOptions,
    Options,
    Overrides,
    RecipeOptions,
    field_flags,
    name_options,
    with_options,
)
from pydantic import Field, field_validator
from typer.testing import CliRunner


class Model(FrozenModel):
    provider: str = Field("own", description="Not an option of its own.")
    model: str = "m"


class Part(FrozenModel):
    location: str
    columns: dict[str, str] = COLUMNS
    kind: Literal["a", "b"] | None = Field(None, description="Which kind.")


class Source(FrozenModel):
    location: str = Field("here", description="Where it is.", json_schema_extra={"flag": "--source"})
    columns: dict[str, str] = COLUMNS
    files: list[Path] = Field(default_factory=list, description="Which files; repeatable.")
    strict: bool = Field(False, description="Whether it is strict.")
    hidden: int = 1


class Asked(Recipe):
    size: int = Field(5, ge=1, le=9, description="How large.")
    human: bool = Field(True, description="With people.", json_schema_extra={"flag": "--human/--no-human"})
    names: list[str] = Field(
        default_factory=list, description="Names; repeatable.", json_schema_extra={"flag": "--name"}
    )
    source: Source = Source()
    parts: list[Part] = Field(
        default_factory=list, description="Parts.", json_schema_extra={"flag": "--part", "text_key": "location"}
    )
    llm: Model = Field(Model(), description="A model.", json_schema_extra={"as_text": True, "text_key": "model"})


@pytest.fixture
def given(tmp_path: Path) -> Callable[..., Any]:
    """What a command gets of these words, or the error; its help without words."""
    (tmp_path / "a.toml").write_text('size = 2\nnames = ["x", "y"]\n[source]\nstrict = true\n', encoding="utf-8")
    (tmp_path / "b.toml").write_text('names = ["q", "r", "s", "t"]\n[llm]\nmodel = "large"\n', encoding="utf-8")
    found: list[Overrides] = []

    @with_options
    def command(
        *, given: Annotated[Overrides, RecipeOptions(Asked, tmp_path)], how: Annotated[BuildOptions, Options("Result")]
    ) -> None:
        found.append(given | ({"how": how} if how != BuildOptions() else {}))

    def result(*words: str) -> Any:
        app = typer.Typer(add_completion=False)
        app.command()(command)
        done = CliRunner().invoke(app, words or ["--help"], env={"COLUMNS": "200"})
        if isinstance(done.exception, RecipeError):
            return str(done.exception)
        return found.pop() if words and done.exit_code == 0 else done.output

    return result


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--size", "3"], {"size": 3}),
        (["--no-human"], {"human": False}),
        (["--name", "x", "--name", "y"], {"names": ["x", "y"]}),
        (["--source", "there", "--strict"], {"source.location": "there", "source.strict": True}),
        (["--files", "a", "--files", "b"], {"source.files": ["a", "b"]}),
        (["--column", "prompt=text"], {"source.columns": {"prompt": "text"}}),
        (["--part", "p", "--part", "q", "--kind", "b"], {"parts": [{"location": p, "kind": "b"} for p in "pq"]}),
        (
            ["--part", "p", "--column", "x=y"],
            {"source.columns": {"x": "y"}, "parts": [{"location": "p", "columns": {"x": "y"}}]},
        ),
        (["--llm", "small"], {"llm.model": "small"}),
        (["--out", "o", "--fresh"], {"how": BuildOptions(out=Path("o"), fresh=True)}),
        (["--kind", "a"], "--kind requires --part."),
        (["--column", "prompt"], "--column 'prompt' is not of the form FIELD=COLUMN, such as prompt=text."),
        (["--column", "=text"], "--column '=text' is not of the form FIELD=COLUMN, such as prompt=text."),
    ],
)
def test_a_recipe_gets_what_its_options_say(given: Callable[..., Any], words: list[str], expected: Any) -> None:
    assert given(*words) == expected


@pytest.mark.parametrize("words", [["--size", "0"], ["--size", "10"], ["--kind", "c"], ["--hidden", "2"]])
def test_what_no_field_takes_is_refused(given: Callable[..., Any], words: list[str]) -> None:
    assert words[0] in given(*words)


def test_help_shows_what_the_recipes_say(given: Callable[..., Any]) -> None:
    text = " ".join(given().split())
    for part in (
        "(a: 2, b: 5)",
        "[default: (yes)]",
        "(a: x y, b: 4 values)",
        "(here)",
        "(a: yes)",
        "(b: large)",
        "─ Source ─",
        "─ Result ─",
    ):
        assert part in text, text
    assert "--provider" not in text


def test_a_value_that_a_model_refuses_is_named_by_its_option() -> None:
    class Pair(FrozenModel):
        both: tuple[int, ...] = Field((), description="Two.", json_schema_extra={"as_text": True, "flag": "--two"})

        @field_validator("both", mode="before")
        @classmethod
        def _read(cls, text: Any) -> Any:
            if not isinstance(text, str) or text.count("/") != 1:
                raise ValueError(f"{text!r} is not of the form A/B")
            return text.split("/")

    got: list[Pair] = []

    @with_options
    def command(*, pair: Annotated[Pair, Options("Pair", prefix="own-")]) -> None:
        got.append(pair)

    command(own_both="1/2")
    assert got == [Pair(both="1/2")]
    with pytest.raises(RecipeError, match=r"^--two: '1' is not of the form A/B\.$"):
        command(own_both="1")


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ('choose `profile="none"` or `plans=...`', "choose `--profile none` or `--plans`"),
        ("leave out `legacy=True`, or `human=False`", "leave out `--legacy`, or `--no-human`"),
        ('name it: `columns=["id=key", "prompt=text"]`', "name it: `--column id=key --column prompt=text`"),
        ("raise `policy.max_tokens=512`", "raise `--policy-max-tokens 512`"),
        ("set `policy.many=True`; `judge.x=1`", "set `policy.many = true` of the recipe; `judge.x=1`"),
        ("raise `connection.price=1`", "raise `--a-price 1` or `--b-price 1`"),
        ("give `model=...`, not `other=1` or `prompt = ...`", "give `MODEL`, not `other=1` or `prompt = ...`"),
    ],
)
def test_errors_of_a_command_name_its_options(message: str, shown: str) -> None:
    flags = {
        "profile": "--profile",
        "plans": "--plans",
        "legacy": "--legacy",
        "human": "--human/--no-human",
        "columns": "--column",
        "policy.max_tokens": "--policy-max-tokens",
        "a_connection.price": "--a-price",
        "b_connection.price": "--b-price",
        "model": "MODEL",
    }
    assert name_options(message, flags) == shown


def test_each_parameter_of_a_command_has_one_flag() -> None:
    class Sampling(FrozenModel):
        n: int = Field(1, description="Number.")
        texts: tuple[str, ...] = Field((), description="Texts.", json_schema_extra={"flag": "--text"})

    def command(
        *, own: Annotated[Sampling, Options("Own")], judge: Annotated[Sampling, Options("Judge", prefix="judge-")]
    ) -> None: ...

    assert field_flags(with_options(command)) == {
        "own.n": "--n",
        "judge.n": "--judge-n",
        "own.texts": "--text",
        "judge.texts": "--text",
        "texts": "--text",
    }
