"""Help of a command: `--help` is one screen, `--help GROUP` a group of options, and `--help all` everything."""

import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from pathlib import Path
from textwrap import fill, shorten, wrap
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from pluralbench_runs.errors import RecipeError, plural
from pluralbench_runs.options import Option, dashed, heading

EVERYTHING, GENERAL = "all", "general"
MAX_SHORT = 12
"""Most options of a command whose short help shows all of them."""
MAX_ABOUT = 110
"""Longest sentence about an option that the short help shows instead of its values."""
MAX_WIDTH, COLUMN = 100, 24
SENTENCE = re.compile(r"(?<=[.!?]) (?=[A-Z`])")
DEFAULT = "Default: "


class Page(NamedTuple):
    """What the help of a command says.

    Attributes:
        body: What the command does, in paragraphs; the first one is the short help.
        examples: Lines to copy; the first two are in the short help.
        common: Options in the short help, most used first.
        verbs: What each verb does, by heading.
    """

    body: str
    options: Sequence[Option] = ()
    examples: Sequence[str] = ()
    common: Sequence[str] = ()
    verbs: Mapping[str, Mapping[str, str]] = {}

    @property
    def groups(self) -> dict[str, list[Option]]:
        """The options by the name of their group."""
        options = [option for option in self.options if not option.is_argument]
        groups: dict[str, list[Option]] = {}
        for panel, own in groupby(options, lambda option: option.mark.panel):
            groups.setdefault(dashed((panel or "").lower().replace(" ", "_")) or GENERAL, []).extend(own)
        return groups


class HelpCommand(TyperCommand):
    """A command with a page of help."""

    page = Page("")

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """See `click.Command.parse_args`."""
        _answer_help(ctx, self.page, args)
        return super().parse_args(ctx, args)


class HelpGroup(TyperGroup):
    """A command with verbs and a page of help."""

    page = Page("")

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """See `click.Command.parse_args`."""
        own = next((place for place, word in enumerate(args) if word in self.commands), len(args))
        _answer_help(ctx, self.page, args[:own])
        if not args and self.no_args_is_help and not ctx.resilient_parsing:
            typer.echo(page_text(self.page, ctx.command_path))
            ctx.exit(2)
        return super().parse_args(ctx, args)


def _answer_help(ctx: Any, page: Page, args: Sequence[str]) -> None:
    """Print the help that the words ask for, and exit; return if they ask for none."""
    words = args[: args.index("--")] if "--" in args else args
    for word, following in pairwise([*words, ""]):
        flag, _, topic = word.partition("=")
        if flag in {"-h", "--help"} and not ctx.resilient_parsing:
            topic = topic or ("" if following.startswith("-") else following)
            typer.echo(page_text(page, ctx.command_path, topic))
            ctx.exit()


def page_text(page: Page, command: str, topic: str = "", *, width: int = 0) -> str:
    """Return the help of a command, with a group of options or `all` as the topic.

    Raises:
        RecipeError: The command has no such group.
    """
    width = width or min(shutil.get_terminal_size().columns, MAX_WIDTH)
    groups = page.groups
    if topic not in {"", EVERYTHING, *groups}:
        known = f"the groups are {', '.join(groups)}" if groups else "it has no options"
        raise RecipeError(f"`{command}` has no group `{topic}` of options; {known}.")
    arguments = [option for option in page.options if option.is_argument]
    usage = " ".join([command, "[OPTIONS]", *(_form(option) for option in arguments), *["VERB"] * bool(page.verbs)])
    lines = [f"Usage: {usage}", ""]
    if topic in groups:
        return "\n".join([*lines, *_group(topic, groups[topic], width)])
    paragraphs = page.body.split("\n\n")
    lines += [line for text in paragraphs[: None if topic else 1] for line in (*wrap(text, width), "")]
    lines += [line for option in arguments for line in _row(_form(option), _text(option, short=not topic), width)]
    lines += [""] * bool(arguments)
    for title, verbs in page.verbs.items():
        lines += [
            _bold(title),
            *(f"  {verb:<17}{shorten(text, width - 19, placeholder='...')}" for verb, text in verbs.items()),
        ]
    lines += [""] * bool(page.verbs)
    if topic:
        lines += [line for name, group in groups.items() for line in (*_group(name, group, width), "")]
    else:
        lines += _short(page, groups, width)
    examples = page.examples[: None if topic else 2]
    lines += [_bold("Examples"), *(_example(text, width) for text in examples)]
    return "\n".join(lines).rstrip()


