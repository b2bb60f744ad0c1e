"""`judge`: a language model as a judge on a benchmark, into a run directory with its recorded calls."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
from pluralbench_calls import Choice, read_ledger
from pluralbench_calls.chat import ChatModel, ConnectionConfig
from pluralbench_calls.verdicts import legacy_score, parse_with_all_rules
from pluralbench_measures.bootstrap import Estimate
from pluralbench_measures.rankings import pairs_of
from pluralbench_rewards.contract import Group, Scored
from pluralbench_rewards.judge import Comparison, Judge, prompts_digest, scores_of
from pluralbench_runs import rng_for

from pluralbench.config import DataConfig, JudgeConfig, Orders, PersonaJudgeConfig, PromptConfig, SynthesizeConfig
from pluralbench.data.prompts import judge_context, language_context
from pluralbench.errors import EvaluationError
from pluralbench.evaluation.folders import run_folder
from pluralbench.evaluation.loading import LoadedBenchmark, load_benchmark, run_directory
from pluralbench.evaluation.models import resolve_chat_model
from pluralbench.evaluation.timing import stopwatch
from pluralbench.evaluation.verdicts import (
    CHANGED,
    INVALID,
    Columns,
    combined_verdict,
    export_calls,
    judge_result,
    record_replies,
)
from pluralbench.results.columns import CALLS
from pluralbench.results.decisions import BASE, JUDGED, decide, decisions_of, score_items
from pluralbench.results.evaluations import JudgeResult, JudgeRunConfig
from pluralbench.results.metrics_frame import Place, metrics_frame
from pluralbench.results.runs import LEDGER_FILE, Run, load_run, write_run

SIDES: Columns = (("verdict_chosen_first", "calls_chosen_first"), ("verdict_rejected_first", "calls_rejected_first"))
VERDICTS = {"A": ("chosen", "win"), "B": ("rejected", "loss"), CHANGED: ("tie", "tie"), INVALID: (INVALID, INVALID)}
"""By what the replies amount to, A for the chosen response: the verdict, and the outcome."""


class JudgeVerdicts(NamedTuple):
    """What a judge said of all items. frame: of a run's items. readings: how many verdicts each rule reads."""

    frame: pl.DataFrame
    reasons: list[str]
    readings: dict[str, int]


def judge(
    model: str,
    *,
    benchmark: str | None = None,
    data: str | Path | DataConfig | None = None,
    prompt: PromptConfig | None = None,
    judging: JudgeConfig | None = None,
    connection: ConnectionConfig | None = None,
    seed: int = 0,
    shard: str | None = None,
    out: str | Path | None = None,
    fresh: bool = False,
) -> Run[JudgeRunConfig, JudgeResult]:
    """Let a model judge a benchmark; returns the run, which lies in `out`.

    model: of the OpenAI-compatible endpoint of the connection (without a base URL, OpenAI's), or "local", the small
    embedded one. data, prompt: as of `score`. judging: how it is asked. connection: how it is reached, how fast it is
    asked and what it may cost. seed: of every draw. shard: see `score`.

    Every call is recorded; an interrupted run goes on where it was. A verdict that cannot be read after all attempts
    is invalid. Of rankings by category that are counted in the legacy way, pairs are asked about in one order.
    """
    given = judging or JudgeConfig()
    judging = given.for_model(model)
    loaded = load_benchmark(benchmark, data, prompt, shard=shard)
    if not loaded.benchmark.ties_break_exact_match and not judging.pointwise:
        # CHEEMS's code asks once a pair, and counts verdicts as its paper does.
        loaded = loaded._replace(benchmark=loaded.benchmark.model_copy(update={"ties_break_exact_match": True}))
        judging = judging.model_copy(update={"orders": "one"})
    if not judging.pointwise and not any(pairs_of(rank) for rank in loaded.items.frame["rank"]):
        raise EvaluationError(
            "The benchmark has no pair of responses that it tells apart, so there is nothing to judge."
        )
    contexts = JudgeContexts.for_items(loaded, judging)
    chat, connection = judge_chat_model(model, judging, connection, seeded=False)
    config = JudgeRunConfig(
        **loaded.records(),
        model=chat,
        prompts_digest=prompts_digest(),
        judging=judging,
        seed=seed,
        connection=connection,
    )
    name = f"{loaded.name}-{Path(chat.model).name}-judge"
    target = Path(out or run_folder(name, config, loaded.data, loaded.prompt, given, seed=seed, shard=loaded.shard))
    the_judge = Judge(
        chat,
        connection,
        target.with_name(target.name + ".work") / "ledger.sqlite",
        attempts=judging.attempts,
        reply=judging.chosen_format,
        criterion=judging.criterion,
        rule=judging.verdict_parsing,
    )
    with run_directory(target, config, fresh=fresh) as output:
        if output is not None:
            with stopwatch(output.work) as seconds:
                said = judge_items(the_judge, loaded, contexts, judging, seed)
                usage = export_calls(the_judge, output)
                result = JudgeResult(
                    **judge_result(config, usage, seconds()),
                    invalid_reasons=dict(sorted(Counter(said.reasons).items())),
                    readings=said.readings,
                )
                metrics = compute_judge_metrics(loaded, said.frame, read_ledger(output.work / LEDGER_FILE))
                write_run(output, config, result, metrics, {"items": said.frame})
    return load_run(target, JudgeRunConfig, part=True)


