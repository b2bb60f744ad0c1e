"""Load networks, tokenizers and configurations with transformers."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from logging import ERROR, getLogger
from pathlib import Path
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any, cast

import torch
from pluralbench_calls.model_checks import check_model
from pluralbench_runs import UserError, one_line, read_small
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    CompressedTensorsConfig,
    PretrainedConfig,
    PreTrainedTokenizerBase,
)
from transformers.utils import logging

from pluralbench_local.adapters import Adapter, check_adapter, merge
from pluralbench_local.config import LocalModel
from pluralbench_local.errors import LocalError
from pluralbench_local.own_code import loader_of, restore_constants, restore_rope_scaling, with_former_names
from pluralbench_local.planning import check_before_loading, saved_parameters
from pluralbench_local.rendering import set_date

if TYPE_CHECKING:
    from transformers import PreTrainedModel  # importing it takes seconds: what needs no weights is checked before

transformers_logging: Any = logging  # untyped


MILLION = 10**6
ALL_GPUS = "all"
NO_GPU = 'The device {device} needs a GPU, and this machine has none; set `device="cpu"`.'
TOKENIZER_FILES = ("*token*", "*vocab*", "*spiece*", "merges.txt", "*.model")
REWARD_HEADS = {"score", "classifier", "v_head"}
TEMPLATE_FILE = "chat_template.jinja"
QUANTIZATION = "pluralbench_quantization"  # in the configuration of a loaded model


def hub_options(model: LocalModel) -> dict[str, Any]:
    """Return the arguments of `from_pretrained` for a model."""
    return {"revision": model.revision, "trust_remote_code": model.trust_remote_code}


def load_tokenizer(source: LocalModel) -> PreTrainedTokenizerBase:
    """Load a model's tokenizer or that of `source.tokenizer`, with the chat template of `source` if it has one.

    An adapter's tokenizer and template come before those of its base. Raises `LocalError`.
    """
    adapter, whole = _adapter_and_whole(source)
    template = source.template()
    if source.tokenizer is not None:
        adapter, whole = None, source.other(source.tokenizer)
    folder = Path(whole.name)

    def load() -> Any:
        try:
            return AutoTokenizer.from_pretrained(whole.name, **hub_options(whole))
        except Exception as error:
            if folder.is_dir() and not any(path for pattern in TOKENIZER_FILES for path in folder.glob(pattern)):
                raise LocalError(
                    f"{folder} has no tokenizer; save the model's tokenizer to it, or name another as `tokenizer=...`."
                ) from None
            missing = [package for package in ("sentencepiece", "google.protobuf") if not _is_installed(package)]
            if missing and "tokenizer.model" in str(error):
                raise LocalError(
                    f"The tokenizer of {whole.name} is a tokenizer.model of SentencePiece, which needs packages: "
                    "install `sentencepiece` and `protobuf`."
                ) from None
            raise

    if adapter is None or not adapter.has_tokenizer():
        tokenizer = load_or_raise("tokenizer", whole, load)
    else:
        tokenizer = _adapter_tokenizer(adapter, source)
    if adapter is not None and template is None:
        saved = adapter.files / TEMPLATE_FILE
        if saved.exists():
            template = read_small(saved).decode()
        elif not tokenizer.chat_template:
            template = load_tokenizer(whole).chat_template
    if template is not None:
        tokenizer.chat_template = template
    set_date(tokenizer, source.date)
    return cast("PreTrainedTokenizerBase", tokenizer)


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # the package around it
        return False


def load_config(source: LocalModel) -> PretrainedConfig:
    """Load a model's configuration; of an adapter, that of its base with its own labels. Raises `LocalError`."""
    adapter, whole = _adapter_and_whole(source)
    config: PretrainedConfig = load_or_raise(
        "configuration", whole, lambda: AutoConfig.from_pretrained(whole.name, **hub_options(whole))
    )
    labels = None if adapter is None else adapter.labels
    if labels not in {None, config.num_labels}:
        config.num_labels = labels  # of its own head
    restore_rope_scaling(config)
    return config


def _adapter_and_whole(source: LocalModel) -> tuple[Adapter | None, LocalModel]:
    """Return the adapter, if it is one and can be loaded, and the model that is loaded first."""
    adapter = source.adapter()
    if adapter is not None:
        check_adapter(adapter)
    return adapter, source.whole()


def _adapter_tokenizer(adapter: Adapter, source: LocalModel) -> Any:
    config = load_config(source)
    try:
        return AutoTokenizer.from_pretrained(
            str(adapter.files), config=config, trust_remote_code=source.trust_remote_code
        )
    except Exception as error:  # noqa: BLE001 - transformers may raise anything
        raise LocalError(
            f"The tokenizer of the adapter {adapter.name} cannot be loaded: {one_line(error, 300)}."
        ) from None


