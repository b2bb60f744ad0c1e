"""Norms and rotations of a network, compiled once for this machine: each a single pass over its states.

The model's own functions are compiled ahead of time by the library's compiler (`torch._inductor`, which needs a C++
compiler) into files of the user's cache, from where any later run loads them in milliseconds. They compute batches in
mode `fast` on a CPU, everything else goes through the model's own code.
"""

import hashlib
import logging
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
import transformers
from pluralbench_rewards import Compile
from pluralbench_runs import one_line, progress
from torch import Tensor, nn
from transformers import PreTrainedModel

from pluralbench_local.attention import computing_with
from pluralbench_local.errors import DeviceError
from pluralbench_local.measured import fastest, machine_folder, seconds

COMPILE_SECONDS = 30.0  # a function, with what the compiler itself needs to start
SPARED = 0.6  # of a function's time that compiling saves, at the least that was measured
ROWS = 512  # of the states that functions are timed with
ROTATION = "apply_rotary_pos_emb"
MOST_ROWS = 1 << 20


@dataclass(frozen=True)
class Function:
    """A function of a network that can be compiled.

    what: its name and everything that its code depends on. module: its `forward` is the function. example: inputs
    with `ROWS` rows. rows: the dimension of each input that counts them, or None. calls: how often a pass calls it.
    install: puts a compiled form in its place.
    """

    what: str
    module: nn.Module
    example: tuple[Tensor, ...]
    rows: tuple[int | None, ...]
    calls: int
    install: Callable[["Function", Callable[..., Any]], None]

    @property
    def path(self) -> Path:
        """Where its compiled form lies on this machine."""
        versions = f"{self.what}\n{transformers.__version__}"
        return machine_folder() / f"{hashlib.sha256(versions.encode()).hexdigest()[:16]}.pt2"


class CompiledFunctions:
    """The functions of one network that can be compiled."""

    def __init__(self, model: PreTrainedModel) -> None:
        self._installed: list[str] = []
        self._model = model
        self._left: list[Function] | None = None

    def prepare(self, tokens: int, wish: Compile) -> list[str]:
        """Put compiled functions beside the model's own, where they are faster, for computing so many tokens.

        Their names, which a batch needs in `Packed.compiled` to be computed by them.

        Those that this machine has are loaded. Under `auto` others are compiled where that takes less time than it
        saves, under `always` in any case, and under `never` none are used.
        Raises `DeviceError` where `always` cannot be done.
        """
        if wish == "never" or self._model.device.type != "cpu":
            return []
        if self._left is None:
            self._left = [*_norms(self._model), *_rotations(self._model)]
        missing = [function for function in self._left if not function.path.exists()]
        if missing and (wish == "always" or _pays(missing, tokens)):
            _compile(missing, wish)
        with quiet_compiler():
            self._installed += [one.what for one in self._left if one.path.exists() and _load(one)]
        self._left = [function for function in self._left if not function.path.exists()]
        return list(self._installed)


@torch.inference_mode()
def _pays(missing: Sequence[Function], tokens: int) -> bool:
    """Whether the time that compiling spares is more than it takes; measured on this machine in milliseconds."""
    if shutil.which(os.environ.get("CXX", "g++")) is None:
        return False
    own = sum(one.calls * min(seconds(partial(one.module, *one.example)) for _ in range(3)) for one in missing)
    return SPARED * own * tokens / ROWS > COMPILE_SECONDS * len(missing)


def _compile(functions: Sequence[Function], wish: Compile) -> None:
    """Compile functions into the cache of this machine. What cannot be compiled is an error only where it was asked."""
    with progress("compiling small functions for this machine", len(functions)) as meter, quiet_compiler():
        for function in functions:
            try:
                _compile_into(function, function.path)
            except Exception as error:  # noqa: BLE001 - a compiler, and all that it starts, may raise anything
                if wish == "always":
                    raise DeviceError(
                        f"The functions of this model cannot be compiled ({one_line(error, 300)}); "
                        "install a C++ compiler such as g++, or leave out `compile`."
                    ) from None
                return
            meter.advance()


