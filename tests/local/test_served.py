"""Reward models behind servers: the same numbers as in this process, or one sentence that says why not."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
import served_contract
from engine_server import Imitation, imitate
from pluralbench_local import LocalModel
from pluralbench_local.served.description import ServedModel
from pluralbench_local.served.scoring import load
from pluralbench_rewards import Scoring
from pluralbench_rewards.served import ServerError
from pluralbench_rewards.served.serving import Serving
from reward_models import classifier_alone, differences
from served_contract import GROUPS, Running, scored, served

Folders = Callable[..., str]
Serve = Callable[..., Imitation]
ENGINES = ("vllm", "sglang", "tei")
ARCHITECTURE = {"vllm": "llama", "sglang": "qwen3", "tei": "bert"}


@pytest.fixture
def serve(classifiers: Folders) -> Iterator[Serve]:
    """`serve("vllm", offset=0.1)`: an imitation server of a tiny classifier, until the test ends."""
    with ExitStack() as stack:

        def start(engine: str, folder: str | None = None, **settings: Any) -> Imitation:
            folder = folder or classifiers(ARCHITECTURE[engine])
            return stack.enter_context(imitate(engine, folder, **settings))

        yield start


def running(server: Imitation, **more: Any) -> Running:
    return Running(server.url, server.engine, server.folder, longest=server.max_length, **more)


def refused(*servers: Imitation, **serving: Any) -> str:
    """What scoring through these servers is refused for."""
    with pytest.raises(ServerError) as raised:
        scored(running(servers[0]), server=tuple(server.url for server in servers), **serving)
    assert "\n" not in str(raised.value)
    return str(raised.value)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("promise", served_contract.CLASSIFIERS, ids=lambda promise: promise.__name__)
def test_an_engine_keeps_the_promise(serve: Serve, engine: str, promise: Callable[[Running], None]) -> None:
    promise(running(serve(engine)))
