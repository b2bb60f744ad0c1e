"""What the pages of `docs/` call while they are built."""

import json
import re
from html import escape
from pathlib import Path
from typing import Any

IMAGES = {"image/svg+xml", "image/png"}


def define_env(env: Any) -> None:
    """Let a page show a notebook by its path in the repository.

    Args:
        env: What Zensical's plugin `macros` offers.
    """

    @env.macro
    def notebook(path: str) -> str:
        """Show a notebook with its output. Its first heading is the page's own and left out."""
        cells = json.loads((Path(env.project_dir) / path).read_text(encoding="utf-8"))["cells"]
        _, _, first = "".join(cells[0]["source"]).partition("\n")
        return "\n\n".join([first, *(part for cell in cells[1:] for part in _parts(cell))])


def _parts(cell: dict[str, Any]) -> list[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return [source]
    return [
        f"```python\n{source}\n```",
        *(_shown(output) for output in cell["outputs"] if output.get("name") != "stderr"),
    ]


def _shown(output: dict[str, Any]) -> str:
    """An output in Markdown: a table or a picture as HTML, and other texts as they were printed."""
    data = {kind: "".join(value) for kind, value in output.get("data", {}).items()}
    for kind in IMAGES & data.keys():
        return f'<div class="output">{_picture(kind, data[kind])}</div>'
    if "text/html" in data:
        return f'<div class="output">{_as_site(data["text/html"])}</div>'
    printed = data["text/plain"] if data else "".join(output["text"])
    return f'<div class="output"><pre><code>{escape(printed)}</code></pre></div>'


def _as_site(html: str) -> str:
    """HTML without its own styles, on one line, since a blank one would begin Markdown again."""
    plain = re.sub(r"<table[^>]*>", "<table>", re.sub(r"<style.*?</style>", "", html, flags=re.DOTALL))
    return "".join(line.strip() for line in plain.splitlines())


def _picture(kind: str, data: str) -> str:
    """A picture as it is, or as the source of an image."""
    if kind == "image/png":
        return f'<img alt="The figure that the code above draws" src="data:image/png;base64,{data.strip()}">'
    return data[data.index("<svg") :]
