"""Runs whose names and texts try to be markup, in which right-to-left texts stand, and what a page makes of them."""

import json
from base64 import b64decode
from collections.abc import Sequence
from gzip import decompress
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from made_runs import by_length, changed, keep, scored
from pluralbench.results import Run
from written_tables import write

SCRIPT = "</script><script>document.title = 'taken'</script>"
IMAGE = '<img src="https://example.org/x.png" onerror="document.title = \'taken\'">'
ARABIC = "أفضل وقت للقراءة هو الصباح"
NAMES = ("org/longer", "org/shorter", "<b>by chance")


def hostile_rows(count: int = 12) -> list[dict[str, Any]]:
    """Pairs of which the first four try to be markup or are Arabic."""
    rows = [
        {"id": f"q{n}", "prompt": f"Question {n}?", "chosen": f"Answer {'a ' * n}", "rejected": "Another answer here"}
        for n in range(count)
    ]
    rows[0] |= {"prompt": SCRIPT, "chosen": IMAGE, "rejected": "]]>-->" + SCRIPT}
    rows[1] |= {"id": SCRIPT, "prompt": "{{ 7 * 7 }}"}
    rows[2] |= {"prompt": ARABIC, "chosen": f"{ARABIC}.", "rejected": "no"}
    return rows


def hostile_runs(folder: Path, count: int = 12) -> list[Run]:
    """Three models on these pairs."""
    data = write(folder / "pairs.jsonl", hostile_rows(count))

    def shorter(_: str, responses: Sequence[str]) -> list[float]:
        return [-float(len(response)) for response in responses]

    def by_chance(prompt: str, responses: Sequence[str]) -> list[float]:
        return [float(sum(map(ord, prompt + response)) % 97) for response in responses]

    scorers = zip(NAMES, (by_length, shorter, by_chance), strict=True)
    return [
        _at(scored("pairs", Path(data), folder / "runs" / f"run-{place}", by, model=name), Path(data))
        for place, (name, by) in enumerate(scorers)
    ]


def _at(run: Run, data: Path) -> Run:
    """The run, saying where its data is."""
    return keep(changed(run, data__location=str(data)))


class Read(HTMLParser):
    """The elements of a page with their attributes, its text, and what stands in scripts, by id."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.headings: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep an element."""
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        """Keep a text, that of a script with the script."""
        tag, attributes = self.elements[-1] if self.elements else ("", {})
        if tag == "script" and data.strip():
            self.scripts.append((attributes, data))
        elif tag not in {"script", "style"}:
            self.words.append(data)
        if tag in {"h1", "h2", "h3", "h4"} and data.strip():
            self.headings.append(data)

    @property
    def text(self) -> str:
        """All words, with single spaces."""
        return " ".join(" ".join(self.words).split())

    def values(self, name: str) -> list[str]:
        """All values of an attribute."""
        return [value for _, attributes in self.elements if (value := attributes.get(name))]

    def block(self, key: str) -> Any:
        """What a block of data holds."""
        text = next(text for attributes, text in self.scripts if attributes.get("id") == key)
        return json.loads(decompress(b64decode(text)))
