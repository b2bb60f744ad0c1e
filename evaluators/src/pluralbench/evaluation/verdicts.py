"""Replies of a judge in one or both orders, as rows and verdicts; shared by `judge` and `judge-personas`."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from pluralbench_calls import Backend, Ledger, ParsedReply, working_ledger
from pluralbench_calls.chat import ChatModel, ConnectionConfig
from pluralbench_rewards import ModelRecord
from pluralbench_rewards.chat_client import TEMPERATURE_STEP
from pluralbench_rewards.judge import Judge
from pluralbench_rewards.judge_prompts import prompts_digest
from pluralbench_runs import Output, digest

from pluralbench.config import JudgeConfig, PersonaJudgeConfig, RubricFile
from pluralbench.data.persona_prompts import persona_digest
from pluralbench.data.votes import INVALID, Columns
from pluralbench.evaluation.work import cost_of_calls
from pluralbench.results.evaluations import JudgeRunConfig, JudgingRunConfig
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


def judge_prompts_digest(judging: JudgeConfig | PersonaJudgeConfig) -> str:
    """Return the digest of the prompts that a judge sees: that of `JudgeConfig.prompt`, or of ours.

    A rubric that all items share is part of them.
    """
    if isinstance(judging, PersonaJudgeConfig):
        return persona_digest()
    if judging.prompt is not None and isinstance(judging.rubric, RubricFile):
        return digest([judging.prompt.digest, judging.rubric.text])
    if judging.prompt is not None:
        return judging.prompt.digest
    return prompts_digest(listwise=judging.protocol == "listwise")


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
    judging = config.judging
    own: dict[str, Any] = {"attempts": judging.attempts, "reply": judging.chosen_format}
    if isinstance(judging, JudgeConfig):
        own |= {"criterion": judging.criterion, "rule": judging.verdict_parsing}
    else:  # a retry samples again at the same temperature
        own |= {"seed": config.seed, "temperature_step": 0.0}
    reached = connection or config.connection
    writer = config.rubric_model if isinstance(config, JudgeRunConfig) else None
    backends, judges = {name: make() for name, make in (here or {}).items()}, []
    for model in config.judges.values():
        judge = Judge(model, reached, ledger, **own, backend=backend or backends.get(model.model))
        if isinstance(judging, JudgeConfig) and judging.prompt is not None:
            judge = replace(judge, prompt=judging.prompt, temperature_step=_step(model))
        if isinstance(judging, JudgeConfig) and writer is not None:
            other = rubric_connection(judging, reached)
            own_backend = backend or backends.get(writer.model)
            rubric_writer = replace(judge, model=writer, connection=other, backend=own_backend, prompt=None)
            judge = replace(judge, rubric_writer=replace(rubric_writer, temperature_step=_step(writer)))
        judges.append(judge)
    return judges


def _step(model: ChatModel) -> float:
    """Return the increase of the temperature at a retry: none at a temperature above 0."""
    return 0.0 if model.temperature > 0 else TEMPERATURE_STEP


def rubric_connection(judging: JudgeConfig, connection: ConnectionConfig) -> ConnectionConfig:
    """Return the connection to the model that writes rubrics; the judge's key stays with the judge's endpoint."""
    if judging.rubric_base_url is None:
        return connection
    return connection.model_copy(update={"base_url": judging.rubric_base_url, "api_key_env": None})


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
