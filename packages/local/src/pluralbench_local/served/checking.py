"""Checks before a run that the servers' scores are those of the model."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil
import torch
from huggingface_hub import try_to_load_from_cache
from pluralbench_rewards import CheckRecord, Group, Overflow, ScoringConfig
from pluralbench_rewards.served.comparing import ScoreComparison, Scores, compare, detect_activation
from pluralbench_rewards.served.engine import Conversation, ServerError
from pluralbench_rewards.served.site import Rows, Site
from pluralbench_runs import check_model_folder, log_status, read_small
from safetensors import safe_open

from pluralbench_local.config import LocalModel
from pluralbench_local.errors import LocalError
from pluralbench_local.loading import load
from pluralbench_local.models import REWARD_HEADS, resolve_device
from pluralbench_local.served.config import ServedModel
from pluralbench_local.weights import body_file

BIAS = (
    "its head adds a bias that the model does not have (SGLang does so with Qwen3 classifiers without score.bias); "
    "save the model with a score.bias of zeros and restart the server, or use another engine"
)


@dataclass(frozen=True)
class Items:
    """Items whose scores are compared, their requests, and texts with the token ids that servers must make of them."""

    groups: Sequence[Group]
    conversations: Sequence[Sequence[Conversation]]
    texts: Sequence[tuple[str, Sequence[int]]]


async def check(
    model: ServedModel, sites: Sequence[Site], items: Items, limit: int, on_overflow: Overflow, precision: str
) -> CheckRecord:
    """Compare the sites' scores of some items with those of the local weights, or with one another.

    Each site also gets the probe that accompanies its requests.

    Raises:
        ServerError: If a server's tokens or scores differ.
    """
    name = model.model.name
    for site in sites:
        for server in site.servers:
            await server.examine(items.conversations[0][0].ids)
        await _check_tokens(site, items, name)
    results = [await site_scores(site, items.conversations, model.serving.batch_size) for site in sites]
    for site, (scores, _) in zip(sites, results, strict=True):
        _set_probe(site, items, scores)
    if model.serving.verify_items == 0:
        return CheckRecord()
    expected = _score_locally(model, items, limit, on_overflow)
    for site, (scores, rows) in zip(sites, results, strict=True):
        activation = (
            detect_activation(rows) if site.server.engine.output == "logits" and site.server.kind != "implicit" else ""
        )
        if activation and (expected is None or not compare(expected, scores, precision).agree):
            raise ServerError(
                f"{site.url} does not return raw logits: {activation}; {site.server.engine.raw_logits_hint} "
                f"({site.server.engine.title})."
            )
    if expected is not None:
        compared = [
            check_agreement(expected, scores, f"those of the local weights of {name}", site, precision)
            for site, (scores, _) in zip(sites, results, strict=True)
        ]
        return _record("weights", items, compared)
    if len(sites) > 1:
        (first, _), *others = results
        compared = [
            check_agreement(first, scores, f"those of {sites[0].url}", site, precision)
            for site, (scores, _) in zip(sites[1:], others, strict=True)
        ]
        return _record("servers", items, compared)
    log_status(
        f"The scores of {sites[0].url} are not checked, and the run records it: the weights of {name} are not on this "
        "machine or do not fit into its memory, and there is no second server."
    )
    return CheckRecord()


async def site_scores(
    site: Site, conversations: Sequence[Sequence[Conversation]], batch_size: int
) -> tuple[list[list[float]], Rows]:
    """Return a site's scores by item and response, and the server's rows that they come from."""
    flat = [conversation for item in conversations for conversation in item]
    size = min(batch_size, site.max_inputs or batch_size)
    values: list[float] = []
    rows: Rows = []
    for start in range(0, len(flat), size):
        rows_by_server = await site.rows(flat[start : start + size])
        rows += rows_by_server[0]
        values += site.combine(rows_by_server)
    scores = iter(values)
    return [[next(scores) for _ in item] for item in conversations], rows


def check_agreement(expected: Scores, scores: Scores, source: str, site: Site, precision: str) -> ScoreComparison:
    """Compare a site's scores with the expected ones, which come from a `source` ("those of ...").

    Raises `ServerError` if they differ.
    """
    compared = compare(expected, scores, precision)
    if compared.constant:
        raise ServerError(f"All scores of {site.url} differ from {source} by {compared.constant:+.4g}: {BIAS}.")
    if not compared.agree:
        raise ServerError(
            f"Scores of {site.url} differ from {source} by up to {compared.largest:.4g} ({compared.conversations} "
            "conversations): it serves another model, precision or version of the weights."
        )
    return compared


async def check_unchanged(
    sites: Sequence[Site],
    conversations: Mapping[int, Sequence[Conversation]],
    cached: Mapping[int, list[float]],
    batch_size: int,
    precision: str,
) -> None:
    """Raise `ServerError` if a site does not return the scores of the earlier part of a run, by index of the group."""
    for site in sites:
        scores, _ = await site_scores(site, list(conversations.values()), batch_size)
        compared = compare([cached[index] for index in conversations], scores, precision)
        if not compared.agree:
            how = f"all by {compared.constant:+.4g}" if compared.constant else f"by up to {compared.largest:.4g}"
            raise ServerError(
                f"{site.url} returns other scores than in the earlier part of this run ({how}); give the server that "
                "began the run, or start over with `fresh=True`."
            )


def _score_locally(model: ServedModel, items: Items, limit: int, on_overflow: Overflow) -> list[list[float]] | None:
    if not weights_fit(model.model):
        return None
    scoring = ScoringConfig(mode="exact", max_length=limit, on_overflow=on_overflow)
    return load(model.model, scoring=scoring).score(items.groups).scores


async def _check_tokens(site: Site, items: Items, name: str) -> None:
    for server in site.servers:
        for text, ids in items.texts:
            server_ids = await server.tokens_of(text)
            if server_ids is not None and server_ids != list(ids):
                raise ServerError(
                    f"{server.url} tokenizes a text differently than {name} ({len(server_ids):,} and {len(ids):,} "
                    "tokens), so it serves another model; give the name or folder of that model."
                )


def _set_probe(site: Site, items: Items, scores: Scores) -> None:
    flat = [
        pair
        for item, values in zip(items.conversations, scores, strict=True)
        for pair in zip(item, values, strict=True)
    ]
    site.probe = min(flat, key=lambda pair: len(pair[0].ids))
    site.scale = max(abs(value) for _, value in flat)


def _record(against: str, items: Items, compared: Sequence[ScoreComparison]) -> CheckRecord:
    worst = max(compared, key=lambda comparison: comparison.changed)
    record = CheckRecord(
        items=len(items.groups),
        conversations=compared[0].conversations,
        largest_difference=max(comparison.largest for comparison in compared),
        decisions=worst.decisions,
        decisions_changed=worst.changed,
    )
    return record.model_copy(update={"against": against})


WEIGHTS = ("*.safetensors", "*.bin")
MEMORY_FACTOR = 1.5  # memory for a few forward passes, as a multiple of the weights


def weight_files(name: str, revision: str | None = None) -> list[Path]:
    """Return a model's weight files on this machine, in a folder or the Hub's cache; none if a shard is missing."""
    folder = Path(name)
    if not folder.is_dir():
        try:
            config = try_to_load_from_cache(name, "config.json", revision=revision)
        except ValueError:  # not a name on the Hub
            return []
        if not isinstance(config, str):
            return []
        folder = Path(config).parent
    check_model_folder(folder, LocalError)
    index = folder / body_file(path.name for path in folder.iterdir())
    if index.name.endswith(".index.json"):
        shards = [folder / name for name in sorted(set(json.loads(read_small(index))["weight_map"].values()))]
        return shards if all(path.exists() for path in shards) else []
    return next((files for pattern in WEIGHTS if (files := sorted(folder.glob(pattern)))), [])


def weights_fit(model: LocalModel) -> bool:
    """Return whether the weights of a model and its reference are on this machine and fit into its device's memory."""
    files = [weight_files(model.name, model.revision)]
    if model.reference is not None:
        files.append(weight_files(model.reference))
    needed = sum(path.stat().st_size for paths in files for path in paths) * MEMORY_FACTOR
    if model.device == "spread":
        free = sum(torch.cuda.mem_get_info(device)[0] for device in range(torch.cuda.device_count()))
    else:
        device = resolve_device(model.device)
        free = torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else psutil.virtual_memory().available
    return all(files) and needed < free


