"""Adapters of PEFT: find one with its base model, and merge it into the base. Imports no torch by itself."""

import json
import re
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

from pluralbench_calls.model_checks import check_model, model_configs, unreachable_errors
from pluralbench_runs import (
    ADAPTER_FILE,
    UserError,
    check_file,
    check_model_folder,
    install_command,
    one_line,
    read_small,
)

from pluralbench_local.errors import LocalError

WEIGHT_FILES = ("adapter_model.safetensors", "adapter_model.bin")
BASE_WEIGHTS = re.compile(r"^(model|pytorch_model)([-.].*)?\.(safetensors|bin)$")
DOWNLOADED = ["*.json", "*.jinja", "*.model", "*.txt", *WEIGHT_FILES, "value_head.*", "pytorch_model.bin"]
PREFIX = "base_model.model."
HEAD = re.compile(r"^(score|classifier)\.(out_proj\.)?weight$")
HEAD_MODULES = {"score", "classifier"}
REPEATS = re.compile(r"[*+{]")
MOST = 1000  # rounds of an initialization, or layers
TASKS = {None, "SEQ_CLS", "CAUSAL_LM", "FEATURE_EXTRACTION"}


@dataclass(frozen=True)
class Adapter:
    """An adapter and its base. The folder of an adapter on the Hub is that of the cache with its configuration."""

    name: str
    folder: Path
    config: dict[str, Any]
    revision: str | None
    base: str
    base_revision: str | None

    @property
    def commit(self) -> str | None:
        """The commit of an adapter on the Hub; None for a folder."""
        return None if Path(self.name).is_dir() else self.folder.name

    @cached_property
    def files(self) -> Path:
        """The folder with all files; those of an adapter on the Hub are downloaded."""
        if self.commit is None:
            return self.folder
        from huggingface_hub import snapshot_download

        return Path(snapshot_download(self.name, revision=self.commit, allow_patterns=DOWNLOADED))

    def has_tokenizer(self) -> bool:
        """Return whether a tokenizer was saved with the adapter."""
        return any((self.files / name).exists() for name in ("tokenizer_config.json", "tokenizer.json"))

    def weights(self, only: re.Pattern[str] | None = None) -> dict[str, Any]:
        """Read the adapter's tensors, by their names in the base model; `only` says which, by their own names.

        Raises:
            LocalError: If there are none, or they cannot be read without running code.
        """
        from safetensors import safe_open
        from torch import load

        path = next((self.files / name for name in WEIGHT_FILES if (self.files / name).exists()), None)
        if path is None:
            raise LocalError(f"{self.name} is an adapter without weights: it has no {WEIGHT_FILES[0]}.")
        try:
            check_file(path)
            if path.suffix == ".bin":
                tensors = load(path, map_location="cpu", weights_only=True)
                wanted = {name.removeprefix(PREFIX): tensor for name, tensor in tensors.items()}
                return {name: tensor for name, tensor in wanted.items() if only is None or only.match(name)}
            with safe_open(path, "pt") as file:
                names = {name.removeprefix(PREFIX): name for name in file.keys()}  # noqa: SIM118
                return {
                    name: file.get_tensor(saved) for name, saved in names.items() if only is None or only.match(name)
                }
        except UserError:
            raise
        except Exception as error:  # noqa: BLE001 - a broken file may raise anything
            why = one_line(error, 200) or type(error).__name__
            if isinstance(error, UnpicklingError):  # torch's own words advise to run the code
                why = "a pickle of more than tensors, which may run code"
            raise LocalError(f"The weights of the adapter {self.name} cannot be read ({path.name}: {why}).") from None

    @property
    def head(self) -> dict[str, Any]:
        """The last layer of the adapter's own head; empty if it has none. Raises as `weights`."""
        return self.weights(HEAD)

    @property
    def labels(self) -> int | None:
        """The number of labels of the adapter's own head; None if it has none. Raises as `weights`."""
        for name, tensor in self.head.items():
            if tensor.dim() != 2 or not len(tensor):
                raise LocalError(
                    f"The head of the adapter {self.name} ({name}) has the shape {tuple(tensor.shape)}, not a row of "
                    "numbers for each label."
                )
            return len(tensor)
        return None


