"""A child process that tries what a stranger's tokenizer does to text, so that only the child hangs or grows.

A chat template is a program. This one is run by its path with Python alone: it imports neither torch nor transformers,
so that it takes some tenths of a second. Its standard input has, as JSON, `template`, `special` (what the template may
name beside the messages), `normalizer` (of `tokenizers`, as JSON, or null) and the limits `seconds` of computing,
`bytes` of memory and `characters` of a text. It ends with status 0, or prints what went wrong.
"""

import json
import math
import sys
import time
from contextlib import suppress
from datetime import datetime
from typing import Any

from jinja2 import nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment
from tokenizers import Tokenizer

MESSAGES = [{"role": "user", "content": "What is tea?"}, {"role": "assistant", "content": "A drink. " * 8}]
PROBE = "".join(message["content"] for message in MESSAGES) + "aA 0_-.\n▁Ä中"


class Generation(Extension):
    """The block that marks what a model wrote, which changes no text."""

    tags = {"generation"}  # noqa: RUF012 - as jinja2 has it

    def parse(self, parser: Parser) -> list[nodes.Node]:
        """The body of the block."""
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def rendered(template: str, special: dict[str, Any]) -> str:
    """The probe by a template, in the sandbox that transformers has; nothing for one that raises."""
    sandbox = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols])
    sandbox.filters["tojson"] = lambda value, **_: json.dumps(value, ensure_ascii=False)
    sandbox.globals["strftime_now"] = lambda form: datetime.now().astimezone().strftime(form)
    try:
        return sandbox.from_string(template).render(messages=MESSAGES, add_generation_prompt=True, **special)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - a template is a program and may raise anything; where it is used, that is said
        return ""


def normalized(normalizer: Any) -> str:
    """The probe by a normalizer of `tokenizers`."""
    model = {"type": "WordLevel", "vocab": {"": 0}, "unk_token": ""}
    tokenizer = Tokenizer.from_str(json.dumps({"version": "1.0", "normalizer": normalizer, "model": model}))
    return tokenizer.normalizer.normalize_str(PROBE) if tokenizer.normalizer else ""


def main() -> None:
    """Try both."""
    given = json.load(sys.stdin)
    with suppress(ImportError):  # elsewhere than on Unix the parent's patience alone ends it
        import resource  # noqa: PLC0415

        resource.setrlimit(resource.RLIMIT_AS, (given["bytes"], given["bytes"]))
        seconds = math.ceil(time.process_time()) + given["seconds"]
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    for what, text in (
        ("chat template", rendered(given["template"], given["special"])),
        ("normalizer of its tokenizer", normalized(given["normalizer"])),
    ):
        if len(text) > given["characters"]:
            sys.exit(f"its {what} makes {len(text):,} characters of {len(PROBE):,}")


if __name__ == "__main__":
    main()
