"""Calls that go out as files and come back as files, in place of an endpoint or beside it."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Self

from pluralbench_runs import log_status, one_line, write_text
from pluralbench_tables import read_json

from pluralbench_calls.backends.endpoint import MAX_ANSWER_BYTES
from pluralbench_calls.batches.files import write_batches
from pluralbench_calls.batches.results import Tally, in_parts, read_results
from pluralbench_calls.errors import BatchFileError, CallsPending
from pluralbench_calls.ledger import Ledger
from pluralbench_calls.records import Answer, Backend, Request

SHOWN = 12  # characters of a key


class FileBackend:
    """A backend whose answers are in result files, and whose other calls are written to files instead of sent.

    online: who answers what no file has, where nothing is to be written. pending: where the calls go that have no
    answer; None asks `online`. results: files, and folders with `.jsonl` files, of which each may be taken any number
    of times. max_answer_bytes: of an answer, see `Endpoint`.
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
        self._pending, self._results, self._most = pending, results, max_answer_bytes
        self._refused: dict[str, list[str]] = {}  # by model, the parameters that it refuses
        self._nothing_came = ""

    async def __aenter__(self) -> Self:
        """Open the connections of `online`."""
        await self.online.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Close them."""
        await self.online.__aexit__(*exc)

    async def send(self, request: Request) -> Answer:
        """Ask `online`."""
        return await self.online.send(request)

    def take(self, requests: Sequence[Request], ledger: Ledger) -> Iterator[list[Answer]]:
        """The answers to these calls that the result files hold.

        All files are read before the first answer is given, so that none is taken where one cannot be read, and so that
        an answer can say what its model refuses, which the calls that were answered went without.

        Raises `BatchFileError`, also where no result is of a call of this work.
        """
        files = [file for path in self._results for file in _files(path)]
        if not files:
            return
        waiting = {request.key: request for request in requests}
        known = self._known_refused(ledger)
        survey = Tally()
        survey.add(read_results(files, waiting, max_answer_bytes=self._most), waiting)
        foreign = sorted(survey.unknown - ledger.outcomes(survey.unknown).keys())
        _check_ours(files, sum(map(len, (survey.answered, survey.unknown, survey.whys))), foreign)
        if failed := Counter(survey.whys.values()):
            are = "result is no answer and is" if failed.total() == 1 else "results are no answers and are"
            log_status(f"{failed.total():,} {are} to be asked again: {_most_common(failed)}.")
        learned = any(names - {*known.get(model, ())} for model, names in survey.refused.items())
        self._nothing_came = "" if survey.answered or learned or not failed else _most_common(failed)
        for model, names in survey.refused.items():
            self._refused[model] = sorted(names | {*known.get(model, ())})
        results = read_results(files, waiting, refused=self._refused, max_answer_bytes=self._most)
        yield from in_parts(result.answer for result in results if result.answer is not None)

    def write(self, requests: Sequence[Request], ledger: Ledger, label: str) -> None:
        """Write calls that have no answer, where that is wanted. Raises `CallsPending`, and `BatchFileError`."""
        if self._pending is None:
            return
        refused = self._known_refused(ledger)
        files = write_batches(requests, self._pending, refused=refused)
        # After them: who is stopped in between finds the same results, and writes the same calls.
        _write_refused(ledger, refused)
        more = f" and {len(files) - 1:,} more" if len(files) > 1 else ""
        calls = "1 call" if len(requests) == 1 else f"{len(requests):,} calls"
        written = f"The {label} that are still needed are written to {files[0]}{more} ({calls})"
        if self._nothing_came:
            raise BatchFileError(
                f"The results that were given hold no new answer ({self._nothing_came}); mend that before they are "
                f"run again. {written}."
            )
        raise CallsPending(f"{written}. Run them, and give the same command --import with the results.")

    def _known_refused(self, ledger: Ledger) -> dict[str, list[str]]:
        for model, names in _read_refused(ledger).items():
            self._refused[model] = sorted({*self._refused.get(model, ()), *names})
        return self._refused


def _most_common(failed: Counter[str]) -> str:
    [(why, count)] = failed.most_common(1)
    return one_line(why) if count == failed.total() else f"{one_line(why)}, and others"


def _check_ours(files: Sequence[Path], results: int, foreign: Sequence[str]) -> None:
    """Say which results are of calls that this work does not make. Raises `BatchFileError` where all are."""
    if not foreign:
        return
    example = one_line(foreign[0], SHOWN)
    if len(foreign) < results:
        log_status(
            f"{len(foreign):,} of {results:,} results are of calls that are not asked for here, such as {example}…, "
            "and are left out."
        )
        return
    place = files[0] if len(files) == 1 else f"{len(files):,} files"
    raise BatchFileError(
        f"None of the {results:,} results in {place} is of a call that is asked for here, and one is of {example}…: "
        "are they of another build, or of other settings?"
    )


def _files(path: Path) -> list[Path]:
    """A file, or the `.jsonl` files of a folder, which has none before anything came back."""
    if not path.is_dir():
        return [path]
    files = sorted(path.glob("*.jsonl"))
    if not files:
        log_status(f"There are no results in the folder {path} yet: no file in it ends in .jsonl.")
    return files


def _refused_file(ledger: Ledger) -> Path:
    return ledger.path.with_name(f"{ledger.path.stem}.refused.json")


def _read_refused(ledger: Ledger) -> dict[str, list[str]]:
    """By model, the parameters that it refuses, as far as results have said so."""
    path = _refused_file(ledger)
    found = read_json(path, BatchFileError) if path.exists() else {}
    if not isinstance(found, Mapping) or not all(isinstance(names, list) for names in found.values()):
        raise BatchFileError(f"{path} is damaged; remove it.")
    return {model: [str(name) for name in names] for model, names in found.items() if isinstance(names, list)}


def _write_refused(ledger: Ledger, refused: Mapping[str, Sequence[str]]) -> None:
    if not refused:
        return
    path = _refused_file(ledger)
    write_text(path, json.dumps(refused))
