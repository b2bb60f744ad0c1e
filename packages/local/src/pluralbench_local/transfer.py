"""Copy what the CPU has planned to a device, without waiting for the device."""

from collections.abc import Sequence

import torch
from torch import Tensor


def to_device(values: Tensor | Sequence[int] | Sequence[Sequence[int]], device: torch.device) -> Tensor:
    """Copy values from the CPU to a device.

    An ordinary copy to a GPU waits until the GPU has finished all earlier work. From pinned memory it is one more item
    of that work.

    Args:
        values: A tensor on the CPU; or integers, which become a tensor of 64-bit integers.
        device: The device.
    """
    tensor = values if isinstance(values, Tensor) else torch.tensor(values, dtype=torch.long)
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)
