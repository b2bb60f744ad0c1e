"""Render chat templates at a fixed date: numbers must not depend on the day on which they are computed.

Templates read the clock by `strftime_now` (Llama 3.2, Granite), a function of transformers' module. No argument of
`apply_chat_template` replaces it, since these become plain data.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime, tzinfo
from typing import Any

from pluralbench_rewards import Message
from transformers import PreTrainedTokenizerBase
from transformers.utils import chat_template_utils

DATE = "2024-07-26"
"""The date that templates read by default; it is the one that Llama 3.1's writes."""
_DATE_KEY = "pluralbench_date"  # an attribute of a loaded tokenizer
_now: ContextVar[datetime | None] = ContextVar("now", default=None)


class _Clock(datetime):
    """The clock of chat templates: the real one outside of `fixed_date`."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Any:
        return _now.get() or datetime.now(tz)


utils: Any = chat_template_utils
utils.datetime = _Clock


def set_date(tokenizer: PreTrainedTokenizerBase, date: str | None) -> None:
    """Set the date (YYYY-MM-DD) that the template of a tokenizer reads; None for the default."""
    setattr(tokenizer, _DATE_KEY, date or DATE)


def date_settings(tokenizer: PreTrainedTokenizerBase) -> dict[str, Any]:
    """Return what a run records of the date; nothing if the template does not read it."""
    reads = "strftime_now" in str(tokenizer.chat_template)
    return {"date": getattr(tokenizer, _DATE_KEY, DATE)} if reads else {}


@contextmanager
def fixed_date(tokenizer: PreTrainedTokenizerBase) -> Iterator[None]:
    """Let templates read the tokenizer's date within this context."""
    token = _now.set(datetime.fromisoformat(getattr(tokenizer, _DATE_KEY, DATE)))
    try:
        yield
    finally:
        _now.reset(token)


def apply_chat_template(tokenizer: PreTrainedTokenizerBase, messages: Sequence[Message], **options: Any) -> Any:
    """Render a conversation by the tokenizer's `apply_chat_template`, at its date."""
    with fixed_date(tokenizer):
        return tokenizer.apply_chat_template([dict(message) for message in messages], **options)
