"""Personas from a file: what describes somebody in a few sentences, and choices of theirs that show it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pluralbench_rewards import EarlierPair
from pluralbench_runs import Json, digest
from pluralbench_tables import parse_json, read_text

from pluralbench.data.benchmarks import Columns
from pluralbench.data.profiles import parse_persona
from pluralbench.data.texts import messages_of, responses_of
from pluralbench.errors import DataError

PERSONAS_FILE = "personas.jsonl"
"""What `synthesize` calls its file."""
FORM = '{"id": ..., "persona": "...", "demonstrations": [{"prompt": ..., "chosen": "...", "rejected": "..."}]}'


@dataclass(frozen=True)
class UserPersona:
    """What describes a person. demonstrations: pairs that they decided, to be shown to a judge."""

    sentences: tuple[str, ...]
    demonstrations: tuple[EarlierPair, ...] = ()


def personas_digest(personas: Mapping[str, UserPersona]) -> str | None:
    """SHA-256 of personas by id; None where there are none."""
    content: dict[str, Json] = {
        name: [list(one.sentences), [[list(pair.prompt), pair.chosen, pair.rejected] for pair in one.demonstrations]]
        for name, one in personas.items()
    }
    return digest(content) if content else None


def read_personas(path: Path) -> dict[str, UserPersona]:
    """Personas by the id of an item or of a person, from JSON Lines of the form `FORM`; demonstrations may be left out.

    path: the file, or a directory that holds it as `PERSONAS_FILE`.

    Raises `DataError` naming the line that is not of this form, or whose id stands there twice.
    """
    personas: dict[str, UserPersona] = {}
    for where, value in json_lines(path, PERSONAS_FILE):
        match value:
            case {"id": str() | int() as name, "persona": str() | list() as told, **others}:
                persona = _persona(str(name), told, others.get("demonstrations") or [], where)
            case _:
                raise DataError(f"{where}, is not of the form {FORM}.")
        if str(name) in personas:
            raise DataError(f"{where}: the id {name} has a persona before this line; leave one of the two.")
        personas[str(name)] = persona
    return personas


def json_lines(path: Path, name: str) -> Iterator[tuple[str, Any]]:
    """The place and the value of each line of a JSON Lines file; of a directory, of its file of this name."""
    path = path / name if path.is_dir() else path
    for number, line in enumerate(read_text(path, DataError).split("\n"), start=1):
        if line.strip():
            where = f"{path}, line {number}"
            yield where, parse_json(line, where, DataError)


def _persona(name: str, persona: Any, demonstrations: Any, where: str) -> UserPersona:
    try:
        told = parse_persona({"persona": persona}, "persona")
        shown = tuple(_demonstration(pair) for pair in demonstrations)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        raise DataError(f"{where}, is not of the form {FORM}.") from None
    if told is None:
        raise DataError(f"{where}: the persona of id {name} is empty; write one, or take the line away.")
    return UserPersona(tuple(told), shown)


def _demonstration(pair: Mapping[str, Any]) -> EarlierPair:
    columns = Columns()
    _, (chosen, rejected), _ = responses_of(pair, columns)
    return EarlierPair(messages_of(pair, columns), chosen, rejected)
