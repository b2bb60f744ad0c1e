"""Backend that writes calls to files and reads their results from files."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Self

from pluralbench_runs import log_status, one_line, plural, write_text
from pluralbench_tables import read_json

from pluralbench_calls.backends.endpoint import MAX_ANSWER_BYTES
from pluralbench_calls.batches.files import Tally, in_parts, read_results, write_batches
from pluralbench_calls.errors import CallsPending, PermanentError
from pluralbench_calls.ledger import Ledger
from pluralbench_calls.records import Answer, Backend, Request

SHOWN_CHARACTERS = 12  # of a key


class FileBackend:
    """A backend that reads answers from result files, and can write the other calls to files instead of sending them.

    Args:
        online: The backend for calls without a result, if they are not written to a file.
        pending: File for the calls without a result. None: send them to `online`.
        results: Result files, or folders with `.jsonl` files. The same results may be read several times.
        max_answer_bytes: Maximum size of an answer; see `Endpoint`.
    """

    def __init__(
        self,
        online: Backend,
        *,
        pending: Path | None = None,
        results: Sequence[Path] = (),
        max_answer_bytes: int = MAX_ANSWER_BYTES,
    ) -> None:
        self.online = online
        self.concurrency = online.concurrency
        self._pending, self._results, self._max_answer_bytes = pending, results, max_answer_bytes
        self._refused: dict[str, list[str]] = {}  # by model
        self._failure = ""  # why results were read but none was useful

    async def __aenter__(self) -> Self:
        """Open the connections of `online`."""
        await self.online.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Close the connections of `online`."""
        await self.online.__aexit__(*exc)

    async def send(self, request: Request) -> Answer:
        """Send a request to `online`."""
        return await self.online.send(request)

    def read_answers(self, requests: Sequence[Request], ledger: Ledger) -> Iterator[list[Answer]]:
        """Yield the answers to these requests in the result files.

        All files are read before the first answer is yielded. So nothing is recorded if a file cannot be read, and the
        parameters that a model refuses are known.

        Raises:
            PermanentError: A file cannot be read, or no result belongs to this work.
        """
        files = [file for path in self._results for file in _result_files(path)]
        if not files:
            return
        pending = {request.key: request for request in requests}
        refused = self._merge_refused(ledger)
        tally = Tally()
        tally.add(read_results(files, pending, max_answer_bytes=self._max_answer_bytes), pending)
        foreign = sorted(tally.unknown - ledger.outcomes(tally.unknown).keys())
        _check_foreign(files, sum(map(len, (tally.answered, tally.unknown, tally.reasons))), foreign)
        if reasons := Counter(tally.reasons.values()):
            results_are = "1 result is" if reasons.total() == 1 else f"{reasons.total():,} results are"
            log_status(f"{results_are} not usable, and will be requested again: {_most_common(reasons)}.")
        has_new_refused = any(names - {*refused.get(model, ())} for model, names in tally.refused.items())
        self._failure = "" if tally.answered or has_new_refused or not reasons else _most_common(reasons)
        for model, names in tally.refused.items():
            self._refused[model] = sorted(names | {*refused.get(model, ())})
        results = read_results(files, pending, refused=self._refused, max_answer_bytes=self._max_answer_bytes)
        yield from in_parts(result.answer for result in results if result.answer is not None)

    def write_pending(self, requests: Sequence[Request], ledger: Ledger, label: str) -> None:
        """Write requests without an answer to the file `pending`, if one is set.

        Raises:
            CallsPending: The requests were written.
            PermanentError: They cannot be written, or the results had no new answer.
        """
        if self._pending is None:
            return
        refused = self._merge_refused(ledger)
        files = write_batches(requests, self._pending, refused=refused)
        # Written after the calls: if the process is stopped in between, the next one writes the same calls.
        _write_refused(ledger, refused)
        more = f" and {len(files) - 1:,} more" if len(files) > 1 else ""
        written = f"The missing {label} are written to {files[0]}{more} ({plural(len(requests), 'call')})"
        if self._failure:
            raise PermanentError(
                f"The results have no new answer ({self._failure}); fix the cause before you run the calls again. "
                f"{written}."
            )
        raise CallsPending(f"{written}. Run them, then rerun the same command with `connection.results=...`.")

    def _merge_refused(self, ledger: Ledger) -> dict[str, list[str]]:
        for model, names in _read_refused(ledger).items():
            self._refused[model] = sorted({*self._refused.get(model, ()), *names})
        return self._refused


def _most_common(reasons: Counter[str]) -> str:
    [(reason, count)] = reasons.most_common(1)
    return one_line(reason) if count == reasons.total() else f"{one_line(reason)}, and others"


def _check_foreign(files: Sequence[Path], results: int, foreign: Sequence[str]) -> None:
    """Report results that belong to other calls. Raises `PermanentError` if all do."""
    if not foreign:
        return
    example = one_line(foreign[0], SHOWN_CHARACTERS)
    if len(foreign) < results:
        log_status(
            f"{len(foreign):,} of {results:,} results belong to other calls, such as {example}…, and are ignored."
        )
        return
    place = files[0] if len(files) == 1 else f"{len(files):,} files"
    raise PermanentError(
        f"None of the {results:,} results in {place} belongs to a call of this command (one is of {example}…); "
        "are they of another build, or of other settings?"
    )


def _result_files(path: Path) -> list[Path]:
    """Return a file, or the `.jsonl` files of a folder, which has none before the first results arrive."""
    if not path.is_dir():
        return [path]
    files = sorted(path.glob("*.jsonl"))
    if not files:
        log_status(f"The folder {path} has no results yet (no .jsonl files).")
    return files


def _refused_file(ledger: Ledger) -> Path:
    return ledger.path.with_name(f"{ledger.path.stem}.refused.json")


def _read_refused(ledger: Ledger) -> dict[str, list[str]]:
    path = _refused_file(ledger)
    refused = read_json(path, PermanentError) if path.exists() else {}
    if not isinstance(refused, Mapping) or not all(isinstance(names, list) for names in refused.values()):
        raise PermanentError(f"{path} is damaged; remove it.")
    return {model: [str(name) for name in names] for model, names in refused.items() if isinstance(names, list)}


def _write_refused(ledger: Ledger, refused: Mapping[str, Sequence[str]]) -> None:
    if not refused:
        return
    path = _refused_file(ledger)
    write_text(path, json.dumps(refused))
