"""Variants of a loaded reward model that read their inputs as other programs do, to explain other scores."""

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from datetime import date
from functools import partial
from typing import Any, Literal

from pluralbench_rewards import ScoringConfig

from pluralbench_local.rendering import date_settings, set_date
from pluralbench_local.scoring import UNLIMITED, LocalRewardModel

Cut = Literal["left", "right"]

PLAIN_TEMPLATE = (
    "{% for message in messages %}{{ message['content'] }}{% if not loop.last %}{{ '\\n' }}{% endif %}{% endfor %}"
)
"""No chat template: the messages, each on a line of its own."""


def with_bos(model: LocalRewardModel, count: int) -> LocalRewardModel:
    """Return the model with this number of BOS tokens at the beginning of each conversation.

    Args:
        model: A model whose tokenizer has a BOS token.
        count: Number of BOS tokens.
    """
    bos: Any = model.template.tokenizer.bos_token_id
    return _edited(model, partial(_begin_with, bos, count))


def without_template(model: LocalRewardModel) -> LocalRewardModel:
    """Return the model without a chat template: its messages, each on a line, after the tokenizer's special tokens."""
    tokenizer: Any = copy(model.template.tokenizer)
    tokenizer.chat_template = PLAIN_TEMPLATE
    plain = replace(model, template=replace(model.template, tokenizer=tokenizer, edit=None))
    bos, begin = tokenizer.bos_token_id, tokenizer("a", verbose=False)["input_ids"][:1]
    return plain if bos is None else with_bos(plain, int(begin == [bos]))


def with_cut(model: LocalRewardModel, length: int, side: Cut) -> LocalRewardModel:
    """Return the model with each conversation cut to a length by itself, as tokenizers truncate.

    Args:
        model: A classifier.
        length: Maximum number of tokens.
        side: Side that loses tokens.
    """
    return _edited(model, lambda ids: ids[-length:] if side == "left" else ids[:length])


def with_other_token(model: LocalRewardModel) -> tuple[str, LocalRewardModel] | None:
    """Return the model that reads the last token if it reads as its class, or the reverse, with the change in words.

    None if both are the same token, or the model has its own.
    """
    template, network = model.template, model.network
    if not model.kind.by_class or network.head is None:
        return None
    padding = getattr(network.model.config.get_text_config(), "pad_token_id", None)
    if padding is None:
        return None
    if template.unread is not None:
        return "the last token, also if it is the padding token", replace(
            model, template=replace(template, unread=None)
        )
    return "the last token that is not the padding token", replace(model, template=replace(template, unread=padding))


def with_today(model: LocalRewardModel) -> LocalRewardModel | None:
    """Return the model whose chat template writes today's date; None if it writes no date."""
    tokenizer: Any = copy(model.template.tokenizer)
    if not date_settings(tokenizer):
        return None
    set_date(tokenizer, str(date.today()))
    return replace(model, template=replace(model.template, tokenizer=tokenizer))


def uncut(model: LocalRewardModel) -> LocalRewardModel:
    """Return the model with the maximum length of its tokenizer and its configuration."""
    return replace(model, scoring=_changed(model, max_length=None, on_overflow="truncate-left"))


def longest(model: LocalRewardModel) -> int | None:
    """Return the chosen maximum length of a model; None if it is the model's own."""
    length = model.scoring.max_length
    return length if length is not None and length < UNLIMITED else None


def quick(model: LocalRewardModel, scoring: ScoringConfig) -> LocalRewardModel:
    """Return the model without the measurement of its tolerance, with the options of a run.

    Conversations that are too long lose their first tokens, where the run would have stopped.
    """
    overflow = "truncate-left" if scoring.on_overflow in {"error", "drop"} else scoring.on_overflow
    return replace(model, scoring=_changed(model, on_overflow=overflow), measures_tolerance=False)


def _changed(model: LocalRewardModel, **values: Any) -> ScoringConfig:
    return model.scoring.model_copy(update=values)


def _edited(model: LocalRewardModel, edit: Callable[[list[int]], list[int]]) -> LocalRewardModel:
    before = model.template.edit
    both = edit if before is None else lambda ids: edit(before(ids))
    return replace(model, template=replace(model.template, edit=both))


def _begin_with(bos: int, count: int, ids: list[int]) -> list[int]:
    start = next((place for place, token in enumerate(ids) if token != bos), len(ids))
    return [bos] * count + ids[start:]
