"""`judge`: let a language model judge a benchmark and write a run directory with the recorded calls."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pluralbench_calls import Backend, read_ledger
from pluralbench_calls.chat import LOCAL, ChatModel, ConnectionConfig
from pluralbench_local import LocalModel
from pluralbench_rewards.judge import Judge
from pluralbench_rewards.prompts.prompt import RubricPrompt
from pluralbench_runs import Output, Seed

from pluralbench.arguments import Judged, ShardText
from pluralbench.config import JudgeConfig, PersonaJudgeConfig, Profile, PromptConfig, SynthesizeConfig
from pluralbench.errors import EvaluationError
from pluralbench.evaluation.folders import run_folder
from pluralbench.evaluation.judged_items import JudgeVerdicts, check_protocol, judge_items, questions_of
from pluralbench.evaluation.loading import Evaluation, LoadedBenchmark, LoadedPersonas, evaluated_run, load_benchmark
from pluralbench.evaluation.models import JUDGE, RUBRIC_WRITER, FoundChat, chat_file_name, find_chat_model, place_of
from pluralbench.evaluation.soft_verdicts import request_fields
from pluralbench.evaluation.verdicts import (
    export_calls,
    judge_result,
    judges_of,
)
from pluralbench.results.evaluations import JudgeResult, JudgeRunConfig, JudgingRunConfig
from pluralbench.results.kinds import RUN_KINDS
from pluralbench.results.record import UsageRecord
from pluralbench.results.run_files import LEDGER_FILE
from pluralbench.results.runs import Run

ConfigT = TypeVar("ConfigT", bound=JudgingRunConfig)
NAMED_JUDGES = 3  # in the name of a run's directory


def judge(
    model: str | LocalModel | Sequence[str | LocalModel],
    *,
    benchmark: str | None = None,
    data: Judged = None,
    prompt: Profile | PromptConfig | None = None,
    judging: JudgeConfig | None = None,
    connection: ConnectionConfig | None = None,
    seed: Seed = 0,
    shard: ShardText = None,
    out: str | Path | None = None,
    fresh: bool = False,
) -> Run[JudgeRunConfig, JudgeResult]:
    """Let a language model judge a benchmark, or a panel of several that vote.

    Every call is recorded in the run directory; rerun the same command to resume without repeating calls. A reply that
    cannot be parsed is retried at a higher temperature; without a readable one, the verdict is invalid and wrong.

    Args:
        model: Name at the endpoint; `local` (small embedded model); without `--base-url` also a directory or ORG/NAME
            on the Hub, which runs here. Several are a panel.
        benchmark: Name (see `pluralbench list`) or TOML file. Default: that in the manifest of `data`, else
            personalized.
        data: Location of the dataset, or a `DataConfig`, which also selects configs, columns and a limit, or draws
            items. Default: the benchmark's dataset on the Hub.
        prompt: User context that the judge sees, such as "raw", or a `PromptConfig`. Default: none.
        judging: The judge's question and reply: orders, criterion, oracle, reply format, sampling. Default:
            `JudgeConfig()`. Benchmarks with legacy rules for rankings (`legacy=True`) are judged in one order.
        connection: Endpoint, rate limits and maximum cost. Default: `ConnectionConfig()`, which is OpenAI's API.
        seed: Seed of draws, such as the order of responses.
        shard: Process only shard I of N (from 1); `pluralbench merge` joins the shards.
        out: Run directory. Default: runs/ and a name with benchmark, model and settings.
        fresh: Start over, and replace existing output.

    Returns:
        The run in `out`, as `load_run` reads it.

    Raises:
        UserError: If an argument, the data, the endpoint or the directory cannot be used. The message names the fix.

    Examples:
        pluralbench judge gpt-5-mini --benchmark personalized --limit 50 --price 0.25/2 --max-cost 1
        pluralbench judge my-model --base-url http://localhost:8000/v1 --data dist/personalized-rewardbench
            --oracle titles
        pluralbench judge ./my-judge --data dist/personalized-rewardbench --device cuda
        pluralbench judge model-a model-b --samples 8 --temperature 0.7
        pluralbench judge my-model --data dist/personalized-rewardbench --prompt rubric-winner --rubric our-rubric.txt
    """
    options, models = judging or JudgeConfig(), [model] if isinstance(model, str | LocalModel) else [*model]
    judging = options.for_model(LOCAL if LOCAL in models else "")
    loaded, judging = load_judged(benchmark, data, prompt, judging, shard)
    questions = questions_of(loaded, judging)
    chats, connection, here = _chat_models(models, judging, connection)
    rubric = rubric_chat_model(judging, connection)
    config = JudgeRunConfig(
        **loaded.records(),
        model=chats[0],
        panel=chats[1:],
        rubric_model=None if rubric is None else rubric.model,
        prompts_digest=JudgeRunConfig.digest_of_prompts(judging),
        judging=judging,
        seed=seed,
        connection=connection,
    )
    name = f"{loaded.name}-{'-'.join(map(chat_file_name, chats[:NAMED_JUDGES]))}-judge"
    local = next((one for one in models if isinstance(one, LocalModel)), None)
    named = (loaded.data, loaded.prompt, options, local)
    target = Path(out or run_folder(name, config, *named, seed=seed, shard=loaded.shard))
    here |= {} if rubric is None or rubric.here is None else {rubric.model.model: rubric.here}

    def decide(judges: Sequence[Judge]) -> JudgeVerdicts:
        # A judge that cannot be asked is noticed before the others have judged all; a batch would take a day.
        served = [judge for judge in judges if judge.backend is None]
        files = connection.batch or connection.pending is not None or bool(connection.results)
        if len(judges) > 1 and served and not files and loaded.frame.height:
            judge_items(served, loaded._replace(frame=loaded.frame[:1]), questions[:1], judging, seed)
        return judge_items(judges, loaded, questions, judging, seed)

    return judge_run(target, config, loaded, here, decide, fresh=fresh)


def judge_run(
    target: Path,
    config: ConfigT,
    loaded: LoadedBenchmark | LoadedPersonas,
    here: Mapping[str, Callable[[], Backend]],
    decide: Callable[[Sequence[Judge]], JudgeVerdicts],
    *,
    fresh: bool,
) -> Run[ConfigT, Any]:
    """Judge items and write the run directory, or read the finished run in it.

    `here` makes the backends of judges in this process, by name; `decide` returns the verdicts.
    """

    def evaluate(output: Output, seconds: Callable[[], float]) -> Evaluation:
        judges = judges_of(config, output.work / "ledger.sqlite", here=here)
        return evaluation_of(output, config, decide(judges), judges[0], seconds)

    return evaluated_run(target, config, loaded, evaluate, fresh=fresh)


def load_judged(
    benchmark: str | None,
    data: Judged,
    prompt: Profile | PromptConfig | None,
    judging: JudgeConfig,
    shard: str | None = None,
) -> tuple[LoadedBenchmark, JudgeConfig]:
    """Load the items of `judge` and its configuration; those with legacy rules for rankings are judged in one order.

    Raises:
        UserError: If an argument or the data cannot be used, or the items do not fit the protocol.
    """
    loaded = load_benchmark(benchmark, data, prompt, shard=shard)
    if not loaded.benchmark.ties_break_exact_match and judging.protocol == "pairwise":
        # CHEEMS's code asks once per pair; verdicts count as in its paper.
        loaded = loaded._replace(benchmark=loaded.benchmark.model_copy(update={"ties_break_exact_match": True}))
        judging = judging.model_copy(update={"orders": "one"})
    check_protocol(loaded, judging)
    return loaded, judging


def evaluation_of(
    output: Output, config: JudgingRunConfig, verdicts: JudgeVerdicts, judge: Judge, seconds: Callable[[], float]
) -> Evaluation:
    """Write the ledger of `judge` to the run, and return the run's result, frames and calls."""
    result = result_of_verdicts(config, verdicts, export_calls(judge, output), seconds())
    return result, verdicts.frames, read_ledger(output.work / LEDGER_FILE)


