"""Ask a model, record the answer, replay it."""

from pluralbench_calls.ask import Limits, Price, ask
from pluralbench_calls.backends.local import LocalModel
from pluralbench_calls.backends.openai import OpenAIChat, provider_of
from pluralbench_calls.backends.replay import Replay
from pluralbench_calls.errors import (
    AccessDenied,
    CallsError,
    CeilingReached,
    ConnectionFailed,
    Interrupted,
    LedgerError,
    MissingAnswers,
    NotServed,
)
from pluralbench_calls.ledger import Ledger, read_ledger
from pluralbench_calls.records import Answer, Backend, Outcome, Request

__all__ = [
    "AccessDenied",
    "Answer",
    "Backend",
    "CallsError",
    "CeilingReached",
    "ConnectionFailed",
    "Interrupted",
    "Ledger",
    "LedgerError",
    "Limits",
    "LocalModel",
    "MissingAnswers",
    "NotServed",
    "OpenAIChat",
    "Outcome",
    "Price",
    "Replay",
    "Request",
    "ask",
    "provider_of",
    "read_ledger",
]
