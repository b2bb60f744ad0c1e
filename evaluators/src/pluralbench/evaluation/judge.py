"""`judge`: let a language model judge a benchmark and write a run directory with the recorded calls."""

from collections import Counter
from pathlib import Path

import polars as pl
from pluralbench_calls import Choice, read_ledger
from pluralbench_calls.chat import ChatModel, ConnectionConfig
from pluralbench_calls.verdicts import legacy_score
from pluralbench_measures.bootstrap import Estimate
from pluralbench_runs import Seed

from pluralbench.arguments import ShardText
from pluralbench.config import DataConfig, JudgeConfig, PersonaJudgeConfig, Profile, PromptConfig, SynthesizeConfig
from pluralbench.data.decisions import decisions_of
from pluralbench.data.votes import SIDES
from pluralbench.evaluation.folders import run_folder
from pluralbench.evaluation.judged_items import JudgeContexts, JudgeVerdicts, check_protocol, judge_items
from pluralbench.evaluation.loading import LoadedBenchmark, load_benchmark, run_directory
from pluralbench.evaluation.models import resolve_chat_model
from pluralbench.evaluation.soft_verdicts import request_fields
from pluralbench.evaluation.verdicts import (
    export_calls,
    judge_of,
    judge_prompts_digest,
    judge_result,
    rubric_connection,
)
from pluralbench.evaluation.work import stopwatch
from pluralbench.metrics.frame import metrics_frame
from pluralbench.metrics.metric import MetricKey
from pluralbench.results.evaluations import JudgeResult, JudgeRunConfig
from pluralbench.results.record import UsageRecord
from pluralbench.results.run_files import LEDGER_FILE, write_run
from pluralbench.results.runs import Run, load_run


def judge(
    model: str,
    *,
    benchmark: str | None = None,
    data: str | Path | DataConfig | None = None,
    prompt: Profile | PromptConfig | None = None,
    judging: JudgeConfig | None = None,
    connection: ConnectionConfig | None = None,
    seed: Seed = 0,
    shard: ShardText = None,
    out: str | Path | None = None,
    fresh: bool = False,
) -> Run[JudgeRunConfig, JudgeResult]:
    """Let a language model judge a benchmark.

    Every call is recorded in the run directory; repeat it with the same arguments to resume without repeating calls. A
    reply that cannot be parsed is retried at a higher temperature. If no attempt gives a readable verdict, it is
    invalid and counts as wrong.

    Args:
        model: Name of a model at the endpoint, or `local` (small embedded model).
        benchmark: Name, such as personalized, multilingual, chinese, reward-bench-2 or pairs (`pluralbench list` shows
            all), or a TOML file. Default: the benchmark in the manifest of `data`, else personalized.
        data: Location of the dataset, or a `DataConfig`, which also selects configs, columns and a limit, or draws
            items. Default: the benchmark's dataset on the Hub.
        prompt: User context that the judge sees, such as "raw", or a `PromptConfig`. Default: none.
        judging: The judge's question and reply: orders, criterion, oracle, reply format, sampling. Default:
            `JudgeConfig()`. Benchmarks with legacy rules for rankings (`legacy=True`) are judged in one order.
        connection: Endpoint, rate limits and maximum cost. Default: `ConnectionConfig()`, which is OpenAI's API.
        seed: Random seed, of draws such as the order of the responses.
        shard: Process only shard I of N (from 1); `pluralbench merge` joins the shards.
        out: Run directory. Default: a name under runs/ that lists the benchmark, the model and the other settings.
        fresh: Start over, and replace existing output.

    Returns:
        The run in `out`, as `load_run` reads it.

    Raises:
        UserError: If an argument, the data, the endpoint or the directory cannot be used. The message names the fix.

    Examples:
        pluralbench judge gpt-5-mini --benchmark personalized --limit 50 --price 0.25/2 --max-cost 1
        pluralbench judge my-model --base-url http://localhost:8000/v1 --data dist/personalized-rewardbench
            --oracle titles
    """
    options = judging or JudgeConfig()
    judging = options.for_model(model)
    loaded = load_benchmark(benchmark, data, prompt, shard=shard)
    if not loaded.benchmark.ties_break_exact_match and judging.protocol == "pairwise":
        # CHEEMS's code asks once per pair; verdicts count as in its paper.
        loaded = loaded._replace(benchmark=loaded.benchmark.model_copy(update={"ties_break_exact_match": True}))
        judging = judging.model_copy(update={"orders": "one"})
    check_protocol(loaded, judging)
    contexts = JudgeContexts.for_items(loaded, judging)
    chat, connection = judge_chat_model(model, judging, connection, seeded=False)
    config = JudgeRunConfig(
        **loaded.records(),
        model=chat,
        rubric_model=rubric_chat_model(judging, connection),
        prompts_digest=judge_prompts_digest(judging),
        judging=judging,
        seed=seed,
        connection=connection,
    )
    name = f"{loaded.name}-{Path(chat.model).name}-judge"
    target = Path(out or run_folder(name, config, loaded.data, loaded.prompt, options, seed=seed, shard=loaded.shard))
    the_judge = judge_of(config, target.with_name(target.name + ".work") / "ledger.sqlite")
    with run_directory(target, config, fresh=fresh) as output:
        if output is not None:
            with stopwatch(output.work) as seconds:
                verdicts = judge_items(the_judge, loaded, contexts, judging, seed)
                usage = export_calls(the_judge, output)
                result = result_of_verdicts(config, verdicts, usage, seconds())
                metrics = compute_judge_metrics(loaded, verdicts.frame, read_ledger(output.work / LEDGER_FILE), judging)
                write_run(output, config, result, metrics, {"items": verdicts.frame})
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
    sampling["extra"] = request_fields(judging)
    return resolve_chat_model(model, connection, sampling, "judge", seeded=seeded)


