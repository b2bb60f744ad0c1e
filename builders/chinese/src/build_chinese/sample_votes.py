"""The judge of the sample: its votes are in a file, and are handed out as if it were asked."""

from typing import Self

from pluralbench_calls import Answer, Request

from build_chinese.errors import BuildError, SourceError
from build_chinese.source import FOLDER
from build_chinese.text_files import read_jsonl
from build_chinese.votes import vote_label


class RecordedVotes:
    """The votes that come with the sample, as a backend: found by what the call is for."""

    concurrency: int | None = None

    async def __aenter__(self) -> Self:
        """Read the votes."""
        rows = read_jsonl(FOLDER / "votes.jsonl", SourceError)
        self._replies = {vote_label(row["prompt"], row["first"], row["second"]): row["reply"] for row in rows}
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Nothing to close."""

    async def send(self, request: Request) -> Answer:
        """The vote of this call. Raises `BuildError` when there is none."""
        reply = self._replies.get(request.label.rsplit(", ", 1)[0])
        if reply is None:
            raise BuildError(
                f"There is no recorded {request.label}: recorded votes are only for the sample's own prompts, in the "
                "order that its seed draws; choose a judge with --judge."
            )
        return Answer.to(request, "answer", reply, finish_reason="stop")
