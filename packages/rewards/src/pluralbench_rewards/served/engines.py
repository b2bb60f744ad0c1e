"""Which engine a server is, told by its pages."""

from pluralbench_rewards.served.engine import Engine, EngineName, Pages, ServerError, ServerInfo
from pluralbench_rewards.served.llamacpp import LLAMACPP
from pluralbench_rewards.served.sglang import SGLANG
from pluralbench_rewards.served.tei import TEI
from pluralbench_rewards.served.vllm import VLLM

ENGINES: tuple[Engine, ...] = (VLLM, SGLANG, TEI, LLAMACPP)


def detect_engine(url: str, pages: Pages, named: EngineName | None) -> tuple[Engine, ServerInfo]:
    """The engine that answers at a URL, and what it says of itself. named: the one that it should be.

    Raises `ServerError` for pages of no engine, or of another one than was named, and `ReplyError` as `Engine.about`.
    """
    for engine in ENGINES:
        about = engine.about(pages)
        if about is None:
            continue
        if named not in {None, engine.name}:
            raise ServerError(f"{url} is {engine.title}, not {named}: give the engine {engine.name}, or leave it out.")
        return engine, about
    titles = ", ".join(engine.title for engine in ENGINES)
    raise ServerError(
        f"{url} answers, but has the pages of no engine that is known here ({titles}); give the address at which the "
        "engine itself listens, such as http://HOST:8000."
    )
