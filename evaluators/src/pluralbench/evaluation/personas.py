"""`judge-personas`: let a model predict the choices of people from their personas, and write a run directory.

The settings are those of "Can LLM be a Personalized Judge?" (sections 3 and 4): a choice, a choice with verbal
certainty, or a choice with ties. Unlike the paper's code, replies are parsed at fixed places, retried in every task,
and invalid ones are counted.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
from pluralbench_calls import Message, ParsedReply, Request
from pluralbench_calls.chat import ConnectionConfig
from pluralbench_calls.verdicts import Verdict, parse_certain_choice, parse_choice, parse_verdict, require_single_marker
from pluralbench_local import LocalModel
from pluralbench_rewards.judge import Judge
from pluralbench_runs import Seed

from pluralbench.arguments import ShardText
from pluralbench.config import PersonaDataConfig, PersonaJudgeConfig
from pluralbench.config.judges import Setting
from pluralbench.data.clusters import parse_shard
from pluralbench.data.decisions import JUDGED_PERSONAS, SOFT_PERSONAS
from pluralbench.data.persona_items import PERSONA_JUDGE, TIE, load_personas
from pluralbench.data.persona_prompts import VERSION, persona_messages, persona_sentences, reply_schema
from pluralbench.data.votes import CHANGED, INVALID, Columns, combined_verdict
from pluralbench.evaluation.folders import run_folder
from pluralbench.evaluation.judge import judge_chat_model, judge_run
from pluralbench.evaluation.judged_items import JudgeVerdicts
from pluralbench.evaluation.loading import LoadedPersonas, drawn_personas
from pluralbench.evaluation.models import chat_file_name
from pluralbench.evaluation.soft_verdicts import PERSONA_COLUMNS, record_probabilities
from pluralbench.evaluation.verdicts import record_replies
from pluralbench.results.evaluations import PersonaJudgeResult, PersonaJudgeRunConfig
from pluralbench.results.runs import Run

COLUMNS: Columns = (("choice", "calls"), ("choice_swapped", "calls_swapped"))


class PersonaReply(NamedTuple):
    """A valid reply; A and B are in the order that the judge saw. `certainty` is None if the setting has none."""

    letter: Verdict
    certainty: int | None = None


class PersonaQuestion(NamedTuple):
    """One question about an item, in the row `place` of the judged items; `copy` earlier ones have the same text."""

    place: int
    label: str
    messages: list[Message]
    swapped: bool
    copy: int


def judge_personas(
    model: str | LocalModel,
    *,
    data: str | Path | PersonaDataConfig | None = None,
    judging: PersonaJudgeConfig | None = None,
    connection: ConnectionConfig | None = None,
    seed: Seed = 0,
    shard: ShardText = None,
    out: str | Path | None = None,
    fresh: bool = False,
) -> Run[PersonaJudgeRunConfig, PersonaJudgeResult]:
    """Let a language model predict the choices of people from their personas, with its certainty.

    Every call is recorded in the run directory; repeat it with the same arguments to resume without repeating calls.

    If both orders are judged, a verdict that changes with the order is wrong, even if the true answer is a tie, and the
    certainty is the mean of the two. A person without any sentence of the chosen variables is judged without persona,
    and counted in the result. A verdict that no attempt could parse is invalid and counts as wrong.

    Args:
        model: Name of a model at the endpoint; a directory or ORG/NAME on the Hub, which runs here if there is no
            `--base-url`; or `local` (small embedded model). In Python also a `LocalModel`.
        data: A release of `build-persona-judge` (directory, file or ORG/NAME[@REVISION]), or "sample"; a
            `PersonaDataConfig` also selects configs and a split. Required: there is no default dataset.
        judging: Setting, variables, sampling and reply format; `sample_items` explains which items a setting leaves
            out. Default: `PersonaJudgeConfig()`.
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
        pluralbench judge-personas gpt-5-mini --data dist/persona-judge --price 0.25/2 --max-cost 2
        pluralbench judge-personas gpt-5-mini --data dist/persona-judge --variables none --limit 200
    """
    part = None if shard is None else parse_shard(shard)
    if not isinstance(data, PersonaDataConfig):
        data = PersonaDataConfig(location=None if data is None else str(data))
    options = judging or PersonaJudgeConfig()
    judging = options.for_model(model)
    chat, connection, here = judge_chat_model(model, judging, connection)
    personas = load_personas(data.location, configs=data.configs or None, split=data.split)
    loaded = drawn_personas(personas, data, judging, seed, part)
    config = PersonaJudgeRunConfig(
        **loaded.records(),
        model=chat,
        prompts_version=VERSION,
        prompts_digest=PersonaJudgeRunConfig.digest_of_prompts(judging),
        judging=judging,
        seed=seed,
        connection=connection,
    )
    name = f"{PERSONA_JUDGE}-{chat_file_name(chat)}-{judging.setting}-{judging.variables}"
    in_name = ("setting", "variables")
    target = Path(out or run_folder(name, config, data, options, seed=seed, exclude=in_name, shard=part))
    backends = {} if here is None else {chat.model: here}

    def decide(judges: Sequence[Judge]) -> JudgeVerdicts:
        return judge_persona_items(judges[0], judging, loaded)

    return judge_run(target, config, loaded, backends, decide, fresh=fresh)


def judge_persona_items(judge: Judge, judging: PersonaJudgeConfig, loaded: LoadedPersonas) -> JudgeVerdicts:
    """Judge the items of `loaded.frame`; calls that the judge's ledger contains are not repeated."""
    questions, schema = _questions(loaded, judging), reply_schema(judging.setting)

    def request(question: PersonaQuestion, attempt: int) -> Request:
        first = judge.message_request(question.messages, schema, question.label, attempt)
        # Without a persona many items have the same text; each gets its own sample, as it has its own row.
        return replace(first, sample=attempt + judging.attempts * question.copy)

    replies = judge.ask(questions, request, lambda _, reply: parse_reply(reply, judging.setting), "verdicts")
    rows = _to_rows(loaded.frame, questions, replies, judging)
    left_out = {"ties_excluded": loaded.items.ties, "tasks_excluded": loaded.items.skipped}
    return JudgeVerdicts(rows, rows["reason"].drop_nulls().to_list(), {}, left_out=left_out)


