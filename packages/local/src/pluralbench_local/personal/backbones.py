"""Backbones: loaded from a folder or the Hub, and the decoder, whose vectors come from the packing of scoring."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import torch
from pluralbench_rewards import ScoringConfig, Work, model_digest
from pluralbench_runs import digest
from torch import Tensor
from transformers import PreTrainedTokenizerBase
from transformers.utils.hub import cached_file

from pluralbench_local.batches import Read, in_batches
from pluralbench_local.config import LocalModel, described
from pluralbench_local.conversations import Template, Tokenized, tokenize
from pluralbench_local.errors import ModelError
from pluralbench_local.models import (
    SPECIAL,
    load_classifier,
    load_config,
    load_language_model,
    load_tokenizer,
    rows_of,
)
from pluralbench_local.network import ReadableNetwork
from pluralbench_local.packing import Tokens
from pluralbench_local.personal.contract import Backbone, BackboneRecord, key_of
from pluralbench_local.personal.encoders import load_encoder
from pluralbench_local.personal.texts import Left, Texts, TokenizedTexts, context_tokens
from pluralbench_local.scoring import RunOptions, limit_of, shown_by, work_of

# Contents alone, a blank line between them and before an answer; behind what the tokenizer begins every text with.
PLAIN = (
    "{% for message in messages %}{{ message['content'] }}{% if not loop.last or add_generation_prompt %}{{ '\\n\\n' }}"
    "{% endif %}{% endfor %}"
)


@dataclass(frozen=True)
class Decoder:
    """A causal language model, or the body of a classifier: a text's vector is the last hidden state of its last token.

    PAL pools so in the paper of Personalized RewardBench (appendix B). A prompt is read where its answer begins, with
    the chat template's opening of the answer: that is where a decoder has taken the question in and predicts what
    follows, and as all its answers begin with these tokens it is computed with them. An answer is read at the last
    token of the conversation; what is told of a person at that of a user's message.
    """

    name: str
    network: ReadableNetwork
    template: Template
    options: RunOptions
    record: BackboneRecord

    @property
    def networks(self) -> list[ReadableNetwork]:
        """What has to run."""
        return [self.network]

    @property
    def precision(self) -> torch.dtype:
        """What a vector is rounded to."""
        return self.network.dtype

    def shown(self) -> dict[str, Any]:
        """What loading it showed."""
        return shown_by(self)

    def work(self) -> Work:
        """How it will compute."""
        return work_of(self, limit_of(self))

    def running(self, options: RunOptions) -> Self:
        """The same, running in another way."""
        return replace(self, options=options)

    def read(self, texts: Texts) -> TokenizedTexts:
        """Texts in tokens. What is too long is dealt with as the options say; what is told is cut at its end."""
        limit = limit_of(self)
        answered = tokenize(texts.prompts, self.template, limit, self.options.on_overflow)
        told = context_tokens(texts.told, self.template, limit)
        units = [_units(result) for result in answered]
        units += [Tokenized([Tokens(ids, range(len(ids) - 1, len(ids)))], cut) for ids, cut in told]

        def vectors(left: Left, work: Work) -> Iterator[tuple[int, dict[int, Tensor]]]:
            return in_batches(self._states, units, left, work, texts.ids)

        return TokenizedTexts(
            keys=[[key_of(self.record, tokens.ids.tobytes()) for tokens in unit.conversations] for unit in units],
            cut=[unit.cut for unit in units],
            dropped={place: unit.dropped for place, unit in enumerate(units) if unit.dropped},
            vectors=vectors,
        )

    def _states(self, groups: Sequence[Sequence[Tokens]], read: Read) -> tuple[Sequence[Tensor], int]:
        states, rows, computed = read(self.network, groups)
        return list(states[[places[-1] for places in rows]].cpu()), computed


def load_backbone(model: str | Path | LocalModel, *, scoring: ScoringConfig | None = None) -> Backbone:
    """Load a backbone from a folder or the Hub.

    model: a causal language model, a classifier of which only the body is used, or a sentence encoder that
    sentence-transformers loads. scoring: how it runs, and what it does with conversations that are too long.
    Raises `ModelError`, `DeviceError`.
    """
    source = described(model)
    if Path(source.name).is_dir():
        source = source.model_copy(update={"name": str(Path(source.name).resolve())})
    options = RunOptions.of(scoring or ScoringConfig(), source)
    if _is_sentence_encoder(source):
        return load_encoder(source, options)
    return _decoder(source, options)


def _is_sentence_encoder(source: LocalModel) -> bool:
    if not Path(source.name).is_dir() and source.name.count("/") != 1:
        return False
    found = cached_file(
        source.name,
        "modules.json",
        revision=source.revision,
        _raise_exceptions_for_gated_repo=False,
        _raise_exceptions_for_missing_entries=False,
        _raise_exceptions_for_connection_errors=False,
    )
    return found is not None


def _decoder(source: LocalModel, options: RunOptions) -> Decoder:
    config = load_config(source)
    declared = config.architectures or [""]
    classifier = declared[0].endswith("ForSequenceClassification") or declared[0] in SPECIAL
    if config.is_encoder_decoder or declared[0].endswith("ForMaskedLM"):
        raise ModelError(_no_decoder(source.name, declared[0]))
    tokenizer = load_tokenizer(source, source.template())
    network = load_classifier(source)[0] if classifier else load_language_model(source)
    if network.head is None:
        raise ModelError(_no_decoder(source.name, declared[0]))
    weight = network.head.weight
    assert isinstance(weight, Tensor)  # noqa: S101 - the library types it as anything that a module can hold
    plain = not tokenizer.chat_template
    if plain:
        tokenizer.chat_template = _beginning(tokenizer) + PLAIN
    record = BackboneRecord(
        name=source.name,
        digest=model_digest(source.name),
        commit=getattr(config, "_commit_hash", None),
        width=weight.shape[-1],
        dtype=str(network.dtype).removeprefix("torch."),
        template_digest=None if plain else digest(str(tokenizer.chat_template)),
        plain=plain,
    )
    return Decoder(
        source.name, network, Template(tokenizer, whole_response=True, rows=rows_of(network.model)), options, record
    )


def _no_decoder(name: str, architecture: str) -> str:
    return (
        f"{name} is no decoder but {architecture}, whose last token says nothing of a text; give a causal language "
        "model, or a sentence encoder with the modules.json that sentence-transformers writes."
    )


def _beginning(tokenizer: PreTrainedTokenizerBase) -> str:
    """What the tokenizer begins every text with, as a template has it."""
    first = tokenizer("", verbose=False)["input_ids"][:1]
    return "{{ bos_token }}" if first and first == [tokenizer.bos_token_id] else ""


def _units(answered: Tokenized) -> Tokenized:
    """A prompt and its responses, each read at its last token, from responses that are read from the prompt's end on.

    An answer may be such that its first characters make one token with the last of the opening; others then say where
    the prompt ends.
    """
    opened = max(answered.conversations, key=lambda tokens: tokens.reads.start)
    end = opened.reads.start + 1
    texts = [opened.ids[:end], *(tokens.ids for tokens in answered.conversations)]
    return replace(answered, conversations=[Tokens(ids, range(len(ids) - 1, len(ids))) for ids in texts])
