"""Score through servers: conversations are tokenized locally, as for a local model, and sent in a good order."""

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial

import torch
from pluralbench_calls.loops import run
from pluralbench_rewards import Cached, CheckRecord, Group, ModelRecord, OnScored, Scored, ScoringConfig, ServedRecord
from pluralbench_rewards.served.engine import Conversation, ServerError
from pluralbench_rewards.served.site import (
    Batch,
    Reward,
    Server,
    Site,
    first_number,
    score_batches,
    sum_log_probabilities,
)
from pluralbench_runs import digest, public_location
from transformers import PretrainedConfig, PreTrainedTokenizerBase

from pluralbench_local.batches import ScoreTable
from pluralbench_local.conversations import Template, Tokenized
from pluralbench_local.errors import LocalError
from pluralbench_local.labels import check_label, reward_of
from pluralbench_local.model_kinds import kind_of
from pluralbench_local.models import load_config, load_tokenizer
from pluralbench_local.rendering import date_settings
from pluralbench_local.scoring import token_limit
from pluralbench_local.served.checking import Items, check, check_unchanged, load_head, weight_files
from pluralbench_local.served.config import UNSERVED, ServedModel
from pluralbench_local.token_heads import vllm_options
from pluralbench_local.weights import ModelFiles

Name = tuple[int, int]
"""Index of a conversation's group, and of its response."""