def find_adapter(name: str, revision: str | None, base: str | None) -> Adapter | None:
    """Return the adapter of this name; None if it is something else, or cannot be reached.

    The base is by default that of `adapter_config.json`.

    Raises:
        LocalError: If the adapter is not safe to load, or its base is not known.
    """
    folder = _folder(name, revision)
    if folder is None or not (folder / ADAPTER_FILE).exists() or _is_whole_model(name, folder):
        return None
    check_model_folder(folder, LocalError, name=name, adapter=True)
    config = json.loads(read_small(folder / ADAPTER_FILE))
    named = config.get("base_model_name_or_path") if isinstance(config, dict) else None
    if base is None:
        base = named
        if not isinstance(base, str) or not base:
            raise LocalError(
                f"{name} is an adapter whose {ADAPTER_FILE} names no base model; give its folder, or its name on the "
                "Hub, as `base=...`."
            )
        if not Path(base).is_dir() and (base.count("/") != 1 or base.startswith((".", "/", "~"))):
            raise LocalError(
                f"{name} is an adapter of the base model {base!r:.200}, which is not a folder here; give the base's "
                "folder, or its name on the Hub, as `base=...`."
            )
    return Adapter(name, folder, config, revision, base, config.get("revision") if base == named else None)


def _folder(name: str, revision: str | None) -> Path | None:
    """The folder with the configuration files of a model; None if there is no such model or the Hub is out of reach."""
    if Path(name).exists() or name.count("/") != 1 or name.startswith((".", "/", "~")):
        return Path(name)
    unreachable: tuple[type[Exception], ...] = (ValueError, *unreachable_errors())
    try:
        return model_configs(name, LocalError, revision=revision)
    except unreachable:  # loading reports it
        return None


def _is_whole_model(name: str, folder: Path) -> bool:
    if not (folder / "config.json").exists():
        return False
    names = {path.name for path in folder.iterdir()}
    if not Path(name).is_dir():
        with suppress(*unreachable_errors()):
            names |= _hub_files(name, folder.name)
    return any(BASE_WEIGHTS.match(file) for file in names)


@cache
def _hub_files(name: str, commit: str) -> frozenset[str]:
    from huggingface_hub import HfApi

    files = HfApi().model_info(name, revision=commit, timeout=20).siblings or ()
    return frozenset(file.rfilename for file in files)


def check_adapter(adapter: Adapter) -> None:
    """Check an adapter and its base before anything large is loaded.

    Raises:
        LocalError: If PEFT is not installed, does not know the adapter or its settings; or if the base cannot be found.
    """
    try:
        from peft import PEFT_TYPE_TO_CONFIG_MAPPING
    except ImportError:
        raise LocalError(f"Adapters need an extra: {install_command('pluralbench-local', 'lora')}.") from None
    configs: dict[str, Any] = {str(name.value): config for name, config in PEFT_TYPE_TO_CONFIG_MAPPING.items()}
    kind, task = adapter.config.get("peft_type"), adapter.config.get("task_type")
    if not isinstance(kind, str) or kind not in configs:
        raise LocalError(
            f"The adapter {adapter.name} has the type {kind!r:.80}, which the installed peft does not know."
        )
    if not isinstance(task, str | None) or task not in TASKS:
        raise LocalError(f"The adapter {adapter.name} is for the task {task!r:.80}, which gives no reward.")
    known = configs[kind].__dataclass_fields__
    unknown = sorted(key for key, value in adapter.config.items() if value and key not in known)
    if unknown or adapter.config.get("megatron_config"):
        raise LocalError(
            f"The {ADAPTER_FILE} of {adapter.name} sets `{(unknown or ['megatron_config'])[0]}`, which the installed "
            "peft does not support; try a newer version."
        )
    _check_effort(adapter)
    try:
        check_model(adapter.base, LocalError, revision=adapter.base_revision)
    except UserError as error:
        raise LocalError(f"The base of the adapter {adapter.name} cannot be used: {error}") from None
    except Exception as error:  # noqa: BLE001 - the client of the Hub may raise anything
        raise LocalError(
            f"The base model {adapter.base} of the adapter {adapter.name} cannot be found ({one_line(error, 300)}); if "
            "it has moved, give its folder, or its name on the Hub, as `base=...`."
        ) from None


