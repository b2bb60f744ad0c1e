"""Sample from a language model in this process, as recorded calls.

    model = chat_model_of("./policy", temperature=1.0, max_tokens=256)
    requests = [chat_request(model, messages, seed=0, label="q1", attempt=number) for number in range(16)]
    with working_ledger(path) as ledger:
        answers = ask(requests, ledger, Generation(LocalModel(name="./policy")))

`ask` records each sample when it is drawn, resumes after an interruption, and does not draw a recorded sample again.
"""

from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import torch
from pluralbench_calls import Answer, CallsError, ChatModel, Outcome, PackingBackend, Request
from pluralbench_local import LocalModel
from pluralbench_local.batches import is_out_of_memory
from pluralbench_local.config import described
from pluralbench_local.conversations import Template
from pluralbench_local.models import load_config, load_model, load_tokenizer
from pluralbench_local.scoring import UNLIMITED, token_limit
from pluralbench_rewards import model_commit, model_digest
from pluralbench_runs import canonical_json, digest
from transformers import AutoModelForCausalLM

from pluralbench_policies.decoding import Decoder, DecodingParams
from pluralbench_policies.errors import PolicyError

PROVIDER = "transformers"
BUDGET = {"cpu": 16_384, "cuda": 65_536}  # tokens per batch; an estimate for GPUs
LIMITS = ("max_tokens", "max_completion_tokens")
FIELDS = {"messages", "temperature", "top_p", "seed", *LIMITS, "chat_template", "dtype"}


def chat_model_of(
    model: str | Path | LocalModel, *, temperature: float = 1.0, top_p: float | None = None, max_tokens: int = 512
) -> ChatModel:
    """Make the chat model for requests to a policy.

    Its name has the digest of the weights, or the commit on the Hub, so another checkpoint in the same folder has other
    requests.

    Args:
        model: Model folder, name on the Hub, or description.
        temperature: Sampling temperature; 0 is greedy.
        top_p: Nucleus sampling. Default: off.
        max_tokens: Maximum tokens per sample.

    Raises:
        PolicyError: The model has neither a digest nor a commit.
    """
    source = _policy_source(model)
    template = source.template()
    extra = {} if template is None else {"chat_template": digest(template)}
    if source.dtype != "auto":
        extra["dtype"] = source.dtype
    return ChatModel(
        provider=PROVIDER,
        model=_identity(source),
        temperature=temperature,
        top_p=top_p,
        max_tokens=max_tokens,
        seeded=True,
        extra=extra,
    )


@dataclass(frozen=True)
class _ParsedRequest:
    """A parsed request. `max_tokens` is limited by the request and by the model's positions."""

    request: Request
    prompt: tuple[int, ...]
    sampling: DecodingParams
    seed: int
    max_tokens: int


