"""Where nobody watches a terminal, loading and scoring say nothing but lines of progress."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import environment, without_status
from pluralbench_local import LocalRewardModel, load, score
from reward_models import Folders, make_groups
from transformers.utils import logging

library: Any = logging


RUN = """
import sys
from pluralbench_local import load, score
from pluralbench_rewards import Group
for kind, folder in zip(sys.argv[1::2], sys.argv[2::2]):
    model = load(folder, kind=kind, device="cpu")
    for mode in ("fast", "exact"):
        for length in (3, 200):
            group = Group("q", [{"role": "user", "content": "a quiet hobby " * length}], ["origami", ""])
            score(model, [group], mode=mode, on_overflow="truncate-left")
print("done")
"""


def stderr_of(folders: dict[str, str], tmp_path: Path) -> str:
    """What a process of its own writes to standard error while it loads and scores these models."""
    words = [word for folder, kind in folders.items() for word in (kind, folder)]
    result = subprocess.run(
        [sys.executable, "-W", "always", "-c", RUN, *words],
        env=environment({"HF_MODULES_CACHE": str(tmp_path)}),
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert result.stdout == "done\n", result.stderr
    return result.stderr


@pytest.mark.heavy
def test_a_process_that_loads_and_scores_says_nothing(
    tmp_path: Path, classifiers: Folders, language_models: Folders
) -> None:
    folders = {classifiers(name): "classifier" for name in ("mistral", "bert", "gpt-oss")}
    assert without_status(stderr_of(folders | {language_models(): "implicit"}, tmp_path)) == ""


def test_the_library_speaks_again_after_loading(classifiers: Folders) -> None:
    before = library.get_verbosity(), library.is_progress_bar_enabled()
    library.set_verbosity_info()
    library.enable_progress_bar()
    try:
        load(classifiers(), device="cpu")
        assert (library.get_verbosity(), library.is_progress_bar_enabled()) == (library.INFO, True)
    finally:
        library.set_verbosity(before[0])
        if not before[1]:
            library.disable_progress_bar()


def test_gradients_are_neither_kept_nor_switched_off_for_others(llama: "LocalRewardModel") -> None:
    groups = make_groups(0)
    scores = score(llama, groups).scores
    assert json.dumps(scores)  # plain numbers
    assert all(weight.grad is None for weight in llama.network.model.parameters())
    assert not llama.network.model.training
