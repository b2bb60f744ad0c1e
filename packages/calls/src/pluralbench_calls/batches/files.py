"""Calls as lines of OpenAI's batch format, which `vllm run_batch` and the Batch API of several servers take too."""

import itertools
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Literal

from pluralbench_runs import atomic_write, one_line

from pluralbench_calls.backends.completions import drop_parameters
from pluralbench_calls.errors import BatchFileError
from pluralbench_calls.records import Request

URL: Literal["/v1/chat/completions"] = "/v1/chat/completions"
MOST_REQUESTS, MOST_BYTES = 50_000, 200_000_000  # of one file, by OpenAI's limits
LONGEST_KEY = 100  # characters that are looked at of a line's beginning

Refused = Mapping[str, Collection[str]]
"""By model, the parameters that it refuses, see `INSTEAD`."""


def batch_lines(requests: Iterable[Request], refused: Refused | None = None) -> Iterator[bytes]:
    """A line for each chat request, with its end; `custom_id` is the request's key.

    refused: goes out as the model takes it, or not at all.
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
    most_requests: int = MOST_REQUESTS,
    most_bytes: int = MOST_BYTES,
) -> list[Path]:
    """Write chat requests to `path`, and what one file cannot hold to `NAME-2.jsonl`, `NAME-3.jsonl` and so on.

    A file holds calls to one model, as a batch wants it, `most_requests` and `most_bytes` at most. All files are there
    in the end or none is; files of calls that an earlier time left under the next numbers are removed, so that nobody
    runs them again. Returns the files.

    Raises `BatchFileError` where a file of another kind has the name, and where the disk refuses.
    """
    written: list[Path] = []
    try:
        with ExitStack() as begun:
            parts = batches(requests, refused, most_requests=most_requests, most_bytes=most_bytes)
            for number, part in enumerate(parts, start=1):
                place = _numbered(path, number)
                _refuse_foreign(place)
                with begun.enter_context(atomic_write(place)).open("wb") as file:
                    file.writelines(batch_lines(part, refused))
                written.append(place)
        for number in itertools.count(len(written) + 1):
            left = _numbered(path, number)
            if not left.exists() or not _holds_calls(left):
                return written
            left.unlink()
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise BatchFileError(f"The calls cannot be written to {path}: {one_line(error)}.") from None
    return written


def batches(
    requests: Iterable[Request],
    refused: Refused | None = None,
    *,
    most_requests: int = MOST_REQUESTS,
    most_bytes: int = MOST_BYTES,
) -> Iterator[list[Request]]:
    """The chat requests of each batch, which are to one model. Raises `BatchFileError` for one that fits in none."""
    by_model = sorted(requests, key=lambda request: (request.provider, request.model))
    for _, alike in itertools.groupby(by_model, key=lambda request: (request.provider, request.model)):
        group: list[Request] = []
        size = 0
        for request in alike:
            length = sum(map(len, batch_lines([request], refused)))
            if length > most_bytes:
                raise BatchFileError(f"A call has {length:,} bytes, and a batch takes {most_bytes:,} at most.")
            if group and (len(group) == most_requests or size + length > most_bytes):
                yield group
                group, size = [], 0
            group.append(request)
            size += length
        yield group


def _numbered(path: Path, number: int) -> Path:
    return path if number == 1 else path.with_name(f"{path.stem}-{number}{path.suffix}")


def _refuse_foreign(path: Path) -> None:
    if path.exists() and not _holds_calls(path):
        raise BatchFileError(f"{path} is there already and holds no calls of an earlier time; give another name.")


def _holds_calls(path: Path) -> bool:
    """Whether a file is empty, or begins as those do that are written here."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        begins = file.read(LONGEST_KEY)
    return not begins or (begins.startswith(b'{"custom_id": "') and b'", "method": "POST"' in begins)
