"""`judge-personas`: can a model judge for a person? Into a run directory with its recorded calls.

The settings are those of "Can LLM be a Personalized Judge?" (sections 3 and 4): a choice alone, a choice with verbal
certainty, a choice that may be a tie. Unlike there, a reply is parsed anchored, retried in every task, and counted.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import polars as pl
from pluralbench_calls import Message, Request, Settled, ask_until_valid, chat_request, working_ledger
from pluralbench_calls.chat import ChatConnection, ChatModel, chat_backend, check_reachable
from pluralbench_calls.verdicts import Verdict, one_marker, parse_certain_choice, parse_choice, parse_verdict
from pluralbench_rewards import ModelRecord
from pluralbench_runs import Output, Recipe, RecipeError, Table

from pluralbench.data.benchmarks import PERSONA_JUDGE, known_benchmarks
from pluralbench.data.persona_items import TIE, Drawn, Personas, draw, load_personas
from pluralbench.data.persona_prompts import VERSION, messages_of, persona_digest, schema_of, told_of
from pluralbench.data.shards import Shard, shard_of
from pluralbench.data.verdict_tables import COLUMNS as VERDICT_COLUMNS
from pluralbench.data.verdict_tables import check_verdicts
from pluralbench.descriptions import PersonaData, PersonaJudging, Setting, Variables
from pluralbench.evaluation.folders import run_folder
from pluralbench.evaluation.judge import chat_of
from pluralbench.evaluation.settings import run_directory
from pluralbench.evaluation.timing import cost_of_calls, timed
from pluralbench.metrics import measure_personas
from pluralbench.metrics.accuracy import rule_of
from pluralbench.results.decisions import CALLS, DECISIONS
from pluralbench.results.metrics_frame import metrics_frame
from pluralbench.results.record import (
    BenchmarkRecord,
    DataRecord,
    JudgingRecord,
    PromptRecord,
    RunRecord,
    WithoutPersona,
    provenance,
)
from pluralbench.results.runs import LEDGER_FILE, VERDICTS_FILE, Run, read_part, write_run

LOCAL_SAMPLING = {"seeded": True}
NAMED = 20
CHANGED, INVALID = "changed", "invalid"
SWAPPED = {"A": "B", "B": "A", "C": "C"}
_JUDGED: dict[str, pl.DataType | type[pl.DataType]] = {
    "task": pl.String,
    "row": pl.Int64,
    "user": pl.String,
    "truth": pl.String,
    "answer": pl.String,
    "certainty": pl.Float64,
    "verdict": pl.String,
    "said": pl.String,
    "said_swapped": pl.String,
    "sentences": pl.Int64,
    "attempts": pl.Int64,
    "reason": pl.String,
    "calls": CALLS,
    "calls_swapped": CALLS,
}
JUDGED = pl.Schema([*DECISIONS.items(), *_JUDGED.items()])


class PersonaItemsSettings(Table):
    """What is judged. digest: of its content. shard: see `Shard`."""

    location: str
    revision: str | None = None
    digest: str
    configs: tuple[str, ...] = ()
    shard: str | None = None


class PersonaSettings(Recipe):
    """All that a run's verdicts depend on; a run goes on only under the same."""

    operational: ClassVar[frozenset[str]] = frozenset({"connection"})

    verb: Literal["judge-personas"] = "judge-personas"
    model: ChatModel
    prompts_version: str = VERSION
    prompts_digest: str
    judging: PersonaJudging
    seed: int
    data: PersonaItemsSettings
    connection: ChatConnection = ChatConnection()


class Said(NamedTuple):
    """A valid reply, with A and B as the judge saw them. certainty: None where none was asked for."""

    letter: Verdict
    certainty: int | None = None


class Question(NamedTuple):
    """What is asked once. place: the item's. copy: how many questions before it read the same."""

    place: int
    label: str
    messages: list[Message]
    swapped: bool
    copy: int


