"""Files of calls in OpenAI's batch format, as `vllm run_batch` reads it too, their results, and open batches."""

import itertools
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from pluralbench_runs import FrozenModel, atomic_write, canonical_json, digest, one_line, open_file, write_text
from pluralbench_runs.secrets import redact
from pydantic import Field, ValidationError

from pluralbench_calls.backends.completions import (
    MAX_MESSAGE_LENGTH,
    REPLACEMENTS,
    TOO_LONG_REPLY,
    Rejection,
    drop_parameters,
    find_reason,
    parse_completion,
)
from pluralbench_calls.backends.endpoint import MAX_ANSWER_BYTES
from pluralbench_calls.errors import CallsError, PermanentError
from pluralbench_calls.records import Answer, Request

URL: Literal["/v1/chat/completions"] = "/v1/chat/completions"
MAX_REQUESTS, MAX_BYTES = 50_000, 200_000_000  # of one file, by OpenAI's limits
PREFIX_BYTES = 100  # of a file, which show whether it has calls
REJECTED = {400, 413, 422}  # HTTP statuses that concern a single request, as in `OpenAIChat`
PART_SIZE = 1_000  # answers that are recorded together
UNKNOWN = "not a pending call"
Item = TypeVar("Item")

Refused = Mapping[str, Collection[str]]
"""Refused parameters by model; see `REPLACEMENTS`."""


def batch_lines(requests: Iterable[Request], refused: Refused | None = None) -> Iterator[bytes]:
    """Yield a line for each chat request, without refused parameters; `custom_id` is the request's key."""
    for request in requests:
        body = drop_parameters(request, (refused or {}).get(request.model, ()))
        line = {"custom_id": request.key, "method": "POST", "url": URL, "body": {"model": request.model, **body}}
        yield json.dumps(line, ensure_ascii=False).encode() + b"\n"


def write_batches(
    requests: Iterable[Request],
    path: Path,
    *,
    refused: Refused | None = None,
    max_requests: int = MAX_REQUESTS,
    max_bytes: int = MAX_BYTES,
) -> list[Path]:
    """Write chat requests to `path`, and if needed to `NAME-2.jsonl`, `NAME-3.jsonl` and so on; return the files.

    Each file has calls to one model. Either all files are written or none. Files with the next numbers that an earlier
    call wrote are removed, so that they are not run again.

    Raises:
        PermanentError: A file exists that has no calls, or a file cannot be written.
    """
    written: list[Path] = []
    try:
        with ExitStack() as stack:
            parts = batches(requests, refused, max_requests=max_requests, max_bytes=max_bytes)
            for number, part in enumerate(parts, start=1):
                target = _numbered(path, number)
                if target.exists() and not _has_calls(target):
                    raise PermanentError(f"{target} exists and is not a file of calls; choose another name.")
                with stack.enter_context(atomic_write(target)).open("wb") as file:
                    file.writelines(batch_lines(part, refused))
                written.append(target)
        for number in itertools.count(len(written) + 1):
            old = _numbered(path, number)
            if not old.exists() or not _has_calls(old):
                return written
            old.unlink()
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise PermanentError(f"The calls cannot be written to {path}: {one_line(error)}.") from None
    return written


def batches(
    requests: Iterable[Request],
    refused: Refused | None = None,
    *,
    max_requests: int = MAX_REQUESTS,
    max_bytes: int = MAX_BYTES,
) -> Iterator[list[Request]]:
    """Group chat requests into batches to one model each. Raises `PermanentError` for a request that is too large."""
    by_model = sorted(requests, key=lambda request: (request.provider, request.model))
    for _, same_model in itertools.groupby(by_model, key=lambda request: (request.provider, request.model)):
        group: list[Request] = []
        size = 0
        for request in same_model:
            length = sum(map(len, batch_lines([request], refused)))
            if length > max_bytes:
                raise PermanentError(f"A call has {length:,} bytes; the maximum for a batch is {max_bytes:,}.")
            if group and (len(group) == max_requests or size + length > max_bytes):
                yield group
                group, size = [], 0
            group.append(request)
            size += length
        yield group


def _numbered(path: Path, number: int) -> Path:
    return path if number == 1 else path.with_name(f"{path.stem}-{number}{path.suffix}")


