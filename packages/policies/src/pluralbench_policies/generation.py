"""Sampling from a language model in this process, as recorded calls.

    model = chat_model_of("./policy", temperature=1.0, max_tokens=256)
    requests = [chat_request(model, messages, seed=0, label="q1", attempt=number) for number in range(16)]
    with working_ledger(path) as ledger:
        answers = ask(requests, ledger, Generation(LocalModel(name="./policy")))

`ask` records each sample when it is drawn, goes on where it was interrupted, and asks for no recorded one again.
"""

from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import torch
from pluralbench_calls import Answer, ChatModel, ModelNotServed, Outcome, PackingBackend, Request
from pluralbench_local import LocalModel
from pluralbench_local.batches import is_out_of_memory
from pluralbench_local.config import described
from pluralbench_local.conversations import Template
from pluralbench_local.models import language_model, load_config, load_tokenizer
from pluralbench_local.scoring import UNLIMITED, token_limit
from pluralbench_rewards import model_commit, model_digest
from pluralbench_runs import canonical_json, digest

from pluralbench_policies.decoding import Decoder, DecodingParams
from pluralbench_policies.errors import PolicyError

PROVIDER = "transformers"
BUDGET = {"cpu": 16_384, "cuda": 65_536}  # tokens in the memory of a batch; for a GPU an estimate
LIMITS = ("max_tokens", "max_completion_tokens")
FIELDS = {"messages", "temperature", "top_p", "seed", *LIMITS, "chat_template", "dtype"}


def chat_model_of(
    model: str | Path | LocalModel, *, temperature: float = 1.0, top_p: float | None = None, max_tokens: int = 512
) -> ChatModel:
    """The chat model that requests to a policy are for. Its name holds the weights' digest, or commit on the Hub.

    So another checkpoint in the same folder has other requests. Raises `PolicyError` where neither is to be had.
    """
    source = _language(model)
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
class _Asked:
    """A request, and what it asks for. most: tokens of its answer at most, by the request and the model's positions."""

    request: Request
    prompt: tuple[int, ...]
    sampling: DecodingParams
    seed: int
    most: int


