"""Loading a reward model, and the networks that read it."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

import torch
from pluralbench_runs import check_model_folder, config_error, one_line
from torch import nn
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    PretrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils import logging

from pluralbench_local.config import LocalModel
from pluralbench_local.errors import DeviceError, ModelError
from pluralbench_local.network import ReadableNetwork, network_of

library: Any = logging  # untyped
LANGUAGE_MODEL = "it looks like a language model: score with it as of the kind implicit, or judge with it"


# A short conversation, tried by a child before any other: seconds of its computing, and how much it may make and take.
PROBE_SECONDS, PROBE_BYTES, PROBE_CHARACTERS, PATIENCE = 2, 2 * 10**9, 200_000, 120.0
REWARD_HEADS = {"score", "classifier", "v_head"}


@dataclass(frozen=True)
class Special:
    """How to load an architecture that `AutoModelForSequenceClassification` does not know.

    head: the module that turns a hidden state into a reward. append: the key in the model's configuration that holds
    the id of a token wanted after a conversation. The model's code comes with the model.
    """

    head: str
    append: str


SPECIAL = {
    # internlm/internlm2-*-reward: `get_score` of the model's own code reads the reward token after the conversation.
    "InternLM2ForRewardModel": Special(head="v_head", append="reward_token_id"),
}
"""By the architecture that a model's configuration declares."""


def from_pretrained(model: LocalModel) -> dict[str, Any]:
    """What a description says, as `from_pretrained` of the library takes it."""
    return {"revision": model.revision, "trust_remote_code": model.trust_remote_code}


def load_tokenizer(source: LocalModel, chat_template: str | None) -> PreTrainedTokenizerBase:
    """The model's tokenizer, with another chat template if one is given. Raises `ModelError`."""
    tokenizer = load_or_raise(
        "tokenizer", source, lambda: AutoTokenizer.from_pretrained(source.name, **from_pretrained(source))
    )
    if chat_template is not None:
        tokenizer.chat_template = chat_template
    if fault := _tried(_probe_of(tokenizer)):
        raise ModelError(f"The tokenizer of {source.name} cannot be used: {fault}; mend it, or give `chat_template`.")
    return cast("PreTrainedTokenizerBase", tokenizer)


def _probe_of(tokenizer: Any) -> str:
    """What `probe` is asked about a tokenizer."""
    template = tokenizer.chat_template
    backend = getattr(tokenizer, "backend_tokenizer", None)
    normalizer = None
    with suppress(Exception):  # of one that is written in Python
        normalizer = json.loads(backend.normalizer.__getstate__())  # type: ignore[union-attr]
    return json.dumps(
        {
            "template": (template.get("default", "") if isinstance(template, dict) else template) or "",
            "special": tokenizer.special_tokens_map,
            "normalizer": normalizer,
            "seconds": PROBE_SECONDS,
            "bytes": PROBE_BYTES,
            "characters": PROBE_CHARACTERS,
        },
        default=str,
    )


@cache
def _tried(asked: str) -> str:
    """What is wrong with a tokenizer, by what a child process made of a short conversation; "" for nothing."""
    child = [sys.executable, "-I", str(Path(__file__).with_name("probe.py"))]
    try:
        done = subprocess.run(child, input=asked, capture_output=True, text=True, timeout=PATIENCE, check=False)  # noqa: S603
    except subprocess.TimeoutExpired:
        done = None
    if done is not None and done.returncode == 0:
        return ""
    if done is not None and done.stderr.startswith("its "):
        return one_line(done.stderr)
    return (
        f"two short messages take its chat template, or its normalizer, more than {PROBE_SECONDS} s or "
        f"{PROBE_BYTES / 1e9:g} GB"
    )


def load_classifier(source: LocalModel) -> tuple[ReadableNetwork, tuple[int, ...]]:
    """The network of a sequence classifier, and the token ids it wants after a conversation. Raises `ModelError`."""
    config = load_config(source)
    special = special_of(config)
    if special is None:
        model = _model(AutoModelForSequenceClassification, source)
        return _read(model, getattr(model, "score", None)), ()
    model = _model(AutoModel, source)
    return _read(model, getattr(model, special.head)), appended(config)


def load_config(source: LocalModel) -> PretrainedConfig:
    """A model's configuration. Raises `ModelError`."""
    read: PretrainedConfig = load_or_raise(
        "configuration", source, lambda: AutoConfig.from_pretrained(source.name, **from_pretrained(source))
    )
    return read


def special_of(config: PretrainedConfig) -> Special | None:
    """How a model is loaded whose architecture the library does not know."""
    return next((SPECIAL[name] for name in config.architectures or [] if name in SPECIAL), None)


def appended(config: PretrainedConfig) -> tuple[int, ...]:
    """The token ids that a classifier wants after a conversation."""
    special = special_of(config)
    return () if special is None else (int(getattr(config, special.append)),)


def load_language_model(source: LocalModel) -> ReadableNetwork:
    """The network of a causal language model, read through its vocabulary. Raises `ModelError`."""
    model = language_model(source)
    embeddings: Callable[[], nn.Module] = model.get_output_embeddings
    return _read(model, embeddings())


