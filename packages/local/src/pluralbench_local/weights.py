"""Names and shapes of the tensors in a model's files, and single tensors, without loading the model."""

import json
import pickle
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any
from zipfile import is_zipfile

import torch
from pluralbench_calls.model_checks import unreachable_errors
from pluralbench_runs import check_file, read_small
from safetensors import safe_open
from torch import Tensor
from transformers import PretrainedConfig

from pluralbench_local.config import LocalModel
from pluralbench_local.errors import LocalError
from pluralbench_local.models import load_config, load_or_raise

BODY_FILES = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)
"""Files of weights as transformers looks for them; the first that is there counts."""
HEAD_FILES = ("value_head.safetensors", "value_head.bin")
"""Files of LLaMA-Factory with a head beside the body (its `callbacks.py`, `save_model`); the first counts."""
ADAPTER_HEAD_FILES = ("pytorch_model.bin", *HEAD_FILES[::-1])
"""Files with a head beside an adapter; the last counts. The first is TRL's (its `modeling_base.py`)."""
SINGLE_FILES = ("*.pt", "*model.bin")
"""A file of weights by another name, if it is the only one."""

Shapes = Mapping[str, tuple[int, ...]]
"""Shape of each tensor by its name."""


@dataclass(frozen=True)
class ModelFiles:
    """The files of a model, each read when it is first asked for.

    `given` has the shapes of its tensors by file, where its weights need not be there.
    """

    source: LocalModel
    given: Mapping[str, Shapes] | None = None

    @cached_property
    def config(self) -> PretrainedConfig:
        """The configuration. Raises `LocalError` if it cannot be loaded."""
        return load_config(self.source)

    @cached_property
    def shapes(self) -> Shapes:
        """Shapes of all tensors; an adapter's own head is in the place of its base's. Raises as `by_file`."""
        adapter = self.source.adapter()
        head = {} if adapter is None else {name: tuple(tensor.shape) for name, tensor in adapter.head.items()}
        return {name: shape for shapes in self.by_file.values() for name, shape in shapes.items()} | head

    @cached_property
    def by_file(self) -> Mapping[str, Shapes]:
        """Shapes of the tensors by the name of their file; those beside an adapter by its path.

        Read are the headers of one file or of the shards of an index, of safetensors or of pickles, and of a head in a
        file of its own. Of a model on the Hub, headers of safetensors are fetched without their tensors. Pickles are
        opened only with `weights_only`. Empty if there are no such files, or the Hub cannot be reached.

        Raises:
            LocalError: If a file cannot be read, or is a pickle of more than tensors.
        """
        if self.given is not None:
            return self.given
        adapter, whole = self.source.adapter(), self.source.whole()
        shapes: dict[str, Shapes] = load_or_raise("model", whole, lambda: _shapes_by_file(whole))
        if adapter is None:
            return shapes
        for file in ADAPTER_HEAD_FILES:
            path = adapter.files.absolute() / file
            if path.exists():
                found: Shapes = load_or_raise("model", whole, partial(_shapes, self._home(str(path)), file))
                own = {name: shape for name, shape in found.items() if file in HEAD_FILES or name.startswith("v_head.")}
                shapes[str(path)] = own
        return shapes

    def _home(self, file: str) -> LocalModel:
        """The model with this file: of an adapter its base, but for a head beside the adapter, named by its path."""
        path = Path(file)
        if not path.is_absolute():
            return self.source.whole()
        return self.source.model_copy(update={"name": str(path.parent), "revision": None})

    def tensors(self, names: Iterable[str]) -> dict[str, Tensor]:
        """Read those of these tensors that there are, as saved, to the CPU. Raises `LocalError`."""
        wanted = set(names)
        read: dict[str, Tensor] = {}
        for file, shapes in self.by_file.items():
            if here := wanted & shapes.keys():
                read |= load_or_raise("model", self.source.whole(), partial(_read, self._home(file), file, here))
        return read

    def by_another_name(self) -> dict[str, Tensor] | None:
        """Return all tensors of a file that transformers does not look for; None if there is one that it does."""
        file = next(iter(self.by_file), "")
        if not file or not any(Path(file).match(pattern) for pattern in SINGLE_FILES) or file in BODY_FILES:
            return None
        return self.tensors(self.by_file[file])


