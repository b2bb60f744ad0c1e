"""A GPU that computes no numbers: what runs on `cuda:0` has devices, dtypes and shapes, and no values.

Within `pretended_card` tensors on the CPU are real and those on `cuda:0` are torch's fake tensors, so the code under
test plans, loads and trains as on a machine with one GPU. The card refuses what a real one refuses: tensors on two
devices, matrix products of two dtypes, kernels that it does not have. It records each wait of the processor for the
card, with the function that caused it. Whatever is read from the card is 0, and equal to what it is compared with.
"""

import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
import torch
from torch._subclasses import fake_tensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode, unset_fake_temporarily
from torch.nn.attention import varlen
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

CARD = torch.device("cuda:0")
MEMORY = 80 * 2**30
PRODUCTS = {"mm", "bmm", "addmm", "baddbmm", "linear", "convolution", "addbmm", "matmul", "mv", "dot"}
FOR_A_CPU = ("_for_cpu", "mkldnn")
CARRIES_TRUTH = {"all", "logical_and", "bitwise_and", "_to_copy", "view", "detach"}
TRUE_OF_ZEROS = {"le", "ge", "eq", "isfinite"}
OURS = "pluralbench"
ASKS_DEVICE = torch.ops.prim.device.default


class Refused(RuntimeError):
    """What a real card, or its kernel, refuses."""


@dataclass
class Card:
    """What the pretended card has seen.

    Attributes:
        capability: Its compute capability.
        waits: How often the processor waited for the card, by function and kind.
        in_layers: Those of them that were in a module's forward pass.
        kernels: How often each kernel of attention ran.
    """

    capability: tuple[int, int]
    waits: Counter[str] = field(default_factory=Counter)
    in_layers: Counter[str] = field(default_factory=Counter)
    kernels: Counter[str] = field(default_factory=Counter)

    def forget(self) -> None:
        """Forget what it has seen."""
        for counter in (self.waits, self.in_layers, self.kernels):
            counter.clear()

    def waited(self, kind: str) -> None:
        """Record a wait under the innermost function of the project, with the library's function that it called."""
        frames = list(_frames())
        ours = next((name for name, file in frames if OURS in file), frames[0][0])
        innermost = frames[0][0]
        name = f"{ours}: {kind}" if innermost == ours else f"{ours}, {innermost}: {kind}"
        self.waits[name] += 1
        if any(name.endswith(("forward", "Module._call_impl")) for name, _ in frames):
            self.in_layers[name] += 1


def _frames() -> Iterator[tuple[str, str]]:
    """Function and file of each frame, the innermost first, without torch's own and those of the tests."""
    frame = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        inside_torch = "/torch/" in file and "/nn/modules/module.py" not in file
        if not inside_torch and file != __file__ and "/tests/" not in file:
            yield f"{Path(file).stem}.{frame.f_code.co_qualname.replace('<locals>.', '')}", file
        frame = frame.f_back  # type: ignore[assignment]


def _leaves(values: Iterable[Any]) -> Iterator[Any]:
    """What operators are given, with what is in their lists."""
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from _leaves(value)
        else:
            yield value


