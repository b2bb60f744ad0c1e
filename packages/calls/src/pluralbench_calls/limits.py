"""Limits on the rate and the cost of requests, and what waits for them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pluralbench_runs import FrozenModel, Json
from pydantic import Field

from pluralbench_calls.errors import CallsError
from pluralbench_calls.records import Answer, Request

if TYPE_CHECKING:
    from aiolimiter import AsyncLimiter

BYTES_PER_TOKEN = 4  # on average, for rate limits; the spending ceiling assumes one byte per token


class Price(FrozenModel):
    """Price in US dollars per million tokens."""

    input: float = Field(0.0, ge=0, allow_inf_nan=False, description="US dollars per million prompt tokens.")
    output: float = Field(0.0, ge=0, allow_inf_nan=False, description="US dollars per million completion tokens.")

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Compute the cost of these tokens in US dollars."""
        return (prompt_tokens * self.input + completion_tokens * self.output) / 1e6


FREE = Price()


@dataclass(frozen=True)
class Limits:
    """Limits on the rate and the cost of requests.

    `tokens_per_minute` counts prompts and completions, estimated. `max_cost`, in US dollars, is of all answers in the
    ledger and all requests that are sent; an answer without token counts is charged the maximum that it can cost.
    """

    concurrency: int = 8
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    price: Price = FREE
    max_cost: float | None = None


class Throttle:
    """Delays messages to keep the rate limits, and refuses those that could exceed the spending ceiling.

    `size` bounds the tokens (or other billed units) of a request. `spent` is the cost of the recorded answers.
    """

    def __init__(self, limits: Limits, size: Callable[[Request], int], spent: float) -> None:
        import asyncio

        self._limits, self._size, self._spent = limits, size, spent
        self._reserved, self._in_flight = 0.0, 0
        self._changed = asyncio.Condition()
        self._requests = _limiter(limits.requests_per_minute)
        self._tokens = _limiter(limits.tokens_per_minute)

    async def enter(self, message: Sequence[Request]) -> float:
        """Wait for the rate limits; reserve and return the maximum cost of the message in US dollars."""
        prompt, completion = self._max_tokens(message)
        cost = self._max_cost(message)
        await self._reserve(cost, unbounded=completion == 0 and self._limits.price.output > 0)
        try:
            if self._requests is not None:
                await self._requests.acquire()
            if self._tokens is not None:
                tokens = prompt / BYTES_PER_TOKEN + completion
                while tokens > 0:
                    await self._tokens.acquire(min(tokens, self._tokens.max_rate))
                    tokens -= self._tokens.max_rate
        except BaseException:
            await self.leave(cost)
            raise
        return cost

    async def leave(self, reserved: float) -> None:
        """Release a reserved cost, after `spend` counted the real one."""
        async with self._changed:
            self._reserved -= reserved
            self._in_flight -= 1
            self._changed.notify_all()

    async def _reserve(self, cost: float, *, unbounded: bool) -> None:
        ceiling = self._limits.max_cost
        async with self._changed:
            if ceiling is not None:
                if unbounded:
                    raise CallsError(
                        "A request without a token limit may cost any amount, so the spending ceiling of "
                        f"${ceiling:.10g} cannot be kept; set `max_tokens`."
                    )
                # Requests in flight may release part of their reserve, so the ceiling is reached only when none is.
                await self._changed.wait_for(
                    lambda: self._spent + self._reserved + cost <= ceiling or self._in_flight == 0
                )
                if self._spent + cost > ceiling:
                    raise CallsError(
                        f"The spending ceiling of ${ceiling:.10g} is reached: ${self._spent:.4f} is spent, and the "
                        f"next call could cost ${cost:.4f}; raise `connection.max_cost=...` to resume."
                    )
            self._reserved += cost
            self._in_flight += 1

    def spend(self, answer: Answer, request: Request) -> float:
        """Add the cost of an answer in US dollars, and return it."""
        is_known = answer.outcome == "error" or answer.prompt_tokens or answer.completion_tokens
        tokens = answer.prompt_tokens, answer.completion_tokens
        cost = self._limits.price.cost(*tokens) if is_known else self._max_cost([request])
        self._spent += cost
        return cost

    def charge_uncounted(self, requests: Iterable[Request], count: int) -> None:
        """Charge recorded answers without token counts the maximum that one of these requests can cost."""
        if count and self._limits.max_cost is not None:
            self._spent += count * max((self._max_cost([request]) for request in requests), default=0.0)

    def _max_tokens(self, message: Sequence[Request]) -> tuple[int, int]:
        return sum(map(self._size, message)), sum(max_completion_tokens(request.body) for request in message)

    def _max_cost(self, message: Sequence[Request]) -> float:
        """Bound the cost of a message in US dollars; 0 without a ceiling."""
        return 0.0 if self._limits.max_cost is None else self._limits.price.cost(*self._max_tokens(message))


def _limiter(per_minute: float | None) -> "AsyncLimiter | None":
    if per_minute is None:
        return None
    # A burst may use a tenth of a minute's allowance, and at least one; the rest is spread evenly.
    burst = max(1.0, per_minute / 10)
    from aiolimiter import AsyncLimiter

    return AsyncLimiter(burst, 60 * burst / per_minute)


def max_completion_tokens(body: Mapping[str, Json]) -> int:
    """Return the maximum number of completion tokens; 0 if the request does not limit them."""
    limits = [body.get(name) for name in ("max_tokens", "max_completion_tokens")]
    samples = body.get("n")
    return max((limit for limit in limits if isinstance(limit, int)), default=0) * (
        samples if isinstance(samples, int) else 1
    )
