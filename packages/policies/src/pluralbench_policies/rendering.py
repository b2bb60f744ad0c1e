"""Requests to a language model in this process: their prompts as tokens, and their answers."""

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

from pluralbench_calls import Answer, CallsError, Outcome, PackingBackend, Request
from pluralbench_calls.logprobs import TOP, record_labels
from pluralbench_calls.records import PROMPT_TOO_LONG
from pluralbench_local.conversations import Template
from pluralbench_local.errors import LocalError
from pluralbench_local.models import load_config, load_tokenizer
from pluralbench_local.rendering import date_settings
from pluralbench_local.scoring import UNLIMITED, token_limit
from pluralbench_runs import canonical_json, log_status

from pluralbench_policies.decoding import DecodingParams, Sample
from pluralbench_policies.language_models import FIELDS, TEMPLATE_FIELDS, TOKEN_LIMITS, LanguageModel, identity

STANDARD_ROLES = {"user", "assistant"}


@dataclass(frozen=True)
class ParsedRequest:
    """A parsed request. Limited by the model's positions too, `max_tokens` is below 1 if the prompt is too long."""

    request: Request
    prompt: tuple[int, ...]
    sampling: DecodingParams
    seed: int
    max_tokens: int


class RenderingBackend(PackingBackend):
    """What samples from a language model in this process, whose weights it loads once, and whose prompts it renders."""

    concurrency: int | None = 1

    def __init__(self, source: LanguageModel) -> None:
        self._source = source
        self._rendering = Rendering(source)

    @abstractmethod
    def load(self) -> Any:
        """Load the weights, once."""

    async def __aenter__(self) -> Self:
        """Load the weights."""
        self.load()
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Keep the weights."""

    def size(self, request: Request) -> int:
        """Count the tokens of the prompt."""
        return len(self._rendering.prompt(request))


class Rendering:
    """Renders the requests to a language model with its chat template, and makes answers of its tokens."""

    def __init__(self, source: LanguageModel) -> None:
        self._source = source
        self._prompts: dict[bytes, tuple[int, ...]] = {}
        self._texts: dict[int, str] = {}

    def parse(self, request: Request) -> ParsedRequest:
        """Parse a request.

        Raises:
            CallsError: This model cannot answer it.
            LocalError: The chat template fails on its messages, or leaves one out.
        """
        body: Any = request.body
        if (request.provider, request.model) != (self._source.library, self._name):
            raise CallsError(
                f"A request is for {request.model} of {request.provider}, but the loaded model is {self._name}."
            )
        unknown = sorted(body.keys() - FIELDS)
        if request.kind != "chat" or unknown:
            what = unknown[0] if unknown else request.kind
            raise CallsError(f"A local policy does not support {what!r} in a request; remove it.")
        top_logprobs = body.get("top_logprobs", TOP) if body.get("logprobs") else 0
        sampling = DecodingParams(
            float(body.get("temperature", 1.0)), body.get("top_p"), body.get("top_k"), top_logprobs
        )
        if sampling.temperature and "seed" not in body:
            raise CallsError("A local policy needs a seed in each request; set `seeded=True` in its `ChatModel`.")
        prompt = self.prompt(request)
        limit = min((int(body[name]) for name in TOKEN_LIMITS if name in body), default=UNLIMITED)
        return ParsedRequest(request, prompt, sampling, int(body.get("seed", 0)), min(limit, self.limit - len(prompt)))

    def prompt(self, request: Request) -> tuple[int, ...]:
        """Return the token ids of a request's prompt."""
        body: Any = request.body
        form = {name: body[name] for name in TEMPLATE_FIELDS if name in body}
        key = canonical_json([body["messages"], form])
        if key not in self._prompts:
            options = form.pop("chat_template_kwargs", {})
            opening = form.pop("add_generation_prompt", not form.get("continue_final_message"))
            template = replace(self._template, options=options | form)
            text = template.render(body["messages"], opening=opening)
            left_out = [
                message["role"]
                for message in body["messages"]
                if message["role"] not in STANDARD_ROLES and message["content"].strip() not in text
            ]
            if left_out:
                raise LocalError(
                    f"The chat template of {self._source.name} leaves out the message of the role {left_out[0]}; give "
                    "one that knows this role as `chat_template=...`, or use another prompt."
                )
            [ids] = self._template.encode([text])
            self._prompts[key] = tuple(ids)
        return self._prompts[key]

    def too_long(self, item: ParsedRequest) -> Answer:
        """Return the answer to a request whose prompt is too long."""
        text = f"The prompt has {len(item.prompt):,} tokens, and the model takes {self.limit:,}, its answer included."
        tokens = (len(item.prompt), 0)
        return Answer.to(item.request, "error", text, finish_reason=PROMPT_TOO_LONG, tokens=tokens)

    def answer(self, item: ParsedRequest, sample: Sample) -> Answer:
        """Return the answer to a request."""
        text = str(self.tokenizer.decode(sample.tokens, skip_special_tokens=True))
        outcome: Outcome = "length" if not sample.ended else "answer" if text.strip() else "empty"
        return Answer.to(
            item.request,
            outcome,
            text,
            finish_reason="stop" if sample.ended else "length",
            tokens=(len(item.prompt), len(sample.tokens) + sample.ended),
            logprobs=self._labels(sample, text),
        )

    def _labels(self, sample: Sample, text: str) -> str:
        """See `pluralbench_calls.logprobs`."""
        content = [
            {"token": self._text(token), "logprob": own}
            | {"top_logprobs": [{"token": self._text(other), "logprob": value} for other, value in top.items()]}
            for token, (own, top) in zip(sample.tokens, sample.logprobs, strict=bool(sample.logprobs))
        ]
        return record_labels(content, text)

    def _text(self, token: int) -> str:
        """Of a token within a text: at its beginning, some tokenizers leave out a space."""
        if token not in self._texts:
            before = self.tokenizer.encode("a", add_special_tokens=False)[-1:]
            whole, start = (self.tokenizer.decode(ids) for ids in ([*before, token], before))
            self._texts[token] = whole.removeprefix(start)
        return self._texts[token]

    @property
    def tokenizer(self) -> Any:
        """The model's tokenizer."""
        return self._template.tokenizer

    @cached_property
    def limit(self) -> int:
        """Maximum tokens of a prompt with its answer."""
        return token_limit(self.tokenizer, [load_config(self._source)])

    @cached_property
    def _name(self) -> str:
        return identity(self._source)

    @cached_property
    def _template(self) -> Template:
        tokenizer = load_tokenizer(self._source)
        for date in date_settings(tokenizer).values():
            log_status(f"The chat template of {self._source.name} writes the date {date}.")
        return Template(tokenizer)
