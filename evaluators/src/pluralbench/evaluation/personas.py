"""`judge-personas`: can a model judge for a person? Into a run directory with its recorded calls.

The settings are those of "Can LLM be a Personalized Judge?" (sections 3 and 4): a choice alone, a choice with verbal
certainty, a choice that may be a tie. Unlike there, a reply is parsed anchored, retried in every task, and counted.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
from pluralbench_calls import Backend, Ledger, Message, ParsedReply, Request
from pluralbench_calls.chat import ChatModel, ConnectionConfig
from pluralbench_calls.verdicts import Verdict, parse_certain_choice, parse_choice, parse_verdict, require_single_marker
from pluralbench_rewards.judge import Judge
from pluralbench_runs import Output

from pluralbench.config import PersonaDataConfig, PersonaJudgeConfig, Setting, Variables
from pluralbench.data.benchmarks import PERSONA_JUDGE, known_benchmarks
from pluralbench.data.persona_items import TIE, PersonaItemSet, SampledItems, load_personas, sample_items
from pluralbench.data.persona_prompts import VERSION, persona_digest, persona_messages, persona_sentences, reply_schema
from pluralbench.data.shards import Shard, parse_shard
from pluralbench.data.verdict_tables import COLUMNS as VERDICT_COLUMNS
from pluralbench.data.verdict_tables import check_verdicts
from pluralbench.evaluation.folders import run_folder
from pluralbench.evaluation.judge import judge_chat_model
from pluralbench.evaluation.loading import run_directory
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
from pluralbench.metrics import measure_personas
from pluralbench.metrics.accuracy import overall_rule
from pluralbench.results.decisions import JUDGED_PERSONAS
from pluralbench.results.evaluations import PersonaJudgeResult, PersonaJudgeRunConfig, WithoutPersona
from pluralbench.results.metrics_frame import metrics_frame
from pluralbench.results.record import BenchmarkRecord, DataRecord
from pluralbench.results.runs import VERDICTS_FILE, Run, load_run, write_run

NAMED = 20
COLUMNS: Columns = (("said", "calls"), ("said_swapped", "calls_swapped"))


class PersonaReply(NamedTuple):
    """A valid reply, with A and B as the judge saw them. certainty: None where none was asked for."""

    letter: Verdict
    certainty: int | None = None


class PersonaQuestion(NamedTuple):
    """What is asked once. place: the item's. copy: how many questions before it read the same."""

    place: int
    label: str
    messages: list[Message]
    swapped: bool
    copy: int


def judge_personas(
    model: str,
    *,
    data: str | Path | PersonaDataConfig | None = None,
    judging: PersonaJudgeConfig | None = None,
    connection: ConnectionConfig | None = None,
    seed: int = 0,
    shard: str | None = None,
    out: str | Path | None = None,
    fresh: bool = False,
) -> Run[PersonaJudgeRunConfig, PersonaJudgeResult]:
    """Let a model judge for persons it knows by a persona alone; returns the run, which lies in `out`.

    model: of the OpenAI-compatible endpoint of the connection (without a base URL, OpenAI's), or "local", the small
    embedded one. data: a release of `build-persona-judge`, or `PersonaDataConfig`; see `load_personas`. judging: how it
    is asked; see `sample_items` for what each setting leaves out. A person of whom the variables tell nothing is judged
    as with "none", and counted. Asked in both orders, a verdict that changes with the order is right nowhere, also
    where the truth is a tie; a certainty is then the mean of the two. shard: judge for a share of the persons alone,
    such as "2/8", which `merge` joins with the others.

    An interrupted run goes on with the same call and asks nothing twice. Raises a `UserError` for every mistake of the
    caller.
    """
    part = None if shard is None else parse_shard(shard)
    data = (
        data if isinstance(data, PersonaDataConfig) else PersonaDataConfig(location=None if data is None else str(data))
    )
    given = judging or PersonaJudgeConfig()
    judging = given.for_model(model)
    chat, connection = judge_chat_model(model, judging, connection)
    the_judge = make_persona_judge(chat, connection, Path(), judging, seed)
    personas = load_personas(data.location, configs=data.configs or None, split=data.split)
    benchmark = known_benchmarks()[PERSONA_JUDGE]
    config = PersonaJudgeRunConfig(
        benchmark=BenchmarkRecord(
            name=PERSONA_JUDGE,
            title=benchmark.title_for(personas.location, personas.revision),
            rule=overall_rule(benchmark),
            description=benchmark,
        ),
        data=DataRecord(
            location=personas.location,
            revision=personas.revision,
            digest=personas.digest,
            license=personas.license,
            rows=dict(personas.frame["config"].value_counts(sort=False).sort("config").iter_rows()),
            ignored_columns=tuple(personas.ignored),
            configs=data.configs,
            split=data.split,
            shard=None if part is None else str(part),
        ),
        model=chat,
        prompts_version=VERSION,
        prompts_digest=persona_digest(),
        judging=judging,
        seed=seed,
        connection=connection,
    )
    drawn = draw_run_items(config, personas)
    name = f"{PERSONA_JUDGE}-{Path(chat.model).name}-{judging.setting}-{judging.variables}"
    said = ("setting", "variables")
    target = Path(out or run_folder(name, config, data, given, seed=seed, exclude=said, shard=part))
    with run_directory(target, config, fresh=fresh) as output:
        if output is not None:
            with stopwatch(output.work) as seconds:
                the_judge = replace(the_judge, ledger=output.work / "ledger.sqlite")
                _judge(output, config, the_judge, drawn, part, seconds)
    return load_run(target, PersonaJudgeRunConfig, part=True)


