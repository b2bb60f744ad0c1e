"""`plan`: a planner says of each item what the person expects, as the file that `score --profile plan` takes."""

import json
from collections import Counter
from pathlib import Path
from typing import Any, ClassVar, Literal

import polars as pl
from pluralbench_calls import Answer, Ledger, ask, chat_request, working_ledger
from pluralbench_calls.chat import ChatConnection, ChatModel
from pluralbench_local import LocalModel
from pluralbench_policies.planner_prompts import planner_prompts_digest, read_plan
from pluralbench_rewards import ModelRecord, model_digest
from pluralbench_runs import Output, Recipe

from pluralbench.descriptions import AspectMatching, Data, Planning
from pluralbench.downstream.candidates import TEXTS, Policy, policy_of
from pluralbench.errors import DataError, EvaluationError
from pluralbench.evaluation.folders import file_name, run_folder
from pluralbench.evaluation.settings import DataSettings, Loaded, run_directory
from pluralbench.evaluation.timing import cost_of_calls, timed
from pluralbench.planning.aspects import (
    EMBEDDINGS,
    WORDS,
    Found,
    Pair,
    aspect_numbers,
    by_embeddings,
    by_words,
    compared,
)
from pluralbench.planning.prompts import load_people, prompts_of
from pluralbench.results.metrics_frame import metrics_frame
from pluralbench.results.plans import RECORD_FILE, Plans, PlansRecord, read_plans_folder, write_plans
from pluralbench.results.record import provenance
from pluralbench.results.runs import LEDGER_FILE

_PLANNED: dict[str, Any] = {
    "config": pl.String,
    "id": pl.String,
    "cluster": pl.String,
    "text": pl.String,
    "aspects": pl.List(pl.String),
    "outcome": pl.String,
    "reason": pl.String,
    "tokens": pl.Int64,
    "call": pl.String,
}
PLANNED = pl.Schema(_PLANNED)
"""A row an item. text: as the planner wrote it, null where there is none; then `outcome` and `reason` say why.
aspects: what could be read from it, empty where it has no list. call: the key of the recorded call."""


class PlanSettings(Recipe):
    """All that plans and their numbers depend on. encoder: digest of its folder."""

    operational: ClassVar[frozenset[str]] = frozenset({"connection"})

    verb: Literal["plan"] = "plan"
    planner: ChatModel
    data: DataSettings
    posts: int
    matching: AspectMatching
    encoder: str | None = None
    prompts_digest: str
    seed: int
    connection: ChatConnection = ChatConnection()


def plan(
    planner: str | Path | LocalModel,
    *,
    benchmark: str = "personalized",
    data: str | Path | Data | None = None,
    posts: int = 10,
    sampling: Planning | None = None,
    matching: AspectMatching | None = None,
    connection: ChatConnection | None = None,
    seed: int = 0,
    out: str | Path | None = None,
    fresh: bool = False,
) -> Plans:
    """Let a planner say what each person expects of an answer; returns the plans, which lie in `out`.

    Personalized RewardBench, section 4.3.

    planner: "local" is the embedded model, a name with a base URL a model of that endpoint, and any other a folder or
    ORG/NAME on the Hub, which runs in this process. benchmark, data: the items; of them questions and profiles are
    read, and the rubric aspects only to be held against the plans. posts: of a profile, at most. sampling: of the
    plans. matching: when an aspect of a plan is one of the true ones.

    A plan is told by the titles of its list. One without a list is told as it was written, as the paper tells all of
    them; one that is not there is missing, and `score` then says which. Every call is recorded; an interrupted run goes
    on with the same call. Raises a `UserError` for every mistake of the caller.
    """
    sampling, matching, connection = (
        sampling or Planning(),
        matching or AspectMatching(),
        connection or ChatConnection(),
    )
    loaded = load_people(benchmark, data if isinstance(data, Data) else Data(location=data and str(data)), posts)
    _check_ids(loaded.items.frame)
    asked = policy_of(planner, sampling, connection)
    settings = PlanSettings(
        planner=asked.chat,
        data=loaded.data_settings(),
        posts=posts,
        matching=matching,
        encoder=None if matching.encoder is None else model_digest(matching.encoder),
        prompts_digest=planner_prompts_digest(),
        seed=seed,
        connection=connection,
    )
    choices = [*([planner] if isinstance(planner, LocalModel) else []), sampling, matching]
    name = f"{loaded.name}-{file_name(Path(asked.record.name).name)}-plans"
    target = Path(out or run_folder(name, settings, loaded.data, *choices, seed=seed, said=("encoder",)))
    with run_directory(target, settings, fresh=fresh, finished=RECORD_FILE) as output:
        if output is not None:
            with timed(output.work) as seconds, working_ledger(output.work / "ledger.sqlite") as ledger:
                planned = _planned(loaded, asked, ledger, seed)
                tokens = ledger.usage()
                found = _found(loaded.items.frame, planned, matching, ledger)
                _write(output, settings, sampling, loaded, asked.record, planned, found, ledger, tokens, seconds())
    return read_plans_folder(target)


