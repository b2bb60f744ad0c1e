"""Tasks of inspect_ai: `inspect eval pluralbench/BENCHMARK` judges a benchmark with any of its providers.

The entry point of the group `inspect_ai`; nothing else imports this module. A sample is an item of the benchmark. Its
solver makes all calls that the verdict needs, in both orders and with retries, and records them in the sample's store,
from which `import-inspect` makes a run.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from types import SimpleNamespace
from typing import Any

import polars as pl
from inspect_ai import Task, task
from inspect_ai._util.error import PrerequisiteError  # its message is shown without a traceback
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    GenerateConfig,
    Model,
    ModelOutput,
    ResponseSchema,
    get_model,
)
from inspect_ai.model._generate_config import active_generate_config  # has the options of `inspect eval`
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, Value, mean, metric, scorer
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import collect
from pluralbench_calls import Answer, ChatModel, Ledger, Request
from pluralbench_calls.backends.canned import Unanswered
from pluralbench_calls.backends.completions import parse_completion
from pluralbench_runs import FrozenModel, UserError, check_recipe, did_you_mean
from rich.markup import escape

from pluralbench.arguments import OF_STEPS
from pluralbench.config import DataConfig, JudgeConfig, PromptConfig
from pluralbench.data.benchmark_entries import known_benchmarks
from pluralbench.data.column_types import schema_of
from pluralbench.data.decisions import decisions_of
from pluralbench.data.layouts import layout_of
from pluralbench.data.metric_key import DIMENSIONS
from pluralbench.errors import EvaluationError
from pluralbench.evaluation.inspect_logs import IN_MEMORY, RECORD, SAMPLING, JudgingTask
from pluralbench.evaluation.judge import check_votes, load_judged, rubric_sampling
from pluralbench.evaluation.soft_verdicts import request_fields
from pluralbench.metrics.metric import SHOWN_COUNTS
from pluralbench.results.kinds import Texts, numbers_of_run

NOT_SAMPLING = {
    *("max_retries", "timeout", "attempt_timeout", "stream_idle_timeout", "max_connections", "adaptive_connections"),
    *("cache", "cache_prompt", "batch", "fail_on_refusal", "extra_headers", "num_choices"),
    *("logprobs", "top_logprobs", "prompt_logprobs", "response_schema"),
}
"""Fields of `GenerateConfig` that do not change a reply, or that the judge sets for itself."""
OPTIONS: dict[type[FrozenModel], set[str]] = {
    DataConfig: {*DataConfig.model_fields} - {*OF_STEPS},
    PromptConfig: {*PromptConfig.model_fields},
    JudgeConfig: {*JudgeConfig.model_fields} - {"rubric_base_url"},
}
"""Arguments of the tasks: fields of these configurations; `location` is called `data`."""
ROLES = {"system": ChatMessageSystem, "user": ChatMessageUser, "assistant": ChatMessageAssistant}


def _judged_task(benchmark: str | None, arguments: Mapping[str, Any]) -> Task:
    """Return the task of a benchmark. Raises `PrerequisiteError` if an argument or the data cannot be used."""
    try:
        judged = _LOADED[_key(benchmark, arguments)] = _read(benchmark, arguments)
        config = judged.config(ChatModel(provider="", model=""))
    except UserError as error:
        raise PrerequisiteError(escape(str(error))) from None
    loaded, record = judged.loaded, config.model_dump(mode="json", exclude={"model", "judging"})
    own: dict[str, Any] = {"benchmark": benchmark, **arguments}
    return Task(
        dataset=MemoryDataset(
            [_sample(place, item) for place, item in enumerate(loaded.frame.iter_rows(named=True))],
            name=loaded.name,
            location=loaded.items.location,
        ),
        solver=judge_item(**own),
        scorer=verdict(**own),
        metrics=[run_metrics(**own)],
        metadata={RECORD: record | {"judging": judged.judging.model_dump(mode="json")}},
    )


def _sample(place: int, item: Mapping[str, Any]) -> Sample:
    best = item["response_ids"][min(range(len(item["rank"])), key=item["rank"].__getitem__)]
    own = {name: item[name] for name in ("config", "id", "subset", "cluster", "digest")}
    return Sample(
        [ROLES[message["role"]](content=message["content"]) for message in item["prompt"]],
        id=f"{item['config']}/{item['id']}",
        target=str(best),
        metadata={"place": place, **own},
    )


_LOADED: dict[str, JudgingTask] = {}
"""What tasks of this process judge, by their benchmark and arguments. A new task reads its data again."""


def _key(benchmark: str | None, arguments: Mapping[str, Any]) -> str:
    return json.dumps([benchmark, arguments], sort_keys=True, default=str)


def _load(benchmark: str | None, arguments: Mapping[str, Any]) -> JudgingTask:
    """Return what a task judges; it is read again in a process that scores or retries a log."""
    key = _key(benchmark, arguments)
    if key not in _LOADED:
        _LOADED[key] = _read(benchmark, arguments)
    return _LOADED[key]


def _read(benchmark: str | None, arguments: Mapping[str, Any]) -> JudgingTask:
    """Read a benchmark for a judge; the arguments are fields of the configurations of `judge`."""
    given = dict(arguments)
    known = {field: kind for kind, fields in OPTIONS.items() for field in fields}
    values: dict[type[FrozenModel], dict[str, Any]] = {kind: {} for kind in OPTIONS}
    seed = given.pop("seed", 0)
    for name, value in given.items():
        field = "location" if name == "data" else name
        if field not in known or name == "location":
            names = sorted({"data", "seed", *known} - {"location"})
            raise EvaluationError(
                f"`{name}` is not an argument of the task; {did_you_mean(name, names)}arguments: {', '.join(names)}."
            )
        several = isinstance(value, str) and known[field].model_fields[field].annotation == tuple[str, ...]
        values[known[field]][field] = (value,) if several else value
    data = check_recipe(DataConfig, values[DataConfig], "of the task")
    prompt = check_recipe(PromptConfig, values[PromptConfig], "of the task")
    options = check_recipe(JudgeConfig, values[JudgeConfig], "of the task")
    if options.prompt is not None and options.prompt.roles:
        raise EvaluationError(
            f"The prompt {options.prompt.name} has the role {options.prompt.roles[0]}, which inspect_ai does not send; "
            "use another prompt, or `pluralbench judge`."
        )
    loaded, judging = load_judged(benchmark, data, prompt, options.for_model(""))
    return JudgingTask.of(loaded, judging, seed)


@solver
def judge_item(benchmark: str | None = None, **arguments: Any) -> Solver:
    """Make all calls that the verdict on an item needs; the arguments are those of the task."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        del generate  # makes one call with the messages of the state; the requests are the judge's own
        if state.epoch > 1:
            raise EvaluationError("Epochs repeat the same questions; leave out --epochs, and pass `-T samples=N`.")
        judged, place = _item(benchmark, arguments, state)
        judges = _judges(judged.judging)
        config = judged.config(*(chat for chat, _ in judges.values()))
        check_votes(config.judging, [config.model])
        models = {(chat.provider, chat.model): model for chat, model in judges.values()}
        record: dict[str, Any] = {
            "judges": {name: chat.model_dump(mode="json") for name, (chat, _) in judges.items()},
            "calls": [],
        }
        with Ledger(IN_MEMORY) as ledger:

            async def send(request: Request) -> tuple[list[ChatMessage], ModelOutput]:
                answer, messages, output = await _send(models[request.provider, request.model], request)
                ledger.record(answer)
                record["calls"] = [*record["calls"], asdict(answer)]
                state.store.set(RECORD, record)  # at once: a limit may stop the sample before its other replies
                return messages, output

            while requests := judged.missing_requests(config, ledger, place):
                calls = await collect(*map(send, requests))
                messages, state.output = calls[-1]
                state.messages = [*messages, *(choice.message for choice in state.output.choices[:1])]
        state.store.set(RECORD, record)
        return state

    return solve