def _judge(
    output: Output,
    config: PersonaJudgeRunConfig,
    the_judge: Judge,
    drawn: SampledItems,
    part: Shard | None,
    seconds: Callable[[], float],
) -> None:
    mine = [part is None or part.contains(user) for user in drawn.frame["user"]]
    items = drawn.frame.filter(pl.Series(mine, dtype=pl.Boolean))
    frame = judge_persona_items(the_judge, config.judging, drawn.frame, mine)
    usage = export_calls(the_judge, output)
    metrics = metrics_frame(()) if part is not None else compute_persona_metrics(config, frame, items, output.work)
    result = PersonaJudgeResult(
        **judge_result(config, usage, seconds()),
        invalid_reasons=dict(sorted(Counter(frame["reason"].drop_nulls()).items())),
        ties_excluded=drawn.ties,
        tasks_excluded=drawn.skipped,
        without_persona=without_persona(frame, config.judging.variables),
    )
    write_run(output, config, result, metrics, {"items": frame})


def draw_run_items(config: PersonaJudgeRunConfig, personas: PersonaItemSet) -> SampledItems:
    """The items that a run of these settings asks about. Raises `DataError` as `sample_items` does."""
    judging = config.judging
    return sample_items(
        personas,
        setting=judging.setting,
        variables=judging.variables,
        samples=judging.limit,
        configs=config.data.configs or None,
        seed=config.seed,
    )


def make_persona_judge(
    model: ChatModel,
    connection: ConnectionConfig,
    ledger: Path | Ledger,
    judging: PersonaJudgeConfig,
    seed: int,
    answered_by: Backend | None = None,
) -> Judge:
    """The judge of these settings. Raises `CallsError` where the connection does not fit the model."""
    # A further try is a draw of its own, and no warmer.
    return Judge(
        model,
        connection,
        ledger,
        judging.attempts,
        judging.chosen_format,
        seed=seed,
        warmer=0.0,
        answered_by=answered_by,
    )


def judge_persona_items(
    the_judge: Judge, judging: PersonaJudgeConfig, items: pl.DataFrame, mine: Sequence[bool]
) -> pl.DataFrame:
    """What a judge says of items, a row each: asked, or taken from its ledger where that knows it.

    items: all that the run is of, as `sample_items` gives them. mine: which of them are judged here.
    """
    questions, wanted = _questions(items, mine, judging), reply_schema(judging.setting)

    def request(question: PersonaQuestion, attempt: int) -> Request:
        made = the_judge.asked(question.messages, wanted, question.label, attempt)
        # Without a persona many items read the same; each is a draw of its own, as its row in the metrics is.
        return replace(made, sample=attempt + judging.attempts * question.copy)

    settled = the_judge.ask(questions, request, lambda _, reply: parse_reply(reply, judging.setting), "verdicts")
    return _decided(items.filter(pl.Series(mine, dtype=pl.Boolean)), questions, settled, judging)


