"""A child process that tries an untrusted tokenizer on text, so that only the child can hang or run out of memory.

A chat template is a program. The parent runs this file by its path. It imports neither torch nor transformers, and so
takes a few tenths of a second. Standard input is JSON: `template`, `special` (the special tokens for the template),
`normalizer` (of `tokenizers`, or null), `messages` of a conversation (if empty: `MESSAGES`), and limits: `seconds` of
CPU time, `bytes` of memory, and the `characters` of a text beyond 20 for each that comes in. The exit status is 0, or
standard error states the problem.
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
FURTHER = "aA 0_-.\n▁Ä中"


class Generation(Extension):
    """The template block that marks a model's own text. It does not change the text."""

    tags = {"generation"}  # noqa: RUF012 - as jinja2 declares it

    def parse(self, parser: Parser) -> list[nodes.Node]:
        """Return the body of the block."""
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def render(template: str, messages: list[dict[str, str]], special: dict[str, Any]) -> str:
    """Render a conversation by a chat template, in the same sandbox as transformers; empty if the template raises."""
    sandbox = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols])
    sandbox.filters["tojson"] = _to_json
    sandbox.globals["strftime_now"] = lambda form: datetime.now().astimezone().strftime(form)
    try:
        return sandbox.from_string(template).render(messages=messages, add_generation_prompt=True, **special)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - a template may raise anything; errors are reported where it is used
        return ""


def _to_json(value: Any, **options: Any) -> str:
    return json.dumps(value, **{"ensure_ascii": False} | options)


def normalize(normalizer: Any, text: str) -> str:
    """Normalize a text by a normalizer of `tokenizers`."""
    model = {"type": "WordLevel", "vocab": {"": 0}, "unk_token": ""}
    tokenizer = Tokenizer.from_str(json.dumps({"version": "1.0", "normalizer": normalizer, "model": model}))
    return tokenizer.normalizer.normalize_str(text) if tokenizer.normalizer else ""


def main() -> None:
    """Try the chat template and the normalizer."""
    settings = json.load(sys.stdin)
    with suppress(ImportError):  # only Unix has it; elsewhere the parent's timeout ends this process
        import resource  # noqa: PLC0415

        resource.setrlimit(resource.RLIMIT_AS, (settings["bytes"], settings["bytes"]))
        seconds = math.ceil(time.process_time()) + settings["seconds"]
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    messages = settings["messages"] or MESSAGES
    given = "".join(message["content"] for message in messages) + FURTHER
    given = given.encode(errors="replace").decode()  # half a character is reported where texts are tokenized
    for what, text in (
        ("chat template", render(settings["template"], messages, settings["special"])),
        ("normalizer of its tokenizer", normalize(settings["normalizer"], given)),
    ):
        if len(text) > settings["characters"] + 20 * len(given):
            sys.exit(f"its {what} makes {len(text):,} characters of {len(given):,}")


if __name__ == "__main__":
    main()
