"""`judge --benchmark persona-judge`: can a model judge for a person? Into a run directory with its recorded calls.

The settings are those of "Can LLM be a Personalized Judge?" (sections 3 and 4): a choice alone, a choice with verbal
certainty, a choice that may be a tie. Unlike there, a reply is parsed anchored, retried in every task, and counted.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import polars as pl
from pluralbench_calls import (
    ChatConnection,
    ChatModel,
    ChatPrice,
    Message,
    Price,
    Request,
    Settled,
    ask_until_valid,
    chat_backend,
    chat_request,
    check_reachable,
    chosen_model,
    working_ledger,
)
from pluralbench_calls.verdicts import Verdict, one_marker, parse_certain_choice, parse_choice, parse_verdict
from pluralbench_runs import Output, Recipe, Table, check_recipe, output_directory
from pydantic import Field, model_validator

from pluralbench.data.benchmarks import PERSONA_JUDGE, known_benchmarks
from pluralbench.metrics.certainty import measure_verdicts
from pluralbench.results.decisions import DECISIONS
from pluralbench.metrics.accuracy import measure
from pluralbench.data.persona_items import TIE, Drawn, Personas, draw, load_personas
from pluralbench.data.persona_prompts import VERSION, Setting, Style, messages_of, persona_digest, schema_of, told_of
from pluralbench.results.runs import RUN_FILE, SETTINGS_FILE, VERDICTS_FILE, Run, provenance, publish, read_run
from pluralbench.data.verdict_tables import COLUMNS as VERDICT_COLUMNS
from pluralbench.data.verdict_tables import check_verdicts

Variables = Literal["all", "key", "least", "none", "key-code", "least-code"]
Orders = Literal["one", "both"]
LOCAL_SAMPLING = {"seeded": True}
NAMED = 20
CHANGED, INVALID = "changed", "invalid"
SWAPPED = {"A": "B", "B": "A", "C": "C"}
_JUDGED: dict[str, type[pl.DataType]] = {
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
}
JUDGED = pl.Schema([*DECISIONS.items(), *_JUDGED.items()])


class PersonaData(Table):
    """What is judged. digest: of its content."""

    location: str
    revision: str | None = None
    digest: str
    configs: tuple[str, ...] = ()


class PersonaSettings(Recipe):
    """All that a run's verdicts depend on; a run goes on only under the same."""

    operational: ClassVar[frozenset[str]] = frozenset({"connection"})

    verb: Literal["judge"] = "judge"
    benchmark: Literal["persona-judge"] = PERSONA_JUDGE
    judge: ChatModel
    prompts_version: str = VERSION
    prompts_digest: str
    setting: Setting
    variables: Variables
    reply: Style
    orders: Orders
    attempts: int = Field(ge=1)
    samples: int | None = Field(None, ge=1)
    seed: int
    data: PersonaData
    connection: ChatConnection = ChatConnection()

    @model_validator(mode="after")
    def _reachable(self) -> "PersonaSettings":
        check_reachable(self.judge, self.connection)
        return self


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
    data: str | None = None,
    configs: Sequence[str] | None = None,
    split: str = "test",
    setting: Setting = "certainty",
    variables: Variables = "all",
    samples: int | None = None,
    orders: Orders = "one",
    reply: Style = "brief",
    base_url: str | None = None,
    api_key_env: str | None = None,
    temperature: float = 0.7,
    top_p: float | None = 0.95,
    max_tokens: int = 512,
    attempts: int = 4,
    concurrency: int = 8,
    price: Price | None = None,
    max_cost: float | None = None,
    seed: int = 0,
    out: Path | None = None,
    fresh: bool = False,
) -> Run:
    """Let a model judge for persons it knows by a persona alone; returns the run, which lies in `out`.

    model: of the OpenAI-compatible endpoint `base_url`, or "local", the small embedded one. data, configs, split: see
    `load_personas`. setting: "standard" asks for a choice, "certainty" also for a certainty from 1 to 100, "tie" allows
    a tie as an answer; see `draw` for what each leaves out. variables: which of the persona's sentences the judge is
    told; a person of whom the set tells nothing is judged as with "none", and counted. samples: at most so many items
    of each task. orders: "one" shows the options as the data places them; "both" asks again with them swapped, and
    a verdict that changes with the order is right nowhere, also where the truth is a tie; a certainty is then the mean
    of the two. attempts: tries for a reply that can be parsed, after which the verdict is invalid; all are recorded.
    reply: the verdict alone, reasons before it, or JSON by a schema that the server enforces, which small models need.

    The sampling defaults are the paper's (section 4). An interrupted run goes on with the same call and asks nothing
    twice. Raises a `UserError` for every mistake of the caller.
    """
    values = _model_values(model, base_url, api_key_env)
    personas = load_personas(data, configs=configs, split=split)
    drawn = draw(personas, setting=setting, variables=variables, samples=samples, configs=configs, seed=seed)
    settings = check_recipe(
        PersonaSettings,
        {
            "judge": values["judge"] | {"temperature": temperature, "top_p": top_p, "max_tokens": max_tokens},
            "prompts_digest": persona_digest(),
            "setting": setting,
            "variables": variables,
            "reply": reply,
            "orders": orders,
            "attempts": attempts,
            "samples": samples,
            "seed": seed,
            "data": {
                "location": personas.location,
                "revision": personas.revision,
                "digest": personas.digest,
                "configs": tuple(configs or ()),
            },
            "connection": values["connection"]
            | {"concurrency": concurrency, "max_cost": max_cost}
            | ({"price": ChatPrice(input=price.input, output=price.output)} if price else {}),
        },
        "of this run",
    )
    target = out or Path("runs") / f"{PERSONA_JUDGE}-{Path(settings.judge.model).name}-{setting}-{variables}"
    with output_directory(target, settings, recipe_file=SETTINGS_FILE, fresh=fresh) as output:
        if (target / RUN_FILE).exists() and not fresh:
            return read_run(target)
        _judge(output, settings, personas, drawn)
    return read_run(target)


