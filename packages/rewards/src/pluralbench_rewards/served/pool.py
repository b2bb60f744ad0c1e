"""Distribute requests over several servers, and exclude servers that fail."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

from pluralbench_runs import log_status

from pluralbench_rewards.served.client import Unavailable
from pluralbench_rewards.served.engine import Conversation, ServerError
from pluralbench_rewards.served.site import ServerRestarted, Site

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
    """Score all batches at several sites, in approximate order.

    Args:
        sites: The sites.
        batches: The batches.
        concurrency: Concurrent requests at all sites together.
        on_rewards: Called with the keys and the rewards of each finished batch.

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
