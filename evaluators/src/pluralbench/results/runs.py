"""The directory of a run: per-item results, metrics, and where they come from."""

import json
import platform
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
from pluralbench_runs import Output, digest, file_digest, versions
from polars.exceptions import PolarsError

from pluralbench.errors import RunError

ITEMS_FILE, METRICS_FILE, RUN_FILE, SETTINGS_FILE = "items.parquet", "metrics.json", "run.json", "settings.toml"
LEDGER_FILE, VERDICTS_FILE = "ledger.parquet", "verdicts.csv"
FORMAT = 1
PACKAGES = ("pluralbench", "pluralbench-rewards", "torch", "transformers", "tokenizers", "openai", "polars", "numpy")
RUN_KEYS = ("format", "model", "benchmark", "data", "prompt")
METRICS_KEYS = ("overall", "pooled", "configs", "confidence")
MODEL_FILES = ("*.safetensors", "*.bin", "*.json", "*.model", "*.jinja", "*.py", "*.txt")


@dataclass(frozen=True)
class Run:
    """A finished run. path: its directory. items: `items.parquet`. metrics, run: the JSON files of these names."""

    path: Path
    items: pl.DataFrame
    metrics: dict[str, Any]
    run: dict[str, Any]

    @property
    def name(self) -> str:
        """What to call it in tables: its model, or its judge."""
        return str(self.run["model"]["name"])


def read_run(path: Path) -> Run:
    """Read a run's directory. Raises `RunError` where it is none, or was not finished."""
    if not (path / RUN_FILE).is_file():
        unfinished = path.with_name(path.name + ".work").exists()
        hint = "it is not finished: run its command again to go on" if unfinished else f"it has no {RUN_FILE}"
        raise RunError(f"{path} is no finished run: {hint}.")
    try:
        run = json.loads((path / RUN_FILE).read_text(encoding="utf-8"))
        metrics = json.loads((path / METRICS_FILE).read_text(encoding="utf-8"))
        items = pl.read_parquet(path / ITEMS_FILE, glob=False)
    except (OSError, ValueError, PolarsError) as error:
        raise RunError(f"The run {path} cannot be read: {' '.join(str(error).split())[:200]}.") from None
    if not _has(run, *RUN_KEYS) or not _has(metrics, *METRICS_KEYS):
        raise RunError(f"The run {path} cannot be read: {RUN_FILE} or {METRICS_FILE} is not of a run's shape.")
    if run.get("format") != FORMAT:
        raise RunError(f"The run {path} is of format {run.get('format')}, and this version reads {FORMAT}.")
    return Run(path, items, metrics, run)


def _has(value: object, *keys: str) -> bool:
    return isinstance(value, dict) and all(key in value for key in keys)


def publish(output: Output, items: pl.DataFrame, metrics: Mapping[str, Any], run: Mapping[str, Any]) -> None:
    """Write a run's files and put its directory in place, with the settings that bind it.

    A judge's ledger and table of verdicts go with it, where they lie in the working directory.
    """
    staged = output.staging()
    items.write_parquet(staged / ITEMS_FILE)
    for name, value in ((METRICS_FILE, metrics), (RUN_FILE, run)):
        text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
        (staged / name).write_text(text + "\n", encoding="utf-8")
    (staged / SETTINGS_FILE).write_bytes((output.work / "recipe.toml").read_bytes())
    for made in (output.work / LEDGER_FILE, output.work / VERDICTS_FILE):
        if made.exists():
            made.rename(staged / made.name)
    output.publish(staged)


def provenance() -> dict[str, Any]:
    """What made a run: time, machine, versions, the code's commit where it is a checkout."""
    return {
        "format": FORMAT,
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": versions(PACKAGES),
        "git": _git(),
    }


def _git() -> dict[str, Any] | None:
    """Commit of the checkout that this code lies in, and whether it has changes; None where it is installed."""
    place = Path(__file__).parent
    if "site-packages" in place.parts:
        return None
    try:
        commit, changes = (
            subprocess.run(["git", "-C", str(place), *words], capture_output=True, text=True, timeout=20, check=True)  # noqa: S603, S607 - fixed words
            for words in (("rev-parse", "HEAD"), ("status", "--porcelain", "--untracked-files=no"))
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return {"commit": commit.stdout.strip(), "changed": bool(changes.stdout.strip())}


def model_digest(name: str) -> str | None:
    """SHA-256 over the files of a model folder (names and bytes); None for a model that is not a folder here."""
    folder = Path(name)
    if not folder.is_dir():
        return None
    paths = sorted({path for pattern in MODEL_FILES for path in folder.glob(pattern)})
    return digest({path.name: file_digest(path) for path in paths})
