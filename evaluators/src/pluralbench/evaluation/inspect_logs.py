"""`import-inspect`: make a judge's run of a log that `inspect eval pluralbench/BENCHMARK` wrote.

A log's metadata has the settings of the run without the judge, and the store of each sample has the judge and the
recorded calls. The verdicts and numbers are computed from these calls, not taken from the log.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import polars as pl
from pluralbench_calls import Answer, ChatModel, Ledger, Replay, Request, read_ledger
from pluralbench_calls.backends.canned import ExternalBackend, Unanswered
from pluralbench_calls.backends.completions import MAX_TOKENS
from pluralbench_rewards import Question
from pluralbench_runs import (
    FrozenModel,
    Seed,
    canonical_json,
    check_recipe,
    describe_difference,
    log_status,
    one_line,
    plural,
)
from pluralbench_runs.install_hints import install_command
from pluralbench_runs.options import Flag
from pydantic import AfterValidator, AwareDatetime, BaseModel, ValidationError

from pluralbench.config import JudgeConfig
from pluralbench.config.fields import PLACE
from pluralbench.data.texts import first_ids
from pluralbench.errors import DataError, RunError
from pluralbench.evaluation.folders import run_folder
from pluralbench.evaluation.judge import evaluation_of
from pluralbench.evaluation.judged_items import JudgeVerdicts, judge_items, questions_of
from pluralbench.evaluation.loading import LoadedBenchmark, run_directory, write_evaluation
from pluralbench.evaluation.models import chat_file_name
from pluralbench.evaluation.reloading import OtherPrompts, RunInputs, check_prompts, reload_data
from pluralbench.evaluation.verdicts import judge_record, judges_of
from pluralbench.metrics.frame import COLUMNS
from pluralbench.results.evaluations import JudgeResult, JudgeRunConfig
from pluralbench.results.record import provenance
from pluralbench.results.run_files import LEDGER_FILE
from pluralbench.results.runs import Run, load_run

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog, EvalSample

RECORD = "pluralbench"
"""Name of our record in the metadata of a log and in the store of a sample."""
SAMPLING = ("temperature", "top_p", "max_tokens")
"""Settings that the judge's model and its configuration have in common; options of `inspect eval` set them, too."""
IN_MEMORY = Path(":memory:")
"""File name by which SQLite keeps a ledger in memory; files for each sample would take most of an evaluation."""
MAX_MESSAGE = 200  # characters of an error in a log

Item = tuple[str, str]
"""Config and id of an item."""


class JudgingTask(NamedTuple):
    """What `inspect eval` judges, and how; the judge itself is known when a sample is judged.

    Attributes:
        judging: How they are judged, with all defaults.
        questions: What the judge reads of each item.
        records: Records of benchmark, data and prompt in the settings of a run.
    """

    loaded: LoadedBenchmark
    judging: JudgeConfig
    seed: Seed
    questions: list[Question]
    records: dict[str, Any]

    @classmethod
    def of(cls, loaded: LoadedBenchmark, judging: JudgeConfig, seed: Seed) -> "JudgingTask":
        """Return the task with the parts that follow from the others."""
        return cls(loaded, judging, seed, questions_of(loaded, judging), loaded.records())

    def config(self, model: ChatModel, rubric_model: ChatModel | None = None) -> JudgeRunConfig:
        """Return the settings of the run with a judge, whose sampling is that of the model."""
        judging = self.judging.model_copy(update={name: getattr(model, name) for name in SAMPLING})
        return JudgeRunConfig(
            **self.records,
            model=model,
            rubric_model=rubric_model,
            prompts_digest=JudgeRunConfig.digest_of_prompts(judging),
            judging=judging,
            seed=self.seed,
        )

    def judge(self, config: JudgeRunConfig, ledger: Ledger, places: Sequence[int]) -> JudgeVerdicts:
        """Judge some items with the recorded calls.

        Raises:
            Unanswered: Calls are missing.
        """
        loaded = self.loaded._replace(frame=self.loaded.frame[list(places)])
        judges = judges_of(config, ledger, backend=ExternalBackend())
        return judge_items(judges, loaded, [self.questions[place] for place in places], config.judging, self.seed)

    def missing_requests(self, config: JudgeRunConfig, ledger: Ledger, place: int) -> Sequence[Request]:
        """Return the next calls that the verdict on an item needs; none if all are recorded."""
        try:
            self.judge(config, ledger, [place])
        except Unanswered as missing:
            return missing.requests
        return ()