def body_file(names: Iterable[str]) -> str:
    """Return the file of weights, or of their index, among a model's files; "" if there is none."""
    names = set(names)
    usual = next((name for name in BODY_FILES if name in names), "")
    single = [name for pattern in SINGLE_FILES for name in names if Path(name).match(pattern) and "/" not in name]
    return usual or (single[0] if len(single) == 1 else "")


def file_names(source: LocalModel) -> list[str]:
    """Return the names of a model's files, in its folder or on the Hub; of its copy in the cache if it is offline."""
    folder = Path(source.name)
    if not folder.is_dir():
        from huggingface_hub import HfApi, try_to_load_from_cache

        try:
            return HfApi().list_repo_files(source.name, revision=source.revision)
        except unreachable_errors():
            config = try_to_load_from_cache(source.name, "config.json", revision=source.revision)
            if not isinstance(config, str):
                return []
            folder = Path(config).parent
    return sorted(path.name for path in folder.iterdir() if path.is_file())


def read_pickle(path: Path) -> Any:
    """Read the tensors of a pickle without running what it may hold.

    Raises `LocalError` if it holds more than tensors and plain values.
    """
    try:
        return torch.load(path, map_location="cpu", weights_only=True, mmap=is_zipfile(path))
    except pickle.UnpicklingError:
        raise LocalError(
            f"The model of {path.parent} cannot be loaded: {path.name} is a pickle of more than tensors, which may run "
            "code; save its tensors as safetensors."
        ) from None


def _shapes_by_file(source: LocalModel) -> dict[str, Shapes]:
    names = file_names(source)
    body, head = body_file(names), next((name for name in HEAD_FILES if name in names), "")
    files = [body]
    if body.endswith(".index.json"):
        files = sorted(set(json.loads(read_small(_path(source, body)))["weight_map"].values()))
    return {file: _shapes(source, file) for file in [*files, head] if file}


def _shapes(source: LocalModel, file: str) -> Shapes:
    """Shapes of the tensors in a file. Only the header is fetched of one on the Hub that is not in its cache."""
    if file.endswith(".safetensors") and not Path(source.name).is_dir():
        from huggingface_hub import HfApi, try_to_load_from_cache

        if not isinstance(try_to_load_from_cache(source.name, file, revision=source.revision), str):
            header = HfApi().parse_safetensors_file_metadata(source.name, file, revision=source.revision)
            return {name: tuple(tensor.shape) for name, tensor in header.tensors.items()}
    path = _path(source, file)
    if file.endswith(".safetensors"):
        with safe_open(path, "pt") as weights:
            return {name: tuple(weights.get_slice(name).get_shape()) for name in weights.keys()}  # noqa: SIM118
    return {name: tuple(value.shape) for name, value in read_pickle(path).items() if isinstance(value, Tensor)}


def _read(source: LocalModel, file: str, names: Iterable[str]) -> dict[str, Tensor]:
    path = _path(source, file)
    if path.suffix == ".safetensors":
        with safe_open(path, "pt") as weights:
            return {name: weights.get_tensor(name) for name in names}
    tensors = read_pickle(path)
    return {name: tensors[name] for name in names}


def _path(source: LocalModel, file: str) -> Path:
    """It is downloaded from the Hub if need be."""
    folder = Path(source.name)
    if folder.is_dir():
        check_file(folder / file)
        return folder / file
    from huggingface_hub import hf_hub_download

    return Path(hf_hub_download(source.name, file, revision=source.revision))
