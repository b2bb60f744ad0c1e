"""Sentence encoders as backbones, with sentence-transformers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any, Literal, Self

import torch
from pluralbench_rewards import Work, model_digest
from pluralbench_runs import install_command
from torch import Tensor

from pluralbench_local.config import LocalModel
from pluralbench_local.errors import LocalError
from pluralbench_local.models import load_or_raise, resolve_device, silence_transformers
from pluralbench_local.personal.texts import BackboneRecord, Remaining, Texts, TokenizedTexts, fit_blocks, key_of
from pluralbench_local.scoring import UNLIMITED, RunOptions

DEFAULT_BATCH = 32  # texts of a forward pass
WHY = "a sentence encoder reads each text by itself"
Kind = Literal["query", "document"]


@dataclass(frozen=True)
class SentenceEncoder:
    """A sentence encoder as a backbone, with its own pooling, such as the mean of its tokens.

    Prompt and response are separate texts, as query and document in retrieval: the encoder was trained on single texts,
    and after a long prompt the response might lie beyond its 256 or 512 tokens. Of a conversation of several messages
    it reads the contents, with a blank line between them. A text that is too long loses its end.

    Attributes:
        encoder: The `SentenceTransformer`.
        options: How it runs.
        record: The backbone's record.
        limit: Maximum number of tokens of a text.
    """

    encoder: Any
    options: RunOptions
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
        limit = self.options.max_length or self.limit
        if limit > self.limit:
            raise LocalError(f"{self.record.name} reads at most {self.limit:,} tokens; lower `max_length={limit}`.")
        return Work("padded", WHY, self.options.token_budget or DEFAULT_BATCH * limit, limit)

    def with_options(self, options: RunOptions) -> Self:
        """Return a copy with other options. A batch has as many texts of maximum length as fit into `token_budget`."""
        return replace(self, options=options)

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


def load_encoder(source: LocalModel, options: RunOptions) -> SentenceEncoder:
    """Load a sentence encoder from a folder or the Hub.

    Raises:
        LocalError: If it cannot be loaded, or sentence-transformers is not installed; or if its device is not
            available.
    """
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
        options,
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
