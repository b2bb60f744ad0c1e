"""Reward models behind inference servers: requests to engines and their replies, without torch."""

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
