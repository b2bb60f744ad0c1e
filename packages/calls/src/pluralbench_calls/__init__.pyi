from .ask import ask
from .backends.canned import CannedBackend, Replay
from .backends.endpoint import provider_of
from .backends.local import LOCAL_MODEL, EmbeddedModel, embedded_weights
from .backends.openai import OpenAIChat
from .batches.backend import OpenAIBatches
from .batches.file_backend import FileBackend
from .chat import (
    OPENAI,
    ChatModel,
    ConnectionConfig,
    Message,
    chat_backend,
    chat_request,
    check_connection,
    model_overrides,
)
from .errors import CallsError, CallsPending, Interrupted, LedgerError, PermanentError
from .ledger import Ledger, Recording, recording, working_ledger
from .ledger_files import read_ledger
from .limits import Limits, Price
from .records import Answer, Backend, Outcome, PackingBackend, Request
from .retry import InvalidAnswer, ParsedReply, answer_text, ask_until_valid, strip_thinking
from .verdicts import (
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
    "Answer",
    "Backend",
    "CallsError",
    "CallsPending",
    "CannedBackend",
    "ChatModel",
    "Choice",
    "ConnectionConfig",
    "EmbeddedModel",
    "FileBackend",
    "Interrupted",
    "InvalidAnswer",
    "Ledger",
    "LedgerError",
    "Limits",
    "Message",
    "OpenAIBatches",
    "OpenAIChat",
    "Outcome",
    "PackingBackend",
    "ParsedReply",
    "PermanentError",
    "Price",
    "Recording",
    "Replay",
    "Request",
    "Rule",
    "Verdict",
    "answer_text",
    "ask",
    "ask_until_valid",
    "chat_backend",
    "chat_request",
    "check_connection",
    "embedded_weights",
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