class Generation(PackingBackend):
    """Backend of `ask` that samples from a language model in this process.

    The samples of a prompt share its computation. Each sample has its own random numbers from the `seed` of its
    request, so it does not depend on the other samples of the batch. Rounding can differ with the batch size: if the
    random number falls almost exactly between two tokens, another one may be drawn.

    Temperature and top_p of the request are the only changes to the model's probabilities. A sample ends with one of
    the model's end-of-sequence tokens. The outcome of a sample that reaches `max_tokens` or the last of the model's
    positions is "length". The outcome of a prompt that is too long by itself is "error".

    Args:
        model: Model folder, name on the Hub, or description.
        token_budget: Maximum tokens of prompts and samples in a batch; more need more memory. Default: by device.
    """

    concurrency: int | None = 1

    def __init__(self, model: str | Path | LocalModel, *, token_budget: int | None = None) -> None:
        self._source = _policy_source(model)
        self._budget = token_budget
        self._decoder: Decoder | None = None
        self._prompts: dict[bytes, tuple[int, ...]] = {}

    async def __aenter__(self) -> Self:
        """Load the weights, once. Raises `LocalError`."""
        self._load()
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Keep the weights until `close`."""

    def close(self) -> None:
        """Free the weights; the next request loads them again."""
        self._decoder = None
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def size(self, request: Request) -> int:
        """Count the tokens of the prompt."""
        return len(self._prompt(request))

    def pack(self, requests: Sequence[Request]) -> list[list[Request]]:
        """Pack requests into batches within the token budget, with the samples of a prompt together if they fit."""
        parsed = [self._parse(request) for request in requests]
        by_sampling: dict[tuple[float, float], dict[tuple[int, ...], list[_ParsedRequest]]] = defaultdict(
            lambda: defaultdict(list)
        )
        for item in parsed:
            if item.max_tokens >= 1:
                by_sampling[item.sampling.temperature, item.sampling.top_p or 1.0][item.prompt].append(item)
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
                    tokens = len(self._prompt(left[0]))
                    raise CallsError(
                        f"One sample for a prompt of {tokens:,} tokens does not fit into memory; lower "
                        "`max_tokens=...`, or choose a smaller `dtype=...` or another `device=...`."
                    ) from None
                waiting += [left[len(left) // 2 :], left[: len(left) // 2]]

    def _answers(self, requests: Sequence[Request]) -> Iterator[Answer]:
        parsed = [self._parse(request) for request in requests]
        for item in parsed:
            if item.max_tokens < 1:
                yield Answer.to(
                    item.request,
                    "error",
                    f"The prompt has {len(item.prompt):,} tokens, and the model takes {self._limit:,}, its answer "
                    "included.",
                    finish_reason="prompt too long",
                    tokens=(len(item.prompt), 0),
                )
        drawn = [item for item in parsed if item.max_tokens >= 1]
        if not drawn:
            return
        prompts = list(dict.fromkeys(item.prompt for item in drawn))
        for place, tokens, ended in self._load().samples(
            prompts,
            [prompts.index(item.prompt) for item in drawn],
            drawn[0].sampling,
            [item.seed for item in drawn],
            [item.max_tokens for item in drawn],
        ):
            item = drawn[place]
            text = str(self._template.tokenizer.decode(tokens, skip_special_tokens=True))
            outcome: Outcome = "length" if not ended else "answer" if text.strip() else "empty"
            used = (len(item.prompt), len(tokens) + ended)
            yield Answer.to(item.request, outcome, text, finish_reason="stop" if ended else "length", tokens=used)

    def _parse(self, request: Request) -> _ParsedRequest:
        """Parse a request. Raises `CallsError` if this model cannot answer it."""
        body: Any = request.body
        if (request.provider, request.model) != (PROVIDER, self._name):
            raise CallsError(
                f"A request is for {request.model} of {request.provider}, but the loaded model is {self._name}."
            )
        unknown = sorted(body.keys() - FIELDS)
        if request.kind != "chat" or unknown:
            what = unknown[0] if unknown else request.kind
            raise CallsError(f"A local policy does not support {what!r} in a request; remove it.")
        sampling = DecodingParams(float(body.get("temperature", 1.0)), body.get("top_p"))
        if sampling.temperature and "seed" not in body:
            raise CallsError("A local policy needs a seed in each request; set `seeded=True` in its `ChatModel`.")
        prompt = self._prompt(request)
        limit = min((int(body[name]) for name in LIMITS if name in body), default=UNLIMITED)
        return _ParsedRequest(
            request, prompt, sampling, int(body.get("seed", 0)), min(limit, self._limit - len(prompt))
        )

    def _prompt(self, request: Request) -> tuple[int, ...]:
        messages: Any = request.body["messages"]
        key = canonical_json(messages)
        if key not in self._prompts:
            [ids] = self._template.encode([self._template.render(messages, opening=True)])
            self._prompts[key] = tuple(ids)
        return self._prompts[key]

    @cached_property
    def _name(self) -> str:
        return _identity(self._source)

    @cached_property
    def _template(self) -> Template:
        return Template(load_tokenizer(self._source))

    @cached_property
    def _limit(self) -> int:
        """Maximum tokens of a prompt with its answer."""
        return token_limit(self._template.tokenizer, [load_config(self._source)])

    def _load(self) -> Decoder:
        if self._decoder is None:
            model: Any = load_model(AutoModelForCausalLM, self._source)
            eos = model.generation_config.eos_token_id
            ends = eos if isinstance(eos, list) else [self._template.tokenizer.eos_token_id if eos is None else eos]
            if None in ends:
                raise PolicyError(
                    f"{self._source.name} has no end-of-sequence token; add `eos_token_id` to its "
                    "generation_config.json."
                )
            self._decoder = Decoder(model, ends)
        return self._decoder


def _policy_source(model: str | Path | LocalModel) -> LocalModel:
    """Normalize the description of a policy. Raises `PolicyError` for fields of reward models."""
    source = described(model)
    source.check_merged()
    wrong = [name for name in ("label", "reference") if getattr(source, name) is not None]
    if wrong:
        raise PolicyError(f"Sampling takes no `{wrong[0]}=...`, which is for reward models; remove it.")
    return source


def _identity(source: LocalModel) -> str:
    version = model_digest(source.name) or model_commit(source.name, source.revision)
    if version is None:
        raise PolicyError(
            f"{source.name} cannot be identified: it is not a folder, and the Hub has no commit of it; use a model "
            "folder."
        )
    return f"{Path(source.name).name if Path(source.name).is_dir() else source.name}@{version[:12]}"
