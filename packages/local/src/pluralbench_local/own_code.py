"""Load classes that come with a model: code outside transformers, often written for an earlier version of it."""

import re
import sys
import warnings
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from typing import Any

import torch
from torch import Tensor
from transformers import PretrainedConfig
from transformers.dynamic_module_utils import get_class_from_dynamic_module

from pluralbench_local.config import LocalModel

DOCSTRING = re.compile(r"cannot import name '(\w+_DOCSTRING)' from '(transformers\.models\.\w+\.\w+)'")


def is_own_code(kind: type) -> bool:
    """Return whether a class comes with a model."""
    return not kind.__module__.startswith("transformers.")


def with_former_names(load: Callable[[], Any]) -> Any:
    """Call `load`, in which code for an earlier transformers finds what was renamed or removed.

    Imports find the documentation texts that transformers 4.56 removed (as in ArmoRM's code).
    """
    added: list[tuple[Any, str]] = []
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="`rope_scaling` is deprecated")
        try:
            while True:
                try:
                    return load()
                except ImportError as error:
                    missing = DOCSTRING.search(str(error))
                    if missing is None or missing[2] not in sys.modules:
                        raise
                    added.append((sys.modules[missing[2]], missing[1]))
                    setattr(*added[-1], "")
        finally:
            for module, name in added:
                delattr(module, name)


def restore_rope_scaling(config: PretrainedConfig) -> None:
    """Let a configuration class of a model's own give `rope_scaling` as its code expects: None, or with a `type`.

    transformers 5 gives `rope_parameters` by this name, which are never None.
    """
    kind: Any = type(config)
    former: Any = PretrainedConfig.rope_scaling
    if is_own_code(kind):
        kind.rope_scaling = property(_former_rope_scaling, former.fset)


def _former_rope_scaling(config: Any) -> dict[str, Any] | None:
    rope = config.__dict__.get("rope_parameters") or {}
    kind = rope.get("rope_type", rope.get("type", "default"))
    return None if kind == "default" else rope | {"type": kind}


def loader_of(kind: Any, source: LocalModel, config: PretrainedConfig) -> Callable[..., Any]:
    """Return the `from_pretrained` that loads a model of this class of transformers and this configuration.

    That of its own class is passed over: some (as QRM's) drop their arguments, and with them the list of weights that
    are missing.
    """
    reference = (getattr(config, "auto_map", None) or {}).get(getattr(kind, "__name__", ""))
    if source.trust_remote_code and isinstance(reference, str):
        own: Any = get_class_from_dynamic_module(reference, source.name, revision=source.revision)
        from transformers import PreTrainedModel  # takes seconds

        plain: Any = PreTrainedModel.from_pretrained
        if own.from_pretrained.__func__ is not plain.__func__:
            return partial(plain.__func__, own)
    loader: Callable[..., Any] = kind.from_pretrained
    return loader


def restore_constants(model: Any) -> None:
    """Give a model of its own code the tensors that its `__init__` makes and its files do not have.

    transformers 5 builds models without memory, and leaves such tensors uninitialized (buffers) or without memory; it
    repairs those of its own classes only. Here a second model is built, of which only these tensors take memory.
    """
    if not is_own_code(type(model)):
        return
    from accelerate import init_empty_weights

    ignored = [re.compile(pattern) for pattern in getattr(model, "_keys_to_ignore_on_load_missing", None) or ()]
    default = torch.get_default_dtype()
    torch.set_default_dtype(model.dtype)
    try:
        with init_empty_weights(include_buffers=False):
            fresh = type(model)(deepcopy(model.config))
    finally:
        torch.set_default_dtype(default)
    saved, made = model.state_dict().keys(), dict(fresh.named_buffers())
    for name, buffer in [*model.named_buffers()]:
        may_miss = any(pattern.search(name) for pattern in ignored)
        unsaved = name not in saved or (may_miss and not getattr(buffer, "_is_hf_initialized", False))
        if unsaved and name in made:  # else it is of a quantized layer
            owner, _, key = name.rpartition(".")
            setattr(model.get_submodule(owner), key, made[name].to(buffer.device))
    for name, module in model.named_modules():
        for key, value in vars(module).items():
            if isinstance(value, Tensor) and value.is_meta:
                setattr(module, key, getattr(fresh.get_submodule(name), key).to(model.device))