class _Dispatch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Runs what is on the CPU, and hands what is on the card to the fake mode below it."""

    def __init__(self, card: Card, below: FakeTensorMode) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.card = card
        self.below = below

    def _faked(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor if isinstance(tensor, FakeTensor) else self.below.from_tensor(tensor, static_shapes=True)

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func is ASKS_DEVICE and isinstance(args[0], FakeTensor):  # every third operator
            return args[0].fake_device
        leaves = [*_leaves((*args, *kwargs.values()))]
        fakes = [leaf for leaf in leaves if isinstance(leaf, FakeTensor)]
        to_card = any(isinstance(leaf, torch.device) and leaf.type == "cuda" for leaf in leaves)
        if not fakes and not to_card:
            return self._on_cpu(func, args, kwargs)
        if func.namespace != "prim" and func._can_decompose():  # in inference mode nothing above has done so
            with self:
                return func.decompose(*args, **kwargs)
        name = func.overloadpacket.__name__
        if fakes:
            self._check(func, name, fakes, args, kwargs)
        answer = _ANSWERS.get(name)
        if answer is not None:
            result = answer(self.card, func, args, kwargs)
            if result is not NotImplemented:
                return result
        if any(isinstance(leaf, torch.Tensor) and not isinstance(leaf, FakeTensor) for leaf in leaves):
            args, kwargs = tree_map_only(torch.Tensor, self._faked, (args, kwargs))
        result = func(*args, **kwargs)
        carried = bool(fakes) and all(getattr(fake, "true_of_zeros", False) for fake in fakes)
        if name in TRUE_OF_ZEROS or (name in CARRIES_TRUTH and carried):
            result.true_of_zeros = True
        return result

    def _on_cpu(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with unset_fake_temporarily():
            name = func.overloadpacket.__name__
            if name in {"pin_memory", "_pin_memory"}:
                pinned = args[0].clone()
                pinned.pinned = True
                return pinned
            if name == "is_pinned":
                return getattr(args[0], "pinned", False)
            return func(*args, **kwargs)

    def _check(self, func: Any, name: str, fakes: list[FakeTensor], args: tuple[Any, ...], kwargs: Any) -> None:
        if any(part in str(func) for part in FOR_A_CPU):
            raise Refused(f"{func} is a kernel for CPUs, and its tensors are on {CARD}")
        if name in PRODUCTS:
            factors = [leaf for leaf in args if isinstance(leaf, torch.Tensor)]
            if "dtype" in func._overloadname:  # two factors, and what they are added to in another dtype
                factors = factors[-2:]
            dtypes = {factor.dtype for factor in factors}
            if len(dtypes) > 1 or not all(dtype.is_floating_point for dtype in dtypes):
                raise Refused(f"{func} does not multiply {', '.join(sorted(map(str, dtypes)))} on {CARD}")
        if name == "_varlen_attn":
            self.card.kernels["varlen"] += 1
            _check_varlen(self.card, *args, **kwargs)


def _check_varlen(
    card: Card, query: Any, key: Any, value: Any, starts: Any, key_starts: Any, *rest: Any, **_: Any
) -> None:
    """What flash attention for runs of any length demands (`mha_varlen_fwd`)."""
    problems = {
        "compute capability 8.0 or more": card.capability >= (8, 0),
        "float16 or bfloat16": query.dtype in (torch.float16, torch.bfloat16),
        "one dtype": query.dtype == key.dtype == value.dtype,
        "a width that is a multiple of 8 and at most 256": query.shape[-1] % 8 == 0 and query.shape[-1] <= 256,
        "query, key and value of shape (rows, heads, width)": query.dim() == key.dim() == value.dim() == 3,
        "keys and values of one shape": key.shape == value.shape,
        "offsets in int32": starts.dtype == key_starts.dtype == torch.int32,
        "as many runs of keys as of queries": starts.shape == key_starts.shape and starts.dim() == 1,
        "contiguous rows": all(part.stride(-1) == 1 for part in (query, key, value)),
        "lengths known to the processor": all(type(length) is int for length in rest[:2]),
    }
    for problem, holds in problems.items():
        if not holds:
            raise Refused(f"the kernel for runs of any length takes only {problem}")


# What is read from the card, by operator.


def _read_number(card: Card, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    card.waited("number")
    tensor = args[0]
    if tensor.numel() != 1:
        raise Refused(f"a tensor of shape {tuple(tensor.shape)} is no number")
    if tensor.dtype == torch.bool:
        return getattr(tensor, "true_of_zeros", False)
    return 0.0 if tensor.dtype.is_floating_point else 0


def _copy(card: Card, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`_to_copy`: to the CPU, to the card, or to another dtype."""
    source, device = args[0], kwargs.get("device")
    if device is None or (device.type == "cuda") == isinstance(source, FakeTensor):
        return NotImplemented
    if device.type == "cuda":
        if source.numel() and not (kwargs.get("non_blocking") and getattr(source, "pinned", False)):
            card.waited("to the card")
        return NotImplemented
    card.waited("to the CPU")
    return _zeros(source.shape, kwargs.get("dtype") or source.dtype)