def _check_ids(items: pl.DataFrame) -> None:
    twice = items.group_by("id", maintain_order=True).agg("config").filter(pl.col("config").list.len() > 1)
    if twice.height:
        item, configs = twice.row(0)
        raise DataError(
            f"The id {item} stands in the configs {' and '.join(configs[:2])}, and a plan is told by its item's id; "
            "plan one config at a time (--config)."
        )


def _planned(loaded: Loaded, planner: Policy, ledger: Ledger, seed: int) -> pl.DataFrame:
    """The plans of all items, a frame of `PLANNED`. Raises `EvaluationError` where none has a text."""
    items = loaded.items.frame.select("config", "id", "cluster")
    requests = [
        chat_request(planner.chat, messages, seed=seed, label=f"the plan for {row['id']}", attempt=0)
        for row, messages in zip(items.iter_rows(named=True), prompts_of(loaded), strict=True)
    ]
    answers = ask(requests, ledger, planner.backend, limits=planner.limits, label="plans")
    rows = [row | _read(answer) for row, answer in zip(items.iter_rows(named=True), answers, strict=True)]
    planned = pl.DataFrame(rows, schema=PLANNED)
    if planned["text"].null_count() == planned.height:
        outcome, reason = planned.select("outcome", "reason").row(0)
        raise EvaluationError(
            f"The planner {planner.record.name} gave no text for any item (the first time {outcome}: {reason}); look "
            "at its chat template, --max-tokens and --profile-size."
        )
    return planned


def _read(answer: Answer) -> dict[str, Any]:
    is_text = answer.outcome in TEXTS and answer.text.strip() != ""
    outcome = "empty" if answer.outcome in TEXTS and not is_text else answer.outcome
    return {
        "text": answer.text if is_text else None,
        "aspects": read_plan(answer.text) if is_text else [],
        "outcome": outcome,
        "reason": None if is_text else answer.text.rstrip(". ") if answer.outcome == "error" else outcome,
        "tokens": answer.completion_tokens,
        "call": answer.key,
    }


def _found(
    items: pl.DataFrame, planned: pl.DataFrame, matching: AspectMatching, ledger: Ledger
) -> dict[str, list[Found]]:
    """What the plans have of the true aspects, by the way of matching; nothing where the items have none."""
    if any(not aspects for aspects in items["aspects"].to_list()):
        return {}
    titles = ([aspect["aspect"] for aspect in aspects] for aspects in items["aspects"].to_list())
    pairs = [Pair(*row) for row in zip(items["id"], titles, planned["aspects"].to_list(), strict=True)]
    found = {WORDS: compared(pairs, by_words(pairs), matching.words)}
    if matching.encoder is not None:
        found[EMBEDDINGS] = compared(pairs, by_embeddings(pairs, matching.encoder, ledger), matching.cosine)
    return found


def _write(
    output: Output,
    settings: PlanSettings,
    sampling: Planning,
    loaded: Loaded,
    planner: ModelRecord,
    planned: pl.DataFrame,
    found: dict[str, list[Found]],
    ledger: Ledger,
    tokens: tuple[int, int],
    seconds: float,
) -> None:
    ledger.export(output.work / LEDGER_FILE, ledger.used)
    listed, missing = planned["aspects"].list.len() > 0, planned["text"].is_null()
    record = PlansRecord(
        planner=planner.model_copy(update={"kind": "planner"}),
        benchmark=loaded.benchmark_record(),
        data=loaded.data_record(),
        posts=settings.posts,
        sampling=sampling,
        matching=settings.matching,
        prompts_digest=settings.prompts_digest,
        seed=settings.seed,
        items=planned.height,
        listed=int(listed.sum()),
        as_text=int((~listed & ~missing).sum()),
        missing=int(missing.sum()),
        cut=planned.filter(outcome="length").height,
        reasons=dict(sorted(Counter(planned["reason"].drop_nulls().to_list()).items())),
        calls=planned.height,
        prompt_tokens=tokens[0],
        completion_tokens=tokens[1],
        cost=cost_of_calls(seconds, settings.connection, *tokens),
        provenance=provenance(),
    )
    by_config = loaded.benchmark.overall == "configs"
    numbers = aspect_numbers(planned, found, by_config=by_config) if found else []
    columns = [
        pl.Series(f"{name}_{way}", [getattr(one, name) for one in own], pl.Float64)
        for way, own in found.items()
        for name in ("recall", "precision")
    ]
    write_plans(output, record, metrics_frame(numbers), planned.with_columns(columns), _lines(planned))


def _lines(planned: pl.DataFrame) -> str:
    """The file of plans: the titles of each list, or the text of a plan without one."""
    there = planned.filter(pl.col("text").is_not_null()).select("config", "id", "aspects", "text")
    lines = [
        json.dumps({"id": item, "config": config, "aspects": aspects or text.strip()}, ensure_ascii=False)
        for config, item, aspects, text in there.iter_rows()
    ]
    return "\n".join([*lines, ""])
