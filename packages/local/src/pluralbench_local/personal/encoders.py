"""Sentence encoders as backbones, by sentence-transformers, which pools in the model's own way."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any, Literal, Self

import torch
from pluralbench_rewards import Work, model_digest
from pluralbench_runs import install_command
from torch import Tensor

from pluralbench_local.config import LocalModel
from pluralbench_local.errors import ConversationError, ModelError
from pluralbench_local.models import device_of, load_or_raise, silence_transformers
from pluralbench_local.personal.contract import BackboneRecord, key_of
from pluralbench_local.personal.texts import Left, Texts, TokenizedTexts, fitting
from pluralbench_local.scoring import UNLIMITED, RunOptions

BATCH = 32  # texts of a forward pass
WHY = "a sentence encoder reads each text by itself"
Kind = Literal["query", "document"]


@dataclass(frozen=True)
class SentenceEncoder:
    """A sentence encoder: one vector a text, in its own pooling, such as the mean of its tokens.

    Prompt and response are separate texts, as queries and documents are in retrieval: it was trained on single texts,
    and the 256 or 512 tokens it reads would end before the response begins behind a long prompt. Of a conversation of
    several messages it reads the contents, a blank line between them. What is longer than its limit loses its end.
    """

    encoder: Any
    options: RunOptions
    record: BackboneRecord
    limit: int

    @property
    def precision(self) -> torch.dtype:
        """What a vector is rounded to."""
        dtype: torch.dtype = getattr(torch, str(self.record.dtype))
        return dtype

    def shown(self) -> dict[str, Any]:
        """What loading it showed."""
        return {
            "commit": self.record.commit,
            "architecture": type(self.encoder[0].auto_model).__name__,
            "parameters": sum(weights.numel() for weights in self.encoder.parameters()),
            "device": str(self.encoder.device),
            "dtype": self.record.dtype,
        }

    def work(self) -> Work:
        """How it will compute."""
        asked = self.options.max_length or self.limit
        if asked > self.limit:
            raise ConversationError(
                f"A `max_length` of {asked:,} is more than the {self.limit:,} tokens that {self.record.name} reads."
            )
        return Work("padded", WHY, self.options.token_budget or BATCH * asked, asked)

    def running(self, options: RunOptions) -> Self:
        """The same, running in another way; batches have as many texts as fit into `token_budget` at the limit."""
        return replace(self, options=options)

    def read(self, texts: Texts) -> TokenizedTexts:
        """Texts as strings, of what is told as many blocks as it can read."""
        limit = self.work().max_length
        units: list[list[tuple[Kind, str]]] = []
        for group in texts.prompts:
            prompt = "\n\n".join(message["content"] for message in group.prompt)
            units.append([("query", prompt), *(("document", text) for text in group.responses)])
        before = [[text for _, text in unit] for unit in units] + [[told.text()] for told in texts.told]
        units += [[("document", fitting(told, limit, lambda text: self._lengths([text])[0]))] for told in texts.told]
        lengths = [self._lengths(unit) for unit in before]

        def vectors(left: Left, work: Work) -> Iterator[tuple[int, dict[int, Tensor]]]:
            sizes = {
                (unit, place): min(lengths[unit][place], limit) for unit, places in left.items() for place in places
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
        many = max(1, work.token_budget // work.max_length)
        work.conversations += len(sizes)
        work.unique_tokens += sum(sizes.values())
        for kind in kinds:
            places = sorted((where for where in sizes if units[where[0]][where[1]][0] == kind), key=sizes.__getitem__)
            for start in range(0, len(places), many):
                several = places[start : start + many]
                states = encode[kind](
                    [units[unit][place][1] for unit, place in several],
                    batch_size=len(several),
                    convert_to_tensor=True,
                    show_progress_bar=False,
                )
                work.batches += 1
                work.computed_tokens += len(several) * sizes[several[-1]]
                for (unit, place), state in zip(several, states.cpu(), strict=True):
                    yield unit, {place: state}


def load_encoder(source: LocalModel, options: RunOptions) -> SentenceEncoder:
    """A sentence encoder from a folder or the Hub. Raises `ModelError`, `DeviceError`."""
    if find_spec("sentence_transformers") is None:
        how = install_command("pluralbench-local", "sentence-transformers")
        raise ModelError(f"{source.name} is a sentence encoder, which needs an extra: {how}.")
    from sentence_transformers import SentenceTransformer  # noqa: PLC0415 - an extra

    device = device_of(source.device)
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