def quantization_method(config: PretrainedConfig) -> str:
    """Return the method that a model's weights were quantized with, such as "gptq"; "" if they are not."""
    given = getattr(config, "quantization_config", None) or {}
    values = given if isinstance(given, dict) else given.to_dict()
    return str(getattr(values.get("quant_method", ""), "value", values.get("quant_method", "")))


def quantization_settings(config: PretrainedConfig) -> dict[str, Any]:
    """Return what a run records of the quantization of a loaded model."""
    method = getattr(config, QUANTIZATION, None)
    return {"quantization": method} if method else {}


def num_embeddings(model: "PreTrainedModel") -> int | None:
    """Return the number of token ids that a model embeds; None if it has no ordinary embedding."""
    return getattr(model.get_input_embeddings(), "num_embeddings", None)


def resolve_device(name: str) -> torch.device:
    """Return the device named "auto", "cpu", "cuda" or "cuda:N". Raises `LocalError` if it is not available."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if name == ALL_GPUS:
        raise LocalError("The device all is for runs that score items; choose one device, such as cuda:0, for this.")
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise LocalError(NO_GPU.format(device=name))
    try:
        torch.ones(1, device=name).item()
        return torch.device(name)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise LocalError(
            f"The device {name} cannot be used ({one_line(error, 300)}); give auto, cpu, cuda, or a GPU by its number, "
            "such as cuda:1."
        ) from None


def all_gpus(device: str = ALL_GPUS) -> list[str]:
    """Return the names of all GPUs. Raises `LocalError` if there are none, which names `device`."""
    gpus = [f"cuda:{number}" for number in range(torch.cuda.device_count())]
    if not gpus:
        raise LocalError(NO_GPU.format(device=device))
    return gpus


def describe_weights(model: LocalModel) -> str:
    """Return the name of a model with its size and device, such as "my-model (135 M parameters, CPU)".

    The size is known before loading if the weights are safetensors files in a folder.
    """
    folder, size = Path(model.name), saved_parameters(model.whole().name)
    devices = {"cpu": "CPU", "auto": "GPU" if torch.cuda.is_available() else "CPU"}
    facts = [f"{size / 1e6:,.0f} M parameters"] if size >= MILLION else []
    return f"{folder.name or model.name} ({', '.join([*facts, devices.get(model.device, model.device)])})"


def load_model(kind: Any, source: LocalModel, **options: Any) -> "PreTrainedModel":
    """Load a model of a transformers class with all its weights, to its device.

    Raises:
        LocalError: If it cannot be loaded; or if its device is not available, or has too little memory.
    """
    spread = source.device == "spread" and bool(all_gpus("spread"))  # an error without a GPU
    device = None if spread else resolve_device(source.device)
    placement: dict[str, Any] = {"device_map": "auto"} if spread else {}
    adapter, whole = _adapter_and_whole(source)
    if device is not None:
        check_before_loading(kind, whole, load_config, device)
    method = quantization_method(load_config(whole))
    if method and device is not None:  # `to` fails for some
        placement = {"device_map": {"": device}}
    options |= {"dtype": source.dtype} | placement
    if method == "compressed-tensors" and (device is None or device.type == "cpu"):
        # Its layers compute on GPUs alone.
        decompress = load_or_raise("model", whole, lambda: CompressedTensorsConfig(dequantize=True))
        options |= {"quantization_config": decompress}
    if method == "bitsandbytes":  # it warns at each layer of each batch
        getLogger("bitsandbytes").setLevel(ERROR)
    if adapter is None:
        model, info = load_weights(kind, source, **options)
    else:
        model, info = load_adapted(kind, whole, adapter, **options)
        _set_padding(model, adapter, source)
    reward_heads = [name for name in info["unexpected_keys"] if name.split(".")[0] in REWARD_HEADS]
    if reward_heads and kind is AutoModelForCausalLM:
        raise LocalError(
            f"{whole.name} is not a language model: it has a reward head ({reward_heads[0]}); score with it as a "
            "classifier."
        )
    missing = sorted(info["missing_keys"])
    if missing:
        hint = ""
        if "score.weight" in missing:
            hint = '; a language model scores with `kind="implicit"`, token, process or pairwise, or judges'
        if hint and not source.trust_remote_code and kind.__name__ in (getattr(model.config, "auto_map", None) or {}):
            hint = (
                "; it comes with Python code of its own, which computes its rewards: read it, and if you trust it set "
                "`trust_remote_code=True`"
            )
        raise LocalError(
            f"{source.name} has no weights for {', '.join(missing[:3])}, so what it computes would be random{hint}."
        )
    if method:
        kept = getattr(model, "hf_quantizer", None) is not None
        setattr(model.config, QUANTIZATION, method if kept else f"{method}, dequantized")
    try:
        return cast("PreTrainedModel", (model if method or device is None else model.to(device)).eval())
    except torch.OutOfMemoryError as error:
        raise LocalError(f"{source.name} does not fit into the memory of {device} ({one_line(error, 300)}).") from None


def _set_padding(model: Any, adapter: Adapter, source: LocalModel) -> None:
    """Set the padding token of an adapter's tokenizer, by which its class finds the token to read.

    Training sets it in the configuration (TRL `reward_trainer.py`), which is not saved with an adapter.
    """
    padding = _adapter_tokenizer(adapter, source).pad_token_id if adapter.has_tokenizer() else None
    if padding is not None:
        model.config.get_text_config().pad_token_id = padding


def load_adapted(kind: Any, base: LocalModel, adapter: Adapter, **options: Any) -> tuple[Any, dict[str, Any]]:
    """Load a base model and merge an adapter into it, as `load_weights`, whose info then lacks what the adapter brings.

    Raises:
        LocalError: If they cannot be loaded or merged, or neither has a reward head.
    """
    weights, labels = adapter.weights(), adapter.labels
    if kind is AutoModelForSequenceClassification and labels is not None:
        options |= {"num_labels": labels, "ignore_mismatched_sizes": True}
    model, info = load_weights(kind, base, **options)
    if getattr(model, "is_quantized", False):
        raise LocalError(
            f"The adapter {adapter.name} has a quantized base ({base.name}), into which it cannot be merged without "
            "rounding again; give the base in its original precision as `base=...`."
        )
    lost = [name for name in info["missing_keys"] if name.split(".")[0] in REWARD_HEADS and name not in weights]
    if lost:
        raise LocalError(
            f"The adapter {adapter.name} has no weights for {lost[0]}, nor has its base {base.name}: its reward head "
            "was not saved (as by TRL's commands, whose default is the task type CAUSAL_LM); train it again with the "
            'task type SEQ_CLS. A language model\'s adapter scores with `kind="implicit"`.'
        )
    mismatched = {name for name, *_ in info["mismatched_keys"]}
    info["missing_keys"] = (set(info["missing_keys"]) | mismatched) - weights.keys()
    with silence_transformers(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return merge(model, adapter, weights), info


def load_weights(kind: Any, source: LocalModel, **options: Any) -> tuple[Any, dict[str, Any]]:
    """Load a model of a transformers class, with further arguments of `from_pretrained`. Raises `LocalError`.

    Returns the model, and transformers' loading info (missing and unexpected keys).
    """
    arguments = {"output_loading_info": True} | hub_options(source) | options
    config = load_config(source)

    def load() -> tuple[Any, dict[str, Any]]:
        model, info = loader_of(kind, source, config)(source.name, **arguments)
        restore_constants(model)
        return model, info

    with silence_transformers(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="You passed `quantization_config`")
        model, info = load_or_raise("model", source, load)
    model.config.return_dict = True  # outputs are read by name, whatever the model's configuration asks for
    return model, info


@contextmanager
def silence_transformers() -> Iterator[None]:
    """Silence transformers' warnings and progress bars within this context."""
    verbosity, bars = transformers_logging.get_verbosity(), transformers_logging.is_progress_bar_enabled()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(verbosity)
        if bars:
            transformers_logging.enable_progress_bar()


def load_or_raise(what: str, source: LocalModel, load: Callable[[], Any]) -> Any:
    """Call `load`, and turn its errors into `LocalError`; `what` is a "model", "tokenizer" or "configuration".

    The folder of the source, or its configuration on the Hub, is checked first.
    """
    source.check_location(*(["tokenizer_config.json"] if what == "tokenizer" else []))
    try:
        check_model(source.name, LocalError, revision=source.revision)
        return with_former_names(load)
    except UserError:
        raise
    except Exception as error:  # noqa: BLE001 - transformers may raise anything
        message = one_line(error, 300) or type(error).__name__
        if isinstance(error, UnpicklingError):  # torch's own words advise to run the code
            message = "its weights are a pickle of more than tensors, which may run code; save them as safetensors"
        if "trust_remote_code" in str(error):
            raise LocalError(
                f"{source.name} comes with Python code, which would run with your rights; read it, and if you trust it "
                "set `trust_remote_code=True`."
            ) from None
        raise LocalError(f"The {what} of {source.name} cannot be loaded: {message}.") from None
