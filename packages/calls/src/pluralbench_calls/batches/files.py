"""Writing of calls in OpenAI's batch format, which `vllm run_batch` and other servers also read."""

import itertools
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Literal

from pluralbench_runs import atomic_write, one_line

from pluralbench_calls.backends.completions import drop_parameters
from pluralbench_calls.errors import PermanentError
from pluralbench_calls.records import Request

URL: Literal["/v1/chat/completions"] = "/v1/chat/completions"
MAX_REQUESTS, MAX_BYTES = 50_000, 200_000_000  # of one file, by OpenAI's limits
PREFIX_BYTES = 100  # of a file, which show whether it has calls

Refused = Mapping[str, Collection[str]]
"""Refused parameters by model; see `REPLACEMENTS`."""


def batch_lines(requests: Iterable[Request], refused: Refused | None = None) -> Iterator[bytes]:
    """Yield a line with newline for each chat request; `custom_id` is the request's key.

    Args:
        requests: The requests.
        refused: Parameters by model that are renamed or left out.
    """
    for request in requests:
        body = drop_parameters(request, (refused or {}).get(request.model, ()))
        line = {
            "custom_id": request.key,
            "method": "POST",
            "url": URL,
            "body": {"model": request.model, **body},
        }
        yield json.dumps(line, ensure_ascii=False).encode() + b"\n"


def write_batches(
    requests: Iterable[Request],
    path: Path,
    *,
    refused: Refused | None = None,
    max_requests: int = MAX_REQUESTS,
    max_bytes: int = MAX_BYTES,
) -> list[Path]:
    """Write chat requests to `path`, and if needed to `NAME-2.jsonl`, `NAME-3.jsonl` and so on.

    Each file has calls to one model. Either all files are written or none. Files with the next numbers that an earlier
    call wrote are removed, so that they are not run again.

    Args:
        requests: The requests.
        path: The first file.
        refused: Parameters by model that are renamed or left out.
        max_requests: Maximum number of requests in a file.
        max_bytes: Maximum size of a file.

    Returns:
        The files.

    Raises:
        PermanentError: A file exists that has no calls, or a file cannot be written.
    """
    written: list[Path] = []
    try:
        with ExitStack() as stack:
            parts = batches(requests, refused, max_requests=max_requests, max_bytes=max_bytes)
            for number, part in enumerate(parts, start=1):
                target = _numbered(path, number)
                _check_replaceable(target)
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


def _check_replaceable(path: Path) -> None:
    if path.exists() and not _has_calls(path):
        raise PermanentError(f"{path} exists and is not a file of calls; choose another name.")


def _has_calls(path: Path) -> bool:
    """Whether a file is empty, or begins like those of `write_batches`."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        prefix = file.read(PREFIX_BYTES)
    return not prefix or (prefix.startswith(b'{"custom_id": "') and b'", "method": "POST"' in prefix)
