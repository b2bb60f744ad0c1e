"""Scoring through servers: tokens are made here, as for a model in this process, and sent in a good order."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

import torch
from pluralbench_calls.loops import run
from pluralbench_rewards import CheckRecord, Group, ModelRecord, OnScored, Scored, ScoringConfig, ServedRecord
from pluralbench_rewards.served.client import Client
from pluralbench_rewards.served.engine import Conversation, ServerError
from pluralbench_rewards.served.pool import Batch, share
from pluralbench_rewards.served.site import Reward, Server, Site, server_at, summed
from pluralbench_runs import digest, public_location
from transformers import PretrainedConfig

from pluralbench_local.batches import Tally
from pluralbench_local.classifiers import check_label, reward_of
from pluralbench_local.conversations import Template, Tokenized
from pluralbench_local.models import appended, load_config, load_tokenizer
from pluralbench_local.packing import Tokens
from pluralbench_local.scoring import token_limit
from pluralbench_local.served.checking import Items, check, goes_on
from pluralbench_local.served.config import ServedModel
from pluralbench_local.served.texts import text_of
from pluralbench_local.served.weights import head_of

Name = tuple[int, int]
"""A conversation's group and its response."""


@dataclass(frozen=True)
class Served:
    """A reward model behind servers. config: of the model here."""

    described: ServedModel
    scoring: ScoringConfig
    template: Template
    config: PretrainedConfig

    def record(self) -> ModelRecord:
        """What its description says, and what its tokenizer and configuration show."""
        shown = {
            "chat_template_digest": digest(str(self.template.tokenizer.chat_template)),
            "architecture": next(iter(self.config.architectures or []), None),
        }
        return self.described.record().model_copy(update=shown)

    def score(
        self,
        groups: Sequence[Group],
        *,
        known: Mapping[int, list[float]] | None = None,
        on_scored: OnScored | None = None,
    ) -> Scored:
        """See `pluralbench_rewards.RewardModel.score`. Raises `ServerError`, `ConversationError`."""
        return run(self._score(groups, known or {}, on_scored))

    async def _score(
        self, groups: Sequence[Group], known: Mapping[int, list[float]], on_scored: OnScored | None
    ) -> Scored:
        serving = self.described.serving
        async with AsyncExitStack() as stack:
            sites = await self._sites(stack)
            limit = self._limit(sites)
            tally = Tally(groups, self.template, limit, self.scoring.on_overflow, known)
            texts = any(server.engine.texts for site in sites for server in site.servers)
            sendable = _Sendable(self.template, groups, tally.tokenized, texts=texts)
            checked, left_out = CheckRecord(), []
            if tally.twins:
                items = sendable.items(_spread(list(tally.twins), max(serving.verify_items, 1)))
                checked = await check(self.described, sites, items, limit, self.scoring.on_overflow, self._precision)
                earlier = {
                    place: sendable.group(place) for place in _spread(list(tally.known), max(serving.verify_items, 1))
                }
                await goes_on(sites, earlier, tally.known, serving.batch_size, self._precision)
                left_out = await self._share(sites, sendable, tally, on_scored)
        return tally.scored(tolerance=checked.largest_difference, served=_served(sites, checked, len(left_out)))

    async def _sites(self, stack: AsyncExitStack) -> list[Site]:
        model, serving = self.described.model, self.described.serving
        servers = await self._servers(stack, serving.server, model.name, serving.served_name)
        references = await self._servers(stack, serving.reference_server, model.reference or "", None)
        pairs = [
            (server, references[place % len(references)] if references else None)
            for place, server in enumerate(servers)
        ]
        return [Site(server, reference, self._reward(server), self._precision) for server, reference in pairs]

    async def _servers(
        self, stack: AsyncExitStack, urls: Sequence[str], name: str, served_name: str | None
    ) -> list[Server]:
        serving, kind = self.described.serving, self.described.model.kind
        clients = [await stack.enter_async_context(Client(url, serving)) for url in urls]
        asking = (server_at(client, serving.engine, served_name, name, kind) for client in clients)
        return list(await asyncio.gather(*asking))

    def _limit(self, sites: Sequence[Site]) -> int:
        """The most tokens of a conversation. Raises `ServerError` where more was asked for than a server takes."""
        limit = self.scoring.max_length or token_limit(self.template.tokenizer, [self.config])
        for site in sites:
            for server in site.servers:
                # A language model has to generate a token.
                most = server.about.max_length and server.about.max_length - (server.kind == "implicit")
                if most and self.scoring.max_length and most < limit:
                    raise ServerError(
                        f"A `max_length` of {limit:,} is more than the {most:,} tokens that {server.url} takes; start "
                        "it for longer inputs, or give less."
                    )
                limit = min(limit, most or limit)
        return limit

    @property
    def _precision(self) -> str:
        asked = self.described.model.dtype
        saved = str(getattr(self.config, "dtype", None) or "float32").removeprefix("torch.")
        return saved if asked == "auto" else asked

    def _reward(self, server: Server) -> Reward:
        model = self.described.model
        if model.kind == "implicit":
            return summed
        head = head_of(model, server.url) if server.engine.gives == "states" else None

        def rewards(rows: list[list[float]]) -> list[float]:
            logits = torch.tensor(rows, dtype=torch.float64)
            if head is not None:
                logits = head(logits)
            check_label(model.name, logits.shape[1], model.label)
            values: list[float] = reward_of(logits, model.label).tolist()
            return values

        return rewards

    async def _share(
        self, sites: Sequence[Site], sendable: "_Sendable", tally: Tally, on_scored: OnScored | None
    ) -> list[str]:
        """Score what is to be scored; the addresses of servers that were left out."""
        serving = self.described.serving
        limits = [site.at_once - 1 for site in sites if site.at_once]  # the probe goes along
        size = max(1, min([serving.batch_size, *limits]))
        # What begins alike follows one another, so that a server's cache of prefixes holds it when it comes.
        order = sorted(tally.twins, key=lambda place: tally.tokenized[place].conversations[0].ids)
        batches = _batches([[(place, first) for first in tally.twins[place]] for place in order], size, sendable)
        with tally.taking(on_scored) as take:

            def taken(names: Sequence[Name], rewards: list[float]) -> None:
                for (place, first), reward in zip(names, rewards, strict=True):
                    take(place, {first: reward})

            return await share(sites, batches, serving.concurrency, taken)


