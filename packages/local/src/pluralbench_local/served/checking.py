"""Before the first score: are the servers' scores those of the model?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pluralbench_rewards import CheckRecord, Group, Overflow, ScoringConfig
from pluralbench_rewards.served.comparing import Compared, Scores, compare, detect_activation
from pluralbench_rewards.served.engine import Conversation, ServerError
from pluralbench_rewards.served.site import Rows, Site
from pluralbench_runs import log_status

from pluralbench_local.loading import load
from pluralbench_local.served.config import ServedModel
from pluralbench_local.served.weights import fits

BIAS = (
    "its head adds a number that the model does not have, another at each start (SGLang does so with Qwen3 classifiers "
    "that have no score.bias); save the model with a score.bias of zeros and start the server again, or take another "
    "version or engine"
)


@dataclass(frozen=True)
class Items:
    """Items that are compared. groups, conversations: by item. texts: with the token ids that must be made of them."""

    groups: Sequence[Group]
    conversations: Sequence[Sequence[Conversation]]
    texts: Sequence[tuple[str, Sequence[int]]]


async def check(
    described: ServedModel, sites: Sequence[Site], items: Items, limit: int, on_overflow: Overflow, precision: str
) -> CheckRecord:
    """Compare the sites' scores of some items with those of the weights, or with one another.

    Raises `ServerError` naming the server that differs. Each site gets the probe that goes along with its requests.
    """
    name = described.model.name
    for site in sites:
        for server in site.servers:
            await server.examine(items.conversations[0][0].ids)
        await _same_tokens(site, items, name)
    found = [await scored_by(site, items.conversations, described.serving.batch_size) for site in sites]
    for site, (scores, _) in zip(sites, found, strict=True):
        _remember(site, items, scores)
    if described.serving.verify_items == 0:
        return CheckRecord()
    truth = _by_weights(described, items, limit, on_overflow)
    for site, (scores, rows) in zip(sites, found, strict=True):
        looks = (
            detect_activation(rows) if site.server.engine.gives == "logits" and site.server.kind == "classifier" else ""
        )
        if looks and (truth is None or not compare(truth, scores, precision).agree):
            raise ServerError(
                f"{site.url} gives no raw logits: {looks}; {site.server.engine.raw} ({site.server.engine.title})."
            )
    if truth is not None:
        compared = [
            agreeing(truth, scores, f"those of the weights of {name} here", site, precision)
            for site, (scores, _) in zip(sites, found, strict=True)
        ]
        return _record("weights", items, compared)
    if len(sites) > 1:
        (first, _), *others = found
        compared = [
            agreeing(first, scores, f"those of {sites[0].url}", site, precision)
            for site, (scores, _) in zip(sites[1:], others, strict=True)
        ]
        return _record("servers", items, compared)
    log_status(
        f"The scores of {sites[0].url} are compared with nothing, and the run's record says so: the weights of {name} "
        "are not here or do not fit, and there is no second server."
    )
    return CheckRecord()


async def scored_by(
    site: Site, conversations: Sequence[Sequence[Conversation]], batch_size: int
) -> tuple[list[list[float]], Rows]:
    """A site's scores by item and response, and the rows of its server that they come from."""
    flat = [conversation for item in conversations for conversation in item]
    size = min(batch_size, site.at_once or batch_size)
    values: list[float] = []
    rows: Rows = []
    for start in range(0, len(flat), size):
        came = await site.rows(flat[start : start + size])
        rows += came[0]
        values += site.combined(came)
    following = iter(values)
    return [[next(following) for _ in item] for item in conversations], rows


def agreeing(ours: Scores, theirs: Scores, whose: str, site: Site, precision: str) -> Compared:
    """How a site's scores compare with others. whose: those are, in a sentence. Raises `ServerError`."""
    compared = compare(ours, theirs, precision)
    if compared.constant:
        raise ServerError(f"Every score of {site.url} is off {whose} by the same {compared.constant:+.4g}: {BIAS}.")
    if not compared.agree:
        raise ServerError(
            f"Scores of {site.url} are up to {compared.largest:.4g} off {whose} ({compared.conversations} "
            "conversations compared): it serves another model or precision, or other weights than those here."
        )
    return compared


async def goes_on(
    sites: Sequence[Site],
    conversations: Mapping[int, Sequence[Conversation]],
    known: Mapping[int, list[float]],
    batch_size: int,
    precision: str,
) -> None:
    """Raise `ServerError` where a site's scores are not those of the earlier part of the run, by some of its items."""
    places = list(conversations)
    for site in sites:
        scores, _ = await scored_by(site, [conversations[place] for place in places], batch_size)
        compared = compare([known[place] for place in places], scores, precision)
        if not compared.agree:
            how = f"all by {compared.constant:+.4g}" if compared.constant else f"by up to {compared.largest:.4g}"
            raise ServerError(
                f"{site.url} gives other scores than the earlier part of this run ({how}): it was restarted, or serves "
                "another model; give the server that began the run, or start over with `fresh`."
            )


def _by_weights(described: ServedModel, items: Items, limit: int, on_overflow: Overflow) -> list[list[float]] | None:
    if not fits(described.model):
        return None
    scoring = ScoringConfig(mode="exact", max_length=limit, on_overflow=on_overflow)
    return load(described.model, scoring=scoring).score(items.groups).scores


async def _same_tokens(site: Site, items: Items, name: str) -> None:
    for server in site.servers:
        for text, ids in items.texts:
            theirs = await server.tokens_of(text)
            if theirs is not None and theirs != list(ids):
                raise ServerError(
                    f"{server.url} makes other tokens of a text than the tokenizer of {name} here ({len(theirs):,} and "
                    f"{len(ids):,}), so it serves another model; give the name or folder of the model that it serves."
                )


def _remember(site: Site, items: Items, scores: Scores) -> None:
    flat = [
        pair
        for item, values in zip(items.conversations, scores, strict=True)
        for pair in zip(item, values, strict=True)
    ]
    site.probe = min(flat, key=lambda pair: len(pair[0].ids))
    site.scale = max(abs(value) for _, value in flat)


def _record(against: str, items: Items, compared: Sequence[Compared]) -> CheckRecord:
    worst = max(compared, key=lambda found: found.changed)
    record = CheckRecord(
        items=len(items.groups),
        conversations=compared[0].conversations,
        largest_difference=max(found.largest for found in compared),
        decisions=worst.decisions,
        decisions_changed=worst.changed,
    )
    return record.model_copy(update={"against": against})