def _has_calls(path: Path) -> bool:
    """Whether a file is empty, or begins like those of `write_batches`."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        prefix = file.read(PREFIX_BYTES)
    return not prefix or (prefix.startswith(b'{"custom_id": "') and b'", "method": "POST"' in prefix)


class BatchState(FrozenModel):
    """The state of a batch that is open or about to be created."""

    base_url: str = Field(description="Base URL of the endpoint.")
    calls: tuple[str, ...] = Field(description="Keys of the calls.")
    without: dict[str, tuple[str, ...]] = Field(
        default_factory=dict, description="By model, the parameters that the calls leave out."
    )
    file: str = Field("", description="ID of the uploaded file. Once it is set, the batch may exist.")
    batch: str = Field("", description="ID of the batch.")

    @property
    def name(self) -> str:
        """Name of the batch: 16 hexadecimal digits of a SHA-256 over its calls."""
        return digest(sorted(self.calls))[:16]


class BatchStore:
    """The open batches: one JSON file each in `folder`, which exists only while there is one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, state: BatchState) -> Path:
        """Return the path of a batch's file."""
        return self.folder / f"{state.name}.json"

    def batches_with(self, requests: Iterable[Request]) -> list[BatchState]:
        """List the open batches with any of these calls. Raises `CallsError` for a file that cannot be read."""
        keys = {request.key for request in requests}
        states = [self._read(path) for path in sorted(self.folder.glob("*.json"))]
        return [state for state in states if not keys.isdisjoint(state.calls)]

    def save(self, state: BatchState) -> BatchState:
        """Write the state of a batch, replacing the old one, and return it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        write_text(self.path(state), canonical_json(state.model_dump(mode="json")).decode())
        return state

    def remove(self, state: BatchState) -> None:
        """Remove the file of a batch that is not open any more, and the results that were downloaded."""
        for path in self.folder.glob(f"{state.name}.*"):
            path.unlink(missing_ok=True)
        if not any(self.folder.iterdir()):
            self.folder.rmdir()

    def _read(self, path: Path) -> BatchState:
        try:
            with open_file(path) as file:
                return BatchState.model_validate_json(file.read())
        except (OSError, ValidationError) as error:
            raise CallsError(
                f"The state of an open batch, {path}, cannot be read ({one_line(error, 80)}); restore it, or remove "
                "it to send and pay for its calls again."
            ) from None


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
    while part := list(itertools.islice(items, PART_SIZE)):
        yield part


def _result(request: Request, row: dict[str, Any], without: frozenset[str], secrets: Sequence[str]) -> BatchResult:
    response = row.get("response")
    body: Any = response.get("body") if isinstance(response, dict) else None
    status = _status(row)
    error = _find_error(row.get("error")) or _find_error(body)
    if status in REJECTED:
        return _rejected(request, _rejection(error, status), without, secrets)
    if status != 200 or error:
        reason = _clean(_rejection(error, status).message)
        return BatchResult(request.key, None, f"{reason} (status {status})" if status not in {0, 200} else reason)
    from openai.types.chat import ChatCompletion

    try:
        reply = parse_completion(ChatCompletion.construct(**body))
    except Exception:  # noqa: BLE001 - the body may be anything
        reply = None
    if reply is None:
        return BatchResult(request.key, None, f"not a chat completion ({_clean(json.dumps(body), 120)})")
    return BatchResult(request.key, reply.answer(request, without, secrets))


def _rejected(request: Request, rejection: Rejection, without: frozenset[str], secrets: Sequence[str]) -> BatchResult:
    parameter, message = rejection.refused_parameter or "", _clean(rejection.message, MAX_MESSAGE_LENGTH)
    if parameter in request.body:  # also if already known, because the result may be older
        replacement = REPLACEMENTS[parameter]
        change = f"sent as `{replacement}`" if replacement else "left out"
        reason = f"{request.model} refuses `{parameter}`, which is {change} when the call is written again"
        return BatchResult(request.key, None, reason, parameter)
    problem = rejection.problem(request, _clean(message))
    if problem is not None:
        return BatchResult(request.key, None, f"the server {problem}")
    return BatchResult(request.key, rejection.to_reply(message).answer(request, without, secrets))


def _find_error(value: Any) -> dict[str, Any]:
    """Return the error in a value, which some servers nest in another "error" or a list; {} if there is none."""
    match value:
        case [inner, *_] | {"error": inner} if inner:
            return _find_error(inner)
        case dict() if "choices" not in value and {"message", "code", "detail"} & value.keys():
            return value
        case str() if value:
            return {"message": value}
    return {}


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
