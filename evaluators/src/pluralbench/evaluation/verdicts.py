"""The way of a judged run: questions in one order or both, replies into rows, and the verdict that they amount to.

`judge` and `judge-personas` differ in what is asked and in what may be answered, and not in this.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from pluralbench_calls import ParsedReply, working_ledger
from pluralbench_rewards import ModelRecord
from pluralbench_rewards.judge import Judge
from pluralbench_runs import Output

from pluralbench.evaluation.timing import cost_of_calls
from pluralbench.results.evaluations import JudgeRunConfig, PersonaJudgeRunConfig
from pluralbench.results.plans import SynthesizeRunConfig
from pluralbench.results.runs import LEDGER_FILE

Value = TypeVar("Value")
Columns = tuple[tuple[str, str], tuple[str, str]]
"""Where a row keeps the letter of a reply and its calls: as the item stands, and with the two swapped."""

INVALID, CHANGED = "invalid", "changed"
SWAPPED = {"A": "B", "B": "A", "C": "C"}


class TokenUsage(NamedTuple):
    """What a judge's calls took."""

    calls: int
    prompt_tokens: int
    completion_tokens: int


def record_replies(
    rows: Sequence[dict[str, Any]],
    asked: Iterable[tuple[int, bool]],
    settled: Iterable[ParsedReply[Value]],
    letters: Iterable[str | None],
    columns: Columns,
) -> list[list[Value]]:
    """Write replies into the rows they are about, as the judge saw A and B; the valid ones of each row.

    asked: of each question its row, and whether the two were swapped. letters: of each reply, None where it is invalid.
    """
    valid: list[list[Value]] = [[] for _ in rows]
    for (place, swapped), one, letter in zip(asked, settled, letters, strict=True):
        row, (said, calls) = rows[place], columns[swapped]
        row |= {said: letter or INVALID, calls: list(one.calls), "attempts": row["attempts"] + one.attempts}
        if one.reason:
            row["reason"] = one.reason
        if one.value is not None:
            valid[place].append(one.value)
    return valid


def combined_verdict(row: Mapping[str, Any], columns: Columns) -> str:
    """What the replies in the orders asked amount to: a letter, `INVALID` or `CHANGED`, with A and B as the item has
    them.

    One invalid reply makes the verdict invalid. One that changes with the order is a tie of the judge's, which is no
    win. It is not the answer C either, or a judge that always takes the first would be right about every tie.
    """
    (said, _), (swapped, _) = columns
    letters = {row[said], SWAPPED.get(row[swapped], row[swapped])} - {None}
    if INVALID in letters:
        return INVALID
    return str(letters.pop()) if len(letters) == 1 else CHANGED


def export_calls(judge: Judge, output: Output) -> TokenUsage:
    """Keep a judge's calls for its run."""
    with working_ledger(judge.ledger) as ledger:
        ledger.export(output.work / LEDGER_FILE)
        return TokenUsage(len(ledger), *ledger.usage())


def judge_result(
    config: JudgeRunConfig | PersonaJudgeRunConfig | SynthesizeRunConfig, usage: TokenUsage, seconds: float
) -> dict[str, Any]:
    """What came of a judge by any verb, as fields of its result."""
    return {
        "model": ModelRecord(name=config.model.model, kind="generative", provider=config.model.provider),
        "cost": cost_of_calls(seconds, config.connection, usage.prompt_tokens, usage.completion_tokens),
    } | usage._asdict()
