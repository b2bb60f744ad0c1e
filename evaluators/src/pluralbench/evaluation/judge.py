"""`judge`: a language model as a judge on a benchmark, into a run directory with its recorded calls."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import polars as pl
from pluralbench_calls import Ledger, Limits, Price
from pluralbench_runs import Recipe, Table, output_directory, stream

from pluralbench.data.benchmarks import OnEmpty, find_benchmark
from pluralbench.results.decisions import BASE, DECISIONS, decide, pairs_of
from pluralbench.errors import EvaluationError
from pluralbench.data.items import load_items
from pluralbench.metrics.languages import measure_languages
from pluralbench.metrics.accuracy import measure, position_bias
from pluralbench.data.prompts import AnswerLanguage, Profile, contexts_of, plans_for, wordings_digest
from pluralbench.results.runs import RUN_FILE, SETTINGS_FILE, Run, provenance, publish, read_run
from pluralbench.evaluation.score import DataSettings, benchmark_name, benchmark_record, data_settings, result_frame

if TYPE_CHECKING:  # importing torch takes seconds, which `--help` and a mistake in the data need not wait for
    from pluralbench_local import Scored
    from pluralbench_rewards import Judge, Reply

Orders = Literal["both", "one"]
VERDICTS = {"chosen": "win", "rejected": "loss", "tie": "tie", "invalid": "invalid"}
_VERDICTS: dict[str, type[pl.DataType]] = {
    "verdict": pl.String,
    "verdict_chosen_first": pl.String,
    "verdict_rejected_first": pl.String,
    "attempts": pl.Int64,
    "reason": pl.String,
}
JUDGED = pl.Schema([*DECISIONS.items(), *_VERDICTS.items()])


class Connection(Table):
    """How a judge is reached: it may change between the parts of a run."""

    base_url: str | None = None
    concurrency: int = 8
    price_input: float = 0.0
    price_output: float = 0.0
    max_cost: float | None = None


class JudgeSettings(Recipe):
    """All that a judge's verdicts depend on; a run goes on only under the same."""

    operational: ClassVar[frozenset[str]] = frozenset({"connection"})

    verb: Literal["judge"] = "judge"
    model: str
    provider: str
    prompts_digest: str
    wordings_digest: str
    temperature: float
    top_p: float | None = None
    max_tokens: int
    attempts: int
    pointwise: bool
    reply: Literal["reasoned", "brief", "structured"]
    orders: Orders
    oracle: bool
    answer_language: AnswerLanguage = "target"
    seed: int
    data: DataSettings
    connection: Connection = Connection()


