"""Removal of the environment's secrets from text that is shown or stored."""

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from urllib.parse import quote, quote_plus, unquote, urlsplit

MIN_LENGTH = 8  # characters; a shorter value may be an ordinary word
REPLACEMENT = "[key]"

SECRET = re.compile(r"_(KEY|TOKEN|SECRET|PASSWORD)\Z", re.IGNORECASE)  # ends of names of environment variables
PROXY = re.compile(r"(https?|all|ftp|wss?|socks5?)_proxy", re.IGNORECASE)


def redact(text: str, *variables: str) -> str:
    """Replace the secrets of the environment in a text by `[key]`, also in the forms that URLs and JSON escape."""
    return redactor(*variables)(text)


def redactor(*variables: str) -> Callable[[str], str]:
    """Return `redact` for several texts, with the environment as it is now, which is read once."""
    found = {form for value in environment_secrets(*variables) for form in _forms(value)}
    forms = sorted(found, key=len, reverse=True)  # a longer form may contain a shorter one

    def redacted(text: str) -> str:
        for form in forms:
            text = text.replace(form, REPLACEMENT)
        return text

    return redacted


def environment_secrets(*variables: str) -> list[str]:
    """List the secrets of this environment, each once, longest first.

    These are the values of `variables` and of every environment variable named `..._KEY`, `..._TOKEN`, `..._SECRET`
    or `..._PASSWORD`, the token file of the Hub's client, and of every proxy variable the password (or the user, if
    there is no password) and `user:password`. Values under `MIN_LENGTH` characters are left out.
    """
    return sorted(_owners(*variables), key=lambda value: (-len(value), value))


def first_secret(texts: Iterable[str], *variables: str) -> tuple[int, str] | None:
    """Find the first text that contains a secret in any form; return its index and the secret's origin, in words."""
    forms = [(form, owner) for value, owner in _owners(*variables).items() for form in _forms(value)]
    return next(((number, owner) for number, text in enumerate(texts) for form, owner in forms if form in text), None)


def _owners(*variables: str) -> dict[str, str]:
    owners = {_hub_token().strip(): "the token file of the Hub's client"}
    for name in os.environ:
        if name in variables or SECRET.search(name):
            owners[os.environ[name].strip()] = f"the environment variable {name}"
        elif PROXY.fullmatch(name):
            owners |= {part.strip(): f"the environment variable {name}" for part in _credentials(os.environ[name])}
    return {value: owner for value, owner in owners.items() if len(value) >= MIN_LENGTH}


def _forms(value: str) -> Iterator[str]:
    """Yield a value as it may be escaped in a text."""
    yield value
    yield json.dumps(value)[1:-1]
    yield json.dumps(value, ensure_ascii=False)[1:-1]
    raw = os.fsencode(value)
    for encoded in (quote(raw, safe=""), quote(raw), quote_plus(raw)):
        yield encoded
        yield re.sub("%[0-9A-F]{2}", lambda match: match[0].lower(), encoded)


def _credentials(url: str) -> Iterator[str]:
    """Yield the secret parts of a URL `http://user:password@host`, as they are and decoded."""
    try:
        netloc = urlsplit(url if "://" in url else f"http://{url}").netloc
    except ValueError:  # not a URL, such as `http://user:password@[`
        netloc = url
    both, at, _ = netloc.rpartition("@")
    if at:
        yield both
        yield both.partition(":")[2] or both
        yield unquote(both.partition(":")[2] or both)


def _hub_token() -> str:
    """Read the token of `hf auth login`; "" if there is none."""
    try:
        return token_file().read_text(encoding="utf-8")
    except (OSError, ValueError, RuntimeError):  # RuntimeError: no home directory
        return ""


def token_file() -> Path:
    """Return the token file of the Hub's client, by the rules of `huggingface_hub.constants`."""
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    home = os.environ.get("HF_HOME") or f"{cache}/huggingface"
    return Path(os.path.expandvars(os.environ.get("HF_TOKEN_PATH") or f"{home}/token")).expanduser()
