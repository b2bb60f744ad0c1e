"""`LanguageModel`: a language model that generates in this process, and the chat model of requests to it.

Imports no torch.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pluralbench_calls import ChatModel
from pluralbench_local import LocalModel
from pluralbench_local.config import described
from pluralbench_rewards import model_commit, model_digest
from pluralbench_runs import digest, read_small
from pydantic import Field

from pluralbench_policies.errors import PolicyError

Library = Literal["transformers", "vllm"]
LIBRARY = "Library that generates in this process; vllm must be installed beside pluralbench."
TEMPLATE_FIELDS = {"add_generation_prompt": bool, "continue_final_message": bool, "chat_template_kwargs": dict}
"""Request fields that change how the chat template renders the messages, with their types, as in vLLM's server."""
EXTRA_FIELDS = {"top_k": int, "logprobs": bool, "top_logprobs": int, **TEMPLATE_FIELDS}
TOKEN_LIMITS = ("max_tokens", "max_completion_tokens")
OWN_FIELDS = ("chat_template", "date", "dtype")
"""Request fields that tell models of the same weights apart."""
FIELDS = {"messages", "temperature", "top_p", "seed", *TOKEN_LIMITS, *EXTRA_FIELDS, *OWN_FIELDS}
REWARD_ARCHITECTURES = ("ForSequenceClassification", "ForTokenClassification", "RewardModel", "ForRewardModeling")
WEIGHTS = ("*.safetensors", "*.bin", "*.pt", "*.pth", "*.gguf")


class LanguageModel(LocalModel):
    """A language model that generates in this process."""

    library: Library = Field("transformers", description=LIBRARY)

    def __str__(self) -> str:
        return self.name


def language_model(model: str | Path | LocalModel) -> LanguageModel:
    """Return the language model of a name or description.

    Raises:
        PolicyError: It cannot generate: a folder without weights, a reward model, or a description of one.
        LocalError: It is not a model folder, or an adapter.
    """
    given = model if isinstance(model, LanguageModel) else described(model)
    source = LanguageModel(**given.model_dump(exclude_unset=True))
    source.check_location()
    source.check_merged()
    wrong = [name for name in ("label", "reference", "read") if getattr(source, name) is not None]
    if wrong:
        raise PolicyError(f"Sampling takes no `{wrong[0]}=...`, which is for reward models; remove it.")
    if Path(source.name).is_dir():
        _check_folder(Path(source.name))
    return source


def chat_model_of(
    model: str | Path | LocalModel,
    *,
    temperature: float = 1.0,
    top_p: float | None = None,
    max_tokens: int = 512,
    extra: Mapping[str, Any] | None = None,
) -> ChatModel:
    """Make the chat model for requests to a policy.

    Its name has the digest of the weights, or the commit on the Hub, so another checkpoint in the same folder has other
    requests.

    Args:
        model: Model folder, name on the Hub, or description.
        temperature: Sampling temperature; 0 is greedy.
        top_p: Nucleus sampling. Default: off.
        max_tokens: Maximum tokens per sample.
        extra: Further request fields; see `EXTRA_FIELDS`.

    Raises:
        PolicyError: The model has neither a digest nor a commit, or a field is not known or has another type.
    """
    source, extra = language_model(model), dict(extra or {})
    for name, value in extra.items():
        if name not in EXTRA_FIELDS:
            raise PolicyError(
                f"{source.name} runs in this process, where the request field {name!r} has no effect; leave it out "
                f"(the known fields are {', '.join(EXTRA_FIELDS)})."
            )
        if type(value) is not EXTRA_FIELDS[name]:
            raise PolicyError(
                f"The request field {name!r} is not of the type {EXTRA_FIELDS[name].__name__}: {value!r}."
            )
    template = source.template()
    extra |= {} if template is None else {"chat_template": digest(template)}
    extra |= {} if source.date is None else {"date": source.date}
    extra |= {} if source.dtype == "auto" else {"dtype": source.dtype}
    return ChatModel(
        provider=source.library,
        model=identity(source),
        temperature=temperature,
        top_p=top_p,
        max_tokens=max_tokens,
        seeded=True,
        extra=extra,
    )


def identity(source: LanguageModel) -> str:
    """Return the name of a model in requests: its own, with the digest of its weights or its commit."""
    version = model_digest(source.name) or model_commit(source.name, source.revision)
    if version is None:
        raise PolicyError(
            f"{source.name} cannot be identified: it is not a folder, and the Hub has no commit of it; use a model "
            "folder."
        )
    return f"{Path(source.name).name if Path(source.name).is_dir() else source.name}@{version[:12]}"


def _check_folder(folder: Path) -> None:
    try:
        architectures = json.loads(read_small(folder / "config.json")).get("architectures") or []
    except (OSError, ValueError, AttributeError):
        return  # loading it says what is wrong
    if any(name.endswith(REWARD_ARCHITECTURES) for name in architectures):
        raise PolicyError(
            f"{folder} is a {architectures[0]}, which writes no text; score with it (`pluralbench score {folder}`), or "
            "give a language model."
        )
    if not any(path for pattern in WEIGHTS for path in folder.glob(pattern)):
        raise PolicyError(f"{folder} has no weights; copy the model's .safetensors files into it.")