def _compile_into(function: Function, path: Path) -> None:
    from torch._inductor import aoti_compile_and_package  # noqa: PLC0415 - seconds of import

    rows = torch.export.Dim("rows", min=2, max=MOST_ROWS)
    dynamic = tuple(None if place is None else {place: rows} for place in function.rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(f".{os.getpid()}.pt2")
    try:
        with torch.no_grad():
            exported = torch.export.export(function.module, function.example, dynamic_shapes=dynamic)
            # Headers compiled beforehand pay off for many functions, not for two.
            aoti_compile_and_package(
                exported, package_path=str(new), inductor_configs={"aot_inductor.precompile_headers": False}
            )
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


@contextmanager
def quiet_compiler() -> Iterator[None]:
    """Without the compiler's warnings of what this machine lacks, such as CUDA."""
    logger = logging.getLogger("torch")
    before, logger.level = logger.level, logging.ERROR
    try:
        yield
    finally:
        logger.level = before


@torch.inference_mode()
def _load(function: Function) -> bool:
    """Install a compiled form, unless it computes something else or is no faster here; whether it was installed."""
    from torch._inductor import aoti_load_package  # noqa: PLC0415 - seconds of import

    try:
        compiled = aoti_load_package(str(function.path))
        own, new = (_flat(way(*function.example)) for way in (function.module, compiled))
    except (RuntimeError, OSError):  # of another version of the library, or cut short: compile it anew
        function.path.unlink(missing_ok=True)
        return False
    pairs = zip(own, new, strict=True)
    if any((a - b).abs().max() > 4 * torch.finfo(a.dtype).eps * a.abs().max() for a, b in pairs):
        return False
    ways = {"compiled": partial(compiled, *function.example), "own": partial(function.module, *function.example)}
    if fastest(function.what, ways) != "compiled":
        return False
    function.install(function, compiled)
    return True


def _flat(result: Any) -> list[Tensor]:
    return list(result) if isinstance(result, (tuple, list)) else [result]


def _fits(function: Function, given: Sequence[Tensor]) -> bool:
    """Whether inputs lie in memory as the compiled code supposes; it does not look itself."""
    return all(
        tensor.dtype == like.dtype
        and tensor.stride()[1:] == like.stride()[1:]
        and tensor.shape[rows] >= 2
        and [size for place, size in enumerate(tensor.shape) if place != rows]
        == [size for place, size in enumerate(like.shape) if place != rows]
        for tensor, like, rows in zip(given, function.example, function.rows, strict=True)
        if rows is not None
    )


def _switched(
    function: Function, compiled: Callable[..., Any], own: Callable[..., Any], further: tuple[Tensor, ...] = ()
) -> Callable[..., Any]:
    """The compiled form where it applies, else the model's own. further: inputs that the model's own does not take."""

    def forward(*inputs: Any, **named: Any) -> Any:
        given = (*inputs, *further)
        if not named and computing_with(function.what) and _fits(function, given):
            result = compiled(*given)
            return result if isinstance(result, Tensor) else tuple(result)
        return own(*inputs, **named)

    return forward


class _Norm(nn.Module):
    """A norm as a function of states and weight."""

    def __init__(self, norm: nn.Module) -> None:
        super().__init__()
        self._norm = [norm]  # not a submodule: its weight is an input

    def forward(self, states: Tensor, weight: Tensor) -> Tensor:
        result: Tensor = torch.func.functional_call(self._norm[0], {"weight": weight}, (states,))
        return result


def _norms(model: PreTrainedModel) -> Iterator[Function]:
    """The norms of whole states, by kind."""
    width = model.config.get_text_config().hidden_size
    kinds: dict[str, list[Any]] = {}
    for norm in model.modules():
        weights = dict(norm.named_parameters())
        if type(norm).__name__.endswith("RMSNorm") and [*weights] == ["weight"] and weights["weight"].shape == (width,):
            what = f"norm {_name(type(norm))} {norm.extra_repr()} {weights['weight'].dtype} {width}"
            kinds.setdefault(what, []).append(norm)
    for what, norms in kinds.items():
        weight = norms[0].weight.detach()

        def install(function: Function, compiled: Callable[..., Any], norms: Sequence[Any] = norms) -> None:
            for norm in norms:
                norm.forward = _switched(function, compiled, norm.forward, (norm.weight,))

        yield Function(what, _Norm(norms[0]), (_random(weight, 1, ROWS, width), weight), (1, None), len(norms), install)


class _Rotation(nn.Module):
    """A rotary embedding as a module, as which alone it can be exported."""

    def __init__(self, rotate: Callable[..., Any]) -> None:
        super().__init__()
        self._rotate = rotate

    def forward(self, query: Tensor, key: Tensor, cosines: Tensor, sines: Tensor) -> tuple[Tensor, Tensor]:
        rotated: tuple[Tensor, Tensor] = self._rotate(query, key, cosines, sines)
        return rotated


def _rotations(model: PreTrainedModel) -> Iterator[Function]:
    """The rotary embedding of queries and keys. Families have it as a function of their file, under one name."""
    layers: list[Any] = [layer for layer in model.modules() if hasattr(layer, "q_proj") and hasattr(layer, "head_dim")]
    rotating = [layer for layer in layers if ROTATION in type(layer).forward.__globals__]
    if not rotating:
        return
    config, width = model.config.get_text_config(), rotating[-1].head_dim
    heads = config.num_attention_heads
    key_heads = getattr(config, "num_key_value_heads", None) or heads
    space, like = type(rotating[-1]).forward.__globals__, rotating[-1].q_proj.weight
    query, key = (_random(like, 1, ROWS, many, width).transpose(1, 2) for many in (heads, key_heads))
    angles = _random(like, 1, ROWS, int(width * (getattr(config, "partial_rotary_factor", None) or 1)))

    def install(function: Function, compiled: Callable[..., Any]) -> None:
        if function.what not in _rotating:
            _rotating.add(function.what)
            space[ROTATION] = _switched(function, compiled, space[ROTATION])

    what = f"rotation {space['__name__']} {like.dtype} {heads}/{key_heads}x{width}, {angles.shape[-1]} angles"
    example = (query, key, angles.cos(), angles.sin())
    yield Function(what, _Rotation(space[ROTATION]), example, (2, 2, 1, 1), len(rotating), install)


_rotating: set[str] = set()
"""Rotations whose compiled form stands in their family's file, where every model of this process finds it."""


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _random(like: Tensor, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0)).to(like.dtype)
