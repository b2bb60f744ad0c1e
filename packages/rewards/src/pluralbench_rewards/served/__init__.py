"""Reward models behind servers: what engines are asked, and what their replies must be. Nothing here needs torch."""

from pluralbench_rewards.served.engine import (
    PAGES,
    About,
    Call,
    Conversation,
    Engine,
    EngineName,
    Kind,
    Pages,
    ReplyError,
    ServerError,
)

__all__ = [
    "PAGES",
    "About",
    "Call",
    "Conversation",
    "Engine",
    "EngineName",
    "Kind",
    "Pages",
    "ReplyError",
    "ServerError",
]
