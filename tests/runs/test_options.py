"""Options that are made of fields: of a model's, and of a recipe's with what its files say."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import typer
from pluralbench_runs import FrozenModel, Program, Recipe, UserError
from pluralbench_runs.command import command_of
from pluralbench_runs.command_line import name_options
from pluralbench_runs.guard import usage_sentence
from pluralbench_runs.options import Flag, Options
from pluralbench_runs.program import Verb
from pluralbench_runs.recipe_options import COLUMNS, BuildOptions, Overrides, RecipeOptions
from pydantic import Field, field_validator


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


Ask = Callable[..., Any]


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ask]:
    """What a command made of functions shows for some words."""

    def asking(function: Callable[..., Any], **more: Any) -> Ask:
        here = sys.modules[__name__]
        for name, one in {"function": function, **more}.items():
            monkeypatch.setattr(here, name, one, raising=False)
        show = f"{__name__}:show" if "show" in more else ""
        made = {name: f"{__name__}:{name}" for name in more if name != "show"}
        program = Program("x", default=Verb(f"{__name__}:function", show, made), distribution="pluralbench-runs")

        def answer(*words: str) -> Any:
            monkeypatch.setenv("COLUMNS", "200")
            try:
                command_of(program)(words, prog_name="x", standalone_mode=False)
            except UserError as error:
                return str(error)
            except typer.TyperException as error:
                return usage_sentence(error)
            return capsys.readouterr().out

        return answer

    return asking


@pytest.fixture
def given(ask: Callable[..., Ask], tmp_path: Path) -> Ask:
    """What a command gets of these words, or the error; its help without words."""
    (tmp_path / "a.toml").write_text('size = 2\nnames = ["x", "y"]\n[source]\nstrict = true\n', encoding="utf-8")
    (tmp_path / "b.toml").write_text('names = ["q", "r", "s", "t"]\n[llm]\nmodel = "large"\n', encoding="utf-8")
    found: list[Overrides] = []

    def command(
        *, given: Annotated[Overrides, RecipeOptions(Asked, tmp_path)], how: Annotated[BuildOptions, Options("Result")]
    ) -> None:
        found.append(given | ({"how": how} if how != BuildOptions() else {}))

    answer = ask(command)

    def result(*words: str) -> Any:
        sentence = answer(*(words or ["--help", "all"]))
        return found.pop() if found else sentence

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
        "How large. From 1 to 9. Default: a: 2, b: 5.",
        "With people. Default: yes.",
        "Default: a: x y, b: 4 values.",
        "Where it is. Default: here.",
        "Default: a: yes.",
        "Which kind. Values: a, b.",
        "Default: b: large.",
        "Source:",
        "Result:",
    ):
        assert part in text, text
    assert "--provider" not in text


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (['effort="low"', 'more={"deep": [1, true, null]}', "n=1=2"], "--extra n='1=2' is not JSON; text needs quotes"),
        (['effort="low"', 'more={"deep": [1, true, null]}'], {"effort": "low", "more": {"deep": [1, True, None]}}),
        (["effort=low"], "--extra effort='low' is not JSON; text needs quotes: --extra 'effort=\"low\"'."),
        (['a={"x": 1, "x": 2}'], "--extra a: the JSON has a key twice."),
        (["a=NaN"], "--extra: `a` is not a finite number."),
        (["a=1", "a=2"], "--extra has a twice"),
    ],
)
def test_a_mapping_to_anything_takes_json(ask: Callable[..., Ask], words: list[str], expected: Any) -> None:
    class Sent(FrozenModel):
        extra: dict[str, Any] = Field(default_factory=dict, description="Fields.")

    found: list[Any] = []

    def command(*, sent: Annotated[Sent, Options()]) -> None:
        found.append(sent.extra)

    shown = ask(command)(*[part for word in words for part in ("--extra", word)])
    assert found == [expected] if isinstance(expected, dict) else shown.startswith(expected)


def test_a_value_that_a_model_refuses_is_named_by_its_option(ask: Callable[..., Ask]) -> None:
    class Pair(FrozenModel):
        both: tuple[int, ...] = Field((), description="Two.", json_schema_extra={"as_text": True, "flag": "--two"})

        @field_validator("both", mode="before")
        @classmethod
        def _read(cls, text: Any) -> Any:
            if not isinstance(text, str) or text.count("/") != 1:
                raise ValueError(f"{text!r} is not of the form A/B")
            return text.split("/")

    got: list[Pair] = []

    def command(*, pair: Annotated[Pair, Options(prefix="own-")]) -> None:
        got.append(pair)

    answer = ask(command)
    assert answer("--two", "1/2") == ""
    assert got == [Pair(both="1/2")]
    assert answer("--two", "1") == "--two: '1' is not of the form A/B."


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


def test_a_command_is_made_of_functions(ask: Callable[..., Ask]) -> None:
    class Scale(FrozenModel):
        name: str = Field(description="A name.")
        size: int = Field(5, ge=1, description="How large.")

    def double(*, times: Annotated[int, Flag("--twice", "N")] = 2) -> int:
        """Double.

        Args:
            times: Half of it.
        """
        return 2 * times

    def function(
        scale: Annotated[str | Scale, Options("Scales")], *, times: int = 0, pairs: Mapping[str, str] | None = None
    ) -> str:
        """Weigh something, with `times`.

        More of it,
        in two lines.

        Args:
            scale: The scale, a name
                or more.
            pairs: Values by name.

        Returns:
            What nobody sees.

        Examples:
            x kitchen --size 3
            x kitchen
                --fast
        """
        return f"{scale} {times} {pairs}"

    def show(result: str, *, times: int, loud: bool = False) -> None:
        """Show it."""
        typer.echo(f"{result.upper() if loud else result} of {times}")

    answer = ask(function, show=show, times=double)
    assert answer("kitchen", "--pairs", "a=b") == "name='kitchen' size=5 4 {'a': 'b'} of 4\n"
    assert answer("kitchen", "--twice", "3", "--loud", "--size", "2") == "NAME='KITCHEN' SIZE=2 6 NONE of 6\n"
    assert answer("kitchen", "--pairs", "a") == "--pairs 'a' is not of the form NAME=VALUE."
    text = " ".join(answer("--help", "all").split())
    for part in ("Weigh something,", "More of it, in two lines.", "The scale, a name or more.", "Half of it."):
        assert part in text
    assert "Examples: x kitchen --size 3 x kitchen --fast" in text
    assert "nobody" not in text
