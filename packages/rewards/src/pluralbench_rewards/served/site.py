"""Sites that compute rewards: a server with the model, and one with its reference. A pool of sites shares the work."""

import asyncio
import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Generic, NamedTuple, TypeVar

from pluralbench_runs import log_status

from pluralbench_rewards.served.client import Client, Rejected, Unavailable
from pluralbench_rewards.served.comparing import noise
from pluralbench_rewards.served.engine import (
    Conversation,
    Engine,
    EngineName,
    Kind,
    Pages,
    Read,
    ReplyError,
    Request,
    ServerError,
    ServerInfo,
)
from pluralbench_rewards.served.engines import ENGINES

Rows = list[list[float]]
Reward = Callable[[Rows], list[float]]
"""Maps rows of logits or hidden states, depending on the engine, to rewards."""

NO_PAGE = {404, 405}


class ServerRestarted(ServerError):
    """A server whose scores changed within the run. Another server may take over its work."""


@dataclass(frozen=True)
class Server:
    """A server with its engine and the kind of model that it serves; methods raise `ServerError`."""

    client: Client
    engine: Engine
    info: ServerInfo
    kind: Kind

    @property
    def generates(self) -> bool:
        """Whether a request generates a token, so that an input is one token shorter than the limit."""
        return self.kind == "implicit" or (self.kind == "token" and bool(self.info.generates))

    @property
    def url(self) -> str:
        """Address of the server."""
        return self.client.url

    async def rows(self, conversations: Sequence[Conversation]) -> Rows:
        """Compute one row per conversation, for at most `info.max_inputs` of them."""
        engine = self.engine
        request: Request | None = engine.request
        read: Read | None = engine.read
        if self.generates:
            tokens = self.kind == "token"
            request = engine.request_tokens if tokens else engine.request_implicit
            read = engine.read_tokens if tokens else engine.read_implicit
        assert request is not None and read is not None  # noqa: S101, PT018 - checked by `open_server`
        call = request(conversations, self.info)
        try:
            reply = await self.client.post(call)
        except Rejected as error:
            if error.status in NO_PAGE:
                raise ServerError(
                    f"{self.url} has no {call.path} ({error.message}) and does not serve the kind {self.kind}; start "
                    f"{engine.title} with {engine.start_options[self.kind]}."
                ) from None
            raise
        with _named(self.url):
            return read(reply, conversations, self.info)

    async def examine(self, ids: Sequence[int]) -> None:
        """Check settings that no page shows, with the tokens of a conversation."""
        if self.engine.examine is None:
            return
        examination = self.engine.examine(ids, self.info)
        with _named(self.url), suppress(StopIteration):
            call = next(examination)
            while True:
                call = examination.send(await self.client.post_once(call))

    async def tokens_of(self, text: str) -> list[int] | None:
        """Tokenize a text on the server; None if it does not support that."""
        if self.engine.tokenize is None:
            return None
        with _named(self.url), suppress(Rejected):
            return self.engine.tokens(await self.client.post(self.engine.tokenize(text, self.info)))
        return None


@contextmanager
def _named(url: str) -> Iterator[None]:
    """Complete the sentence of a `ReplyError` with the server's URL."""
    try:
        yield
    except ReplyError as error:
        raise ServerError(f"{url} {error}.") from None


def detect_engine(url: str, pages: Pages, expected: EngineName | None) -> tuple[Engine, ServerInfo]:
    """Detect the engine at a URL by its pages, and the properties of the server.

    Raises:
        ServerError: The pages belong to no known engine, or not to the `expected` one.
        ReplyError: The server was started with unusable settings.
    """
    for engine in ENGINES:
        info = engine.identify(pages)
        if info is None:
            continue
        if expected not in {None, engine.name}:
            raise ServerError(
                f'{url} is {engine.title}, not {expected}: set `engine="{engine.name}"`, or leave it out.'
            )
        return engine, info
    titles = ", ".join(engine.title for engine in ENGINES)
    raise ServerError(
        f"{url} answers, but is not a supported engine ({titles}); use the address of the engine itself, such as "
        "http://HOST:8000."
    )


async def open_server(
    client: Client, engine: EngineName | None, served_name: str | None, name: str, kind: Kind
) -> Server:
    """Detect the engine of a server, and select the model: `served_name`, else `name`, else the only one.

    Raises:
        ServerError: The server has another engine or model, or does not support this kind.
    """
    with _named(client.url):
        detected, info = detect_engine(client.url, await client.pages(), engine)
    if kind == "implicit" and detected.request_implicit is None:
        raise ServerError(
            f"{client.url} is {detected.title}, which is not supported for implicit rewards; serve the model with vLLM."
        )
    if kind == "token" and detected.request_tokens is None:
        raise ServerError(
            f"{client.url} is {detected.title}, which is not supported for token rewards; serve the model with vLLM or "
            "SGLang."
        )
    if info.generates is not None and info.generates != (kind == "token"):
        does = "generates text and returns no scores" if info.generates else "generates no text"
        raise ServerError(f"{client.url} {does}; start it with {detected.start_options[kind]}.")
    model = _select_model(client.url, info, served_name, name)
    info = replace(info, models=(model,))
    if kind == "token" and info.generates is None:
        # vLLM has one of the two pages, by its runner.
        page = detected.request([Conversation([0], "", range(0))], info)
        status, _ = await client.post_once(page)
        info = replace(info, generates=status in NO_PAGE)
    return Server(client, detected, info, kind)