def _check_counts(answer: Answer) -> Answer:
    if not all(0 <= n <= MAX_TOKENS for n in (answer.prompt_tokens, answer.completion_tokens, answer.cached_tokens)):
        raise ValueError("not a number of tokens")
    return answer


class _Item(BaseModel):
    config: str
    id: str


class _Judges(FrozenModel):
    model: ChatModel
    rubric_model: ChatModel | None = None


class _Calls(FrozenModel):
    judges: _Judges
    calls: tuple[Annotated[Answer, AfterValidator(_check_counts)], ...]


class _OurPart(FrozenModel):
    """What the task has written into a log, sample by sample; None are calls of a sample that failed before any."""

    settings: dict[str, Any]
    judging: dict[str, Any]
    samples: tuple[_Item, ...]
    calls: tuple[_Calls | None, ...]
    started_at: AwareDatetime
    completed_at: AwareDatetime


class _Log(NamedTuple):
    """A log that can be imported."""

    path: Path
    config: JudgeRunConfig
    items: set[Item]
    answers: list[Answer]
    failed: dict[Item, str]
    seconds: float


def import_inspect(
    log: Annotated[str | Path, Flag(metavar="LOG")],
    *,
    data: Annotated[str | None, Flag(metavar=PLACE)] = None,
    plans: Path | None = None,
    personas: Path | None = None,
    out: str | Path | None = None,
    fresh: bool = False,
) -> Run[JudgeRunConfig, JudgeResult]:
    """Make a run of a log of `inspect eval pluralbench/BENCHMARK`, with the numbers of `judge` on the same replies.

    Verdicts, metrics and intervals are computed from the replies in the log, as `judge` computes them. A sample with an
    error, which `inspect eval --no-fail-on-error` allows, is invalid and counts as wrong.

    Args:
        log: Log of inspect_ai, such as logs/2026-11-28T12-00-00_personalized_abc.eval.
        data: Current location of the log's data, if it has moved.
        plans: For --profile plan: output of `plan`, or JSON Lines with id and aspects.
        personas: Output of `synthesize`, or JSON Lines with persona and the id of an item or a user. Default: the
            data's personas.
        out: Run directory. Default: a name under runs/ that lists the benchmark, the model and the other settings.
        fresh: Start over, and replace existing output.

    Returns:
        The run in `out`, as `load_run` reads it.

    Raises:
        RunError: If the log is not finished or not of a task of pluralbench, or `out` is a run of another log.
        DataError: If the data is not what the log was made from.

    Examples:
        inspect eval pluralbench/personalized --model anthropic/claude-sonnet-4-5 -T limit=50
        pluralbench import-inspect logs/2026-11-28T12-00-00_personalized_abc.eval --out runs/claude
    """
    read = _read_log(Path(log))
    task = _reload(read, RunInputs(data, plans, personas))
    config = task.config(read.config.model, read.config.rubric_model)
    name = f"{task.loaded.name}-{chat_file_name(config.model)}-judge"
    named = (task.loaded.data, task.loaded.prompt, _options(config.judging))
    target = Path(out or run_folder(name, config, *named, seed=config.seed))
    with run_directory(target, config, fresh=fresh) as output:
        if output is None:
            _check_same_replies(target, read)
        else:
            with Ledger(IN_MEMORY) as ledger:
                ledger.record(*read.answers)
                verdicts = _judge(read, task, config, ledger)
                [judge] = judges_of(config, ledger, backend=Replay())
                evaluated = evaluation_of(output, config, verdicts, judge, lambda: read.seconds)
                write_evaluation(output, config, task.loaded, *evaluated)
    return load_run(target, JudgeRunConfig)