def _chat_models(
    models: Sequence[str | LocalModel], judging: JudgeConfig, connection: ConnectionConfig | None
) -> tuple[tuple[ChatModel, ...], ConnectionConfig, dict[str, Callable[[], Backend]]]:
    """Resolve the judges, the connection to those at an endpoint, and what makes the backends of the others."""
    if not models:
        raise EvaluationError("A panel needs at least one judge; name a model.")
    # Of a panel, options of the connection are for its judges at the endpoint.
    connected = [
        connection if len(models) == 1 or place_of(name, connection, JUDGE) != "here" else None for name in models
    ]
    resolved = [
        judge_chat_model(name, judging, reached, seeded=False) for name, reached in zip(models, connected, strict=True)
    ]
    chats = tuple(one.model for one in resolved)
    names = [chat.model for chat in chats]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise EvaluationError(
            f"The judge {twice} is in the panel twice; name each once, and let it reply several times with "
            "`samples=...`."
        )
    check_votes(judging, chats)
    connections = [one.connection for one in resolved]
    reached = next((one for one in connections if one.base_url is not None), connections[0])
    return chats, reached, {one.model.model: one.here for one in resolved if one.here is not None}


def check_votes(judging: JudgeConfig, chats: Sequence[ChatModel]) -> None:
    """Check that the options of votes apply to the judges. Raises `EvaluationError` if they do not."""
    greedy = next((chat.model for chat in chats if chat.temperature == 0), None)
    if judging.samples > 1 and greedy is not None:
        raise EvaluationError(
            f"`samples={judging.samples}` needs samples that differ, but {greedy} replies at temperature 0; set "
            "`temperature=...`, such as 0.7."
        )
    if judging.tie_margin is not None and judging.samples * len(chats) > 1:
        raise EvaluationError(
            f"`tie_margin={judging.tie_margin}` decides by probability, and several replies vote by their verdicts; "
            "leave it out, or let one judge reply once."
        )
    if judging.vote is not None and judging.samples * len(chats) == 1:
        raise EvaluationError(
            f'`vote="{judging.vote}"` needs several replies to a question; pass `samples=...` or more judges.'
        )