def _model_values(model: str, base_url: str | None, api_key_env: str | None) -> dict[str, dict[str, Any]]:
    values: dict[str, dict[str, Any]] = {"judge": {}, "connection": {}}
    for dotted, value in chosen_model("judge", model, base_url, api_key_env, LOCAL_SAMPLING).items():
        table, _, key = dotted.partition(".")
        values[table][key] = value
    return values


def _judge(output: Output, settings: PersonaSettings, personas: Personas, drawn: Drawn) -> None:
    questions = _questions(drawn.frame, settings)
    with working_ledger(output.work / "ledger.sqlite") as ledger:
        settled = ask_until_valid(
            questions,
            lambda question, attempt: _request(settings, question, attempt),
            lambda _, reply: _parse(reply, settings.setting),
            ledger,
            chat_backend(settings.judge, settings.connection),
            attempts=settings.attempts,
            limits=settings.connection.limits(),
            label="verdicts",
        )
        tokens = dict(zip(("prompt_tokens", "completion_tokens"), ledger.usage(), strict=True))
        calls = {"calls": len(ledger), **tokens}
        ledger.export(output.work / "ledger.parquet")
    frame = _decided(drawn.frame, questions, settled, settings)
    verdicts = verdicts_of(frame, settings)
    verdicts.write_csv(output.work / VERDICTS_FILE)
    described = known_benchmarks()[PERSONA_JUDGE]
    metrics = {"items": frame.height} | measure(described, frame, seed=settings.seed)
    metrics |= {
        "position": _position(frame),
        "verdicts": measure_verdicts(check_verdicts(verdicts), seed=settings.seed),
    }
    reasons = Counter(frame["reason"].drop_nulls().to_list())
    run = provenance() | {
        "verb": "judge",
        "model": {"name": settings.judge.model, "kind": "generative", "provider": settings.judge.provider},
        "benchmark": {
            "name": PERSONA_JUDGE,
            "title": described.title,
            "description": described.model_dump(mode="json"),
        },
        "data": {
            "location": personas.location,
            "revision": personas.revision,
            "digest": personas.digest,
            "licence": personas.licence,
            "rows": dict(personas.frame["config"].value_counts(sort=False).sort("config").iter_rows()),
            "configs": list(settings.data.configs),
            "ignored_columns": personas.ignored,
            "empty": [],
        },
        "prompt": {
            "profile": settings.variables,
            "setting": settings.setting,
            "prompts_version": VERSION,
            "prompts_digest": settings.prompts_digest,
        },
        "judging": {
            "reply": settings.reply,
            "orders": settings.orders,
            "samples": settings.samples,
            "temperature": settings.judge.temperature,
            "top_p": settings.judge.top_p,
            "max_tokens": settings.judge.max_tokens,
            "attempts": settings.attempts,
            **calls,
            "invalid_reasons": dict(sorted(reasons.items())),
            "ties_left_out": drawn.ties,
            "tasks_left_out": drawn.skipped,
            "without_persona": _without_persona(frame, settings),
        },
        "seed": settings.seed,
    }
    publish(output, frame, metrics, run)