def _check_effort(adapter: Adapter) -> None:
    """Refuse settings with which PEFT may compute without end."""
    config, found = adapter.config, ""
    keys = [key for name in ("rank_pattern", "alpha_pattern") for key in (config.get(name) or ())]
    for expression in (config.get("target_modules"), config.get("exclude_modules"), *keys):
        # PEFT matches each with each module's name. Repeated groups and many repetitions may try all ways to split it.
        if isinstance(expression, str) and (re.search(r"\)[*+{]", expression) or len(REPEATS.findall(expression)) > 4):
            found = f"the expression {expression!r:.60}, which may be matched without end; list the modules' names"
    if any(int(number) > MOST for number in re.findall(r"\d{1,18}", str(config.get("init_lora_weights")))):
        found = f"`init_lora_weights` to {config['init_lora_weights']!r:.60}, more rounds than {MOST:,}; train it again"
    ranges = config.get("layer_replication") or []
    try:
        layers = sum(int(end) - int(start) for start, end in ranges)
    except (TypeError, ValueError):
        layers = MOST + 1
    if layers > MOST or len(ranges) > MOST:
        found = f"`layer_replication` to more than {MOST:,} layers, or to what is none; merge it into its base"
    if found:
        raise LocalError(f"The {ADAPTER_FILE} of {adapter.name} sets {found}.")


def merge(model: Any, adapter: Adapter, weights: dict[str, Any]) -> Any:
    """Merge an adapter's weights into its base, a model of transformers. The result has the same class.

    Raises:
        LocalError: If the adapter does not fit the base, or cannot be merged.
    """
    from peft import PeftConfig, get_peft_model
    from peft.utils import get_peft_model_state_dict, set_peft_model_state_dict

    rows = next((weights[name].shape[:1].numel() for name in _embeddings(model) if name in weights), None)
    if rows is not None and rows != model.get_input_embeddings().num_embeddings:
        model.resize_token_embeddings(rows, mean_resizing=False)
    try:
        config = PeftConfig.from_pretrained(str(adapter.folder))
        config.inference_mode = True
        whole = get_peft_model(model, config)
        expected = get_peft_model_state_dict(whole, save_embedding_layers=False)
        result: Any = set_peft_model_state_dict(whole, {PREFIX + name: tensor for name, tensor in weights.items()})
        missing = {name.removeprefix(PREFIX) for name in expected} - weights.keys()
        # A head that only the base has is the base's.
        missing = {name for name in missing if name.split(".")[0] not in HEAD_MODULES}
        misfits = [*sorted(missing), *result.unexpected_keys]
        merged = whole if misfits else whole.merge_and_unload(safe_merge=True)
    except Exception as error:  # noqa: BLE001 - PEFT may raise anything
        raise LocalError(
            f"The adapter {adapter.name} cannot be merged into its base {adapter.base}: {one_line(error, 300)}."
        ) from None
    if misfits:
        raise LocalError(
            f"The adapter {adapter.name} does not fit {type(model).__name__} of its base {adapter.base}: "
            f"{misfits[0]} is {'missing' if missing else 'not part of it'}; give the base that it was trained on as "
            "`base=...`, or another `kind=...`."
        )
    return merged


def _embeddings(model: Any) -> list[str]:
    layers = {id(layer) for layer in (model.get_input_embeddings(), model.get_output_embeddings()) if layer is not None}
    return [f"{name}.weight" for name, module in model.named_modules() if id(module) in layers]
