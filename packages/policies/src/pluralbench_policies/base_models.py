"""Checks of a base model before it is loaded for training, and its tokenizer."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from jinja2 import TemplateError
from pluralbench_local import LocalError, LocalModel
from pluralbench_local.models import load_tokenizer
from pluralbench_local.training_job import check_base
from pluralbench_runs import install_command, one_line

from pluralbench_policies.errors import PolicyError


def check_libraries(what: str, needed: Iterable[str]) -> None:
    """Raise `PolicyError` if one of the libraries that a training imports is missing; `what` is the training."""
    missing = [name for name in needed if find_spec(name) is None]
    if missing:
        raise PolicyError(f"{what} needs {missing[0]}: {install_command('pluralbench-policies', 'optimize')}.")


def check_base_model(base: LocalModel, *, unused: Iterable[str], unused_message: str, action: str) -> None:
    """Check the settings of a base model before a training.

    Args:
        base: The base model.
        unused: Fields of `LocalModel` that have no meaning here.
        unused_message: Message for such a field, with `{field}`.
        action: Beginning of a sentence for a wrong device, such as "A planner is trained".

    Raises:
        TrainingError: A field is set that has no meaning here.
        LocalError: The device is neither the CPU nor the first GPU.
    """
    check_base(base, unused, unused_message)
    if base.device not in {"auto", "cpu", "cuda", "cuda:0"}:
        raise LocalError(
            f"{action} on the CPU or the first GPU, not on {base.device}; select another GPU with the environment "
            "variable CUDA_VISIBLE_DEVICES."
        )


def chat_tokenizer(source: LocalModel) -> Any:
    """Load the tokenizer of a chat model. Raises `PolicyError` without a chat template, and `LocalError`."""
    tokenizer = load_tokenizer(source)
    if not tokenizer.chat_template:
        raise PolicyError(f"{source.name} has no chat template; set `chat_template=...`.")
    return tokenizer


@contextmanager
def template_errors(name: str) -> Iterator[None]:
    """Convert errors of the chat template of the model `name` to `PolicyError`."""
    try:
        yield
    except (TemplateError, TypeError, ValueError) as error:
        raise PolicyError(f"The chat template of {name} rejects a prompt: {one_line(error)}.") from None