def _read_log(path: Path) -> _Log:
    """Read a log. Raises `RunError` if it cannot be imported."""
    try:
        from inspect_ai.log import read_eval_log
    except ModuleNotFoundError:
        raise RunError(f"Logs of inspect_ai need an extra: {install_command('pluralbench', 'inspect')}.") from None
    try:
        log = read_eval_log(path, resolve_attachments=True, exclude_fields={"events", "messages", "output"})
    except Exception as error:  # noqa: BLE001 - a damaged file raises any error
        raise RunError(f"{path} cannot be read as a log of inspect_ai: {one_line(error)}.") from None
    record = (log.eval.metadata or {}).get(RECORD)
    if record is None:
        raise RunError(
            f"{path} is a log of {log.eval.task}, which is no task of pluralbench; run `inspect eval "
            "pluralbench/BENCHMARK`."
        )
    if log.status != "success":
        cause = "" if log.error is None else f" ({_end(log.error.message)})"
        raise RunError(
            f"{path} is not finished: its status is {log.status}{cause}; finish it with `inspect eval-retry {path}`."
        )
    own = _our_part(path, log)
    samples = {(about.config, about.id): sample for about, sample in zip(own.samples, log.samples or (), strict=True)}
    if len(samples) < len(own.samples):
        raise RunError(f"{path} has several epochs; run the task with one, and let replies vote by `-T samples=N`.")
    failed = {item: _failure(sample) for item, sample in samples.items() if sample.error or sample.limit}
    records = [] if len(failed) == len(samples) else [one for one in own.calls if one is not None]
    models = [one.judges.model_dump(mode="json", exclude_none=True) for one in records]
    judges = {canonical_json(one): one for one in models}
    if len(judges) != 1:
        nothing = f"only failed samples ({next(iter(failed.values()))})" if failed else "no replies"
        raise RunError(
            f"{path} has {'replies of several judges' if judges else nothing}, so it cannot be imported; run the "
            "task again."
        )
    [used] = judges.values()
    sampling = {name: used["model"].get(name) for name in SAMPLING}
    settings = {**own.settings, **used, "judging": own.judging | sampling}
    config = check_recipe(JudgeRunConfig, settings, f"of {path}")
    answers = [answer for one in records for answer in one.calls]
    seconds = (own.completed_at - own.started_at).total_seconds()
    return _Log(path, config, {*samples}, answers, failed, max(0.0, seconds))


def _our_part(path: Path, log: "EvalLog") -> _OurPart:
    """Check what the task has written into a log. Raises `RunError` if it is not what it writes."""
    settings = (log.eval.metadata or {})[RECORD]
    values = {
        "settings": settings,
        "judging": settings.get("judging") if isinstance(settings, dict) else None,
        "samples": [sample.metadata for sample in log.samples or ()],
        "calls": [sample.store.get(RECORD) for sample in log.samples or ()],
        "started_at": log.stats.started_at,
        "completed_at": log.stats.completed_at,
    }
    try:
        return _OurPart.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        place, problem = ".".join(map(str, first["loc"])), first["msg"].removeprefix("Value error, ")
        raise RunError(
            f"{path} is damaged or not a log of a task of pluralbench: `{one_line(place, 80)}`: {one_line(problem)}."
        ) from None


def _failure(sample: "EvalSample") -> str:
    """Return why a sample failed or was stopped."""
    if sample.error is not None:
        return _end(sample.error.message)
    return "" if sample.limit is None else f"stopped at the limit of {sample.limit.type}"


def _end(message: str) -> str:
    """Return the end of an error of inspect_ai, which may begin with the whole request."""
    text = one_line(message, len(message))
    return text if len(text) <= MAX_MESSAGE else f"…{text[-MAX_MESSAGE:]}"


