"""`judge`: a language model as a judge on a benchmark, into a run directory with its recorded calls."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
from pluralbench_calls import Choice, Settled, working_ledger
from pluralbench_calls.chat import ChatConnection, ChatModel, chosen_model
from pluralbench_calls.verdicts import legacy_points, readings
from pluralbench_measures.bootstrap import Estimate
from pluralbench_measures.rankings import pairs_of
from pluralbench_rewards.contract import Group, ModelRecord, Scored
from pluralbench_rewards.judge import Comparison, Judge, load_judge, prompts_digest, scores_of
from pluralbench_runs import Cluster, Output, check_recipe, stream

from pluralbench.data.prompts import languages_told, told_to_judge
from pluralbench.descriptions import Data, Judging, Orders, PersonaJudging, Prompt, Synthesizing
from pluralbench.errors import EvaluationError
from pluralbench.evaluation.folders import run_folder
from pluralbench.evaluation.settings import JudgeSettings, Loaded, load_benchmark, run_directory
from pluralbench.evaluation.timing import cost_of_calls, timed
from pluralbench.results.decisions import BASE, CALLS, DECISIONS, decide, score_items
from pluralbench.results.metrics_frame import Place, metrics_frame
from pluralbench.results.record import JudgingRecord, RunRecord, provenance
from pluralbench.results.runs import LEDGER_FILE, Run, read_part, write_run

VERDICTS = {"chosen": "win", "rejected": "loss", "tie": "tie", "invalid": "invalid"}
_VERDICTS: dict[str, pl.DataType | type[pl.DataType]] = {
    "verdict": pl.String,
    "verdict_chosen_first": pl.String,
    "verdict_rejected_first": pl.String,
    "attempts": pl.Int64,
    "reason": pl.String,
    "calls_chosen_first": CALLS,
    "calls_rejected_first": CALLS,
}
JUDGED = pl.Schema([*DECISIONS.items(), *_VERDICTS.items()])


class Said(NamedTuple):
    """What a judge said of all items, in the shape of a run.

    readings: how many verdicts each rule reads. legacy: see `legacy_number`; None where nothing was compared.
    """

    frame: pl.DataFrame
    decisions: pl.DataFrame
    reasons: list[str]
    readings: dict[str, int]
    legacy: tuple[Place, Estimate] | None = None


def judge(
    model: str,
    *,
    benchmark: str | None = None,
    data: str | Path | Data | None = None,
    prompt: Prompt | None = None,
    judging: Judging | None = None,
    connection: ChatConnection | None = None,
    cluster: Cluster | None = None,
    seed: int = 0,
    shard: str | None = None,
    out: str | Path | None = None,
    fresh: bool = False,
) -> Run:
    """Let a model judge a benchmark; returns the run, which lies in `out`.

    model: of the OpenAI-compatible endpoint of the connection (without a base URL, OpenAI's), or "local", the small
    embedded one. data, prompt: as of `score`. judging: how it is asked. connection: how it is reached, how fast it is
    asked and what it may cost. cluster: from where it is asked, if not from here. seed: of every draw. shard: see
    `score`.

    Every call is recorded; an interrupted run goes on where it was. A verdict that cannot be read after all attempts
    is invalid. Of rankings by category that are counted in the legacy way, pairs are asked about in one order.
    """
    given = judging or Judging()
    judging = given.asked_of(model)
    loaded = load_benchmark(benchmark, data, prompt, shard=shard)
    if not loaded.benchmark.strict and not judging.pointwise:
        # CHEEMS's code asks once a pair, and counts verdicts as its paper does.
        loaded = loaded._replace(benchmark=loaded.benchmark.model_copy(update={"strict": True}))
        judging = judging.model_copy(update={"orders": "one"})
    if not judging.pointwise and not any(pairs_of(rank) for rank in loaded.items.frame["rank"]):
        raise EvaluationError(
            "The benchmark has no pair of responses that it tells apart, so there is nothing to judge."
        )
    contexts = Contexts.of(loaded, judging)
    chat, connection = chat_of(model, judging, connection)
    settings = JudgeSettings(
        model=chat,
        prompts_digest=prompts_digest(),
        data=loaded.data_settings(),
        prompt=loaded.prompt_settings(),
        judging=judging,
        seed=seed,
        connection=connection,
    )
    name = f"{loaded.name}-{Path(chat.model).name}-judge"
    target = Path(out or run_folder(name, settings, loaded.data, loaded.prompt, given, seed=seed, shard=loaded.shard))
    the_judge = load_judge(
        chat,
        connection,
        target.with_name(target.name + ".work") / "ledger.sqlite",
        attempts=judging.attempts,
        reply=judging.form,
        criterion=judging.criterion,
        rule=judging.verdicts,
        cluster=cluster,
    )
    with run_directory(target, settings, fresh=fresh) as output:
        if output is not None:
            with timed(output.work) as seconds:
                said = (_rated if judging.pointwise else _compared)(the_judge, loaded, contexts, judging.orders, seed)
                _write(output, settings, loaded, the_judge, said, seconds())
    return read_part(target)


def chat_of(
    model: str,
    judging: Judging | PersonaJudging | Synthesizing,
    connection: ChatConnection | None,
    local: Mapping[str, Any] | None = None,
) -> tuple[ChatModel, ChatConnection]:
    """The chat model of a name with a judge's sampling, and how it is reached. local: what the embedded one has of its
    own. Raises `RecipeError`."""
    connection = connection or ChatConnection()
    tables: dict[str, dict[str, Any]] = {"model": {}, "connection": connection.given()}
    chosen = chosen_model("model", model, connection.base_url, connection.api_key_env, local or {})
    for dotted, value in chosen.items():
        table, _, key = dotted.partition(".")
        tables[table][key] = value
    sampling = {name: getattr(judging, name) for name in ("temperature", "top_p", "max_tokens")}
    return (
        check_recipe(ChatModel, sampling | tables["model"], "of the judge"),
        check_recipe(ChatConnection, tables["connection"], "of the connection"),
    )


class Contexts(NamedTuple):
    """What a judge is told of each item beside the question: about the person, and about languages."""

    person: list[str]
    language: list[str]

    @classmethod
    def of(cls, loaded: Loaded, judging: Judging) -> "Contexts":
        """Of all items. Raises `DataError` where something that was asked for is missing."""
        items = list(loaded.frame.iter_rows(named=True))
        answers = judging.answer_language
        return cls(
            [told_to_judge(item, loaded.told, oracle=judging.oracle) for item in items],
            [languages_told(loaded.benchmark, item["config"], item["subset"] or "", answers) for item in items],
        )


def _write(
    output: Output, settings: JudgeSettings, loaded: Loaded, the_judge: Judge, said: Said, seconds: float
) -> None:
    judging = settings.judging
    metrics = loaded.measured(said.decisions)
    if said.legacy is not None and loaded.shard is None:
        metrics = pl.concat([metrics, metrics_frame([said.legacy])])
    with working_ledger(the_judge.ledger) as ledger:
        prompt_tokens, completion_tokens = ledger.usage()
        calls = len(ledger)
        ledger.export(output.work / LEDGER_FILE)
    asked = {
        "oracle": judging.oracle,
        "answer_language": judging.answer_language if loaded.benchmark.reference else None,
        "prompts_digest": settings.prompts_digest,
    }
    write_run(
        output,
        items=said.frame,
        metrics=metrics,
        record=RunRecord(
            verb="judge",
            model=ModelRecord(name=settings.model.model, kind="generative", provider=settings.model.provider),
            benchmark=loaded.benchmark_record(),
            data=loaded.data_record(),
            prompt=loaded.prompt_record().model_copy(update=asked),
            judging=JudgingRecord(
                reply=judging.form,
                orders=None if judging.pointwise else judging.orders,
                pointwise=judging.pointwise,
                criterion=judging.criterion,
                verdict_rule=judging.verdicts,
                attempts=judging.attempts,
                temperature=judging.temperature,
                top_p=judging.top_p,
                max_tokens=judging.max_tokens,
                calls=calls,
                prompt_tokens=prompt_tokens,
                completion_tokens=completion_tokens,
                invalid_reasons=dict(sorted(Counter(said.reasons).items())),
                readings=said.readings,
            ),
            seed=settings.seed,
            cost=cost_of_calls(seconds, settings.connection, prompt_tokens, completion_tokens),
            provenance=provenance(),
        ),
    )


def _rated(the_judge: Judge, loaded: Loaded, contexts: Contexts, _: Orders, __: int) -> Said:
    """Ratings as scores, and why some are missing."""
    items = loaded.frame
    groups = [
        Group(row["id"], row["prompt"], row["responses"])
        for row in items.select("id", "prompt", "responses").iter_rows(named=True)
    ]
    ratings = the_judge.rate(groups, contexts.person, contexts.language)
    scored: Scored = scores_of(ratings)
    decisions = decide(items, scored.scores, scored.cut)
    reasons = [rating.reason for group in ratings for rating in group if rating.reason]
    frame = score_items(loaded.benchmark, items, scored, decisions)
    return Said(frame.with_columns(_calls_of(ratings, by_response="response" in frame.columns)), decisions, reasons, {})


def _calls_of(ratings: Sequence[Sequence[Settled[float]]], *, by_response: bool) -> list[pl.Series]:
    """The keys of the calls behind ratings: a row a response, or a row a pair with a column for each of its sides."""
    if by_response:
        return [pl.Series("calls", [list(rating.calls) for group in ratings for rating in group], CALLS)]
    sides = ("calls_chosen", "calls_rejected")
    return [pl.Series(name, [list(group[place].calls) for group in ratings], CALLS) for place, name in enumerate(sides)]


def _compared(the_judge: Judge, loaded: Loaded, contexts: Contexts, orders: Orders, seed: int) -> Said:
    """A row for each pair of responses that the benchmark tells apart, with the verdicts in each order asked."""
    rows: list[dict[str, Any]] = []
    asked: list[tuple[int, str]] = []
    comparisons = []
    for item, person, language in zip(loaded.frame.iter_rows(named=True), *contexts, strict=True):
        base = {name: item[name] for name in BASE} | {"truncated": False}
        pairs = pairs_of(item["rank"])
        if not pairs:
            rows.append(base | {"outcome": "equal"})
        for better, worse in pairs:
            names = {"chosen": item["response_ids"][better], "rejected": item["response_ids"][worse]}
            rows.append(base | names | {"attempts": 0})
            draw = stream(seed, "order", item["config"], item["id"], *names.values()).random()
            sides = ("chosen", "rejected") if orders == "both" else ("chosen" if draw < 0.5 else "rejected",)
            for side in sides:
                first, second = (better, worse) if side == "chosen" else (worse, better)
                asked.append((len(rows) - 1, side))
                shown = item["responses"][first], item["responses"][second]
                name = f"{item['config']}/{item['id']}"
                comparisons.append(Comparison(name, item["prompt"], *shown, person, language))
    verdicts = the_judge.compare(comparisons)
    for (place, side), settled in zip(asked, verdicts, strict=True):
        row = rows[place]
        row[f"verdict_{side}_first"] = settled.value or "invalid"
        row[f"calls_{side}_first"] = list(settled.calls)
        row["attempts"] += settled.attempts
        if settled.reason:
            row["reason"] = settled.reason
    for row in rows:
        if row.get("outcome") != "equal":
            row["verdict"] = verdict(row.get("verdict_chosen_first"), row.get("verdict_rejected_first"))
            row["outcome"] = VERDICTS[row["verdict"]]
    frame = pl.DataFrame(rows, schema=JUDGED)
    right: list[Choice] = ["A" if side == "chosen" else "B" for _, side in asked]
    replies = [settled.answer.text for settled in verdicts]
    legacy = legacy_number(zip(replies, right, strict=True))
    return Said(frame, frame, frame["reason"].drop_nulls().to_list(), _readings(replies), legacy)


def _readings(replies: Sequence[str]) -> dict[str, int]:
    """How many of the replies that verdicts rest on each rule reads."""
    read: Counter[str] = Counter()
    for reply in replies:
        found = readings(reply)
        read.update({rule: int(letter is not None) for rule, letter in found.items()})
    return dict(read)


def legacy_number(replies: Iterable[tuple[str, Choice]]) -> tuple[Place, Estimate]:
    """M-RewardBench's own count: one point for the chosen response, half a point for what it cannot read.

    replies: those that verdicts rest on, with the letter of the chosen response.
    """
    points = [legacy_points(reply, letter) for reply, letter in replies]
    mean = sum(points) / len(points) if points else None
    return Place("position", "accuracy_with_invalid_as_half"), Estimate(mean, n=len(points))


def verdict(chosen_first: str | None, rejected_first: str | None) -> str:
    """What a judge's verdicts in the orders asked amount to: "chosen", "rejected", "tie" or "invalid".

    chosen_first, rejected_first: "A" (the first), "B" (the second), "invalid", or None where that was not asked.
    """
    sides = [
        {"A": first, "B": second}.get(letter, "invalid")
        for letter, first, second in ((chosen_first, "chosen", "rejected"), (rejected_first, "rejected", "chosen"))
        if letter is not None
    ]
    if "invalid" in sides:
        return "invalid"
    return sides[0] if len(set(sides)) == 1 else "tie"
