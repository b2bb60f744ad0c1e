"""Prompts of judges from files: those of this package by name, others by path.

A text in a prompt's file may be a table that names a file of the model's authors, which is read at run time: prompts
that are not ours are not part of this package.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from string import Formatter
from typing import Any, Literal, TypeVar

from pluralbench_runs import FrozenModel, RecipeError, check_recipe, did_you_mean, one_line, read_small
from pluralbench_runs.toml_files import read_toml
from pydantic import Field

from pluralbench_rewards.prompts.prompt import JudgePrompt, escape

Model = TypeVar("Model", bound=FrozenModel)

SHIPPED = Path(__file__).with_name("shipped")
JINJA = (".jinja", ".jinja2", ".j2")
_JINJA_NAME = re.compile(r"\{\{-?\s*([A-Za-z_]\w*)\s*-?\}\}")


class TextSource(FrozenModel):
    """A text in another file.

    Attributes:
        file: The file, below the folder of the prompt's source or else of the prompt's own file.
        constant: Name of the text in a Python file, which is read and not run; dots lead into classes and dictionaries.
        style: How variables are written: `{name}` as in Python's `str.format`, `{{ name }}` as in Jinja, `{name}` as in
            prompts of this package, or not at all ("plain"). Default: by the suffix of the file.
        lines: Number of lines to read. Default: all.
        rename: Our variables by theirs.
    """

    file: str
    constant: str | None = None
    style: Literal["format", "jinja", "own", "plain"] | None = None
    lines: int | None = Field(None, ge=1)
    rename: dict[str, str] = Field(default_factory=dict)


def shipped_prompts() -> list[str]:
    """Return the names of the prompts that come with this package."""
    return sorted(path.stem for path in SHIPPED.glob("*.toml"))


def load_prompt(name: str | Path) -> JudgePrompt:
    """Read a prompt by the name of a shipped one or the path of a TOML file; with @FOLDER, other texts are read there.

    Raises:
        RecipeError: There is no such prompt, or the file describes none.
    """
    text, _, folder = (str(name), "", "") if Path(name).is_file() else str(name).partition("@")
    path = SHIPPED / f"{text}.toml" if text in shipped_prompts() else Path(text)
    if not path.is_file():
        hint = did_you_mean(text, shipped_prompts()) or f"the names are {', '.join(shipped_prompts())}. "
        raise RecipeError(f"There is no prompt {text!r}; {hint}Give a name or the path of a TOML file.")
    values = read_toml(path, "prompt")
    source = None if path.parent == SHIPPED and not folder else Path(folder or path.parent)
    return _checked(JudgePrompt, {"name": path.stem, **_with_texts(values, path, source)}, path)


def _checked(model: type[Model], values: Mapping[str, Any], path: Path) -> Model:
    try:
        return check_recipe(model, values, str(path))
    except RecipeError as error:
        raise RecipeError(str(error).replace("Recipe ", "The prompt ", 1)) from None


def _with_texts(values: Mapping[str, Any], path: Path, folder: Path | None) -> dict[str, Any]:
    """Return the values of a prompt's file with the texts of other files in place of the tables that name them."""

    def text_of(value: object) -> object:
        if not isinstance(value, Mapping):
            return value
        source = _checked(TextSource, value, path)
        if folder is None:
            raise RecipeError(
                f"The prompt {path.stem} takes its text from {source.file} of {values.get('source', 'its authors')} "
                f"({values.get('license', 'license unknown')}); get that, and give its folder as "
                f'`prompt="{path.stem}@FOLDER"`.'
            )
        return _read_text(source, _below(folder, source.file))

    def messages_of(table: Mapping[str, Any]) -> dict[str, Any]:
        messages = table.get("messages")
        if not isinstance(messages, list):
            return dict(table)
        own = [
            {**one, "text": text_of(one["text"])} if isinstance(one, dict) and "text" in one else one
            for one in messages
        ]
        return {**table, "messages": own}

    changed = messages_of(values)
    if isinstance(values.get("blocks"), Mapping):
        changed["blocks"] = {name: text_of(text) for name, text in values["blocks"].items()}
    if isinstance(values.get("rubric"), Mapping):
        changed["rubric"] = messages_of(values["rubric"])
    return changed


def _below(folder: Path, name: str) -> Path:
    """Return the path of a file in a folder. A prompt of others must not send a user's files to the judge's server."""
    path = (folder / name).resolve()
    top = folder.resolve()
    if not path.is_relative_to(top) or any(part.startswith(".") for part in path.relative_to(top).parts):
        raise RecipeError(
            f"The prompt's file {name} is hidden or outside of {top}, and is not read; put a copy into that folder."
        )
    return path


def _read_text(source: TextSource, path: Path) -> str:
    try:
        text = read_small(path).decode("utf-8-sig")
    except (OSError, ValueError) as error:
        raise RecipeError(f"The prompt's file {path} cannot be read ({one_line(error, 200)}).") from None
    if source.constant is not None:
        text = _constant(text, source.constant, path)
    text = "\n".join(text.split("\n")[: source.lines])
    by_suffix = "jinja" if path.suffix in JINJA else "format" if path.suffix == ".py" else "own"
    style = source.style or by_suffix
    if style == "own":
        return text
    if style == "plain":
        return escape(text)
    parts = _jinja_parts(text, path) if style == "jinja" else _format_parts(text, path)
    return "".join(
        escape(literal) + ("" if name is None else f"{{{source.rename.get(name, name)}}}") for literal, name in parts
    )


def _format_parts(text: str, path: Path) -> Iterator[tuple[str, str | None]]:
    """Yield the literal texts of a format string, each with the variable after it."""
    try:
        parts = list(Formatter().parse(text))
    except ValueError as error:
        raise RecipeError(f"The text in {path} is not a format string ({error}); set `style` to plain.") from None
    for literal, name, form, conversion in parts:
        if name is not None and (not name.isidentifier() or form or conversion):
            raise RecipeError(f"The text in {path} has {{{name}}}, which is not the name of a variable.")
        yield literal, name


def _jinja_parts(text: str, path: Path) -> Iterator[tuple[str, str | None]]:
    """Yield the literal texts of a template, each with the variable after it."""
    text = text.removesuffix("\n")  # as Jinja does
    *pairs, last = _JINJA_NAME.split(text)
    if any(mark in literal for literal in [*pairs[::2], last] for mark in ("{%", "{#", "{{")):
        raise RecipeError(f"The template {path} has more than variables; copy its text into a prompt's file.")
    yield from zip(pairs[::2], pairs[1::2], strict=True)
    yield last, None


def _constant(code: str, name: str, path: Path) -> str:
    try:
        scope: ast.AST = ast.parse(code)
        for part in name.split("."):
            scope = _assigned(scope, part)
        return _text_value(scope)
    except (SyntaxError, ValueError, RecursionError, MemoryError, KeyError):  # MemoryError: nested too deep
        raise RecipeError(f"{path} has no text {name} that can be read.") from None


def _assigned(scope: ast.AST, name: str) -> ast.AST:
    """Return what has a name in a module, class, function or dictionary."""
    if isinstance(scope, ast.Dict):
        for key, value in zip(scope.keys, scope.values, strict=True):
            if isinstance(key, ast.Constant) and key.value == name:
                return value
    for node in ast.walk(scope):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            return node
        if isinstance(node, ast.Assign) and any(isinstance(one, ast.Name) and one.id == name for one in node.targets):
            return node.value
    raise KeyError(name)


def _text_value(node: ast.AST) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _text_value(node.left) + _text_value(node.right)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "strip":
        return _text_value(node.func.value).strip()
    raise ValueError("not a text")
