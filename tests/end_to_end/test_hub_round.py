"""The four samples on a Hub: published, loaded by tag in another process, changed, published again, rebuilt."""

import sys
from pathlib import Path

import pytest
from hub_round import go_round
from live_hub import live_hub, point_clients
from samples import sample

BUILDERS = ("build-personalized", "build-multilingual", "build-chinese", "build-persona-judge")


@pytest.mark.heavy
def test_the_samples_go_round(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with live_hub(tmp_path / "hub") as hub:
        point_clients(monkeypatch, hub, tmp_path / "home")
        go_round(sys.executable, [sample(builder).release for builder in BUILDERS], hub, tmp_path)