def _reload(read: _Log, files: RunInputs) -> JudgingTask:
    """Read the data of a log again.

    Raises:
        DataError: The data or the prompts are not those of the log, or its items cannot be selected.
    """
    config = read.config
    unfinished = Run(
        read.path, config, JudgeResult(model=judge_record(config)), provenance(), pl.DataFrame(schema=COLUMNS)
    )
    loaded = check_prompts(config, reload_data(unfinished, files))
    if config.prompts_digest != config.digest_of_prompts(config.judging):
        raise OtherPrompts(f"The judge's prompts in {read.path} differ from those of this version of pluralbench.")
    again = config.model_copy(update=loaded.records())
    place = {name: getattr(again.data, name) for name in ("location", "revision")}
    before = config if files.data is None else config.model_copy(update={"data": config.data.model_copy(update=place)})
    if difference := describe_difference(again, before):
        raise DataError(f"{read.path} was made from other data than {loaded.items.location} has now: {difference}.")
    if read.items != _items(loaded):
        # `inspect eval --limit N` takes the first items of all; `limit` those of each config.
        counts = Counter(config for config, _ in read.items)
        configs = tuple(name for name in config.data.rows if name in counts)
        first = config.data.model_copy(update={"configs": configs, "limit": max(counts.values())})
        first_run = replace(unfinished, config=config.model_copy(update={"data": first}))
        fewer = check_prompts(config, reload_data(first_run, files))
        if config.data.items is not None or read.items != _items(fewer):
            raise DataError(
                f"{read.path} has {len(read.items):,} of {loaded.frame.height:,} items, and not the first ones of each "
                "config; choose items with `-T limit=N` instead of inspect's --limit or --sample-id."
            )
        loaded = fewer
    return JudgingTask.of(loaded, config.judging, config.seed)


def _items(loaded: LoadedBenchmark) -> set[Item]:
    return {*loaded.frame.select("config", "id").iter_rows()}


def _judge(read: _Log, task: JudgingTask, config: JudgeRunConfig, ledger: Ledger) -> JudgeVerdicts:
    """Judge all items with the replies of a log; calls of failed samples are recorded as rejected."""
    items = [*task.loaded.frame.select("config", "id").iter_rows()]
    failed = [place for place, item in enumerate(items) if item in read.failed]
    try:
        verdicts = task.judge(config, ledger, [place for place in range(len(items)) if place not in failed])
    except Unanswered as missing:
        raise RunError(f"{read.path} has no reply for {missing.requests[0].label}; run the task again.") from None
    if not failed:
        return verdicts
    ids = first_ids([items[place][1] for place in failed])
    log_status(f"{plural(len(failed), 'sample')} of {len(items):,} failed in the log and count as invalid ({ids}).")
    for place in failed:
        while requests := task.missing_requests(config, ledger, place):
            ledger.record(*(Answer.to(request, "error", read.failed[items[place]]) for request in requests))
    return task.judge(config, ledger, range(len(items)))


def _check_same_replies(target: Path, read: _Log) -> None:
    """Raise `RunError` if a finished run has other replies than a log of the same settings."""
    recorded = dict(read_ledger(target / LEDGER_FILE).select("key", "text").iter_rows())
    if any(recorded.get(answer.key) != answer.text for answer in read.answers):
        raise RunError(
            f"{target} is a run of another log with the same settings; choose another directory (`out=...`), or "
            "replace it with `fresh=True`."
        )


def _options(judging: JudgeConfig) -> JudgeConfig:
    """Return a judge's configuration without the values that are defaults of its prompt."""
    defaults = JudgeConfig(prompt=judging.prompt).for_model("")
    names = ("protocol", "reply_format", *SAMPLING)
    same = [name for name in names if getattr(judging, name) == getattr(defaults, name)]
    return judging.model_copy(update=dict.fromkeys(same))
