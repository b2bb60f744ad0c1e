"""Files of calls in OpenAI's batch format, which `vllm run_batch` and other servers also read, and of open batches."""

import itertools
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Literal

from pluralbench_runs import FrozenModel, atomic_write, canonical_json, digest, one_line, open_file, write_text
from pydantic import Field, ValidationError

from pluralbench_calls.backends.completions import drop_parameters
from pluralbench_calls.errors import CallsError, PermanentError
from pluralbench_calls.records import Request

URL: Literal["/v1/chat/completions"] = "/v1/chat/completions"
MAX_REQUESTS, MAX_BYTES = 50_000, 200_000_000  # of one file, by OpenAI's limits
PREFIX_BYTES = 100  # of a file, which show whether it has calls

Refused = Mapping[str, Collection[str]]
"""Refused parameters by model; see `REPLACEMENTS`."""


def batch_lines(requests: Iterable[Request], refused: Refused | None = None) -> Iterator[bytes]:
    """Yield a line for each chat request, without refused parameters; `custom_id` is the request's key."""
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
