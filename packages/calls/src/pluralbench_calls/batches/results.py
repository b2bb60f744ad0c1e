"""Reading of batch results: the files of OpenAI, of compatible servers, and of `vllm run_batch`."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pluralbench_runs import one_line, open_file
from pluralbench_runs.secrets import redact

from pluralbench_calls.backends.completions import (
    MAX_MESSAGE_LENGTH,
    NO_LOGPROBS,
    REPLACEMENTS,
    TOO_LONG_REPLY,
    Rejection,
    find_reason,
    parse_completion,
)
from pluralbench_calls.backends.endpoint import MAX_ANSWER_BYTES
from pluralbench_calls.batches.files import Refused
from pluralbench_calls.errors import PermanentError
from pluralbench_calls.records import Answer, Request

REJECTED = {400, 413, 422}  # HTTP statuses that concern a single request, as in `OpenAIChat`
PART_SIZE = 1_000  # answers that are recorded together
UNKNOWN = "not a pending call"


Item = TypeVar("Item")


class BatchResult(NamedTuple):
    """The result of one call: its answer, or why it has to be sent again, perhaps without a refused parameter."""

    key: str
    answer: Answer | None
    reason: str = ""
    refused: str = ""


def read_results(
    paths: Iterable[Path],
    pending: Mapping[str, Request],
    *,
    refused: Refused | None = None,
    max_answer_bytes: int = MAX_ANSWER_BYTES,
    secrets: Sequence[str] = (),
) -> Iterator[BatchResult]:
    """Yield the result in each line of these files.

    A completion or a rejection becomes the same answer as from `OpenAIChat`. A call that expired, was canceled or
    failed at the server (any other status) has no answer and has to be sent again. A line of a call that is not pending
    has the reason `UNKNOWN`; one longer than `max_answer_bytes` becomes an answer that is too long. `refused` has the
    parameters that the calls left out.

    Raises:
        PermanentError: A line is not a result of a batch. The message names the file and the line.
    """
    for path in paths:
        for where, line in _lines(path):
            row = _parse_row(line, where)
            key = row["custom_id"]
            if key not in pending:
                yield BatchResult(key, None, UNKNOWN)
                continue
            request = pending[key]
            without = frozenset((refused or {}).get(request.model, ()))
            if len(line) > max_answer_bytes and _status(row) == 200:
                yield BatchResult(key, TOO_LONG_REPLY.answer(request, without))
            else:
                yield _result(request, row, without, secrets)


@dataclass
class Tally:
    """A summary of results.

    Attributes:
        answered: Keys of pending calls with an answer.
        unknown: Keys of calls that are not pending.
        reasons: Why a pending call has no answer in any result, by key.
        refused: Refused parameters by model.
    """

    answered: set[str] = field(default_factory=set)
    unknown: set[str] = field(default_factory=set)
    reasons: dict[str, str] = field(default_factory=dict)
    refused: dict[str, set[str]] = field(default_factory=dict)

    def add(self, results: Iterable[BatchResult], pending: Mapping[str, Request]) -> None:
        """Add results of `read_results`."""
        for result in results:
            if result.answer is not None:
                self.answered.add(result.key)
                self.reasons.pop(result.key, None)
            elif result.reason == UNKNOWN:
                self.unknown.add(result.key)
            elif result.key not in self.answered:
                self.reasons[result.key] = result.reason
            if result.refused:
                self.refused.setdefault(pending[result.key].model, set()).add(result.refused)


def in_parts(items: Iterator[Item]) -> Iterator[list[Item]]:
    """Split items into parts of `PART_SIZE`."""
    while part := list(islice(items, PART_SIZE)):
        yield part


def _result(request: Request, row: dict[str, Any], without: frozenset[str], secrets: Sequence[str]) -> BatchResult:
    response = row.get("response")
    body = response.get("body") if isinstance(response, dict) else None
    status = _status(row)
    error = _find_error(row.get("error")) or _find_error(body)
    if status in REJECTED:
        return _rejected(request, _rejection(error, status), without, secrets)
    if status != 200 or error:
        reason = _clean(_rejection(error, status).message)
        return BatchResult(request.key, None, f"{reason} (status {status})" if status not in {0, 200} else reason)
    from openai.types.chat import ChatCompletion

    reply = parse_completion(_construct(ChatCompletion, body))
    if reply is None:
        return BatchResult(request.key, None, f"not a chat completion ({_clean(json.dumps(body), 120)})")
    return BatchResult(request.key, reply.answer(request, without, secrets))


def _rejected(request: Request, rejection: Rejection, without: frozenset[str], secrets: Sequence[str]) -> BatchResult:
    parameter, message = rejection.refused_parameter or "", _clean(rejection.message, MAX_MESSAGE_LENGTH)
    if parameter in request.body:  # also if already known, because the result may be older
        replacement = REPLACEMENTS[parameter]
        change = f"sent as `{replacement}`" if replacement else "left out"
        return BatchResult(
            request.key,
            None,
            f"{request.model} refuses `{parameter}`, which is {change} when the call is written again",
            parameter,
        )
    if rejection.concerns_key:
        return BatchResult(request.key, None, f"the key is not accepted ({message})")
    if rejection.concerns_logprobs(request):
        return BatchResult(request.key, None, f"logprobs are refused ({_clean(message)}); {NO_LOGPROBS}")
    if rejection.concerns_schema(request):
        return BatchResult(
            request.key,
            None,
            f"JSON schemas are not supported ({_clean(message)}); set `structured_output=False` for the model",
        )
    return BatchResult(request.key, rejection.to_reply(message).answer(request, without, secrets))


def _construct(model: Any, body: Any) -> Any:
    """Construct a response like the client, without validation; None if that fails."""
    try:
        return model.construct(**body) if isinstance(body, dict) else None
    except Exception:  # noqa: BLE001 - the body may raise any error
        return None


def _find_error(value: Any) -> dict[str, Any]:
    """Return the error in a value, which some servers nest in another "error"; {} if there is none."""
    value = value[0] if isinstance(value, list) and value else value  # as Google sends it
    inner = value.get("error") if isinstance(value, dict) else None
    if inner:
        return inner if isinstance(inner, dict) else {"message": str(inner)}
    if isinstance(value, dict):
        return value if "choices" not in value and {"message", "code", "detail"} & value.keys() else {}
    return {"message": value} if isinstance(value, str) and value else {}


def _rejection(error: Mapping[str, Any], status: int) -> Rejection:
    code, (reason, parameter) = error.get("code"), find_reason(error)
    text = reason or (str(code) if code else "no reason given")
    return Rejection(status, text, error.get("param") or parameter, code)


def _status(row: Mapping[str, Any]) -> int:
    """Return the HTTP status of a result; 0 if it has none because the call was never sent."""
    response = row.get("response")
    status = response.get("status_code") if isinstance(response, dict) else None
    return status if isinstance(status, int) else 0


def _lines(path: Path) -> Iterator[tuple[str, bytes]]:
    try:
        with open_file(path) as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield f"{path}, line {number:,}", line
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise PermanentError(f"The results {path} cannot be read: {one_line(error)}.") from None


def _parse_row(line: bytes, where: str) -> dict[str, Any]:
    try:
        row = json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise PermanentError(f"{where}: this is not JSON ({one_line(error, 80)}); is the file truncated?") from None
    if not isinstance(row, dict) or not isinstance(row.get("custom_id"), str):
        raise PermanentError(f"{where}: this is not a result of a batch; it has no `custom_id`.")
    if "response" not in row and "error" not in row:
        is_call = "url" in row and "body" in row
        problem = "a call and not its result; run the calls first" if is_call else "not a result; it has no `response`"
        raise PermanentError(f"{where}: this is {problem}.")
    return row


def _clean(text: object, limit: int = 200, *secrets: str) -> str:
    return one_line(redact(str(text), *secrets), limit)
