"""Sample from a language model with vLLM in this process, as recorded calls."""

from collections.abc import AsyncIterator, Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from pluralbench_calls import Answer, Request
from pluralbench_local import LocalModel
from pluralbench_runs import one_line

from pluralbench_policies.decoding import Sample
from pluralbench_policies.errors import PolicyError
from pluralbench_policies.language_models import language_model
from pluralbench_policies.rendering import ParsedRequest, RenderingBackend


class VllmGeneration(RenderingBackend):
    """Backend of `ask` that samples with vLLM's offline engine; prompts and answers are those of `Generation`.

    vLLM computes the requests in batches of its own, and each answer is recorded when it is finished. At a temperature
    above 0 the samples differ from those of `Generation`, which draws other random numbers.

    Raises:
        PolicyError: vLLM is not installed, or the device is neither "auto" nor "spread" over all GPUs.
    """

    def __init__(self, model: str | Path | LocalModel) -> None:
        super().__init__(language_model(model))
        self._engine: Any = None
        if find_spec("vllm") is None:
            raise PolicyError(
                '`library="vllm"` needs vLLM, which is not installed beside pluralbench: `uv pip install vllm`, or '
                "leave it out."
            )
        if self._source.device not in {"auto", "spread"}:
            raise PolicyError(
                f"vLLM takes the first GPU that it sees, or all (spread), so `device={self._source.device}` has no "
                "effect; leave it out, and set CUDA_VISIBLE_DEVICES."
            )

    def pack(self, requests: Sequence[Request]) -> list[list[Request]]:
        """Return all requests in one message, because vLLM batches them itself."""
        return [list(requests)]

    async def send_packed(self, requests: Sequence[Request]) -> AsyncIterator[list[Answer]]:
        """Draw the samples, and yield each as soon as it is finished."""
        for answer in self._answers(requests):
            yield [answer]

    def _answers(self, requests: Sequence[Request]) -> Iterator[Answer]:
        parsed = [self._rendering.parse(request) for request in requests]
        yield from (self._rendering.too_long(item) for item in parsed if item.max_tokens < 1)
        engine, running = self.load(), dict[str, ParsedRequest]()
        try:
            for item in parsed:
                if item.max_tokens >= 1:
                    running[item.request.key] = item
                    prompt = {"prompt_token_ids": list(item.prompt)}
                    engine.add_request(item.request.key, prompt, _sampling_params(item))
            while running:
                for output in engine.step():
                    if output.finished:
                        item = running.pop(output.request_id)
                        yield self._rendering.answer(item, _sample(output.outputs[0]))
        finally:
            if running:  # interrupted
                engine.abort_request([*running])

    def load(self) -> Any:
        """Load the engine, once. Raises `PolicyError`."""
        if self._engine is None:
            source, library = self._source, import_module("vllm")
            gpus = torch.cuda.device_count()
            try:
                self._engine = library.LLM(
                    model=source.name,
                    revision=source.revision,
                    tokenizer=source.tokenizer,
                    dtype=source.dtype,
                    trust_remote_code=source.trust_remote_code,
                    tensor_parallel_size=gpus if source.device == "spread" else 1,
                    enforce_eager=gpus == 0,  # compiling takes minutes on a CPU
                ).llm_engine
            except Exception as error:  # noqa: BLE001 - vLLM may raise anything
                raise PolicyError(f"vLLM cannot load {source.name}: {one_line(error, 300)}.") from None
        return self._engine


def _sampling_params(item: ParsedRequest) -> Any:
    sampling = item.sampling
    return import_module("vllm").SamplingParams(
        temperature=sampling.temperature,
        top_p=1.0 if sampling.top_p is None else sampling.top_p,
        top_k=0 if sampling.top_k is None else sampling.top_k,
        seed=item.seed,
        max_tokens=item.max_tokens,
        logprobs=sampling.top_logprobs or None,
        detokenize=False,
    )


def _sample(output: Any) -> Sample:
    """Without the token that ended it."""
    tokens, ended = list(output.token_ids), output.finish_reason == "stop"
    tokens = tokens[:-1] if ended else tokens
    steps = [{token: one.logprob for token, one in step.items()} for step in output.logprobs or ()]
    return Sample(0, tokens, ended, [(step[token], step) for token, step in zip(tokens, steps, strict=False)])