def _zeros(shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    with unset_fake_temporarily():
        return torch.zeros(shape, dtype=dtype)


def _copy_into(card: Card, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    target, source = args[:2]
    if isinstance(target, FakeTensor) == isinstance(source, FakeTensor):
        return NotImplemented
    if isinstance(target, FakeTensor):
        card.waited("to the card")
        return NotImplemented
    card.waited("to the CPU")
    with unset_fake_temporarily():
        return target.zero_()


def _index(card: Card, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`index` and `index_put`: a mask is searched, and indices from the CPU are copied."""
    tensor, indices = args[0], [index for index in args[1] if index is not None]
    if any(not isinstance(index, FakeTensor) for index in indices):
        card.waited("index to the card")
    if not any(index.dtype in (torch.bool, torch.uint8) for index in indices):
        return NotImplemented
    card.waited("mask")
    if "put" in str(func):
        return tensor if func.overloadpacket.__name__.endswith("_") else torch.empty_like(tensor)
    found, place = [], 0
    for index in args[1]:
        if index is not None and index.dtype in (torch.bool, torch.uint8):
            if tuple(index.shape) != tuple(tensor.shape[place : place + index.dim()]):
                raise Refused(f"a mask of shape {tuple(index.shape)} for a tensor of shape {tuple(tensor.shape)}")
            found.append((place, index.dim()))
            place += index.dim()
        else:
            found.append((place, 0))
            place += 1
    [(first, dims)] = [one for one in found if one[1]]
    return tensor.flatten(first, first + dims - 1).clone()


def _search(card: Card, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    card.waited("nonzero")
    return torch.zeros(args[0].numel(), args[0].dim(), dtype=torch.long, device=CARD)


def _select_masked(card: Card, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    card.waited("mask")
    return args[0].flatten().clone()


def _unique(card: Card, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    card.waited("unique")
    places = torch.zeros(args[0].shape, dtype=torch.long, device=CARD)
    return args[0].flatten().clone(), places, places.flatten().clone()


def _equal(card: Card, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    card.waited("number")
    return True


_ANSWERS: dict[str, Callable[..., Any]] = {
    "_local_scalar_dense": _read_number,
    "_to_copy": _copy,
    "copy_": _copy_into,
    "index": _index,
    "index_put": _index,
    "index_put_": _index,
    "_index_put_impl_": _index,
    "nonzero": _search,
    "masked_select": _select_masked,
    "_unique2": _unique,
    "unique_dim": _unique,
    "equal": _equal,
}


_tasks = [0]


def _backward(tensors: Sequence[torch.Tensor], grads: Sequence[Any], *_: Any, **__: Any) -> tuple[()]:
    """Walk the graph of gradients as torch's engine does, which does not run without a driver."""
    _tasks[0] += 1
    pending: dict[Any, dict[int, torch.Tensor]] = defaultdict(dict)
    waiting: Counter[Any] = Counter()
    roots: list[Any] = [tensor.grad_fn for tensor in tensors]
    seen, stack = set(roots), list(roots)
    while stack:
        for node, _number in stack.pop().next_functions:
            if node is not None:
                waiting[node] += 1
                if node not in seen:
                    seen.add(node)
                    stack.append(node)
    for tensor, grad in zip(tensors, grads, strict=True):
        pending[tensor.grad_fn][tensor.output_nr] = torch.ones_like(tensor) if grad is None else grad
    ready = [node for node in roots if not waiting[node]]
    while ready:
        node = ready.pop()
        _run_node(node, pending.pop(node, {}), pending)
        for following, _number in node.next_functions:
            if following is not None:
                waiting[following] -= 1
                if not waiting[following]:
                    ready.append(following)
    return ()


def _run_node(node: Any, arrived: dict[int, torch.Tensor], pending: dict[Any, dict[int, torch.Tensor]]) -> None:
    if not arrived:
        return
    variable = getattr(node, "variable", None)
    with torch.no_grad():
        if variable is not None:
            [grad] = arrived.values()
            variable.grad = grad if variable.grad is None else variable.grad + grad
            return
        metadata = node._input_metadata
        inputs = [arrived.get(number) for number in range(len(metadata))]
        outputs = (node.apply if hasattr(node, "apply") else node)(*inputs)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        for (following, number), grad in zip(node.next_functions, outputs, strict=False):
            if following is None or grad is None:
                continue
            wanted = following._input_metadata[number]
            fitting = grad.sum_to_size(tuple(wanted.shape)).to(wanted.dtype)
            present = pending[following].get(number)
            pending[following][number] = fitting if present is None else present + fitting


def _replace_data(tensor: torch.Tensor, other: torch.Tensor) -> None:
    tensor.data = other.data


def _to_list(tensor: torch.Tensor) -> Any:
    return tensor.cpu().tolist()


@contextmanager
def pretended_card(capability: tuple[int, int] = (9, 0)) -> Iterator[Card]:
    """Pretend that this machine has one GPU of this compute capability."""
    card = Card(capability)
    caches = [varlen._cudnn_version_and_major_capability, varlen._should_use_cudnn, varlen._cudnn_decode_disabled]
    properties = SimpleNamespace(
        name="pretended", major=capability[0], minor=capability[1], total_memory=MEMORY, multi_processor_count=132
    )
    answers: dict[str, Any] = {
        "is_available": True, "device_count": 1, "current_device": 0, "get_device_capability": capability,
        "get_device_name": "pretended", "get_device_properties": properties, "is_bf16_supported": capability >= (8, 0),
        "set_device": None, "synchronize": None, "empty_cache": None, "mem_get_info": (MEMORY, MEMORY),
        "is_current_stream_capturing": False, "_lazy_init": None, "is_initialized": True,
        "get_rng_state_all": [], "set_rng_state_all": None, "manual_seed_all": None, "manual_seed": None,
        "memory_allocated": 0, "max_memory_allocated": 0, "reset_peak_memory_stats": None,
    }  # fmt: skip
    below = FakeTensorMode(allow_non_fake_inputs=True)  # reads before the patches that there is no driver
    with below, _patched(answers), patch.object(fake_tensor, "init_gpu_context", lambda _: None):
        for cache in caches:
            cache.cache_clear()
        with (
            patch.object(varlen, "_cudnn_decode_disabled", lambda _: False),
            patch("torch.autograd.graph._engine_run_backward", _backward),
            patch("torch.autograd._engine_run_backward", _backward),
            patch.object(FakeTensor, "tolist", _to_list),
            patch.object(torch.utils, "swap_tensors", _replace_data),  # fake tensors cannot be swapped
            # Recomputed activations are kept until the next backward pass.
            patch.object(torch._C, "_current_graph_task_id", lambda: _tasks[0]),
            _Dispatch(card, below),
        ):
            yield card
    for cache in caches:
        cache.cache_clear()


@contextmanager
def _patched(answers: dict[str, Any]) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patches:
        for name, answer in answers.items():
            patches.setattr(torch.cuda, name, lambda *_, answer=answer, **__: answer)
        yield