@dataclass(frozen=True)
class Served:
    """A reward model behind servers; `config` is that of the local model."""

    model: ServedModel
    scoring: ScoringConfig
    template: Template
    config: PretrainedConfig

    def record(self) -> ModelRecord:
        """Return the record of the model, completed from its tokenizer and configuration."""
        fields = {
            "chat_template_digest": digest(str(self.template.tokenizer.chat_template)),
            "architecture": next(iter(self.config.architectures or []), None),
        }
        record = self.model.record()
        settings = record.settings | date_settings(self.template.tokenizer)
        return record.model_copy(update=fields | {"settings": settings})

    def score(self, groups: Sequence[Group], *, cached: Cached = None, on_scored: OnScored = None) -> Scored:
        """Score the responses of every group; see `pluralbench_rewards.RewardModel.score`.

        Raises:
            ServerError: If a server fails, or its scores are not those of the model.
            LocalError: If a conversation cannot be tokenized, or is too long.
        """
        return run(self._score(groups, cached or {}, on_scored))

    async def _score(self, groups: Sequence[Group], known: Mapping[int, list[float]], on_scored: OnScored) -> Scored:
        serving = self.model.serving
        async with AsyncExitStack() as stack:
            sites = await self._sites(stack)
            limit = self._limit(sites)
            table = ScoreTable(groups, self.template, limit, self.scoring.on_overflow, known)
            texts = any(server.engine.takes_text for site in sites for server in site.servers)
            requests = _Requests(self.template, groups, table.tokenized, texts=texts)
            checked, left_out = CheckRecord(), []
            if table.duplicates:
                count = max(serving.verify_items, 1)
                items = requests.items(_evenly_spaced(list(table.duplicates), count))
                checked = await check(self.model, sites, items, limit, self.scoring.on_overflow, self._precision)
                earlier = {index: requests.group(index) for index in _evenly_spaced(list(table.cached), count)}
                await check_unchanged(sites, earlier, table.cached, serving.batch_size, self._precision)
                left_out = await self._share(sites, requests, table, on_scored)
        return table.scored(tolerance=checked.largest_difference, served=_served_record(sites, checked, len(left_out)))

    async def _sites(self, stack: AsyncExitStack) -> list[Site]:
        servers, references = await self.model.open_servers(stack)
        for server in servers:
            self._check_tokens(server)
        pairs = [
            (server, references[number % len(references)] if references else None)
            for number, server in enumerate(servers)
        ]
        return [Site(server, reference, self._reward(server), self._precision) for server, reference in pairs]

    def _limit(self, sites: Sequence[Site]) -> int:
        """Maximum number of tokens of a conversation. Raises `ServerError` if `max_length` exceeds a server's."""
        limit = self.scoring.max_length or token_limit(self.template.tokenizer, [self.config])
        for site in sites:
            for server in site.servers:
                # A language model has to generate a token.
                maximum = server.info.max_length and server.info.max_length - server.generates
                if maximum and self.scoring.max_length and maximum < limit:
                    raise ServerError(
                        f"{server.url} accepts {maximum:,} tokens, and conversations may have {limit:,}; lower "
                        "`max_length=...`, or start the server for longer inputs."
                    )
                limit = min(limit, maximum or limit)
        return limit

    @property
    def _precision(self) -> str:
        dtype = self.model.model.dtype
        saved = str(getattr(self.config, "dtype", None) or "float32").removeprefix("torch.")
        return saved if dtype == "auto" else dtype

    def _reward(self, server: Server) -> Reward:
        model = self.model.model
        if server.engine.output == "rewards":
            return first_number
        if self.template.whole_response:
            return sum_log_probabilities
        if self.template.labels:
            return partial(self._token_rewards, server)
        head = load_head(model, server.url) if server.engine.output == "states" else None

        def rewards(rows: list[list[float]]) -> list[float]:
            logits = torch.tensor(rows, dtype=torch.float64)
            if head is not None:
                logits = head(logits)
            names = self.config.id2label or {}
            check_label(model.name, logits.shape[1], model.rule(), names)
            values: list[float] = reward_of(logits, model.rule(), names).tolist()
            return values

        return rewards

    def _token_rewards(self, server: Server, rows: list[list[float]]) -> list[float]:
        """Rewards from the logits of the tokens, or from their log-probabilities, which differ by a constant."""
        labels, rule = self.template.labels, self.model.model.rule()
        logits = torch.tensor(rows, dtype=torch.float64)
        if logits.shape[1] != len(labels):
            raise ServerError(
                f"{server.url} sends {logits.shape[1]:,} logits, not those of {len(labels)} tokens; start vLLM with "
                f"{vllm_options(self.config, self.template.tokenizer, labels)}."
            )
        values = reward_of(logits, rule)
        if not values.isfinite().all():
            raise ServerError(
                f"{server.url} sends a probability of 0 or 1, from which no log-odds can be read; start vLLM with "
                f"{vllm_options(self.config, self.template.tokenizer, labels)}."
            )
        return [float(value) for value in values]

    def _check_tokens(self, server: Server) -> None:
        """Raise `ServerError` if a server of a token reward cannot give its number."""
        if not self.template.labels or server.engine.output == "rewards":
            return
        if server.generates:
            if len(self.template.labels) == 1:
                raise ServerError(
                    f"{server.url} gives probabilities, not the logit of one token; start vLLM with "
                    f"{vllm_options(self.config, self.template.tokenizer, self.template.labels)}."
                )
        else:
            vllm_options(self.config, self.template.tokenizer, self.template.labels)  # refuses scaled logits

    async def _share(
        self, sites: Sequence[Site], requests: "_Requests", table: ScoreTable, on_scored: OnScored
    ) -> list[str]:
        """Score all remaining conversations, and return the addresses of servers that were left out."""
        serving = self.model.serving
        limits = [site.max_inputs - 1 for site in sites if site.max_inputs]  # the probe takes one place
        size = max(1, min([serving.batch_size, *limits]))
        # Sorted, so that conversations with a common prefix hit a server's prefix cache.
        order = sorted(table.duplicates, key=lambda index: table.tokenized[index].conversations[0].ids)
        batches = _batches([[(index, first) for first in table.duplicates[index]] for index in order], size, requests)
        with table.recording(on_scored) as record:

            def on_batch(names: Sequence[Name], rewards: list[float]) -> None:
                for (index, first), reward in zip(names, rewards, strict=True):
                    record(index, {first: reward})

            return await score_batches(sites, batches, serving.concurrency, on_batch)