class Generation(PackingBackend):
    """Answers chat requests by a language model in this process, for `ask`.

    The samples of a prompt are drawn together: the prompt is computed once for all of them. Each sample has random
    numbers of its own, by the `seed` of its request, so it does not depend on what is drawn beside it, except that
    sums are rounded otherwise in batches of other sizes: where two tokens are about equally likely to be the drawn one,
    the other may be taken, and the sample goes on differently from there.

    Temperature and top_p are those of the request; nothing else changes the model's probabilities. A sample ends with
    one of the model's end-of-sequence tokens. One that is cut at `max_tokens`, or at the last of the model's positions,
    has the outcome "length"; a prompt that is too long by itself is an answer of outcome "error" and status 413.

    token_budget: tokens of prompts and answers together in a batch; the memory it takes grows with them.
    """

    concurrency: int | None = 1

    def __init__(self, model: str | Path | LocalModel, *, token_budget: int | None = None) -> None:
        self._source = _language(model)
        self._budget = token_budget
        self._decoder: Decoder | None = None
        self._prompts: dict[bytes, tuple[int, ...]] = {}

    async def __aenter__(self) -> Self:
        """Load the weights, once. Raises `ModelError`, `DeviceError`."""
        self._load()
        return self

    async def __aexit__(self, *exc: object) -> None:
        """The weights stay until `close`."""

    def close(self) -> None:
        """Let the weights go; the next request loads them again."""
        self._decoder = None
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def size(self, request: Request) -> int:
        """Tokens of the prompt."""
        return len(self._prompt(request))

    def pack(self, requests: Sequence[Request]) -> list[list[Request]]:
        """Batches of at most the budget's tokens, in which a prompt's samples are together, as far as they fit."""
        asked = [self._asked(request) for request in requests]
        alike: dict[tuple[float, float], dict[tuple[int, ...], list[_Asked]]] = defaultdict(lambda: defaultdict(list))
        for one in asked:
            if one.most >= 1:
                alike[one.sampling.temperature, one.sampling.top_p or 1.0][one.prompt].append(one)
        messages = [[one.request] for one in asked if one.most < 1]
        on_gpu = self._source.device != "cpu" and torch.cuda.is_available()
        budget = self._budget or BUDGET["cuda" if on_gpu else "cpu"]
        for by_prompt in alike.values():
            taken = budget
            for prompt in sorted(by_prompt, key=len):
                begun = False
                for one in by_prompt[prompt]:
                    cost = one.most + (0 if begun else len(prompt))
                    if taken + cost > budget:
                        messages.append([])
                        taken, cost = 0, one.most + len(prompt)
                    messages[-1].append(one.request)
                    taken, begun = taken + cost, True
        return messages

    async def send_packed(self, requests: Sequence[Request]) -> AsyncIterator[list[Answer]]:
        """Draw the samples of a batch; an answer as soon as it ends. Half at a time where memory runs out."""
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
                    raise ModelNotServed(
                        f"One sample for a prompt of {tokens:,} tokens does not fit into memory; lower `max_tokens`, "
                        "or choose a smaller `dtype` or another device."
                    ) from None
                waiting += [left[len(left) // 2 :], left[: len(left) // 2]]

    def _answers(self, requests: Sequence[Request]) -> Iterator[Answer]:
        asked = [self._asked(request) for request in requests]
        for one in asked:
            if one.most < 1:
                yield Answer.to(
                    one.request,
                    "error",
                    f"The prompt has {len(one.prompt):,} tokens, and the model takes {self._limit:,}, its answer "
                    "included.",
                    finish_reason="prompt too long",
                    tokens=(len(one.prompt), 0),
                )
        drawn = [one for one in asked if one.most >= 1]
        if not drawn:
            return
        prompts = list(dict.fromkeys(one.prompt for one in drawn))
        for place, tokens, ended in self._load().samples(
            prompts,
            [prompts.index(one.prompt) for one in drawn],
            drawn[0].sampling,
            [one.seed for one in drawn],
            [one.most for one in drawn],
        ):
            one = drawn[place]
            text = str(self._template.tokenizer.decode(tokens, skip_special_tokens=True))
            outcome: Outcome = "length" if not ended else "answer" if text.strip() else "empty"
            used = (len(one.prompt), len(tokens) + ended)
            yield Answer.to(one.request, outcome, text, finish_reason="stop" if ended else "length", tokens=used)

    def _asked(self, request: Request) -> _Asked:
        """What a request asks for. Raises `ModelNotServed` for what this model does not do."""
        body: Any = request.body
        if (request.provider, request.model) != (PROVIDER, self._name):
            raise ModelNotServed(
                f"A request is for {request.model} of {request.provider}, but the model here is {self._name}."
            )
        unknown = sorted(body.keys() - FIELDS)
        if request.kind != "chat" or unknown:
            what = unknown[0] if unknown else request.kind
            raise ModelNotServed(f"A model in this process does not know {what!r} of a request; leave it out.")
        sampling = DecodingParams(float(body.get("temperature", 1.0)), body.get("top_p"))
        if sampling.temperature and "seed" not in body:
            raise ModelNotServed(
                "A sample in this process is drawn by a seed of its own; make its `ChatModel` `seeded`."
            )
        prompt = self._prompt(request)
        wanted = min((int(body[name]) for name in LIMITS if name in body), default=UNLIMITED)
        return _Asked(request, prompt, sampling, int(body.get("seed", 0)), min(wanted, self._limit - len(prompt)))

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
        return Template(load_tokenizer(self._source, self._source.template()))

    @cached_property
    def _limit(self) -> int:
        """The most tokens of a prompt with its answer."""
        return token_limit(self._template.tokenizer, [load_config(self._source)])

    def _load(self) -> Decoder:
        if self._decoder is None:
            model: Any = language_model(self._source)
            own = model.generation_config.eos_token_id
            ends = own if isinstance(own, list) else [self._template.tokenizer.eos_token_id if own is None else own]
            if None in ends:
                raise PolicyError(
                    f"Neither the generation configuration nor the tokenizer of {self._source.name} names the token "
                    "that ends an answer; add `eos_token_id` to its generation_config.json."
                )
            self._decoder = Decoder(model, ends)
        return self._decoder


def _language(model: str | Path | LocalModel) -> LocalModel:
    """The description of a policy. Raises `PolicyError` for what only a reward model has."""
    source = described(model)
    wrong = [name for name in ("label", "reference") if getattr(source, name) is not None]
    if wrong:
        raise PolicyError(f"Sampling takes no `{wrong[0]}`, which belongs to a reward model; leave it out.")
    return source


def _identity(source: LocalModel) -> str:
    known = model_digest(source.name) or model_commit(source.name, source.revision)
    if known is None:
        raise PolicyError(
            f"Which model {source.name} is cannot be told: it is no folder, and the Hub gives no commit of it; give a "
            "model folder."
        )
    return f"{Path(source.name).name if Path(source.name).is_dir() else source.name}@{known[:12]}"
