"""Reward models behind servers: what engines are asked, and what their replies must be. Nothing here needs torch."""

from pluralbench_rewards.served.engine import (
    PAGES,
    Conversation,
    Engine,
    EngineName,
    EngineRequest,
    Kind,
    Pages,
    ReplyError,
    ServerError,
    ServerInfo,
)

__all__ = [
    "PAGES",
    "Conversation",
    "Engine",
    "EngineName",
    "EngineRequest",
    "Kind",
    "Pages",
    "ReplyError",
    "ServerError",
    "ServerInfo",
]