def first_sentence(text: str) -> str:
    """Return the first sentence of a text."""
    return SENTENCE.split(text.partition("\n\n")[0])[0]


def _short(page: Page, groups: Mapping[str, Sequence[Option]], width: int) -> Iterator[str]:
    """Yield the options that most people need, and the names of the groups."""
    options = [option for group in groups.values() for option in group]
    shown = options
    if len(options) > MAX_SHORT:
        named = {option.flag: option for option in options}
        required = [option for option in options if option.is_required]
        shown = list(dict.fromkeys([*required, *(named[flag] for flag in page.common if flag in named)]))
    if shown:
        yield _bold("Options")
        for option in shown:
            yield from _row(_form(option), _text(option, short=True), width)
        yield ""
    if len(shown) < len(options):
        counts = ", ".join(f"{name} ({len(group)})" for name, group in groups.items())
        text = f"All {plural(len(options), 'option')}: `--help all`, or `--help GROUP` with one of {counts}."
        yield from (*wrap(text, width, break_on_hyphens=False), "")
    elif any(_text(option, short=True) != _text(option) for option in options):
        yield from ("More about each: `--help all`.", "")


def _group(name: str, options: Sequence[Option], width: int) -> Iterator[str]:
    yield _bold(heading(name.replace("-", "_")))
    for option in options:
        yield f"  {_form(option)}"
        yield fill(_text(option), width, initial_indent=" " * 6, subsequent_indent=" " * 6, break_on_hyphens=False)


def _row(name: str, text: str, width: int) -> Iterator[str]:
    """Yield a name with a text in a column beside it, or below it if the name is long."""
    first, *others = wrap(text, width - COLUMN, break_on_hyphens=False) or [""]
    if len(name) > COLUMN - 4:
        yield f"  {name}"
        name = ""
    yield f"  {name:<{COLUMN - 2}}{first}".rstrip()
    for line in others:
        yield " " * COLUMN + line


def _example(text: str, width: int) -> str:
    """Return a command on lines that can be copied; one that is too long is continued before an option."""
    parts = re.sub(r" (?!-)", "\xa0", text)
    lines = wrap(parts, width - 8, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
    return " \\\n".join(f"  {line}" for line in lines).replace("\xa0", " ")


def _bold(text: str) -> str:
    return typer.style(f"{text}:", bold=True)


def _form(option: Option) -> str:
    """Return an option with the placeholder of its value, such as `--limit N`."""
    if option.is_argument:
        return option.flag
    kind, _ = option.value_kind
    if kind is bool:
        return option.flag
    return f"{option.flag} {option.mark.metavar or _placeholder(option.flag, kind)}"


def _placeholder(flag: str, kind: Any) -> str:
    if kind in {int, float}:
        return "N" if kind is int else "X"
    return "PATH" if kind is Path else flag.rpartition("-")[2].upper()


def _text(option: Option, *, short: bool = False) -> str:
    """Return the help of an option with its values and its default, or the sentence that most people need."""
    text = " ".join((option.info.description or "").split())
    _, values = option.value_kind
    if short:
        about, *others = SENTENCE.split(text)
        if values and len(about) > MAX_ABOUT:
            about = f"One of {', '.join(map(str, values))}."
        return " ".join([about, *(one for one in others[:1] if one.startswith(DEFAULT))])
    parts = [text, f"Values: {', '.join(map(str, values))}." if values else ""]
    bounds = option.bounds
    if "ge" in bounds:
        parts.append(f"From {bounds['ge']} to {bounds['le']}." if "le" in bounds else f"At least {bounds['ge']}.")
    shown = None if option.default in (None, False) else str(option.default)
    if option.is_required:
        parts.append("Required.")
    elif shown and "default:" not in text.lower():
        parts.append(f"{DEFAULT}{'yes' if shown == 'True' else shown}.")
    return " ".join(filter(None, parts))