def language_model(source: LocalModel) -> PreTrainedModel:
    """A causal language model on its device. Raises `ModelError`, `DeviceError`."""
    return _model(AutoModelForCausalLM, source)


def _read(model: PreTrainedModel, head: nn.Module | None) -> ReadableNetwork:
    with silence_transformers():
        return network_of(model, head)


def rows_of(model: PreTrainedModel) -> int | None:
    """How many token ids a model embeds, None where it embeds them in a way of its own."""
    return getattr(model.get_input_embeddings(), "num_embeddings", None)


def device_of(asked: str) -> torch.device:
    """The device for "auto", "cpu", "cuda" or "cuda:N". Raises `DeviceError` when it is not there."""
    if asked == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(asked)
        if device.type == "cuda" and not torch.cuda.is_available():
            raise DeviceError(f"No GPU was found, but the device {asked} asks for one; choose cpu.")
        torch.ones(1, device=device).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise DeviceError(f"The device {asked} cannot be used: {one_line(error, 300)}.") from None
    return device


def _model(kind: Any, source: LocalModel) -> PreTrainedModel:
    spread = source.device == "spread"
    device = None if spread else device_of(source.device)
    placement: dict[str, Any] = {"device_map": "auto"} if spread else {}
    model, info = load_weights(kind, source, dtype=source.dtype, **placement)
    left_over = [name for name in info["unexpected_keys"] if name.split(".")[0] in REWARD_HEADS]
    if left_over and kind is AutoModelForCausalLM:
        raise ModelError(
            f"{source.name} is no language model, since it holds a reward head ({left_over[0]}): score with it as of "
            "the kind classifier."
        )
    missing = sorted(info["missing_keys"])
    if missing:
        hint = f"; {LANGUAGE_MODEL}" if any(name.split(".")[0] == "score" for name in missing) else ""
        raise ModelError(
            f"{source.name} holds no weights for {', '.join(missing[:3])}{', …' if len(missing) > 3 else ''}, "
            f"so its scores would be random{hint}."
        )
    try:
        return cast("PreTrainedModel", (model if device is None else model.to(device)).eval())
    except torch.OutOfMemoryError as error:
        raise DeviceError(f"{source.name} does not fit into the memory of {device} ({one_line(error, 300)}).") from None


def load_weights(kind: Any, source: LocalModel, **options: Any) -> tuple[Any, dict[str, Any]]:
    """A model of this class of the library, and what loading showed of its weights. Raises `ModelError`."""
    given = {"output_loading_info": True} | from_pretrained(source) | options
    with silence_transformers():
        model, info = load_or_raise("model", source, lambda: kind.from_pretrained(source.name, **given))
    return model, info


@contextmanager
def silence_transformers() -> Iterator[None]:
    """Keep the library from warning of what is checked here, and from drawing bars where nobody looks."""
    verbosity, bars = library.get_verbosity(), library.is_progress_bar_enabled()
    library.set_verbosity_error()
    if not sys.stderr.isatty():
        library.disable_progress_bar()
    try:
        yield
    finally:
        library.set_verbosity(verbosity)
        if bars:
            library.enable_progress_bar()


def load_or_raise(what: str, source: LocalModel, load: Callable[[], Any]) -> Any:
    """What `load` gives. what: its name in a sentence, "model", "tokenizer". Raises `ModelError` for anything."""
    if Path(source.name).is_dir():
        _check_folder(Path(source.name), what)
    elif Path(source.name).exists() or source.name.count("/") != 1 or source.name.startswith((".", "/", "~")):
        raise ModelError(f"There is no model folder {source.name} (give a folder, or ORG/NAME on the Hub).")
    try:
        fault = "" if Path(source.name).is_dir() else config_error(_hub_config(source.name, source.revision))
        if not fault:
            return load()
    except Exception as error:  # noqa: BLE001 - whatever the library raises, the user gets a sentence
        message = one_line(error, 300)
        if "trust_remote_code" in str(error):
            raise ModelError(
                f"{source.name} brings Python code of its own, which would run with your rights; read it, and if you "
                "trust it give `trust_remote_code`."
            ) from None
        raise ModelError(f"The {what} of {source.name} cannot be loaded: {message}.") from None
    raise ModelError(f"The configuration of {source.name} {fault}.")


@cache
def _hub_config(name: str, revision: str | None) -> dict[str, Any]:
    return dict(PretrainedConfig.get_config_dict(name, revision=revision)[0])


def _check_folder(folder: Path, what: str) -> None:
    if not (folder / "config.json").exists():
        raise ModelError(f"{folder} is no model folder: it has no config.json.")
    check_model_folder(folder, ModelError)
    if what == "model" and not [path for suffix in ("safetensors", "bin") for path in folder.glob(f"*.{suffix}")]:
        raise ModelError(f"{folder} holds no weights (*.safetensors or *.bin).")
    if what == "tokenizer" and not [
        path for pattern in ("tokenizer*", "vocab*", "*.model") for path in folder.glob(pattern)
    ]:
        raise ModelError(f"{folder} holds no tokenizer; save the model's tokenizer into it.")
