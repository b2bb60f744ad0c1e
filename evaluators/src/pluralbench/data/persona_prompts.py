"""Prompts of the persona judge, from the texts in `persona_prompts.toml`.

A changed text needs a new VERSION, which runs record; a test checks the digest.
"""

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from pluralbench_calls.chat import Message
from pluralbench_calls.verdicts import MAX_CERTAINTY
from pluralbench_rewards.judge_prompts import SECTION, ReplySchema
from pluralbench_runs import Json, digest

from pluralbench.config.judges import ReplyFormat, Setting

VERSION = "1"
_TEXTS: dict[str, Any] = tomllib.loads(
    files("pluralbench.data").joinpath("persona_prompts.toml").read_text(encoding="utf-8")
)
CERTAINTY_SCHEMA: dict[str, Json] = {"type": "integer", "minimum": 1, "maximum": MAX_CERTAINTY}
PERSON, OPTION_A, OPTION_B = "about_the_person", "option_a", "option_b"
CONTEXT: dict[str, Json] = {"preference": "question", "opinion": "question", "authorship": "subject"}
WORDINGS: dict[str, Json] = {
    **_TEXTS,
    "certainty_schema": CERTAINTY_SCHEMA,
    "names": [PERSON, CONTEXT, OPTION_A, OPTION_B],
    "section": SECTION,
}


def persona_digest() -> str:
    """Return the SHA-256 of `WORDINGS`."""
    return digest(dict(WORDINGS))


def persona_sentences(item: Mapping[str, Any], variables: str) -> list[str]:
    """Return the sentences about an item's person of a variable set, "all" or "none", in the item's order."""
    return [
        entry["sentence"]
        for entry in item["persona"]
        if entry["sentence"] and variables != "none" and (variables == "all" or variables in (entry["sets"] or ()))
    ]


def persona_messages(
    item: Mapping[str, Any], variables: str, setting: Setting, style: ReplyFormat, *, swapped: bool = False
) -> list[Message]:
    """Build the messages about an item, with option B as A and A as B if `swapped`.

    A person without any sentence of the variable set is not mentioned. No text of an item can imitate the tags around
    it: if one contains a tag, all tags get a number.
    """
    sentences = persona_sentences(item, variables)
    options = [item["option_b"], item["option_a"]] if swapped else [item["option_a"], item["option_b"]]
    texts = {
        PERSON: " ".join(sentences),
        str(CONTEXT[item["kind"]]): item["context"],
        **dict(zip((OPTION_A, OPTION_B), options, strict=True)),
    }
    shown = {name: text for name, text in texts.items() if text.strip()}
    suffix = _tag_suffix(shown)
    system = [
        _TEXTS["with_persona" if sentences else "without"][item["kind"]],
        _TEXTS["material"].format(mark=f"{OPTION_A}{suffix}"),
        *([_TEXTS["tie"][item["kind"]]] if setting == "tie" else []),
        *([_TEXTS["bands"]] if setting == "certainty" else []),
        _TEXTS["how"][setting][style],
    ]
    sections = (SECTION.format(name=f"{name}{suffix}", text=text) for name, text in shown.items())
    return [
        {"role": "system", "content": "\n".join(map(str, system))},
        {"role": "user", "content": "\n\n".join(sections)},
    ]


def _tag_suffix(shown: Mapping[str, str]) -> str:
    """Return a suffix for tag names that makes them unlike any text: "", "-2", "-3", ..."""
    number, suffix = 1, ""
    while any(f"{name}{suffix}>" in text.casefold() for name in shown for text in shown.values()):
        number += 1
        suffix = f"-{number}"
    return suffix


def reply_schema(setting: Setting) -> ReplySchema:
    """Return the JSON schema of a structured reply."""
    letters = ["A", "B", "C"] if setting == "tie" else ["A", "B"]
    properties: dict[str, Any] = {"verdict": {"type": "string", "enum": letters}}
    if setting == "certainty":
        properties["certainty"] = CERTAINTY_SCHEMA
    return ReplySchema("verdict", properties)
