"""The notebook among the tutorials runs as it is, and shows what it prints."""

from pathlib import Path
from typing import Any

import nbformat
import pytest
from commands import environment
from members import ROOT
from nbclient import NotebookClient

NOTEBOOK = ROOT / "docs/tutorials/first-look.ipynb"


def printed(notebook: Any) -> list[str]:
    """The texts that its cells have printed or shown, without what is told on standard error."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    said = [output for output in outputs if output.get("name") != "stderr"]
    return [output["text"] if "text" in output else output["data"]["text/plain"] for output in said]


@pytest.mark.heavy
def test_the_notebook_prints_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folders = {"IPYTHONDIR": str(tmp_path / "ipython"), "JUPYTER_PLATFORM_DIRS": "1"}
    for name, value in environment(folders).items():
        monkeypatch.setenv(name, value)
    library: Any = nbformat  # which is half typed
    notebook = library.read(NOTEBOOK, as_version=4)
    shown = printed(notebook)
    NotebookClient(notebook, timeout=120).execute()
    assert shown
    assert printed(notebook) == shown
    # The run directories and the page, and no profile of IPython's beside the project.
    assert sorted(path.name for path in tmp_path.iterdir()) == ["first-look", "ipython"]
    assert sorted(path.name for path in (tmp_path / "first-look").iterdir()) == ["familiar", "report.html", "shorter"]
