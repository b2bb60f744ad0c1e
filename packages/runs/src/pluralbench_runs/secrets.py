"""Secrets of the environment, taken out of text before anybody reads or keeps it."""

import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import quote, quote_plus, unquote, urlsplit

SHORTEST = 8  # characters: what is shorter is a word that any text may hold
INSTEAD = "[key]"

SECRET = re.compile(r".*_(KEY|TOKEN|SECRET|PASSWORD)", re.IGNORECASE)  # names of environment variables
PROXY = re.compile(r"(https?|all|ftp|wss?|socks5?)_proxy", re.IGNORECASE)


def redact(text: str, *variables: str) -> str:
    """Replace each of `environment_secrets(*variables)` in a text by `[key]`, also as URLs and JSON escape it."""
    forms = {form for value in environment_secrets(*variables) for form in _forms(value)}
    for form in sorted(forms, key=len, reverse=True):  # what holds another goes first
        text = text.replace(form, INSTEAD)
    return text


def environment_secrets(*variables: str) -> list[str]:
    """The secrets of this environment, each once, longest first; those under `SHORTEST` characters are left out.

    They are the values of `variables` and of each environment variable named `..._KEY`, `..._TOKEN`, `..._SECRET` or
    `..._PASSWORD`, the token that the Hub's client keeps in a file, and of each proxy variable the password (the user,
    where there is no password) and both together. A user's name beside a password is a word like any other.
    """
    return sorted(_owners(*variables), key=lambda value: (-len(value), value))


def first_secret(texts: Iterable[str], *variables: str) -> tuple[int, str] | None:
    """The number of the first text that holds a secret in any form, and whose it is; None where none does.

    Whose is said in words: "the environment variable HF_TOKEN".
    """
    forms = [(form, owner) for value, owner in _owners(*variables).items() for form in _forms(value)]
    return next(((number, owner) for number, text in enumerate(texts) for form, owner in forms if form in text), None)


def _owners(*variables: str) -> dict[str, str]:
    """Each secret, and where it is kept, in words."""
    found = {_hub_token().strip(): "the token file of the Hub's client"}
    for name, value in os.environ.items():
        if name in variables or SECRET.fullmatch(name):
            found[value.strip()] = f"the environment variable {name}"
        elif PROXY.fullmatch(name):
            found |= {part.strip(): f"the environment variable {name}" for part in _credentials(value)}
    return {value: owner for value, owner in found.items() if len(value) >= SHORTEST}


def _forms(value: str) -> Iterator[str]:
    """A value as it may stand in a text."""
    yield value
    yield json.dumps(value)[1:-1]
    yield json.dumps(value, ensure_ascii=False)[1:-1]
    raw = os.fsencode(value)
    for encoded in (quote(raw, safe=""), quote(raw), quote_plus(raw)):
        yield encoded
        yield re.sub("%[0-9A-F]{2}", lambda found: found[0].lower(), encoded)


def _credentials(url: str) -> Iterator[str]:
    """The secret parts of a URL `http://user:password@host`, as they stand there and decoded."""
    try:
        place = urlsplit(url if "://" in url else f"http://{url}").netloc
    except ValueError:  # an address that is none, such as `http://user:password@[`
        place = url
    both, at, _ = place.rpartition("@")
    if at:
        yield both
        yield both.partition(":")[2] or both
        yield unquote(both.partition(":")[2] or both)


def _hub_token() -> str:
    """The token in the file of `hf auth login`; "" without one."""
    try:
        return token_file().read_text(encoding="utf-8")
    except (OSError, ValueError, RuntimeError):  # RuntimeError: there is no home
        return ""


def token_file() -> Path:
    """Where the Hub's client keeps its token, as `huggingface_hub.constants` finds it."""
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    home = os.environ.get("HF_HOME") or f"{cache}/huggingface"
    return Path(os.path.expandvars(os.environ.get("HF_TOKEN_PATH") or f"{home}/token")).expanduser()