def judge_personas(
    model: str,
    *,
    data: str | Path | PersonaData | None = None,
    judging: PersonaJudging | None = None,
    connection: ChatConnection | None = None,
    seed: int = 0,
    shard: str | None = None,
    out: str | Path | None = None,
    fresh: bool = False,
) -> Run:
    """Let a model judge for persons it knows by a persona alone; returns the run, which lies in `out`.

    model: of the OpenAI-compatible endpoint of the connection (without a base URL, OpenAI's), or "local", the small
    embedded one. data: a release of `build-persona-judge`, or `PersonaData`; see `load_personas`. judging: how it is
    asked; see `draw` for what each setting leaves out. A person of whom the variables tell nothing is judged as with
    "none", and counted. Asked in both orders, a verdict that changes with the order is right nowhere, also where the
    truth is a tie; a certainty is then the mean of the two. shard: judge for a share of the persons alone, such as
    "2/8", which `merge` joins with the others.

    An interrupted run goes on with the same call and asks nothing twice. Raises a `UserError` for every mistake of the
    caller.
    """
    part = None if shard is None else shard_of(shard)
    data = data if isinstance(data, PersonaData) else PersonaData(location=None if data is None else str(data))
    given = judging or PersonaJudging()
    judging = given.asked_of(model)
    chat, connection = chat_of(model, judging, connection, LOCAL_SAMPLING)
    try:
        check_reachable(chat, connection)
    except ValueError as error:
        raise RecipeError(f"The judge {chat.model} cannot be asked: {error}.") from None
    configs = data.configs or None
    personas = load_personas(data.location, configs=configs, split=data.split)
    drawn = draw(
        personas,
        setting=judging.setting,
        variables=judging.variables,
        samples=judging.samples,
        configs=configs,
        seed=seed,
    )
    settings = PersonaSettings(
        model=chat,
        prompts_digest=persona_digest(),
        judging=judging,
        seed=seed,
        data=PersonaItemsSettings(
            location=personas.location,
            revision=personas.revision,
            digest=personas.digest,
            configs=data.configs,
            shard=None if part is None else str(part),
        ),
        connection=connection,
    )
    name = f"{PERSONA_JUDGE}-{Path(chat.model).name}-{judging.setting}-{judging.variables}"
    said = ("setting", "variables")
    target = Path(out or run_folder(name, settings, data, given, seed=seed, said=said, shard=part))
    with run_directory(target, settings, fresh=fresh) as output:
        if output is not None:
            with timed(output.work) as seconds:
                _judge(output, settings, personas, drawn, part, data.split, seconds)
    return read_part(target)


def _judge(
    output: Output,
    settings: PersonaSettings,
    personas: Personas,
    drawn: Drawn,
    part: Shard | None,
    split: str,
    seconds: Callable[[], float],
) -> None:
    mine = [part is None or part.has(user) for user in drawn.frame["user"]]
    items = drawn.frame.filter(pl.Series(mine, dtype=pl.Boolean))
    questions = _questions(drawn.frame, mine, settings.judging)
    with working_ledger(output.work / "ledger.sqlite") as ledger:
        settled = ask_until_valid(
            questions,
            lambda question, attempt: _request(settings, question, attempt),
            lambda _, reply: parse_reply(reply, settings.judging.setting),
            ledger,
            chat_backend(settings.model, settings.connection),
            attempts=settings.judging.attempts,
            limits=settings.connection.limits(),
            label="verdicts",
        )
        prompt_tokens, completion_tokens = ledger.usage()
        calls = len(ledger)
        ledger.export(output.work / LEDGER_FILE)
    frame = _decided(items, questions, settled, settings.judging)
    metrics = metrics_frame(()) if part is not None else measured(output, settings, frame, items)
    benchmark = known_benchmarks()[PERSONA_JUDGE]
    judging = settings.judging
    write_run(
        output,
        items=frame,
        metrics=metrics,
        record=RunRecord(
            verb="judge-personas",
            model=ModelRecord(name=settings.model.model, kind="generative", provider=settings.model.provider),
            benchmark=BenchmarkRecord(
                name=PERSONA_JUDGE, title=benchmark.title, rule=rule_of(benchmark), description=benchmark
            ),
            data=DataRecord(
                location=personas.location,
                revision=personas.revision,
                digest=personas.digest,
                licence=personas.licence,
                rows=dict(personas.frame["config"].value_counts(sort=False).sort("config").iter_rows()),
                ignored_columns=tuple(personas.ignored),
                configs=settings.data.configs,
                split=split,
                shard=settings.data.shard,
            ),
            prompt=PromptRecord(
                setting=judging.setting,
                variables=judging.variables,
                prompts_version=VERSION,
                prompts_digest=settings.prompts_digest,
            ),
            judging=JudgingRecord(
                reply=judging.form,
                orders=judging.orders,
                samples=judging.samples,
                temperature=judging.temperature,
                top_p=judging.top_p,
                max_tokens=judging.max_tokens,
                attempts=judging.attempts,
                calls=calls,
                prompt_tokens=prompt_tokens,
                completion_tokens=completion_tokens,
                invalid_reasons=dict(sorted(Counter(frame["reason"].drop_nulls().to_list()).items())),
                ties_left_out=drawn.ties,
                tasks_left_out=drawn.skipped,
                without_persona=without_persona(frame, judging.variables),
            ),
            seed=settings.seed,
            cost=cost_of_calls(seconds(), settings.connection, prompt_tokens, completion_tokens),
            provenance=provenance(),
        ),
    )


def measured(output: Output, settings: PersonaSettings, frame: pl.DataFrame, items: pl.DataFrame) -> pl.DataFrame:
    """The metrics of all verdicts, whose table is written among a run's files. items: in the order of the frame."""
    verdicts = verdicts_of(frame, settings.model.model, settings.judging.setting, settings.judging.variables)
    verdicts.write_csv(output.work / VERDICTS_FILE)
    return measure_personas(known_benchmarks()[PERSONA_JUDGE], frame, check_verdicts(verdicts), items=items)