def _item(benchmark: str | None, arguments: Mapping[str, Any], state: TaskState) -> tuple[JudgingTask, int]:
    """Return the task and the position of the item of a sample."""
    judged, place = _load(benchmark, arguments), state.metadata["place"]
    if judged.loaded.frame["digest"].slice(place, 1).to_list() != [state.metadata["digest"]]:
        raise EvaluationError(
            f"{judged.loaded.items.location} has changed: the item {state.sample_id} is not the same."
        )
    return judged, place


def _judges(judging: JudgeConfig) -> dict[str, tuple[ChatModel, Model]]:
    """Return the judge and the model that writes rubrics, if there is one, by the field of a run's configuration."""
    model = get_model()
    options = model.config.merge(active_generate_config()).model_dump(exclude_none=True)
    sampling = {name: options.pop(name, getattr(judging, name)) for name in SAMPLING}
    body = options.pop("extra_body", {})
    own = {name: value for name, value in options.items() if name not in NOT_SAMPLING}
    judges = {"model": (_chat_model(model, sampling | {"extra": request_fields(judging) | own | body}), model)}
    if judging.rubric_model is not None and judging.prompt is not None and judging.prompt.rubric is not None:
        writer = get_model(judging.rubric_model)
        judges["rubric_model"] = (_chat_model(writer, rubric_sampling(judging.prompt.rubric)), writer)
    return judges


def _chat_model(model: Model, sampling: Mapping[str, Any]) -> ChatModel:
    provider, _, name = str(model).partition("/")
    return ChatModel(provider=provider, model=name, **sampling)


async def _send(model: Model, request: Request) -> tuple[Answer, list[ChatMessage], ModelOutput]:
    """Send a request; return the answer to record, and the messages and the output as inspect_ai has them."""
    body: dict[str, Any] = dict(request.body)
    messages = [ROLES[message["role"]](content=message["content"]) for message in body.pop("messages")]
    form = body.pop("response_format", None)
    options = {name: body.pop(name) for name in GenerateConfig.model_fields if name in body}
    if form is not None:
        own = form["json_schema"]
        options["response_schema"] = ResponseSchema(name=own["name"], json_schema=own["schema"])
    if request.sample:  # another sample of the same request is not the one in the cache
        options["cache"] = False
    output = await model.generate(messages, config=GenerateConfig(**options, extra_body=body or None))
    reply = parse_completion(_as_completion(output))
    if reply is None:
        raise EvaluationError(f"{model} answers without a message.")
    return reply.answer(request, ()), messages, output


