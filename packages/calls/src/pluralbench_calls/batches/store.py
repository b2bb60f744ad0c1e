"""The state of open batches on disk, from which another process can resume."""

from collections.abc import Iterable
from pathlib import Path

from pluralbench_runs import FrozenModel, canonical_json, digest, one_line, open_file, write_text
from pydantic import Field, ValidationError

from pluralbench_calls.errors import CallsError
from pluralbench_calls.records import Request


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
    """The open batches: one JSON file each in `folder`, which exists only while there is one.

    Files are written atomically and synced to the disk, because batches cost money.
    """

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