def _questions(items: pl.DataFrame, settings: PersonaSettings) -> list[Question]:
    seen: Counter[tuple[str, ...]] = Counter()
    questions = []
    for place, item in enumerate(items.iter_rows(named=True)):
        for swapped in (False, True) if settings.orders == "both" else (False,):
            messages = messages_of(item, settings.variables, settings.setting, settings.reply, swapped=swapped)
            text = tuple(message["content"] for message in messages)
            label = f"the verdict on {item['config']}/{item['id']}{', swapped' if swapped else ''}"
            questions.append(Question(place, label, messages, swapped, seen[text]))
            seen[text] += 1
    return questions


def _request(settings: PersonaSettings, question: Question, attempt: int) -> Request:
    request = chat_request(
        settings.judge,
        question.messages,
        seed=settings.seed,
        label=question.label,
        attempt=attempt,
        schema=schema_of(settings.setting) if settings.reply == "structured" else None,
    )
    # Without a persona many items read the same; each is a draw of its own, as its row in the metrics is.
    return replace(request, sample=attempt + settings.attempts * question.copy)


def _parse(reply: str, setting: Setting) -> Said:
    if setting == "certainty":
        return Said(*parse_certain_choice(reply))
    return Said((parse_verdict if setting == TIE else parse_choice)(one_marker(reply)))


def _decided(
    items: pl.DataFrame, questions: Sequence[Question], settled: Sequence[Settled[Said]], settings: PersonaSettings
) -> pl.DataFrame:
    """A row an item, with what the judge said in each order and what that amounts to."""
    rows: list[dict[str, Any]] = []
    for item in items.iter_rows(named=True):
        truth = "C" if item["truth"] == TIE else item["truth"]
        rows.append(
            {name: item[name] for name in ("config", "id", "digest", "task", "row", "user")}
            | {"cluster": f"{item['task']}/{item['user']}", "truncated": False, "attempts": 0}
            | {"truth": truth, "chosen": truth, "rejected": {"A": "B", "B": "A"}.get(truth)}
            | {"sentences": len(told_of(item, settings.variables))}
        )
    by_place: dict[int, list[Said | None]] = {}
    for question, one in zip(questions, settled, strict=True):
        row, said = rows[question.place], one.value
        row["said_swapped" if question.swapped else "said"] = said.letter if said else INVALID
        row["attempts"] += one.attempts
        if one.reason:
            row["reason"] = one.reason
        letter: Any = SWAPPED[said.letter] if said and question.swapped else said and said.letter
        by_place.setdefault(question.place, []).append(Said(letter, said.certainty) if said else None)
    decided = [row | _verdict(by_place[place], row["truth"]) for place, row in enumerate(rows)]
    return pl.DataFrame(decided, schema=JUDGED)


def _verdict(said: Sequence[Said | None], truth: str) -> dict[str, Any]:
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


def verdicts_of(frame: pl.DataFrame, settings: PersonaSettings) -> pl.DataFrame:
    """`verdicts.csv`: what `judge-metrics` reads, with `id` and `user`; no answer where it is invalid or changed."""
    certainty = pl.col("certainty")
    whole = frame["certainty"].drop_nulls()
    return frame.with_columns(
        judge=pl.lit(settings.judge.model),
        setting=pl.lit(settings.setting),
        persona_variables=pl.lit(settings.variables),
        certainty=certainty.cast(pl.Int64) if (whole == whole.floor()).all() else certainty,
    ).select(*VERDICT_COLUMNS, "id", "user")


def _position(frame: pl.DataFrame) -> Mapping[str, Any]:
    """What the verdicts owe to the order of the options, in the words of `metrics.position_bias`."""
    said = pl.concat([frame["said"], frame["said_swapped"].alias("said")]).drop_nulls()
    valid = said.filter(said != INVALID)
    both = frame.filter(pl.col("said_swapped").is_not_null(), pl.col("verdict") != INVALID)
    return {
        "verdicts": len(said),
        "invalid_verdicts": len(said) - len(valid),
        "share_of_first": (valid == "A").mean(),
        "asked_in_both_orders": both.height,
        "changed_with_the_order": both.filter(verdict=CHANGED).height,
    }


def _without_persona(frame: pl.DataFrame, settings: PersonaSettings) -> dict[str, Any]:
    """Items whose person the variable set tells nothing of, though it should."""
    bare = frame.filter(sentences=0) if settings.variables != "none" else frame.clear()
    return {"items": bare.height, "ids": bare["id"].to_list()[:NAMED]}
