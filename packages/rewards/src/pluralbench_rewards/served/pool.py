"""Several servers share the work: many requests in flight, and one that dies is left out and said so."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

from pluralbench_runs import log_status

from pluralbench_rewards.served.client import Unavailable
from pluralbench_rewards.served.engine import Conversation, ServerError
from pluralbench_rewards.served.site import ServerRestarted, Site

Name = TypeVar("Name")


class Batch(NamedTuple, Generic[Name]):
    """Conversations of one request, and what the caller calls each."""

    names: Sequence[Name]
    conversations: Sequence[Conversation]


async def share(
    sites: Sequence[Site],
    batches: Sequence[Batch[Name]],
    concurrency: int,
    take: Callable[[Sequence[Name], list[float]], None],
) -> list[str]:
    """Have the sites score all batches, in about their order; `take` gets the rewards as they come.

    concurrency: requests in flight at once, at all sites together. Gives the addresses of sites that were left out.

    Raises `ServerError` for a reply that is wrong, and when no site is left; what `take` got stays.
    """
    waiting, failures, lost = deque(batches), list[ServerError](), dict[str, ServerError]()

    async def work(site: Site) -> None:
        while waiting and not failures and site.url not in lost:
            batch = waiting.popleft()
            try:
                rewards = await site.rewards(batch.conversations)
            except (Unavailable, ServerRestarted) as error:
                waiting.appendleft(batch)
                if site.url not in lost:
                    lost[site.url] = error
                    if len(lost) < len(sites):
                        log_status(f"{str(error).rstrip('.')}; it is left out, and the others do its work.")
            except ServerError as error:
                failures.append(error)
            else:
                take(batch.names, rewards)

    while waiting and not failures:
        live = [site for site in sites if site.url not in lost]
        if not live:
            raise _none_left(list(lost.values()))
        each = max(1, concurrency // len(live))
        await asyncio.gather(*(work(site) for site in live for _ in range(each)))
    if failures:
        raise failures[0]
    return list(lost)


def _none_left(errors: Sequence[ServerError]) -> ServerError:
    said = " ".join(map(str, errors))
    if any(isinstance(error, ServerRestarted) for error in errors):
        return ServerError(
            f"{said} What was scored before is kept, but goes on only with scores that agree; else start over with "
            "`fresh`."
        )
    return ServerError(f"{said} What was scored is kept: the same command goes on from there.")