def _select_model(url: str, info: ServerInfo, served_name: str | None, name: str) -> str:
    models = ", ".join(info.models)
    if served_name is not None:
        if served_name not in info.models:
            raise ServerError(f"{url} has no model {served_name!r}; it has {models}: set one with `served_name=...`.")
        return served_name
    if name in info.models:
        return name
    if len(info.models) != 1:
        raise ServerError(f"{url} has several models ({models}); select one with `served_name=...`.")
    root = info.root or info.model
    if _is_hub_name(root) and _is_hub_name(name) and root != name:
        raise ServerError(
            f"{url} serves {root}, not {name}; use a server of {name}, or, for a copy, set "
            f'`served_name="{info.model}"`.'
        )
    return info.model


def _is_hub_name(name: str) -> bool:
    return name.count("/") == 1 and not name.startswith((".", "/", "~"))


@dataclass
class Site:
    """A server with the server of its reference, which compute rewards together.

    Attributes:
        probe: A conversation that is added to every request, and its expected reward. It shows that a reply is of the
            checked model.
    """

    server: Server
    reference: Server | None
    reward: Reward
    precision: str
    probe: tuple[Conversation, float] | None = None
    scale: float = 0.0

    @property
    def url(self) -> str:
        """Address of the server."""
        return self.server.url

    @property
    def max_inputs(self) -> int | None:
        """Maximum number of conversations per request; None if unlimited."""
        limits = [server.info.max_inputs for server in self.servers if server.info.max_inputs]
        return min(limits, default=None)

    @property
    def servers(self) -> list[Server]:
        """The server of the model, and that of the reference if there is one."""
        return [self.server] if self.reference is None else [self.server, self.reference]

    async def rewards(self, conversations: Sequence[Conversation]) -> list[float]:
        """Compute one reward per conversation. Raises `ServerRestarted` if the reward of the probe changed."""
        if self.probe is None:
            return self.combine(await self.rows(conversations))
        conversation, expected = self.probe
        *rewards, actual = self.combine(await self.rows([*conversations, conversation]))
        if abs(actual - expected) > noise(self.scale, self.precision):
            raise ServerRestarted(
                f"{self.url} changed its scores since the check ({actual - expected:+.4g} for the same conversation): "
                "it was restarted within the run, or serves another model."
            )
        return rewards

    async def rows(self, conversations: Sequence[Conversation]) -> list[Rows]:
        """Compute the rows of each of `servers`."""
        return await asyncio.gather(*(server.rows(conversations) for server in self.servers))

    def combine(self, rows: Sequence[Rows]) -> list[float]:
        """Compute rewards from the rows of each of `servers`."""
        rewards = self.reward(rows[0])
        if len(rows) == 1:
            return rewards
        return [policy - reference for policy, reference in zip(rewards, self.reward(rows[1]), strict=True)]


def sum_log_probabilities(rows: Rows) -> list[float]:
    """Compute the log-probability of each response from those of its tokens."""
    return [math.fsum(row) for row in rows]


def first_number(rows: Rows) -> list[float]:
    """Return the only number of each row, the reward itself."""
    return [row[0] for row in rows]


Key = TypeVar("Key")


class Batch(NamedTuple, Generic[Key]):
    """Conversations of one request, with the caller's key of each."""

    keys: Sequence[Key]
    conversations: Sequence[Conversation]


async def score_batches(
    sites: Sequence[Site],
    batches: Sequence[Batch[Key]],
    concurrency: int,
    on_rewards: Callable[[Sequence[Key], list[float]], None],
) -> list[str]:
    """Score all batches at several sites, in approximate order; `concurrency` is that of all sites together.

    Returns:
        The addresses of excluded sites.

    Raises:
        ServerError: A reply is wrong, or no site is left; finished batches remain valid.
    """
    waiting, failures, excluded = deque(batches), list[ServerError](), dict[str, ServerError]()

    async def work(site: Site) -> None:
        while waiting and not failures and site.url not in excluded:
            batch = waiting.popleft()
            try:
                rewards = await site.rewards(batch.conversations)
            except (Unavailable, ServerRestarted) as error:
                waiting.appendleft(batch)
                if site.url not in excluded:
                    excluded[site.url] = error
                    if len(excluded) < len(sites):
                        log_status(
                            f"{str(error).rstrip('.')}; the server is excluded, and the others take over its work."
                        )
            except ServerError as error:
                failures.append(error)
            else:
                on_rewards(batch.keys, rewards)

    while waiting and not failures:
        live = [site for site in sites if site.url not in excluded]
        if not live:
            raise _none_left(list(excluded.values()))
        workers = max(1, concurrency // len(live))
        await asyncio.gather(*(work(site) for site in live for _ in range(workers)))
    if failures:
        raise failures[0]
    return list(excluded)


def _none_left(errors: Sequence[ServerError]) -> ServerError:
    messages = " ".join(map(str, errors))
    if any(isinstance(error, ServerRestarted) for error in errors):
        return ServerError(
            f"{messages} Earlier scores are kept, but only matching scores can resume the run; otherwise start over "
            "with `fresh=True`."
        )
    return ServerError(f"{messages} Scores are kept: rerun the same command to resume.")
