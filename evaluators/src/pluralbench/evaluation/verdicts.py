"""Replies of a judge in one or both orders, as rows and verdicts; shared by `judge` and `judge-personas`."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from pluralbench_calls import Backend, Ledger, ParsedReply, working_ledger
from pluralbench_calls.chat import ConnectionConfig
from pluralbench_rewards import ModelRecord
from pluralbench_rewards.judge import Judge
from pluralbench_runs import Output

from pluralbench.data.votes import INVALID, Columns
from pluralbench.evaluation.work import cost_of_calls
from pluralbench.results.evaluations import JudgingRunConfig, step_of_temperature
from pluralbench.results.plans import SynthesizeRunConfig
from pluralbench.results.record import UsageRecord
from pluralbench.results.run_files import LEDGER_FILE

Value = TypeVar("Value")


def record_replies(
    rows: Sequence[dict[str, Any]],
    questions: Iterable[tuple[int, bool]],
    replies: Iterable[ParsedReply[Value]],
    letters: Iterable[str | None],
    columns: Columns,
) -> list[list[Value]]:
    """Write replies into the rows of their items, A and B as the judge saw them; return the valid ones of each row.

    `questions` are the row number of each reply, and whether its responses are swapped; `letters` are None if invalid.
    """
    valid: list[list[Value]] = [[] for _ in rows]
    for (place, swapped), reply, letter in zip(questions, replies, letters, strict=True):
        row, (letter_column, calls_column) = rows[place], columns[swapped]
        row |= {letter_column: letter or INVALID, calls_column: list(reply.calls)}
        row["attempts"] += reply.attempts
        if reply.reason:
            row["reason"] = reply.reason
        if reply.value is not None:
            valid[place].append(reply.value)
    return valid


def export_calls(judge: Judge, output: Output) -> UsageRecord:
    """Write a judge's calls to the run's ledger, and count them."""
    with working_ledger(judge.ledger) as ledger:
        ledger.export(output.work / LEDGER_FILE)
        return usage_of(ledger)


def usage_of(ledger: Ledger) -> UsageRecord:
    """Count the calls and tokens of a ledger."""
    prompt_tokens, completion_tokens = ledger.usage()
    return UsageRecord(
        calls=len(ledger),
        prompt_tokens=prompt_tokens,
        completion_tokens=completion_tokens,
        cached_tokens=ledger.cached_tokens(),
        failed_calls=len(ledger.failed()),
        uncounted_calls=ledger.uncounted(),
    )


def judges_of(
    config: JudgingRunConfig,
    ledger: Path | Ledger,
    connection: ConnectionConfig | None = None,
    backend: Backend | None = None,
    here: Mapping[str, Callable[[], Backend]] | None = None,
) -> list[Judge]:
    """Return the judges of a run: one, or a panel.

    Args:
        config: What is judged, and how.
        ledger: Recorded calls, or the file for them.
        connection: Endpoint and limits. Default: those that the run records.
        backend: Backend that answers in place of all models.
        here: What makes the backends of the models in this process, by name.
    """
    reached, judges = connection or config.connection, []
    backends = {name: make() for name, make in (here or {}).items()}
    writer = config.rubric_writer(reached)
    for model in config.judges.values():
        own = backend or backends.get(model.model)
        judge = Judge(model, reached, ledger, **config.judge_fields(model), backend=own)
        if writer is not None:
            writing, other = writer
            own, step = backend or backends.get(writing.model), step_of_temperature(writing)
            rubrics = replace(judge, model=writing, connection=other, backend=own, prompt=None, temperature_step=step)
            judge = replace(judge, rubric_writer=rubrics)
        judges.append(judge)
    return judges


def judge_result(config: JudgingRunConfig | SynthesizeRunConfig, usage: UsageRecord, seconds: float) -> dict[str, Any]:
    """Return the fields of a result that all verbs with a judge have: model, cost, calls and tokens."""
    return {
        "model": judge_record(config),
        "cost": cost_of_calls(seconds, config.connection, usage.prompt_tokens, usage.completion_tokens),
    } | usage.model_dump()


def judge_record(config: JudgingRunConfig | SynthesizeRunConfig) -> ModelRecord:
    """Return the record of a judge; a panel has the names of all its judges."""
    models = [config.model, *getattr(config, "panel", ())]
    name = " + ".join(Path(one.model).name for one in models) if len(models) > 1 else config.model.model
    provider = ", ".join(dict.fromkeys(one.provider for one in models))
    return ModelRecord(name=name, kind="generative", provider=provider)