def judge(
    model: str,
    *,
    benchmark: str = "personalized",
    data: str | None = None,
    configs: Sequence[str] | None = None,
    split: str | None = None,
    columns: Sequence[str] = (),
    limit: int | None = None,
    on_empty: OnEmpty | None = None,
    legacy: bool = False,
    english: str | None = None,
    answer_language: AnswerLanguage = "target",
    base_url: str | None = None,
    api_key_env: str | None = None,
    pointwise: bool = False,
    reply: "Reply" = "reasoned",
    orders: Orders = "both",
    oracle: bool = False,
    profile: Profile = "none",
    profile_size: int = 10,
    plans: Path | None = None,
    temperature: float = 0.0,
    top_p: float | None = None,
    max_tokens: int = 512,
    attempts: int = 4,
    concurrency: int = 8,
    price: Price | None = None,
    max_cost: float | None = None,
    seed: int = 0,
    out: Path | None = None,
    fresh: bool = False,
) -> Run:
    """Let a model judge a benchmark; returns the run, which lies in `out`.

    model: of the OpenAI-compatible endpoint `base_url`, or "local", the small embedded one. pointwise: it rates each
    response by itself, from 1 to 10, instead of choosing between two. orders: "both" asks twice with the responses
    swapped, and calls it a tie where the verdicts disagree; "one" asks once, in an order drawn by the seed (the way
    of the paper of Personalized RewardBench, section 4.1). oracle: show the judge the true rubric aspects. reply:
    with reasons, the verdict alone, or in JSON by a schema that the server enforces. legacy: for rankings by category
    one order, whatever `orders` says; further as in `find_benchmark`.
    attempts: tries for a reply that can be parsed, after which the verdict is invalid.
    answer_language: of a benchmark in many languages, see `pluralbench.data.prompts.contexts_of`.
    The other arguments are those of `score`. Every call is recorded; an interrupted run goes on where it was.
    """
    described = find_benchmark(benchmark, columns, legacy=legacy)
    items = load_items(described, data, configs=configs, split=split, limit=limit, on_empty=on_empty, english=english)
    described = described.fitted(items.frame["subset"])
    if not described.strict and not pointwise:  # CHEEMS's code asks once a pair, and counts verdicts as its paper does
        described, orders = described.model_copy(update={"strict": True}), "one"
    inferred = plans_for(profile, plans)
    contexts = contexts_of(
        described, items.frame, profile, profile_size, inferred, oracle=oracle, answer_language=answer_language
    )
    connection = Connection(
        base_url=base_url,
        concurrency=concurrency,
        price_input=price.input if price else 0.0,
        price_output=price.output if price else 0.0,
        max_cost=max_cost,
    )
    target = out or Path("runs") / f"{benchmark_name(benchmark)}-{Path(model).name}-judge"
    from pluralbench_rewards import load_judge  # noqa: PLC0415 - see above

    the_judge = load_judge(
        model,
        base_url=base_url,
        api_key_env=api_key_env,
        ledger=target.with_name(target.name + ".work") / "ledger.sqlite",
        temperature=temperature,
        top_p=top_p,
        max_tokens=max_tokens,
        attempts=attempts,
        reply=reply,
        limits=Limits(concurrency=concurrency, price=price or Price(), max_cost=max_cost),
    )
    settings = JudgeSettings(
        model=the_judge.name,
        provider=the_judge.provider,
        prompts_digest=the_judge.template_digest,
        wordings_digest=wordings_digest(),
        temperature=temperature,
        top_p=top_p,
        max_tokens=max_tokens,
        attempts=attempts,
        pointwise=pointwise,
        reply=reply,
        orders=orders,
        oracle=oracle,
        answer_language=answer_language,
        seed=seed,
        data=data_settings(benchmark, described, items, configs, limit, profile, profile_size, inferred),
        connection=connection,
    )
    with output_directory(target, settings, recipe_file=SETTINGS_FILE, fresh=fresh) as output:
        if (target / RUN_FILE).exists() and not fresh:
            return read_run(target)
        if pointwise:
            scored, reasons = _rated(the_judge, items.frame, contexts)
            decisions = decide(items.frame, scored.scores, scored.cut)
            frame = result_frame(described, items.frame, scored, decisions)
            bias: Mapping[str, Any] = {}
        else:
            frame = decisions = _compared(the_judge, items.frame, contexts, orders, seed)
            reasons = frame["reason"].drop_nulls().to_list()
            bias = {"position": position_bias(frame)}
        metrics = {"items": items.frame.height} | measure(described, decisions, seed=seed) | dict(bias)
        metrics |= measure_languages(described, decisions, seed=seed)
        with Ledger(the_judge.ledger) as ledger:
            tokens = dict(zip(("prompt_tokens", "completion_tokens"), ledger.usage(), strict=True))
            calls = len(ledger)
            ledger.export(output.work / "ledger.parquet")
        run = provenance() | {
            "verb": "judge",
            "model": {"name": the_judge.name, "kind": "generative", "provider": the_judge.provider},
            "benchmark": benchmark_record(benchmark, described),
            "data": items.source | {"configs": list(configs or []), "limit": limit},
            "prompt": {
                "profile": profile,
                "profile_size": profile_size,
                "oracle": oracle,
                "answer_language": answer_language if described.reference else None,
                "plans_digest": settings.data.plans_digest,
                "wordings_digest": settings.wordings_digest,
                "prompts_digest": settings.prompts_digest,
            },
            "judging": {
                "pointwise": pointwise,
                "reply": reply,
                "orders": None if pointwise else orders,
                "temperature": temperature,
                "top_p": top_p,
                "max_tokens": max_tokens,
                "attempts": attempts,
                "calls": calls,
                **tokens,
                "invalid_reasons": {reason: reasons.count(reason) for reason in sorted(set(reasons))},
            },
            "seed": seed,
        }
        publish(output, frame, metrics, run)
    return read_run(target)


def _rated(judge_: "Judge", items: pl.DataFrame, contexts: Sequence[str]) -> tuple["Scored", list[str]]:
    """Ratings as scores, and why some are missing."""
    from pluralbench_rewards import Group, scores_of  # noqa: PLC0415 - see above

    groups = [
        Group(row["id"], row["prompt"], row["responses"])
        for row in items.select("id", "prompt", "responses").iter_rows(named=True)
    ]
    ratings = judge_.rate(groups, contexts)
    return scores_of(ratings), [r.reason for group in ratings for r in group if r.reason]


def _compared(judge_: "Judge", items: pl.DataFrame, contexts: Sequence[str], orders: Orders, seed: int) -> pl.DataFrame:
    """A row for each pair of responses that the benchmark tells apart, with the verdicts in each order asked."""
    from pluralbench_rewards import Comparison  # noqa: PLC0415 - see above

    rows: list[dict[str, Any]] = []
    asked: list[tuple[int, str]] = []
    comparisons = []
    for item, context in zip(items.iter_rows(named=True), contexts, strict=True):
        base = {name: item[name] for name in BASE} | {"truncated": False}
        pairs = list(pairs_of(item))
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
                name = f"{item['config']}/{item['id']}"
                comparisons.append(
                    Comparison(name, item["prompt"], item["responses"][first], item["responses"][second], context)
                )
    if not comparisons:
        raise EvaluationError(
            "The benchmark has no pair of responses that it tells apart, so there is nothing to judge."
        )
    for (place, side), settled in zip(asked, judge_.compare(comparisons), strict=True):
        rows[place] |= {
            f"verdict_{side}_first": settled.value or "invalid",
            "attempts": rows[place]["attempts"] + settled.attempts,
        }
        if settled.reason:
            rows[place]["reason"] = settled.reason
    for row in rows:
        if row.get("outcome") != "equal":
            row["verdict"] = verdict(row.get("verdict_chosen_first"), row.get("verdict_rejected_first"))
            row["outcome"] = VERDICTS[row["verdict"]]
    return pl.DataFrame(rows, schema=JUDGED)


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
