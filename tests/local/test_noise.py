"""What loading and scoring leave as it was: the library's voice, and gradients of others."""

import json
from typing import Any

from pluralbench_local import LocalRewardModel, load, score
from reward_models import Folders, make_groups
from transformers.utils import logging

library: Any = logging


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