def judge_chat_model(
    model: str | LocalModel,
    judging: JudgeConfig | PersonaJudgeConfig | SynthesizeConfig,
    connection: ConnectionConfig | None,
    *,
    seeded: bool = True,
) -> FoundChat:
    """Resolve a judge's chat model and connection, with the judge's sampling options; see `find_chat_model`."""
    sampling = {name: getattr(judging, name) for name in ("temperature", "top_p", "max_tokens")}
    sampling["extra"] = request_fields(judging)
    return find_chat_model(model, connection, sampling, JUDGE, seeded=seeded)


def rubric_chat_model(judging: JudgeConfig, connection: ConnectionConfig) -> FoundChat | None:
    """Resolve the model that writes the rubrics of a judge's prompt; None if there is none."""
    if judging.rubric_model is None or judging.prompt is None or judging.prompt.rubric is None:
        return None
    reached, sampling = judging.rubric_connection(connection), rubric_sampling(judging.prompt.rubric)
    return find_chat_model(judging.rubric_model, reached, sampling, RUBRIC_WRITER, seeded=False)


def rubric_sampling(rubric: RubricPrompt) -> dict[str, Any]:
    """Return the sampling options, as fields of `ChatModel`, of the model that writes the rubrics of a prompt."""
    own = rubric.sampling
    sampling = {"temperature": own.temperature or 0.0, "top_p": own.top_p, "max_tokens": own.max_tokens or 1024}
    return sampling | {"extra": {} if own.top_k is None else {"top_k": own.top_k}}


def result_of_verdicts(
    config: JudgingRunConfig, verdicts: JudgeVerdicts, usage: UsageRecord, seconds: float
) -> JudgeResult:
    """Return the result of a run from the judge's verdicts and calls, and the duration in seconds."""
    kind: Any = RUN_KINDS[config.verb]
    result: JudgeResult = kind.result(
        **judge_result(config, usage, seconds),
        invalid_reasons=dict(sorted(Counter(verdicts.reasons).items())),
        readings=verdicts.readings,
        **verdicts.left_out,
    )
    return result.model_copy(update=kind.derive(config, result, verdicts.frames.__getitem__))