@dataclass(frozen=True)
class _Requests:
    """Conversations as they are sent; `texts` says whether a server needs texts instead of token ids."""

    template: Template
    groups: Sequence[Group]
    tokenized: Sequence[Tokenized]
    texts: bool

    def conversation(self, index: int, response: int) -> Conversation:
        tokens = self.tokenized[index].conversations[response]
        if not self.template.whole_response:  # engines read the last token that they get
            tokens = replace(tokens, ids=tokens.ids[: tokens.reads.stop])
        name = self.groups[index].id
        text = decode_exactly(self.template.tokenizer, tokens.ids, name) if self.texts else ""
        return Conversation(tokens.ids, text, tokens.reads, self.template.labels)

    def group(self, index: int) -> list[Conversation]:
        return [self.conversation(index, response) for response in range(len(self.tokenized[index].conversations))]

    def items(self, indices: Sequence[int]) -> Items:
        groups = [self.groups[index] for index in indices]
        conversations = [self.group(index) for index in indices]
        flat = [conversation for item in conversations for conversation in item]
        if not self.texts:
            ids = [token for conversation in flat for token in conversation.ids]
            plain = str(self.template.tokenizer.decode(ids[: max(len(conversation.ids) for conversation in flat)]))
            [encoded] = self.template.encode([plain])
            return Items(groups, conversations, [(plain, list(encoded))])
        return Items(groups, conversations, [(conversation.text, conversation.ids) for conversation in flat])


def load(model: ServedModel, scoring: ScoringConfig) -> Served:
    """Load the tokenizer and configuration of a served model. No request is sent yet. Raises `LocalError`."""
    local = model.model
    tokenizer = load_tokenizer(local)
    config = load_config(local)
    size = config.get_text_config().vocab_size  # larger ids crash some engines, so they are never sent
    # The weights need not be here; without them, a value head is taken for a classifier.
    files = ModelFiles(local) if weight_files(local.name, local.revision) else ModelFiles(local, {})
    kind = kind_of(files)
    if kind.name in UNSERVED:
        raise ServerError(UNSERVED[kind.name].format(local.name))
    template = kind.template(local, tokenizer, config, size)
    return Served(model, scoring, template, config)


def _evenly_spaced(indices: Sequence[int], count: int) -> list[int]:
    count = min(count, len(indices))
    return [indices[len(indices) * part // count] for part in range(count)]


def _batches(groups: Sequence[Sequence[Name]], size: int, requests: _Requests) -> list[Batch[Name]]:
    """Of at most `size` conversations; a group that fits into one is not split."""
    batches: list[list[Name]] = [[]]
    for names in groups:
        if len(batches[-1]) + len(names) > size:
            batches.append([])
        for name in names:
            if len(batches[-1]) == size:
                batches.append([])
            batches[-1].append(name)
    return [Batch(names, [requests.conversation(*name) for name in names]) for names in batches if names]


def _served_record(sites: Sequence[Site], checked: CheckRecord, left_out: int) -> ServedRecord:
    servers = [server for site in sites for server in site.servers]
    return ServedRecord(
        engines=tuple(sorted({f"{server.engine.name} {server.info.version}" for server in servers})),
        servers=len(sites),
        servers_excluded=left_out,
        model=public_location(sites[0].server.info.model),
        check=checked,
    )


def decode_exactly(tokenizer: PreTrainedTokenizerBase, ids: Sequence[int], name: str) -> str:
    """Return the text that the tokenizer, adding special tokens, turns into the ids of a conversation.

    Raises:
        LocalError: If there is no such text: the template does not write the special tokens that the engine
            adds, or the ids are cut or unknown.
    """
    before, after = _special_tokens_around(tokenizer)
    inner = list(ids)[len(before) : len(ids) - len(after)]
    text = str(tokenizer.decode(inner, skip_special_tokens=False, clean_up_tokenization_spaces=False))
    if list(tokenizer(text, verbose=False)["input_ids"]) != list(ids):
        added = " ".join(tokenizer.convert_ids_to_tokens([*before, *after]))
        raise LocalError(
            f"The conversation {name} cannot be sent as text: the engine adds special tokens ({added or 'none'}); "
            "score locally, or give a `chat_template=...` that begins and ends with these tokens."
        )
    return text


def _special_tokens_around(tokenizer: PreTrainedTokenizerBase) -> tuple[list[int], list[int]]:
    plain = list(tokenizer("a", add_special_tokens=False)["input_ids"])
    ids = list(tokenizer("a")["input_ids"])
    start = next((index for index in range(len(ids)) if ids[index : index + len(plain)] == plain), 0)
    return ids[:start], ids[start + len(plain) :]
