"""What is known of the batches that are out, on disk: a process that is killed leaves all that the next one needs."""

from collections.abc import Iterable
from pathlib import Path

from pluralbench_runs import FrozenModel, canonical_json, digest, one_line, open_file, write_text
from pydantic import Field, ValidationError

from pluralbench_calls.errors import CallsError
from pluralbench_calls.records import Request


class BatchState(FrozenModel):
    """One batch that is out, or about to be."""

    base_url: str = Field(description="The endpoint that has it.")
    calls: tuple[str, ...] = Field(description="The keys of its calls.")
    without: dict[str, tuple[str, ...]] = Field(
        default_factory=dict, description="By model, the parameters that the calls were written without."
    )
    file: str = Field("", description="The endpoint's name for the file of calls; once it is there, a batch may be.")
    batch: str = Field("", description="The endpoint's name for the batch.")

    @property
    def name(self) -> str:
        """Names the batch by its calls: the beginning of a SHA-256, 16 hexadecimal digits."""
        return digest(sorted(self.calls))[:16]


class BatchStore:
    """The batches that are out, a JSON file each in `folder`, which is there only while there is one.

    A file is written as a whole and synchronised with the disk, since what it says cost money.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, kept: BatchState) -> Path:
        """The file that says what is known of a batch."""
        return self.folder / f"{kept.name}.json"

    def out_for(self, requests: Iterable[Request]) -> list[BatchState]:
        """The batches that hold any of these calls. Raises `CallsError` for a file that cannot be read."""
        wanted = {request.key for request in requests}
        found = [self._read(path) for path in sorted(self.folder.glob("*.json"))]
        return [kept for kept in found if not wanted.isdisjoint(kept.calls)]

    def save(self, kept: BatchState) -> BatchState:
        """Write what is known of a batch in the place of what was; returns it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        write_text(self.path(kept), canonical_json(kept.model_dump(mode="json")).decode())
        return kept

    def forget(self, kept: BatchState) -> None:
        """The batch is not out any more: remove its file, and what was fetched of it."""
        for path in self.folder.glob(f"{kept.name}.*"):
            path.unlink(missing_ok=True)
        if not any(self.folder.iterdir()):
            self.folder.rmdir()

    def _read(self, path: Path) -> BatchState:
        try:
            with open_file(path) as file:
                return BatchState.model_validate_json(file.read())
        except (OSError, ValidationError) as error:
            raise CallsError(
                f"{path} should say which batch is out and cannot be read ({one_line(error, 80)}); put it back, or "
                "remove it to have its calls sent, and paid, again."
            ) from None