@dataclass(frozen=True)
class _Sendable:
    """The conversations as they are sent. texts: a server takes texts, so each is made into one."""

    template: Template
    groups: Sequence[Group]
    tokenized: Sequence[Tokenized]
    texts: bool

    def conversation(self, place: int, response: int) -> Conversation:
        tokens = self.tokenized[place].conversations[response]
        return Conversation(tokens.ids, self._text(place, tokens) if self.texts else "", tokens.reads)

    def group(self, place: int) -> list[Conversation]:
        return [self.conversation(place, response) for response in range(len(self.tokenized[place].conversations))]

    def items(self, places: Sequence[int]) -> Items:
        conversations = [self.group(place) for place in places]
        flat = [conversation for item in conversations for conversation in item]
        if not self.texts:
            ids = [token for conversation in flat for token in conversation.ids]
            plain = str(self.template.tokenizer.decode(ids[: max(len(conversation.ids) for conversation in flat)]))
            return Items([self.groups[place] for place in places], conversations, [(plain, self._ids(plain))])
        texts = [(conversation.text, conversation.ids) for conversation in flat]
        return Items([self.groups[place] for place in places], conversations, texts)

    def _ids(self, text: str) -> list[int]:
        [ids] = self.template.encode([text])
        return list(ids)

    def _text(self, place: int, tokens: Tokens) -> str:
        return text_of(self.template.tokenizer, tokens.ids, self.groups[place].id)


def load(described: ServedModel, scoring: ScoringConfig) -> Served:
    """A described model behind servers; none of them is asked yet. Raises `ModelError`."""
    model = described.model
    tokenizer = load_tokenizer(model, model.template())
    config = load_config(model)
    rows = config.get_text_config().vocab_size  # an id beyond ends some engines, so it is never sent
    if model.kind == "implicit":
        return Served(described, scoring, Template(tokenizer, whole_response=True, rows=rows), config)
    return Served(described, scoring, Template(tokenizer, appended(config), rows=rows), config)


def _spread(places: Sequence[int], number: int) -> list[int]:
    """Some of the places, evenly spread over them."""
    number = min(number, len(places))
    return [places[len(places) * part // number] for part in range(number)]


def _batches(groups: Sequence[Sequence[Name]], size: int, sendable: _Sendable) -> list[Batch[Name]]:
    """Batches of at most `size` conversations; a group that fits into one is not torn apart."""
    filled: list[list[Name]] = [[]]
    for names in groups:
        if len(filled[-1]) + len(names) > size:
            filled.append([])
        for name in names:
            if len(filled[-1]) == size:
                filled.append([])
            filled[-1].append(name)
    return [Batch(names, [sendable.conversation(*name) for name in names]) for names in filled if names]


def _served(sites: Sequence[Site], checked: CheckRecord, left_out: int) -> ServedRecord:
    servers = [server for site in sites for server in site.servers]
    return ServedRecord(
        engines=tuple(sorted({f"{server.engine.name} {server.about.version}" for server in servers})),
        servers=len(sites),
        servers_excluded=left_out,
        model=public_location(sites[0].server.about.model),
        check=checked,
    )
