"""Backbones: decoders, read by the packed batches of scoring, and sentence encoders, with sentence-transformers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import torch
from pluralbench_rewards import ScoringConfig, Work, model_digest
from pluralbench_runs import digest, install_command
from torch import Tensor
from transformers.utils.hub import cached_file

from pluralbench_local.batches import Read, in_batches
from pluralbench_local.config import LocalModel, described
from pluralbench_local.conversations import Template, Tokenized, tokenize
from pluralbench_local.errors import LocalError
from pluralbench_local.model_kinds import CLASSIFIER, LANGUAGE_MODEL, kind_of
from pluralbench_local.models import (
    load_config,
    load_or_raise,
    load_tokenizer,
    num_embeddings,
    resolve_device,
    silence_transformers,
)
from pluralbench_local.network import ReadableNetwork
from pluralbench_local.packing import Tokens, last_states
from pluralbench_local.personal.texts import (
    BackboneRecord,
    Remaining,
    Texts,
    TokenizedTexts,
    context_tokens,
    fit_blocks,
    key_of,
)
from pluralbench_local.scoring import UNLIMITED, length_limit, loaded_fields, work_of
from pluralbench_local.weights import ModelFiles

# Contents alone, with a blank line between them and before an answer.
PLAIN_TEMPLATE = (
    "{% for message in messages %}{{ message['content'] }}{% if not loop.last or add_generation_prompt %}{{ '\\n\\n' }}"
    "{% endif %}{% endfor %}"
)


@dataclass(frozen=True)
class Decoder:
    """A causal language model, or the body of a classifier, as a backbone.

    The vector of a text is the last hidden state of its last token, as for PAL in Personalized RewardBench (appendix
    B). A prompt ends with the chat template's opening of the answer; its answers begin with the same tokens, so both
    are computed together. A response is read at the last token of the conversation, and a user context as a message of
    the user.
    """

    name: str
    network: ReadableNetwork
    template: Template
    scoring: ScoringConfig
    record: BackboneRecord

    @property
    def networks(self) -> list[ReadableNetwork]:
        """Networks that have to run."""
        return [self.network]

    @property
    def precision(self) -> torch.dtype:
        """Precision of a vector."""
        return self.network.dtype

    def loaded_fields(self) -> dict[str, Any]:
        """Return the fields of `ModelRecord` that are known only after loading."""
        return loaded_fields(self)

    def work(self) -> Work:
        """Return how it will compute."""
        return work_of(self, length_limit(self))

    def read(self, texts: Texts) -> TokenizedTexts:
        """Tokenize texts. `on_overflow` applies to conversations that are too long; contexts are cut at their end."""
        limit = length_limit(self)
        tokenized = tokenize(texts.prompts, self.template, limit, self.scoring.on_overflow)
        contexts = context_tokens(texts.contexts, self.template, limit)
        units = [_read_at_last_tokens(result) for result in tokenized]
        units += [Tokenized([Tokens(ids, range(len(ids) - 1, len(ids)))], cut) for ids, cut in contexts]

        def vectors(remaining: Remaining, work: Work) -> Iterator[tuple[int, dict[int, Tensor]]]:
            return in_batches(self._states, units, remaining, work, texts.ids)

        return TokenizedTexts(
            keys=[[key_of(self.record, tokens.ids.tobytes()) for tokens in unit.conversations] for unit in units],
            cut=[unit.cut for unit in units],
            dropped={index: unit.dropped for index, unit in enumerate(units) if unit.dropped},
            vectors=vectors,
        )

    def _states(self, groups: Sequence[Sequence[Tokens]], read: Read) -> tuple[Sequence[Tensor], int]:
        states, rows, computed = read(self.network, groups)
        return list(last_states(states, rows).cpu()), computed


def load_backbone(model: str | Path | LocalModel, *, scoring: ScoringConfig | None = None) -> "Backbone":
    """Load a backbone from a folder or the Hub.

    It is a causal language model, a classifier (only its body is used), or a sentence encoder that
    sentence-transformers loads.

    Raises:
        LocalError: If the model cannot be loaded, or is not a backbone; or if its device is not available, or has too
            little memory.
    """
    source = described(model)
    if Path(source.name).is_dir():
        source = source.model_copy(update={"name": str(Path(source.name).resolve())})
    load = load_encoder if _is_sentence_encoder(source) else _decoder
    return load(source, scoring or ScoringConfig())


def _is_sentence_encoder(source: LocalModel) -> bool:
    if not Path(source.name).is_dir() and source.name.count("/") != 1:
        return False
    path = cached_file(
        source.name,
        "modules.json",
        revision=source.revision,
        _raise_exceptions_for_gated_repo=False,
        _raise_exceptions_for_missing_entries=False,
        _raise_exceptions_for_connection_errors=False,
    )
    return path is not None


def _decoder(source: LocalModel, scoring: ScoringConfig) -> Decoder:
    source.check_merged()
    config = load_config(source)
    declared = config.architectures or [""]
    if config.is_encoder_decoder or declared[0].endswith("ForMaskedLM"):
        raise LocalError(_no_decoder_message(source.name, declared[0]))
    tokenizer = load_tokenizer(source)
    files = ModelFiles(source)
    kind = kind_of(files)
    if kind is CLASSIFIER and not declared[0].endswith("ForSequenceClassification"):
        kind = LANGUAGE_MODEL
    network = kind.network(files)
    if network.head is None:
        raise LocalError(_no_decoder_message(source.name, declared[0]))
    plain = not tokenizer.chat_template
    if plain:
        first = tokenizer("", verbose=False)["input_ids"][:1]  # what it puts before every text, if anything
        opening = "{{ bos_token }}" if first and first == [tokenizer.bos_token_id] else ""
        tokenizer.chat_template = opening + PLAIN_TEMPLATE
    record = BackboneRecord(
        name=source.name,
        digest=model_digest(source.name),
        commit=getattr(config, "_commit_hash", None),
        width=next(network.head.parameters()).shape[-1],
        dtype=str(network.dtype).removeprefix("torch."),
        template_digest=None if plain else digest(str(tokenizer.chat_template)),
        plain=plain,
    )
    return Decoder(
        source.name,
        network,
        Template(tokenizer, whole_response=True, num_embeddings=num_embeddings(network.model)),
        scoring,
        record,
    )


def _no_decoder_message(name: str, architecture: str) -> str:
    return (
        f"{name} is not a decoder but {architecture}; give a causal language model, or a sentence encoder with the "
        "modules.json of sentence-transformers."
    )


def _read_at_last_tokens(tokenized: Tokenized) -> Tokenized:
    """A prompt and its conversations, each read at its last token.

    The first characters of a response may merge with the last token of the opening. The prompt therefore ends where
    the latest response begins.
    """
    latest = max(tokenized.conversations, key=lambda tokens: tokens.reads.start)
    end = latest.reads.start + 1
    texts = [latest.ids[:end], *(tokens.ids for tokens in tokenized.conversations)]
    return replace(tokenized, conversations=[Tokens(ids, range(len(ids) - 1, len(ids))) for ids in texts])


DEFAULT_BATCH = 32  # texts of a forward pass
WHY = "a sentence encoder reads each text by itself"
Kind = Literal["query", "document"]


@dataclass(frozen=True)
class SentenceEncoder:
    """A sentence encoder as a backbone, with its own pooling, such as the mean of its tokens.

    Prompt and response are separate texts, as query and document in retrieval: the encoder was trained on single texts,
    and after a long prompt the response might lie beyond its 256 or 512 tokens. Of a conversation of several messages
    it reads the contents, with a blank line between them. A text that is too long loses its end.
    """

    encoder: Any
    scoring: ScoringConfig
    record: BackboneRecord
    limit: int

    @property
    def precision(self) -> torch.dtype:
        """Precision of a vector."""
        dtype: torch.dtype = getattr(torch, str(self.record.dtype))
        return dtype

    def loaded_fields(self) -> dict[str, Any]:
        """Return the fields of `ModelRecord` that are known only after loading."""
        return {
            "commit": self.record.commit,
            "architecture": type(self.encoder[0].auto_model).__name__,
            "parameters": sum(weights.numel() for weights in self.encoder.parameters()),
            "device": str(self.encoder.device),
            "dtype": self.record.dtype,
        }

    def work(self) -> Work:
        """Return how it will compute. Raises `LocalError`."""
        limit = self.scoring.max_length or self.limit
        if limit > self.limit:
            raise LocalError(f"{self.record.name} reads at most {self.limit:,} tokens; lower `max_length={limit}`.")
        return Work("padded", WHY, self.scoring.token_budget or DEFAULT_BATCH * limit, limit)

    def read(self, texts: Texts) -> TokenizedTexts:
        """Prepare texts; of a user context as many blocks as fit."""
        limit = self.work().max_length
        units: list[list[tuple[Kind, str]]] = []
        for group in texts.prompts:
            prompt = "\n\n".join(message["content"] for message in group.prompt)
            units.append([("query", prompt), *(("document", text) for text in group.responses)])
        full = [[text for _, text in unit] for unit in units] + [[context.text()] for context in texts.contexts]
        fitted = (fit_blocks(context, limit, lambda text: self._lengths([text])[0]) for context in texts.contexts)
        units += [[("document", text)] for text in fitted]
        lengths = [self._lengths(unit) for unit in full]

        def vectors(remaining: Remaining, work: Work) -> Iterator[tuple[int, dict[int, Tensor]]]:
            sizes = {
                (unit, index): min(lengths[unit][index], limit)
                for unit, indices in remaining.items()
                for index in indices
            }
            return self._vectors(units, sizes, work)

        return TokenizedTexts(
            keys=[[key_of(self.record, f"{limit} {kind} {text}".encode()) for kind, text in unit] for unit in units],
            cut=[max(0, max(counts) - limit) for counts in lengths],
            dropped={},
            vectors=vectors,
        )

    def _lengths(self, texts: Sequence[str]) -> list[int]:
        return [len(ids) for ids in self.encoder.tokenizer(list(texts), truncation=False, verbose=False)["input_ids"]]

    def _vectors(
        self, units: Sequence[Sequence[tuple[Kind, str]]], sizes: dict[tuple[int, int], int], work: Work
    ) -> Iterator[tuple[int, dict[int, Tensor]]]:
        kinds: tuple[Kind, ...] = ("query", "document")
        encode = {"query": self.encoder.encode_query, "document": self.encoder.encode_document}
        self.encoder.max_seq_length = work.max_length
        size = max(1, work.token_budget // work.max_length)
        work.conversations += len(sizes)
        work.unique_tokens += sum(sizes.values())
        for kind in kinds:
            indices = sorted((index for index in sizes if units[index[0]][index[1]][0] == kind), key=sizes.__getitem__)
            for start in range(0, len(indices), size):
                batch = indices[start : start + size]
                states = encode[kind](
                    [units[unit][index][1] for unit, index in batch],
                    batch_size=len(batch),
                    convert_to_tensor=True,
                    show_progress_bar=False,
                )
                work.batches += 1
                work.computed_tokens += len(batch) * sizes[batch[-1]]
                for (unit, index), state in zip(batch, states.cpu(), strict=True):
                    yield unit, {index: state}


def load_encoder(source: LocalModel, scoring: ScoringConfig) -> SentenceEncoder:
    """Load a sentence encoder from a folder or the Hub. Raises `LocalError`."""
    if find_spec("sentence_transformers") is None:
        how = install_command("pluralbench-local", "sentence-transformers")
        raise LocalError(f"{source.name} is a sentence encoder, which needs an extra: {how}.")
    from sentence_transformers import SentenceTransformer

    device = resolve_device(source.device)
    with silence_transformers():
        encoder = load_or_raise(
            "sentence encoder",
            source,
            lambda: SentenceTransformer(
                source.name,
                device=str(device),
                revision=source.revision,
                trust_remote_code=source.trust_remote_code,
                model_kwargs={"dtype": source.dtype},
            ),
        )
    encoder.eval()
    pooling = [getattr(module, "pooling_mode", None) for module in encoder if hasattr(module, "pooling_mode")]
    config = encoder[0].auto_model.config
    return SentenceEncoder(
        encoder,
        scoring,
        BackboneRecord(
            name=source.name,
            digest=model_digest(source.name),
            commit=getattr(config, "_commit_hash", None),
            pooling=str(pooling[0]) if pooling else "own",
            width=len(encoder.encode("")),
            dtype=str(encoder[0].auto_model.dtype).removeprefix("torch."),
        ),
        limit=int(encoder.max_seq_length or UNLIMITED),
    )


Backbone = Decoder | SentenceEncoder
"""A frozen model that computes a vector for each text."""