def load_head(model: LocalModel, url: str) -> Callable[[torch.Tensor], torch.Tensor]:
    """Load the head of a classifier, without the rest of its weights, as a function from states to logits.

    `url` is the address of the server that returns the hidden states, for errors.

    Raises:
        LocalError: If the model has no head of one linear layer.
    """
    weight, bias = (_tensor(model, {f"{head}.{part}" for head in REWARD_HEADS}) for part in ("weight", "bias"))
    if weight is None or weight.dim() != 2:
        raise LocalError(
            f"{model.name} has no head of one linear layer (score.weight in *.safetensors) for the hidden states of "
            f"{url}; serve it with vLLM or SGLang, or score locally."
        )

    def logits(states: torch.Tensor) -> torch.Tensor:
        if states.shape[1] != weight.shape[1]:
            raise ServerError(
                f"{url} returns hidden states of width {states.shape[1]:,}, but the head of {model.name} has "
                f"{weight.shape[1]:,}, so it serves another model; give the server of {model.name}."
            )
        return torch.nn.functional.linear(states, weight, bias)

    return logits


def _tensor(model: LocalModel, names: set[str]) -> torch.Tensor | None:
    """The tensor with one of these names in the model's files, in float64."""
    for path in weight_files(model.name, model.revision):
        if path.suffix == ".safetensors":
            with safe_open(path, framework="pt") as file:
                matching = names & set(file.keys())
                if matching:
                    tensor: torch.Tensor = file.get_tensor(matching.pop())
                    return tensor.double()
    return None
