"""Sample from a language model in this process, as recorded calls.

    model = chat_model_of("./policy", temperature=1.0, max_tokens=256)
    requests = [chat_request(model, messages, seed=0, label="q1", attempt=number) for number in range(16)]
    with working_ledger(path) as ledger:
        answers = ask(requests, ledger, Generation(LocalModel(name="./policy")))

`ask` records each sample when it is drawn, resumes after an interruption, and does not draw a recorded sample again.
"""

from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from pluralbench_calls import Answer, CallsError, PackingBackend, Request
from pluralbench_local import LocalModel
from pluralbench_local.errors import is_out_of_memory
from pluralbench_local.models import load_model
from transformers import AutoModelForCausalLM

from pluralbench_policies.decoding import Decoder, DecodingParams
from pluralbench_policies.errors import PolicyError
from pluralbench_policies.language_models import language_model
from pluralbench_policies.rendering import ParsedRequest, RenderingBackend
from pluralbench_policies.vllm_generation import VllmGeneration

BUDGET = {"cpu": 16_384, "cuda": 65_536}  # tokens per batch; an estimate for GPUs


def generation_backend(model: str | Path | LocalModel) -> PackingBackend:
    """Return the backend of a language model's library; it loads the model with the first request."""
    return VllmGeneration(model) if language_model(model).library == "vllm" else Generation(model)


class Generation(RenderingBackend):
    """Backend of `ask` that samples from a language model in this process.

    The samples of a prompt share its computation. Each sample has its own random numbers from the `seed` of its
    request, so it does not depend on the other samples of the batch. Rounding can differ with the batch size: if the
    random number falls almost exactly between two tokens, another one may be drawn.

    Temperature, top_p and top_k of the request are the only changes to the model's probabilities. A sample ends with
    one of the model's end-of-sequence tokens. The outcome of a sample that reaches `max_tokens` or the last of the
    model's positions is "length". The outcome of a prompt that is too long by itself is "error".

    Args:
        model: Model folder, name on the Hub, or description.
        token_budget: Maximum tokens of prompts and samples in a batch; more need more memory. Default: by device.
    """

    def __init__(self, model: str | Path | LocalModel, *, token_budget: int | None = None) -> None:
        super().__init__(language_model(model))
        self._budget = token_budget
        self._decoder: Decoder | None = None

    def close(self) -> None:
        """Free the weights; the next request loads them again."""
        self._decoder = None
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def pack(self, requests: Sequence[Request]) -> list[list[Request]]:
        """Pack requests into batches within the token budget, with the samples of a prompt together if they fit."""
        parsed = [self._rendering.parse(request) for request in requests]
        by_sampling: dict[DecodingParams, dict[tuple[int, ...], list[ParsedRequest]]] = defaultdict(
            lambda: defaultdict(list)
        )
        for item in parsed:
            if item.max_tokens >= 1:
                by_sampling[item.sampling][item.prompt].append(item)
        batches = [[item.request] for item in parsed if item.max_tokens < 1]
        on_gpu = self._source.device != "cpu" and torch.cuda.is_available()
        budget = self._budget or BUDGET["cuda" if on_gpu else "cpu"]
        for by_prompt in by_sampling.values():
            used = budget
            for prompt in sorted(by_prompt, key=len):
                counted = False  # whether the batch already includes the prompt
                for item in by_prompt[prompt]:
                    cost = item.max_tokens + (0 if counted else len(prompt))
                    if used + cost > budget:
                        batches.append([])
                        used, cost = 0, item.max_tokens + len(prompt)
                    batches[-1].append(item.request)
                    used, counted = used + cost, True
        return batches

    async def send_packed(self, requests: Sequence[Request]) -> AsyncIterator[list[Answer]]:
        """Draw the samples of a batch, and yield each as soon as it is finished. Out of memory halves the batch."""
        waiting = [list(requests)]
        while waiting:
            part = waiting.pop()
            done: set[str] = set()
            try:
                for answer in self._answers(part):
                    done.add(answer.key)
                    yield [answer]
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                left = [request for request in part if request.key not in done]
                if len(left) == 1:
                    tokens = self.size(left[0])
                    raise CallsError(
                        f"One sample for a prompt of {tokens:,} tokens does not fit into memory; lower "
                        "`max_tokens=...`, or choose a smaller `dtype=...` or another `device=...`."
                    ) from None
                waiting += [left[len(left) // 2 :], left[: len(left) // 2]]

    def _answers(self, requests: Sequence[Request]) -> Iterator[Answer]:
        parsed = [self._rendering.parse(request) for request in requests]
        for item in parsed:
            if item.max_tokens < 1:
                yield self._rendering.too_long(item)
        drawn = [item for item in parsed if item.max_tokens >= 1]
        if not drawn:
            return
        prompts = list(dict.fromkeys(item.prompt for item in drawn))
        for sample in self.load().samples(
            prompts,
            [prompts.index(item.prompt) for item in drawn],
            drawn[0].sampling,
            [item.seed for item in drawn],
            [item.max_tokens for item in drawn],
        ):
            yield self._rendering.answer(drawn[sample.place], sample)

    def load(self) -> Decoder:
        """Load the weights, once. Raises `LocalError`, or `PolicyError` if nothing ends a sample."""
        if self._decoder is None:
            model: Any = load_model(AutoModelForCausalLM, self._source)
            eos = model.generation_config.eos_token_id
            ends = eos if isinstance(eos, list) else [self._rendering.tokenizer.eos_token_id if eos is None else eos]
            if None in ends:
                raise PolicyError(
                    f"{self._source.name} has no end-of-sequence token; add `eos_token_id` to its "
                    "generation_config.json."
                )
            self._decoder = Decoder(model, ends)
        return self._decoder