def _as_completion(output: ModelOutput) -> SimpleNamespace:
    """Return an output in the form of OpenAI's chat completions, which the judge's own client reads."""
    usage, choices = output.usage, []
    for choice in output.choices:
        parts = choice.message.content if isinstance(choice.message.content, list) else []
        refusal = "".join(part.text for part in parts if part.type == "text" and part.refusal)
        message = SimpleNamespace(content="" if refusal else choice.message.text, refusal=refusal)
        choices.append(SimpleNamespace(message=message, finish_reason=choice.stop_reason, logprobs=choice.logprobs))
    cached = 0 if usage is None else usage.input_tokens_cache_read or 0
    counts = (
        None
        if usage is None
        else SimpleNamespace(
            prompt_tokens=usage.input_tokens + cached + (usage.input_tokens_cache_write or 0),
            completion_tokens=usage.output_tokens,
            total_tokens=usage.total_tokens,
            prompt_tokens_details=SimpleNamespace(cached_tokens=cached),
        )
    )
    return SimpleNamespace(choices=choices, usage=counts, model=output.model)


@scorer(metrics=[mean()])
def verdict(benchmark: str | None = None, **arguments: Any) -> Scorer:
    """Read the verdict on an item from its recorded calls: the share of its decisions that are right.

    The arguments are those of the task. A sample that failed before all calls were made has no score.
    """

    async def score(state: TaskState, target: Target) -> Score | None:
        del target
        judged, place = _item(benchmark, arguments, state)
        record = state.store.get(RECORD)
        if record is None:
            return None
        judges = {name: ChatModel.model_validate(chat) for name, chat in record["judges"].items()}
        answers = [Answer(**call) for call in record["calls"]]
        with Ledger(IN_MEMORY) as ledger:
            ledger.record(*answers)
            try:
                verdicts = judged.judge(judged.config(*judges.values()), ledger, [place])
            except Unanswered:
                return None
        outcomes = decisions_of(verdicts.frame)["outcome"].to_list()
        return Score(
            value=outcomes.count("win") / len(outcomes),
            answer=", ".join(outcomes),
            explanation="\n\n".join(f"{answer.label}:\n{answer.text}" for answer in answers),
            metadata={name: json.loads(frame.write_json()) for name, frame in verdicts.frames.items()},
        )

    return score


@metric
def run_metrics(benchmark: str | None = None, **arguments: Any) -> Metric:
    """Compute the numbers of all items that have an interval, such as `overall`, with its bounds, and `SHOWN_COUNTS`.

    The arguments are those of the task.
    """

    def compute(scores: list[SampleScore]) -> Value:
        if not scores:  # inspect_ai asks for the numbers of no sample before the first
            return {}
        judged = _load(benchmark, arguments)
        ordered = sorted(scores, key=lambda one: (one.sample_metadata or {})["place"])
        frames = {name: _frame(name, ordered) for name in (ordered[0].score.metadata or {})}
        items = judged.loaded.items.frame.join(frames["items"], on=["config", "id"], how="semi", maintain_order="left")
        frames |= judged.loaded._replace(frame=items).frames()
        numbers = numbers_of_run(judged.config(ChatModel(provider="", model="")), None, frames, Texts(items))
        shown = pl.col("low").is_not_null() | pl.col("metric").is_in(["overall", *SHOWN_COUNTS])
        own = numbers.filter(shown, pl.all_horizontal(pl.col(*DIMENSIONS).is_null()))
        return {
            f"{row['metric']}{end}": row[column]
            for row in own.iter_rows(named=True)
            for column, end in (("value", ""), ("low", "_low"), ("high", "_high"))
            if row[column] is not None
        }

    return compute


def _frame(name: str, scores: Sequence[SampleScore]) -> pl.DataFrame:
    """Join a frame of a run from the metadata of scores; JSON has no NaN, which is the score of an invalid reply."""
    rows = [row for one in scores for row in (one.score.metadata or {})[name]]
    frame = pl.DataFrame(rows, schema=schema_of(*(rows[0] if rows else ())))
    return frame.with_columns(pl.col("^score.*$").fill_null(float("nan")))


def _register() -> None:
    """Register a task for each benchmark that a judge can judge, and `judge` for any."""

    def register(name: str, fixed: str | None) -> None:
        def of_benchmark(**arguments: Any) -> Task:
            return _judged_task(fixed, arguments)

        def of_any(benchmark: str | None = None, **arguments: Any) -> Task:
            return _judged_task(benchmark, arguments)

        task(name=name)(of_any if fixed is None else of_benchmark)

    for name, benchmark in known_benchmarks().items():
        if "judge" in layout_of(benchmark).commands:
            register(name, name)
    register("judge", None)


_register()