def judge_chat_model(
    model: str,
    judging: JudgeConfig | PersonaJudgeConfig | SynthesizeConfig,
    connection: ConnectionConfig | None,
    *,
    seeded: bool = True,
) -> tuple[ChatModel, ConnectionConfig]:
    """Resolve a judge's chat model and connection, with the judge's sampling options; see `resolve_chat_model`."""
    sampling = {name: getattr(judging, name) for name in ("temperature", "top_p", "max_tokens")}
    return resolve_chat_model(model, connection, sampling, "judge", seeded=seeded)


class JudgeContexts(NamedTuple):
    """What a judge is told of each item beside the question: about the person, and about languages."""

    person: list[str]
    language: list[str]

    @classmethod
    def for_items(cls, loaded: LoadedBenchmark, judging: JudgeConfig) -> "JudgeContexts":
        """Of all items. Raises `DataError` where something that was asked for is missing."""
        items = list(loaded.frame.iter_rows(named=True))
        answers = judging.answer_language
        return cls(
            [judge_context(item, loaded.context, oracle=judging.oracle) for item in items],
            [language_context(loaded.benchmark, item["config"], item["subset"] or "", answers) for item in items],
        )


def judge_items(
    the_judge: Judge, loaded: LoadedBenchmark, contexts: JudgeContexts, judging: JudgeConfig, seed: int
) -> JudgeVerdicts:
    """What a judge says of the items of `loaded.frame`: asked, or taken from its ledger where that knows it."""
    return (_rated if judging.pointwise else _compared)(the_judge, loaded, contexts, judging.orders, seed)


def compute_judge_metrics(loaded: LoadedBenchmark, frame: pl.DataFrame, ledger: pl.DataFrame) -> pl.DataFrame:
    """The metrics of what a judge said; of a share none. frame, ledger: a run's items and calls."""
    metrics = loaded.compute_metrics(decisions_of(frame))
    return metrics if loaded.shard is not None else with_legacy(metrics, frame, ledger)


def _rated(the_judge: Judge, loaded: LoadedBenchmark, contexts: JudgeContexts, _: Orders, __: int) -> JudgeVerdicts:
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
    keys = [[list(rating.calls) for rating in group] for group in ratings]
    if "response" in frame.columns:
        calls = {"calls": [own for group in keys for own in group]}
    else:
        calls = {f"calls_{side}": [group[place] for group in keys] for place, side in enumerate(("chosen", "rejected"))}
    return JudgeVerdicts(frame.hstack(pl.DataFrame(calls, schema=dict.fromkeys(calls, CALLS))), reasons, {})


def _compared(
    the_judge: Judge, loaded: LoadedBenchmark, contexts: JudgeContexts, orders: Orders, seed: int
) -> JudgeVerdicts:
    """A row for each pair of responses that the benchmark tells apart, with the verdicts in each order asked."""
    rows: list[dict[str, Any]] = []
    asked: list[tuple[int, bool]] = []
    comparisons = []
    for item, person, language in zip(loaded.frame.iter_rows(named=True), *contexts, strict=True):
        base = {name: item[name] for name in BASE} | {"truncated": False}
        pairs = pairs_of(item["rank"])
        if not pairs:
            rows.append(base | {"outcome": "equal"})
        for better, worse in pairs:
            names = {"chosen": item["response_ids"][better], "rejected": item["response_ids"][worse]}
            rows.append(base | names | {"attempts": 0})
            draw = rng_for(seed, "order", item["config"], item["id"], *names.values()).random()
            for swapped in (False, True) if orders == "both" else (draw >= 0.5,):
                first, second = (worse, better) if swapped else (better, worse)
                asked.append((len(rows) - 1, swapped))
                shown = item["responses"][first], item["responses"][second]
                name = f"{item['config']}/{item['id']}"
                comparisons.append(Comparison(name, item["prompt"], *shown, person, language))
    verdicts = the_judge.compare(comparisons)
    record_replies(rows, asked, verdicts, [settled.value for settled in verdicts], SIDES)
    for row in rows:
        if row.get("outcome") != "equal":
            row["verdict"], row["outcome"] = verdict(row)
    frame = pl.DataFrame(rows, schema=JUDGED)
    read: Counter[str] = Counter()
    for settled in verdicts:
        found = parse_with_all_rules(settled.answer.text)
        read.update({rule: int(letter is not None) for rule, letter in found.items()})
    return JudgeVerdicts(frame, frame["reason"].drop_nulls().to_list(), dict(read))


def with_legacy(metrics: pl.DataFrame, frame: pl.DataFrame, ledger: pl.DataFrame) -> pl.DataFrame:
    """The metrics with M-RewardBench's own count, where a judge compared: one point for the chosen response, half a
    point for what its code cannot read.

    frame, ledger: a run's items and calls. A verdict rests on the last of its calls.
    """
    if SIDES[0][1] not in frame.columns:
        return metrics
    texts = dict(ledger.select("key", "text").iter_rows())
    letters: tuple[Choice, ...] = ("A", "B")
    points = [
        legacy_score(texts[calls[-1]], letter)
        for (_, column), letter in zip(SIDES, letters, strict=True)
        for calls in frame[column].drop_nulls()
    ]
    mean = Estimate(sum(points) / len(points) if points else None, n=len(points))
    return pl.concat([metrics, metrics_frame([(Place("position", "accuracy_with_invalid_as_half"), mean)])])


def verdict(row: Mapping[str, Any]) -> tuple[str, str]:
    """What a judge's replies in a row amount to, "chosen", "rejected", "tie" or "invalid", and the outcome of it."""
    return VERDICTS[combined_verdict({name: row.get(name) for name, _ in SIDES}, SIDES)]
