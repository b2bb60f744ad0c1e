"""A site: what a reward comes from. A server that holds the model, and one of its reference, where it has one."""

import asyncio
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pluralbench_rewards.served.client import Client, Rejected
from pluralbench_rewards.served.comparing import noise
from pluralbench_rewards.served.engine import (
    Conversation,
    Engine,
    EngineName,
    Kind,
    ReplyError,
    ServerError,
    ServerInfo,
)
from pluralbench_rewards.served.engines import detect_engine

Rows = list[list[float]]
Reward = Callable[[Rows], list[float]]
"""From rows of logits (or of hidden states, as the engine gives them) to rewards."""

NO_PAGE = {404, 405}


class ServerRestarted(ServerError):
    """A server that gives other scores than at the start of the run. Another may do its work."""


@dataclass(frozen=True)
class Server:
    """A server whose engine is known. kind: of the model it serves."""

    client: Client
    engine: Engine
    about: ServerInfo
    kind: Kind

    @property
    def url(self) -> str:
        """Its address."""
        return self.client.url

    async def rows(self, conversations: Sequence[Conversation]) -> Rows:
        """A row for each conversation, at most `About.at_once`. Raises `ServerError`."""
        engine, implicit = self.engine, self.kind == "implicit"
        request, read = (engine.request_implicit, engine.read_implicit) if implicit else (engine.request, engine.read)
        assert request is not None and read is not None  # noqa: S101, PT018 - `server_at` saw to it
        call = request(conversations, self.about)
        try:
            reply = await self.client.post(call)
        except Rejected as error:
            if error.status in NO_PAGE:
                raise ServerError(
                    f"{self.url} has no {call.path} ({error.said}), so it does not serve the kind {self.kind}: start "
                    f"{engine.title} with {engine.starts[self.kind]}."
                ) from None
            raise
        try:
            return read(reply, conversations, self.about)
        except ReplyError as error:
            raise ServerError(f"{self.url} {error}.") from None

    async def examine(self, ids: Sequence[int]) -> None:
        """Find out what no page tells. ids: the tokens of a conversation. Raises `ServerError`."""
        if self.engine.examine is None:
            return
        examination = self.engine.examine(ids, self.about)
        try:
            call = next(examination)
            while True:
                call = examination.send(await self.client.asked(call))
        except StopIteration:
            return
        except ReplyError as error:
            raise ServerError(f"{self.url} {error}.") from None

    async def tokens_of(self, text: str) -> list[int] | None:
        """The token ids that the server makes of a text; None where it does not say. Raises `ServerError`."""
        if self.engine.tokenize is None:
            return None
        try:
            return self.engine.tokens(await self.client.post(self.engine.tokenize(text, self.about)))
        except Rejected:
            return None
        except ReplyError as error:
            raise ServerError(f"{self.url} {error}.") from None


async def server_at(
    client: Client, engine: EngineName | None, served_name: str | None, name: str, kind: Kind
) -> Server:
    """What answers at a client's URL. name: of the model, a folder or ORG/NAME. Raises `ServerError`."""
    try:
        found, about = detect_engine(client.url, await client.pages(), engine)
    except ReplyError as error:
        raise ServerError(f"{client.url} {error}.") from None
    if kind == "implicit" and found.request_implicit is None:
        raise ServerError(
            f"{client.url} is {found.title}, of which no log-probabilities are asked here; serve an implicit reward's "
            "model with vLLM."
        )
    chosen = _chosen(client.url, about, served_name, name)
    return Server(client, found, ServerInfo(**(vars(about) | {"models": (chosen,)})), kind)


def _chosen(url: str, about: ServerInfo, served_name: str | None, name: str) -> str:
    held = ", ".join(about.models)
    if served_name is not None:
        if served_name not in about.models:
            raise ServerError(f"{url} holds no model {served_name!r}; it holds {held}: give that as `served_name`.")
        return served_name
    if name in about.models:
        return name
    if len(about.models) != 1:
        raise ServerError(f"{url} holds several models ({held}); say which as `served_name`.")
    root = about.root or about.model
    if _on_the_hub(root) and _on_the_hub(name) and root != name:
        raise ServerError(
            f"{url} serves {root}, not {name}; give the server of {name}, or, if that is a copy, `served_name` "
            f"{about.model}."
        )
    return about.model


def _on_the_hub(name: str) -> bool:
    return name.count("/") == 1 and not name.startswith((".", "/", "~"))


@dataclass
class Site:
    """A server, the one of its reference, and how their rows become rewards.

    probe: a conversation that goes along with every request, with the reward that it had at first: what comes in one
    reply with it is of the model that was checked.
    """

    server: Server
    reference: Server | None
    reward: Reward
    precision: str
    probe: tuple[Conversation, float] | None = None
    scale: float = 0.0

    @property
    def url(self) -> str:
        """The address of the server."""
        return self.server.url

    @property
    def at_once(self) -> int | None:
        """The most conversations of a request, None for any number."""
        limits = [server.about.at_once for server in self.servers if server.about.at_once]
        return min(limits, default=None)

    @property
    def servers(self) -> list[Server]:
        """All that have to answer."""
        return [self.server] if self.reference is None else [self.server, self.reference]

    async def rewards(self, conversations: Sequence[Conversation]) -> list[float]:
        """A reward for each conversation. Raises `ServerError`, and `ServerRestarted` if the probe differs."""
        if self.probe is None:
            return self.combined(await self.rows(conversations))
        conversation, expected = self.probe
        *rewards, came = self.combined(await self.rows([*conversations, conversation]))
        if abs(came - expected) > noise(self.scale, self.precision):
            raise ServerRestarted(
                f"{self.url} gives other scores than when it was checked ({came - expected:+.4g} for the same "
                "conversation): it was restarted within the run, or serves another model now."
            )
        return rewards

    async def rows(self, conversations: Sequence[Conversation]) -> list[Rows]:
        """The rows of each of `servers`. Raises `ServerError`."""
        return await asyncio.gather(*(server.rows(conversations) for server in self.servers))

    def combined(self, rows: Sequence[Rows]) -> list[float]:
        """Rewards, of the rows of each of `servers`."""
        rewards = self.reward(rows[0])
        if len(rows) == 1:
            return rewards
        return [one - other for one, other in zip(rewards, self.reward(rows[1]), strict=True)]


def summed(rows: Rows) -> list[float]:
    """The log-probability of each response, from that of each of its tokens."""
    return [math.fsum(row) for row in rows]
