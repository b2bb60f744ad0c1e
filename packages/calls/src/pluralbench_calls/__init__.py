"""Recorded model calls: send requests, record each answer in a ledger, and replay it."""

from pluralbench_calls.ask import Limits, Price, ask
from pluralbench_calls.backends.canned import CannedBackend, Replay
from pluralbench_calls.backends.endpoint import provider_of
from pluralbench_calls.backends.local import MODEL as LOCAL_MODEL
from pluralbench_calls.backends.local import EmbeddedModel
from pluralbench_calls.backends.openai import OpenAIChat
from pluralbench_calls.batches.backend import OpenAIBatches
from pluralbench_calls.batches.file_backend import FileBackend
from pluralbench_calls.chat import (
    OPENAI,
    ChatModel,
    ConnectionConfig,
    Message,
    chat_backend,
    chat_request,
    check_connection,
    model_overrides,
)
from pluralbench_calls.errors import (
    AccessDenied,
    BatchFileError,
    CallsError,
    CallsPending,
    CannedReplyMissing,
    ConnectionFailed,
    Interrupted,
    LedgerError,
    MaxCostReached,
    MissingAnswers,
    ModelNotServed,
    RequestsRejected,
    UnreadableReplies,
)
from pluralbench_calls.ledger import Ledger, Recording, recording, working_ledger
from pluralbench_calls.ledger_files import read_ledger
from pluralbench_calls.records import Answer, Backend, Outcome, PackingBackend, Request
from pluralbench_calls.retry import InvalidAnswer, ParsedReply, ask_until_valid, strip_thinking
from pluralbench_calls.verdicts import (
    Choice,
    Rule,
    Verdict,
    legacy_choice,
    legacy_score,
    parse_choice,
    parse_pick,
    parse_rating,
    parse_verdict,
    parse_with_all_rules,
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
    "CannedBackend",
    "CannedReplyMissing",
    "ChatModel",
    "Choice",
    "ConnectionConfig",
    "ConnectionFailed",
    "EmbeddedModel",
    "FileBackend",
    "Interrupted",
    "InvalidAnswer",
    "Ledger",
    "LedgerError",
    "Limits",
    "MaxCostReached",
    "Message",
    "MissingAnswers",
    "ModelNotServed",
    "OpenAIBatches",
    "OpenAIChat",
    "Outcome",
    "PackingBackend",
    "ParsedReply",
    "Price",
    "Recording",
    "Replay",
    "Request",
    "RequestsRejected",
    "Rule",
    "UnreadableReplies",
    "Verdict",
    "ask",
    "ask_until_valid",
    "chat_backend",
    "chat_request",
    "check_connection",
    "legacy_choice",
    "legacy_score",
    "model_overrides",
    "parse_choice",
    "parse_pick",
    "parse_rating",
    "parse_verdict",
    "parse_with_all_rules",
    "provider_of",
    "read_ledger",
    "recording",
    "strip_thinking",
    "working_ledger",
]