def rubric_chat_model(judging: JudgeConfig, connection: ConnectionConfig) -> ChatModel | None:
    """Resolve the model that writes the rubrics of a judge's prompt; None if there is none."""
    if judging.rubric_model is None or judging.prompt is None or judging.prompt.rubric is None:
        return None
    own = judging.prompt.rubric.sampling
    sampling = {"temperature": own.temperature or 0.0, "top_p": own.top_p, "max_tokens": own.max_tokens or 1024}
    extra = {"extra": {} if own.top_k is None else {"top_k": own.top_k}}
    reached = rubric_connection(judging, connection)
    return resolve_chat_model(judging.rubric_model, reached, sampling | extra, "rubric model", seeded=False)[0]


def result_of_verdicts(
    config: JudgeRunConfig, verdicts: JudgeVerdicts, usage: UsageRecord, seconds: float
) -> JudgeResult:
    """Return the result of a run from the judge's verdicts and calls, and the duration in seconds."""
    return JudgeResult(
        **judge_result(config, usage, seconds),
        invalid_reasons=dict(sorted(Counter(verdicts.reasons).items())),
        readings=verdicts.readings,
    )


def compute_judge_metrics(
    loaded: LoadedBenchmark, frame: pl.DataFrame, ledger: pl.DataFrame, judging: JudgeConfig
) -> pl.DataFrame:
    """Compute the metrics of a judge's run; a shard has none.

    Args:
        loaded: The benchmark and its items.
        frame: The rows of `items.parquet`.
        ledger: The recorded calls.
        judging: How it was judged.
    """
    metrics = loaded.compute_metrics(decisions_of(frame), frame)
    return metrics if loaded.shard is not None else with_legacy(metrics, frame, ledger, judging)


def with_legacy(metrics: pl.DataFrame, frame: pl.DataFrame, ledger: pl.DataFrame, judging: JudgeConfig) -> pl.DataFrame:
    """Add M-RewardBench's accuracy, which gives half a point for a verdict that its code cannot read.

    Only runs that compare responses have it. With a prompt of its own, the judge's verdicts are read as that says.

    Args:
        metrics: The metrics of the run.
        frame: The rows of `items.parquet`.
        ledger: The recorded calls. The last call of a verdict decides.
        judging: How it was judged.
    """
    if SIDES[0][1] not in frame.columns:
        return metrics
    texts = dict(ledger.select("key", "text").iter_rows())
    letters: tuple[Choice, ...] = ("A", "B")
    if judging.prompt is None:
        points = [
            legacy_score(texts[calls[-1]], letter)
            for (_, column), letter in zip(SIDES, letters, strict=True)
            for calls in frame[column].drop_nulls()
        ]
    else:
        points = [
            float(verdict == letter) if verdict in letters else 0.5
            for (column, _), letter in zip(SIDES, letters, strict=True)
            for verdict in frame[column].drop_nulls()
        ]
    mean = Estimate(sum(points) / len(points) if points else None, n=len(points))
    return pl.concat([metrics, metrics_frame([(MetricKey("accuracy_with_invalid_as_half"), mean)])])