def _questions(items: pl.DataFrame, mine: Sequence[bool], judging: PersonaJudging) -> list[Question]:
    """What is asked about the items that are in the share; of the others it is counted what reads the same."""
    seen: Counter[tuple[str, ...]] = Counter()
    questions = []
    places = accumulate(mine, initial=0)
    for item, asked, place in zip(items.iter_rows(named=True), mine, places, strict=False):
        for swapped in (False, True) if judging.orders == "both" else (False,):
            messages = messages_of(item, judging.variables, judging.setting, judging.form, swapped=swapped)
            text = tuple(message["content"] for message in messages)
            label = f"the verdict on {item['config']}/{item['id']}{', swapped' if swapped else ''}"
            if asked:
                questions.append(Question(place, label, messages, swapped, seen[text]))
            seen[text] += 1
    return questions


def _request(settings: PersonaSettings, question: Question, attempt: int) -> Request:
    request = chat_request(
        settings.model,
        question.messages,
        seed=settings.seed,
        label=question.label,
        attempt=attempt,
        schema=schema_of(settings.judging.setting) if settings.judging.form == "structured" else None,
    )
    # Without a persona many items read the same; each is a draw of its own, as its row in the metrics is.
    return replace(request, sample=attempt + settings.judging.attempts * question.copy)


def parse_reply(reply: str, setting: Setting) -> Said:
    """What a reply says in this setting. Raises `InvalidAnswer`."""
    if setting == "certainty":
        return Said(*parse_certain_choice(reply))
    return Said((parse_verdict if setting == TIE else parse_choice)(one_marker(reply)))


def _decided(
    items: pl.DataFrame, questions: Sequence[Question], settled: Sequence[Settled[Said]], judging: PersonaJudging
) -> pl.DataFrame:
    """A row an item, with what the judge said in each order and what that amounts to."""
    rows: list[dict[str, Any]] = []
    for item in items.iter_rows(named=True):
        truth = "C" if item["truth"] == TIE else item["truth"]
        rows.append(
            {name: item[name] for name in ("config", "id", "digest", "task", "row", "user")}
            | {"cluster": f"{item['task']}/{item['user']}", "truncated": False, "attempts": 0}
            | {"truth": truth, "chosen": truth, "rejected": {"A": "B", "B": "A"}.get(truth)}
            | {"sentences": len(told_of(item, judging.variables))}
        )
    by_place: dict[int, list[Said | None]] = {}
    for question, one in zip(questions, settled, strict=True):
        row, said = rows[question.place], one.value
        row["said_swapped" if question.swapped else "said"] = said.letter if said else INVALID
        row["calls_swapped" if question.swapped else "calls"] = list(one.calls)
        row["attempts"] += one.attempts
        if one.reason:
            row["reason"] = one.reason
        letter: Any = SWAPPED[said.letter] if said and question.swapped else said and said.letter
        by_place.setdefault(question.place, []).append(Said(letter, said.certainty) if said else None)
    decided = [row | verdict_of(by_place[place], row["truth"]) for place, row in enumerate(rows)]
    return pl.DataFrame(decided, schema=JUDGED)


def verdict_of(said: Sequence[Said | None], truth: str) -> dict[str, Any]:
    """What the replies in the orders asked amount to, with A and B as the data places them.

    As for other benchmarks, one invalid reply makes the verdict invalid and one that changes with the order is a tie of
    the judge's, which is no win. It is not the answer C either, or a judge that always takes the first would be right
    about every tie.
    """
    valid = [one for one in said if one is not None]
    if len(valid) < len(said):
        return {"verdict": INVALID, "outcome": "invalid"}
    letters = {one.letter for one in valid}
    if len(letters) > 1:
        return {"verdict": CHANGED, "outcome": "tie"}
    letter = valid[0].letter
    sure = [one.certainty for one in valid if one.certainty is not None]
    return {
        "verdict": letter,
        "answer": letter,
        "certainty": sum(sure) / len(sure) if sure else None,
        "outcome": "win" if letter == truth else "loss",
    }


def verdicts_of(frame: pl.DataFrame, judge: str, setting: str, variables: str) -> pl.DataFrame:
    """`verdicts.csv`: what `judge-metrics` reads, with `id` and `user`; no answer where it is invalid or changed."""
    certainty = pl.col("certainty")
    whole = frame["certainty"].drop_nulls()
    return frame.with_columns(
        judge=pl.lit(judge),
        setting=pl.lit(setting),
        persona_variables=pl.lit(variables),
        certainty=certainty.cast(pl.Int64) if (whole == whole.floor()).all() else certainty,
    ).select(*VERDICT_COLUMNS, "id", "user")


def without_persona(frame: pl.DataFrame, variables: Variables) -> WithoutPersona:
    """Items whose person the variable set tells nothing of, though it should."""
    bare = frame.filter(sentences=0) if variables != "none" else frame.clear()
    return WithoutPersona(items=bare.height, ids=tuple(bare["id"].to_list()[:NAMED]))
