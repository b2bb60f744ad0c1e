"""The language model that a training begins with: what is asked of it before anything is loaded, and its tokenizer."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from jinja2 import TemplateError
from pluralbench_local import DeviceError, LocalModel
from pluralbench_local.models import load_tokenizer
from pluralbench_local.training_job import check_base
from pluralbench_runs import install_command, one_line

from pluralbench_policies.errors import PolicyError


def check_base_model(
    base: LocalModel, *, what: str, needed: Sequence[str], unused: Iterable[str], takes_no: str, done: str
) -> None:
    """Raise where a library is missing (`PolicyError`), or the base is described as it cannot be trained.

    what: the training in a sentence, which needs the libraries `needed`. unused: fields of a description without a
    meaning here, as the sentence `takes_no` says. done: a sentence's beginning, such as "A planner is trained".
    """
    missing = [name for name in needed if find_spec(name) is None]
    if missing:
        raise PolicyError(f"{what} needs {missing[0]}: {install_command('pluralbench-policies', 'optimize')}.")
    check_base(base, unused, takes_no)
    if base.device not in {"auto", "cpu", "cuda", "cuda:0"}:
        raise DeviceError(
            f"{done} on the CPU or the first GPU, not on {base.device}; choose another GPU by the environment variable "
            "CUDA_VISIBLE_DEVICES."
        )


def chat_tokenizer(source: LocalModel) -> Any:
    """The tokenizer of a model that has a chat template. Raises `PolicyError`, `ModelError`."""
    tokenizer = load_tokenizer(source, source.template())
    if not tokenizer.chat_template:
        raise PolicyError(f"{source.name} has no chat template; give one by `chat_template`.")
    return tokenizer


@contextmanager
def rendering(name: str) -> Iterator[None]:
    """Raises `PolicyError` where the chat template of the model `name` refuses what it is given in this context."""
    try:
        yield
    except (TemplateError, TypeError, ValueError) as error:
        raise PolicyError(f"The chat template of {name} refuses a prompt: {one_line(error)}.") from None
