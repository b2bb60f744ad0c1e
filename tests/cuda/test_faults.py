"""The rehearsal reports each kind of fault that it is for."""

from collections.abc import Callable
from typing import Any, cast

import pytest
import torch
from pluralbench_local import LocalRewardModel, attention, load, network, score, varlen
from pluralbench_local.packing import to_device
from pretended_card import CARD, Refused, pretended_card
from reward_models import Folders, make_groups
from torch import nn

pytestmark = pytest.mark.heavy

GROUPS = make_groups(1, number=2)


def loaded(folders: Folders, dtype: Any = "bfloat16") -> "LocalRewardModel":
    model = load(folders(), device="cuda", dtype=dtype)
    assert isinstance(model, LocalRewardModel)
    return model


def test_a_tensor_left_on_the_cpu(folders: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    with pretended_card():
        model = loaded(folders)
        monkeypatch.setattr(network, "to_device", lambda values, _: torch.tensor(values))
        with pytest.raises(RuntimeError, match="cuda:0 and cpu"):
            score(model, GROUPS)


def test_a_dtype_that_the_kernel_refuses(folders: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    with pretended_card():
        model = loaded(folders, "float32")
        monkeypatch.setattr(attention, "has_varlen_kernel", lambda *_: True)
        with pytest.raises(Refused, match="float16 or bfloat16"):
            score(model, GROUPS)


def test_a_kernel_that_the_card_does_not_have(folders: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    with pretended_card((7, 5)):
        model = loaded(folders)
        monkeypatch.setattr(attention, "has_varlen_kernel", lambda *_: True)
        with pytest.raises(Refused, match=r"8\.0 or more"):
            score(model, GROUPS)


def test_a_product_of_two_dtypes(folders: Folders) -> None:
    with pretended_card():
        model = loaded(folders)
        assert model.network.head is not None
        model.network.head.float()
        with pytest.raises(Refused, match=r"torch\.bfloat16, torch\.float32"):
            score(model, GROUPS)


def test_a_kernel_for_cpus(folders: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    with pretended_card():
        model = loaded(folders, "float32")
        monkeypatch.setattr(attention, "attend_blocked", attention.attend_fused)
        with pytest.raises(Refused, match="a kernel for CPUs"):
            score(model, GROUPS)


def test_a_wrong_shape(folders: Folders) -> None:
    with pretended_card():
        model = loaded(folders)
        model.network.body.norm = nn.Linear(64, 32, device=CARD, dtype=torch.bfloat16)
        with pytest.raises(RuntimeError, match="same reduction dim"):
            score(model, GROUPS)


def test_offsets_of_another_dtype(folders: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    with pretended_card():
        model = loaded(folders)
        monkeypatch.setattr(
            varlen, "to_device", lambda values, device: to_device(torch.as_tensor(values).long(), device)
        )
        with pytest.raises(Refused, match="offsets in int32"):
            score(model, GROUPS)


WAITS: dict[str, Callable[[Any], object]] = {
    "item": lambda states: states[0, 0, 0].item(),
    "int": lambda states: int(states.sum()),
    "if": lambda states: bool((states > 0).any()),
    "tolist": lambda states: states[0, 0].tolist(),
    "cpu": lambda states: states.cpu(),
    "numpy": lambda states: states.float().cpu().numpy(),
    "a mask": lambda states: states[states > 0],
    "a mask that is written": lambda states: states.clone().index_put_((states > 0,), states.new_zeros(1)),
    "nonzero": lambda states: states.nonzero(),
    "unique": lambda states: states.unique(),
    "a slice": lambda states: states[:, : states.argmax()],
    "a list of indices": lambda states: states[:, [0, 1]],
    "numbers to the card": lambda states: torch.tensor([1, 2], device=states.device),
    "an equality": lambda states: torch.equal(states, states),
}


def test_a_wait_in_a_layer(folders: Folders) -> None:
    with pretended_card() as card:
        model = loaded(folders)
        layer: Any = cast("Any", model.network.body).layers[0]
        for name, wait in WAITS.items():
            card.forget()
            hook = layer.register_forward_pre_hook(lambda _, inputs, wait=wait: (wait(inputs[0]), None)[1])
            score(model, GROUPS[:1])
            hook.remove()
            assert card.in_layers.total() >= 1, name
            assert card.waits.total() == card.in_layers.total() + 1, name


def test_a_copy_from_pinned_memory_is_no_wait() -> None:
    with pretended_card() as card:
        torch.ones(2).pin_memory().to(CARD, non_blocking=True)
        assert not card.waits
        torch.ones(2).pin_memory().to(CARD)
        torch.ones(2).to(CARD, non_blocking=True)
        assert card.waits.total() == 2
