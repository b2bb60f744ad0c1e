"""In place of sgl-kernel, whose wheels hold kernels for GPUs alone: every name is there, and to call one is an error.

SGLang imports its kernels wherever it runs. On a CPU, with torch's own attention, a classifier needs none of them.
"""

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


class Kernel:
    """A name that stands for a kernel, or for something that holds some."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> "Kernel":
        if name.startswith("__"):  # what Python itself asks whatever it meets
            raise AttributeError(name)
        return Kernel(f"{self._name}.{name}")

    def __call__(self, *_: object, **__: object) -> Any:
        raise NotImplementedError(f"{self._name} is a kernel for GPUs, and only its name is here.")


class Submodules:
    """Finds and makes every module below this one."""

    @staticmethod
    def find_spec(name: str, _path: Sequence[str] | None, _target: ModuleType | None = None) -> ModuleSpec | None:
        loader: Any = Submodules
        return ModuleSpec(name, loader, is_package=True) if name.startswith(f"{__name__}.") else None

    @staticmethod
    def create_module(spec: ModuleSpec) -> ModuleType | None:
        return None

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        vars(module)["__getattr__"] = Kernel(module.__name__).__getattr__


__getattr__ = Kernel(__name__).__getattr__
finder: Any = Submodules
sys.meta_path.insert(0, finder)
