"""Ask a model, record the answer, replay it."""

from pluralbench_calls.ask import Limits, Price, ask
from pluralbench_calls.backends.endpoint import provider_of
from pluralbench_calls.backends.local import MODEL as LOCAL_MODEL
from pluralbench_calls.backends.local import EmbeddedModel
from pluralbench_calls.backends.openai import OpenAIChat
from pluralbench_calls.backends.written import Replay, Written
from pluralbench_calls.batches.backend import OpenAIBatches
from pluralbench_calls.batches.filed import FiledCalls
from pluralbench_calls.chat import (
    OPENAI,
    ChatConnection,
    ChatModel,
    Message,
    chat_backend,
    chat_request,
    check_reachable,
    chosen_model,
)
from pluralbench_calls.errors import (
    AccessDenied,
    BatchFileError,
    CallsError,
    CallsPending,
    CeilingReached,
    ConnectionFailed,
    Interrupted,
    LedgerError,
    MissingAnswers,
    NotServed,
    NotWritten,
    RequestsRejected,
)
from pluralbench_calls.ledger import Ledger, Recording, recording, working_ledger
from pluralbench_calls.ledger_files import read_ledger
from pluralbench_calls.records import Answer, Backend, Outcome, PackingBackend, Request
from pluralbench_calls.retry import InvalidAnswer, Settled, after_thinking, ask_until_valid
from pluralbench_calls.verdicts import (
    Choice,
    Rule,
    Verdict,
    legacy_choice,
    legacy_points,
    parse_choice,
    parse_rating,
    parse_verdict,
    readings,
)

__all__ = [
    "LOCAL_MODEL",
    "OPENAI",
    "AccessDenied",
    "Answer",
    "Backend",
    "BatchFileError",
    "CallsError",
    "CallsPending",
    "CeilingReached",
    "ChatConnection",
    "ChatModel",
    "Choice",
    "ConnectionFailed",
    "EmbeddedModel",
    "FiledCalls",
    "Interrupted",
    "InvalidAnswer",
    "Ledger",
    "LedgerError",
    "Limits",
    "Message",
    "MissingAnswers",
    "NotServed",
    "NotWritten",
    "OpenAIBatches",
    "OpenAIChat",
    "Outcome",
    "PackingBackend",
    "Price",
    "Recording",
    "Replay",
    "Request",
    "RequestsRejected",
    "Rule",
    "Settled",
    "Verdict",
    "Written",
    "after_thinking",
    "ask",
    "ask_until_valid",
    "chat_backend",
    "chat_request",
    "check_reachable",
    "chosen_model",
    "legacy_choice",
    "legacy_points",
    "parse_choice",
    "parse_rating",
    "parse_verdict",
    "provider_of",
    "read_ledger",
    "readings",
    "recording",
    "working_ledger",
]