def compute_persona_metrics(
    config: PersonaJudgeRunConfig, frame: pl.DataFrame, items: pl.DataFrame | None = None, folder: Path | None = None
) -> pl.DataFrame:
    """The metrics of all verdicts.

    items: with the texts, in the order of the frame; without them there are no references. folder: where the table of
    verdicts is written, which `judge-metrics` reads, with `id` and `user`; no answer where one is invalid or changed.
    """
    certainty = pl.col("certainty")
    whole = frame["certainty"].drop_nulls()
    verdicts = frame.with_columns(
        judge=pl.lit(config.model.model),
        setting=pl.lit(config.judging.setting),
        persona_variables=pl.lit(config.judging.variables),
        certainty=certainty.cast(pl.Int64) if (whole == whole.floor()).all() else certainty,
    ).select(*VERDICT_COLUMNS, "id", "user")
    if folder is not None:
        verdicts.write_csv(folder / VERDICTS_FILE)
    return measure_personas(config.benchmark.description, frame, check_verdicts(verdicts), items=items)


def _questions(items: pl.DataFrame, mine: Sequence[bool], judging: PersonaJudgeConfig) -> list[PersonaQuestion]:
    """What is asked about the items that are in the share; of the others it is counted what reads the same."""
    seen: Counter[tuple[str, ...]] = Counter()
    questions = []
    places = accumulate(mine, initial=0)
    for item, asked, place in zip(items.iter_rows(named=True), mine, places, strict=False):
        for swapped in (False, True) if judging.orders == "both" else (False,):
            messages = persona_messages(
                item, judging.variables, judging.setting, judging.chosen_format, swapped=swapped
            )
            text = tuple(message["content"] for message in messages)
            label = f"the verdict on {item['config']}/{item['id']}{', swapped' if swapped else ''}"
            if asked:
                questions.append(PersonaQuestion(place, label, messages, swapped, seen[text]))
            seen[text] += 1
    return questions


def parse_reply(reply: str, setting: Setting) -> PersonaReply:
    """What a reply says in this setting. Raises `InvalidAnswer`."""
    if setting == "certainty":
        return PersonaReply(*parse_certain_choice(reply))
    return PersonaReply((parse_verdict if setting == TIE else parse_choice)(require_single_marker(reply)))


def _decided(
    items: pl.DataFrame,
    questions: Sequence[PersonaQuestion],
    settled: Sequence[ParsedReply[PersonaReply]],
    judging: PersonaJudgeConfig,
) -> pl.DataFrame:
    """A row an item, with what the judge said in each order and what that amounts to."""
    rows: list[dict[str, Any]] = []
    for item in items.iter_rows(named=True):
        truth = "C" if item["truth"] == TIE else item["truth"]
        rows.append(
            {name: item[name] for name in ("config", "id", "digest", "task", "row", "user")}
            | {"cluster": f"{item['task']}/{item['user']}", "truncated": False, "attempts": 0}
            | {"truth": truth, "chosen": truth, "rejected": {"A": "B", "B": "A"}.get(truth)}
            | {"sentences": len(persona_sentences(item, judging.variables))}
        )
    asked = [(question.place, question.swapped) for question in questions]
    valid = record_replies(rows, asked, settled, [one.value and one.value.letter for one in settled], COLUMNS)
    for row, said in zip(rows, valid, strict=True):
        row["verdict"], row["outcome"] = verdict(row)
        if row["verdict"] not in {INVALID, CHANGED}:
            sure = [one.certainty for one in said if one.certainty is not None]
            row |= {"answer": row["verdict"], "certainty": sum(sure) / len(sure) if sure else None}
    return pl.DataFrame(rows, schema=JUDGED_PERSONAS)


def verdict(row: Mapping[str, Any]) -> tuple[str, str]:
    """What the replies in a row amount to, with A and B as the data places them, and the outcome of it."""
    found = combined_verdict({name: row.get(name) for name, _ in COLUMNS}, COLUMNS)
    outcome = {INVALID: "invalid", CHANGED: "tie", row["truth"]: "win"}
    return found, outcome.get(found, "loss")


def without_persona(frame: pl.DataFrame, variables: Variables) -> WithoutPersona:
    """Items whose person the variable set tells nothing of, though it should."""
    bare = frame.filter(sentences=0) if variables != "none" else frame.clear()
    return WithoutPersona(items=bare.height, ids=tuple(bare["id"].to_list()[:NAMED]))
