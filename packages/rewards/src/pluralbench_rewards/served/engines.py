"""Detect the engine of a server from its pages."""

from pluralbench_rewards.served.engine import Engine, EngineName, Pages, ServerError, ServerInfo
from pluralbench_rewards.served.llamacpp import LLAMACPP
from pluralbench_rewards.served.sglang import SGLANG
from pluralbench_rewards.served.tei import TEI
from pluralbench_rewards.served.vllm import VLLM

ENGINES: tuple[Engine, ...] = (VLLM, SGLANG, TEI, LLAMACPP)


def detect_engine(url: str, pages: Pages, expected: EngineName | None) -> tuple[Engine, ServerInfo]:
    """Detect the engine at a URL.

    Args:
        url: Address of the server.
        pages: Its pages.
        expected: The engine that the settings name. None: any.

    Returns:
        The engine, and the properties of the server.

    Raises:
        ServerError: The pages belong to no known engine, or not to the expected one.
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
