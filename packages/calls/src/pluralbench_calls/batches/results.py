"""What came of a batch: the result files of OpenAI, of servers that do as it does, and of `vllm run_batch`."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pluralbench_runs import one_line, open_file
from pluralbench_runs.secrets import redact
from pluralbench_tables.limits import estimate_parsed_bytes

from pluralbench_calls.backends.completions import INSTEAD, LONGER, LONGEST_MESSAGE, Rejection, parse_completion
from pluralbench_calls.backends.endpoint import MAX_ANSWER_BYTES
from pluralbench_calls.batches.files import Refused
from pluralbench_calls.errors import BatchFileError
from pluralbench_calls.records import Answer, Request

LONGEST_LINE = 64 * 2**20  # bytes; what is longer is not read, far less parsed
LINE_MEMORY = 10**9  # bytes, once it is parsed
REJECTED = {400, 413, 422}  # of the HTTP statuses: the request's own fault, as `OpenAIChat` has it
IN_ONE_RECORD = 1_000  # answers
UNKNOWN = "no call that is waited for"


Item = TypeVar("Item")


class BatchResult(NamedTuple):
    """What came of one call.

    answer: to be recorded; None where the call is still to be answered, and then `why` says what came of it instead.
    refused: the parameter that the model does not take, see `INSTEAD`; the call is to be written without it.
    """

    key: str
    answer: Answer | None
    why: str = ""
    refused: str = ""


def read_results(
    paths: Iterable[Path],
    pending: Mapping[str, Request],
    *,
    refused: Refused | None = None,
    max_answer_bytes: int = MAX_ANSWER_BYTES,
    secrets: Sequence[str] = (),
) -> Iterator[BatchResult]:
    """What each line of these files says, in their order.

    A completion or a rejection becomes the answer that the endpoint itself would have given (`OpenAIChat`). What
    expired, was cancelled or failed on the server's side (any other status) has no answer: it is to be asked again.

    pending: by key, the calls that are waited for; the `why` of a line of another call is `UNKNOWN`.
    refused: what the calls were written without. max_answer_bytes: a longer line is an answer that is too long.
    secrets: environment variables whose values are taken out of what is said, besides those that are named like one.

    Raises `BatchFileError`, which names the file and the line, for what is no result of a batch.
    """
    for path in paths:
        for where, line in _lines(path):
            row = _row(line, where)
            key = row["custom_id"]
            if key not in pending:
                yield BatchResult(key, None, UNKNOWN)
                continue
            request = pending[key]
            without = frozenset((refused or {}).get(request.model, ()))
            if len(line) > max_answer_bytes and _status(row) == 200:
                yield BatchResult(key, LONGER.answer(request, without))
            else:
                yield _result(request, row, without, secrets)


@dataclass
class Tally:
    """What results say, whatever becomes of their answers.

    answered, unknown: keys, of calls that are waited for and of others. whys: by key, why a call has no answer in any
    result. refused: by model, the parameters that it refuses.
    """

    answered: set[str] = field(default_factory=set)
    unknown: set[str] = field(default_factory=set)
    whys: dict[str, str] = field(default_factory=dict)
    refused: dict[str, set[str]] = field(default_factory=dict)

    def add(self, results: Iterable[BatchResult], pending: Mapping[str, Request]) -> None:
        """Count these results of `read_results`."""
        for result in results:
            if result.answer is not None:
                self.answered.add(result.key)
                self.whys.pop(result.key, None)
            elif result.why == UNKNOWN:
                self.unknown.add(result.key)
            elif result.key not in self.answered:
                self.whys[result.key] = result.why
            if result.refused:
                self.refused.setdefault(pending[result.key].model, set()).add(result.refused)


def in_parts(items: Iterator[Item]) -> Iterator[list[Item]]:
    """As many at a time as are recorded together."""
    while part := list(islice(items, IN_ONE_RECORD)):
        yield part


def _result(request: Request, row: dict[str, Any], without: frozenset[str], secrets: Sequence[str]) -> BatchResult:
    response = row.get("response")
    body = response.get("body") if isinstance(response, dict) else None
    status = _status(row)
    failed = _error(row.get("error")) or _error(body)
    if status in REJECTED:
        return _rejected(request, _rejection(failed, status), without, secrets)
    if status != 200 or failed:
        why = _line(_rejection(failed, status).sentence)
        return BatchResult(request.key, None, f"{why} (status {status})" if status not in {0, 200} else why)
    from openai.types.chat import ChatCompletion  # noqa: PLC0415 - a second that a command's --help saves

    said = parse_completion(_constructed(ChatCompletion, body))
    if said is None:
        return BatchResult(request.key, None, f"no chat completion ({_line(json.dumps(body), 120)})")
    return BatchResult(request.key, said.answer(request, without, secrets))


def _rejected(request: Request, rejection: Rejection, without: frozenset[str], secrets: Sequence[str]) -> BatchResult:
    parameter, sentence = rejection.refused or "", _line(rejection.sentence, LONGEST_MESSAGE)
    if parameter in request.body:  # also where that was known: the result may be older
        instead = f"as {INSTEAD[parameter]}" if INSTEAD[parameter] else "not at all"
        return BatchResult(
            request.key,
            None,
            f"{request.model} refuses `{parameter}`, which goes out {instead} when the call is written again",
            parameter,
        )
    if rejection.of_the_key:
        return BatchResult(request.key, None, f"the key is not accepted ({sentence})")
    if rejection.of_the_schema(request):
        return BatchResult(
            request.key,
            None,
            f"no JSON schema is taken ({_line(sentence)}); set `structured_output` of the model to false",
        )
    return BatchResult(request.key, rejection.recorded_as(sentence).answer(request, without, secrets))


def _constructed(model: Any, body: Any) -> Any:
    """The body as the client makes it: unchecked. What cannot be made is no completion."""
    try:
        return model.construct(**body) if isinstance(body, dict) else None
    except Exception:  # noqa: BLE001 - it reads what came, with errors of its own
        return None


def _error(said: Any) -> dict[str, Any]:
    """The error in a value, which some servers put into another of that name; {} for none."""
    inner = said.get("error") if isinstance(said, dict) else None
    if inner:
        return inner if isinstance(inner, dict) else {"message": str(inner)}
    if isinstance(said, dict):
        return said if "choices" not in said and ("message" in said or "code" in said) else {}
    return {"message": said} if isinstance(said, str) and said else {}


def _rejection(failed: Mapping[str, Any], status: int) -> Rejection:
    code, message = failed.get("code"), failed.get("message")
    named = message if isinstance(message, str) and message.strip() else str(code) if code else "no reason given"
    return Rejection(status, named, failed.get("param"), code)


def _status(row: Mapping[str, Any]) -> int:
    """The HTTP status of a result; 0 where it has none, as what never was sent."""
    response = row.get("response")
    status = response.get("status_code") if isinstance(response, dict) else None
    return status if isinstance(status, int) else 0


def _lines(path: Path) -> Iterator[tuple[str, bytes]]:
    """Each line that is not blank, and where it stands."""
    try:
        with open_file(path) as file:
            number = 0
            while line := file.readline(LONGEST_LINE + 1):
                number += 1
                where = f"{path}, line {number:,}"
                if len(line) > LONGEST_LINE:
                    raise BatchFileError(
                        f"{where} has more than {LONGEST_LINE:,} bytes, which are as many as are read."
                    )
                if line.strip():
                    yield where, line
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise BatchFileError(f"The results {path} cannot be read: {one_line(error)}.") from None


def _row(line: bytes, where: str) -> dict[str, Any]:
    try:
        text = line.decode("utf-8-sig")
        if estimate_parsed_bytes(text) > LINE_MEMORY:
            raise BatchFileError(f"{where}: its values take more than {LINE_MEMORY:,} bytes of memory.")
        row = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BatchFileError(f"{where}: this is not JSON ({one_line(error, 80)}); was the file cut off?") from None
    if not isinstance(row, dict) or not isinstance(row.get("custom_id"), str):
        raise BatchFileError(f"{where}: this is no result of a batch: it is no object with a `custom_id`.")
    if "response" not in row and "error" not in row:
        asked = "url" in row and "body" in row
        what = "a call and not its result; run the calls first" if asked else "no result: it has no `response`"
        raise BatchFileError(f"{where}: this is {what}.")
    return row


def _line(said: object, limit: int = 200, *secrets: str) -> str:
    return one_line(redact(str(said), *secrets), limit)
