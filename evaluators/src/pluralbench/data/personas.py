"""Personas from a file: a few sentences about a person, and demonstrations of their choices."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pluralbench_rewards import EarlierPair
from pluralbench_runs import Json, digest
from pluralbench_tables import parse_json, read_text

from pluralbench.data.fields import Columns
from pluralbench.data.texts import parse_messages, parse_persona, response_text
from pluralbench.errors import DataError

PERSONAS_FILE = "personas.jsonl"
"""Name of the file that `synthesize` writes."""
FORM = '{"id": ..., "persona": "...", "demonstrations": [{"prompt": ..., "chosen": "...", "rejected": "..."}]}'


@dataclass(frozen=True)
class UserPersona:
    """Sentences about a person, and pairs that the person decided, which a judge is shown."""

    sentences: tuple[str, ...]
    demonstrations: tuple[EarlierPair, ...] = ()


def personas_digest(personas: Mapping[str, UserPersona]) -> str | None:
    """Return the SHA-256 of personas by id; None if there are none."""
    content: dict[str, Json] = {
        name: [list(one.sentences), [[list(pair.prompt), pair.chosen, pair.rejected] for pair in one.demonstrations]]
        for name, one in personas.items()
    }
    return digest(content) if content else None


def read_personas(path: Path) -> dict[str, UserPersona]:
    """Read personas by the id of an item or a person, from JSON Lines of the form `FORM`, or a directory with them.

    Raises:
        DataError: If a line has another form, or an id is there twice; the message names the line.
    """
    personas: dict[str, UserPersona] = {}
    for where, value in json_lines(path, PERSONAS_FILE):
        match value:
            case {"id": str() | int() as name, "persona": str() | list() as text, **others}:
                persona = _persona(str(name), text, others.get("demonstrations") or [], where)
            case _:
                raise DataError(f"{where}: the line does not have the form {FORM}.")
        if str(name) in personas:
            raise DataError(f"{where}: the id {name} has a persona on an earlier line; remove one of the two.")
        personas[str(name)] = persona
    return personas


def json_lines(path: Path, name: str) -> Iterator[tuple[str, Any]]:
    """Yield the place ("FILE, line 1") and the value of each line of a JSON Lines file, or of one in a directory."""
    path = path / name if path.is_dir() else path
    for number, line in enumerate(read_text(path, DataError).split("\n"), start=1):
        if line.strip():
            where = f"{path}, line {number}"
            yield where, parse_json(line, where, DataError)


def _persona(name: str, persona: Any, demonstrations: Any, where: str) -> UserPersona:
    try:
        sentences = parse_persona({"persona": persona}, "persona")
        pairs = tuple(_demonstration(pair) for pair in demonstrations)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        raise DataError(f"{where}: the line does not have the form {FORM}.") from None
    if sentences is None:
        raise DataError(f"{where}: the persona of id {name} is empty; write one, or remove the line.")
    return UserPersona(tuple(sentences), pairs)


def _demonstration(pair: Mapping[str, Any]) -> EarlierPair:
    chosen, rejected = (response_text(pair[side], side) for side in ("chosen", "rejected"))
    return EarlierPair(parse_messages(pair, Columns()), chosen, rejected)