def _questions(loaded: LoadedPersonas, judging: PersonaJudgeConfig) -> list[PersonaQuestion]:
    """List the questions about the items to judge; other items only count as earlier copies of a text."""
    seen: Counter[tuple[str, ...]] = Counter()
    questions = []
    places = {key: place for place, key in enumerate(loaded.frame.select("config", "id").iter_rows())}
    for item in loaded.items.frame.iter_rows(named=True):
        place = places.get((item["config"], item["id"]))
        for swapped in (False, True) if judging.orders == "both" else (False,):
            messages = persona_messages(
                item, judging.variables, judging.setting, judging.chosen_format, swapped=swapped
            )
            text = tuple(message["content"] for message in messages)
            label = f"the verdict on {item['config']}/{item['id']}{', swapped' if swapped else ''}"
            if place is not None:
                questions.append(PersonaQuestion(place, label, messages, swapped, seen[text]))
            seen[text] += 1
    return questions


def parse_reply(reply: str, setting: Setting) -> PersonaReply:
    """Parse a reply of this setting. Raises `InvalidAnswer` if it has another form."""
    if setting == "certainty":
        return PersonaReply(*parse_certain_choice(reply))
    return PersonaReply((parse_verdict if setting == TIE else parse_choice)(require_single_marker(reply)))


def _to_rows(
    items: pl.DataFrame,
    questions: Sequence[PersonaQuestion],
    replies: Sequence[ParsedReply[PersonaReply]],
    judging: PersonaJudgeConfig,
) -> pl.DataFrame:
    rows: list[dict[str, Any]] = []
    for item in items.iter_rows(named=True):
        truth = "C" if item["truth"] == TIE else item["truth"]
        rows.append(
            {name: item[name] for name in ("config", "id", "digest", "task", "row", "user")}
            | {"cluster": f"{item['task']}/{item['user']}", "truncated": False, "attempts": 0}
            | {"truth": truth, "chosen": truth, "rejected": {"A": "B", "B": "A"}.get(truth)}
            | {"sentences": len(persona_sentences(item, judging.variables))}
        )
    places = [(question.place, question.swapped) for question in questions]
    valid = record_replies(rows, places, replies, [reply.value and reply.value.letter for reply in replies], COLUMNS)
    if judging.logprobs:
        record_probabilities(rows, places, replies, lambda reply: reply.letter, PERSONA_COLUMNS)
        for row in rows:
            signs = {"A": row["margin"], "B": row["margin"] and -row["margin"]}
            row["margin"] = signs.get(row["truth"])  # a tie is no side
    for row, valid_replies in zip(rows, valid, strict=True):
        row["verdict"] = combined_verdict({name: row.get(name) for name, _ in COLUMNS}, COLUMNS)
        row["outcome"] = {INVALID: "invalid", CHANGED: "tie", row["truth"]: "win"}.get(row["verdict"], "loss")
        if row["verdict"] not in {INVALID, CHANGED}:
            certainties = [reply.certainty for reply in valid_replies if reply.certainty is not None]
            mean = sum(certainties) / len(certainties) if certainties else None
            row |= {"answer": row["verdict"], "certainty": mean}
    return pl.DataFrame(rows, schema={**JUDGED_PERSONAS, **SOFT_PERSONAS} if judging.logprobs else JUDGED_PERSONAS)
