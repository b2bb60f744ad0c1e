"""`synthesize`: personas and demonstrations by SynthesizeMe, into a directory with the recorded calls."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from pluralbench_calls import working_ledger
from pluralbench_calls.chat import ChatConnection, ChatModel
from pluralbench_rewards import ModelRecord, Person
from pluralbench_rewards.judge import Judge, load_judge
from pluralbench_rewards.judge import prompts_digest as judge_digest
from pluralbench_rewards.synthesize_me import Synthesized, prompts_digest
from pluralbench_rewards.synthesize_me import synthesize as synthesize_people
from pluralbench_runs import Output, Recipe, Table
from pydantic import Field

from pluralbench.data.personas import PERSONAS_FILE
from pluralbench.data.prompts import Told
from pluralbench.descriptions import Data, Synthesizing
from pluralbench.errors import DataError
from pluralbench.evaluation.folders import run_folder
from pluralbench.evaluation.judge import chat_of
from pluralbench.evaluation.settings import DataSettings, Loaded, load_benchmark, run_directory
from pluralbench.evaluation.timing import cost_of_calls, timed
from pluralbench.results.record import CostRecord, DataRecord, ProvenanceRecord, provenance
from pluralbench.results.runs import LEDGER_FILE, SETTINGS_FILE, read_file

RECORD_FILE = "synthesis.json"
LOCAL_SAMPLING = {"seeded": True}


class SynthesisSettings(Recipe):
    """All that personas and demonstrations depend on."""

    operational: ClassVar[frozenset[str]] = frozenset({"connection"})

    verb: Literal["synthesize"] = "synthesize"
    model: ChatModel
    prompts_digest: str
    judge_digest: str
    data: DataSettings
    synthesizing: Synthesizing
    seed: int
    connection: ChatConnection = ChatConnection()


class SynthesisRecord(Table):
    """What a synthesis did. choices, posts: personas written from kept reasons, and from posts alone.

    without: why somebody has no persona, by the id of the person. predicted, kept: predictions about earlier pairs, and
    the right ones. demonstrations: of all people. accuracy: of the judge with them over the pairs set apart, the mean
    over people who have such.
    """

    schema_version: Literal[1] = 1
    verb: Literal["synthesize"] = "synthesize"
    model: ModelRecord
    benchmark: str
    data: DataRecord
    people: int
    choices: int
    posts: int
    without: dict[str, str] = Field(default_factory=dict)
    predicted: int
    kept: int
    demonstrations: int
    accuracy: float | None = None
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost: CostRecord
    provenance: ProvenanceRecord


@dataclass(frozen=True)
class Synthesis:
    """A finished synthesis. path: its directory. personas: the file that `Prompt(personas=...)` takes."""

    path: Path
    record: SynthesisRecord

    @property
    def personas(self) -> Path:
        """JSON Lines, a line a person."""
        return self.path / PERSONAS_FILE


def synthesize(
    model: str,
    *,
    benchmark: str | None = None,
    data: str | Path | Data | None = None,
    synthesizing: Synthesizing | None = None,
    connection: ChatConnection | None = None,
    seed: int = 0,
    out: str | Path | None = None,
    fresh: bool = False,
) -> Synthesis:
    """Find a persona and demonstrations for everybody whose items a benchmark has; returns what lies in `out`.

    model, connection: as of `judge`. benchmark, data: as of `score`. synthesizing: how; see `SynthesisOptions`. seed:
    of every draw.

    A persona is of a person where the same is known of them at all of their items, else of each item, so that nothing
    decided later tells of an item. Every call is recorded; an interrupted synthesis goes on where it was.

    Raises `DataError` where the data has neither earlier pairs nor posts of anybody.
    """
    given = synthesizing or Synthesizing()
    synthesizing = given.asked_of(model)
    loaded = load_benchmark(benchmark, data, None)
    people = list(people_of(loaded))
    if not any(person.earlier or person.profile for person in people):
        raise DataError(
            f"{loaded.items.location} has neither earlier pairs nor posts of anybody, so there is nothing to write a "
            "persona from; take a benchmark that has (see `pluralbench list`), or name a column of posts with "
            "--column profile=COLUMN."
        )
    chat, connection = chat_of(model, synthesizing, connection, LOCAL_SAMPLING)
    settings = SynthesisSettings(
        model=chat,
        prompts_digest=prompts_digest(),
        judge_digest=judge_digest(),
        data=loaded.data_settings(),
        synthesizing=synthesizing,
        seed=seed,
        connection=connection,
    )
    name = f"{loaded.name}-{Path(chat.model).name}-synthesize"
    target = Path(out or run_folder(name, settings, loaded.data, given, seed=seed))
    the_judge = load_judge(
        chat,
        connection,
        target.with_name(target.name + ".work") / "ledger.sqlite",
        attempts=synthesizing.attempts,
        reply=synthesizing.form,
        seed=seed,
    )
    with run_directory(target, settings, fresh=fresh, finished=RECORD_FILE) as output:
        if output is not None:
            with timed(output.work) as seconds:
                found = synthesize_people(people, the_judge, synthesizing)
                _write(output, settings, loaded, the_judge, found, seconds())
    return Synthesis(target, read_file(target / RECORD_FILE, SynthesisRecord))


def people_of(loaded: Loaded) -> Iterator[Person]:
    """Everybody whose items these are, in their order, with all that is known of them before their items.

    Their id is that of the person, or of the item where less or more is known at another of their items.
    """
    told = Told(history=loaded.items.history)
    columns = loaded.items.frame.select("config", "id", "person", "prompt", "profile", "earlier")
    items = list(columns.iter_rows(named=True))
    known: dict[str, list[Any]] = {}
    for item in items:
        what = [told.history.before(item), item["profile"]]
        alike = known.setdefault(item["person"], [what])
        alike += [what] if what not in alike else []
    seen = set()
    for item in items:
        name = item["person"] if len(known[item["person"]]) == 1 else item["id"]
        if name not in seen:
            seen.add(name)
            yield Person(id=name, profile=told.posts(item), earlier=told.history.before(item))


def _write(
    output: Output,
    settings: SynthesisSettings,
    loaded: Loaded,
    the_judge: Judge,
    found: Sequence[Synthesized],
    seconds: float,
) -> None:
    with working_ledger(the_judge.ledger) as ledger:
        prompt_tokens, completion_tokens = ledger.usage()
        calls = len(ledger)
        ledger.export(output.work / LEDGER_FILE)
    rates = [one.accuracy for one in found if one.accuracy is not None]
    record = SynthesisRecord(
        model=ModelRecord(name=settings.model.model, kind="generative", provider=settings.model.provider),
        benchmark=loaded.name,
        data=loaded.data_record(),
        people=len(found),
        choices=sum(one.source == "choices" for one in found),
        posts=sum(one.source == "posts" for one in found),
        without={one.id: one.reason for one in found if not one.persona},
        predicted=sum(one.predicted for one in found),
        kept=sum(one.kept for one in found),
        demonstrations=sum(len(one.demonstrations) for one in found),
        accuracy=sum(rates) / len(rates) if rates else None,
        calls=calls,
        prompt_tokens=prompt_tokens,
        completion_tokens=completion_tokens,
        cost=cost_of_calls(seconds, settings.connection, prompt_tokens, completion_tokens),
        provenance=provenance(),
    )
    staged = output.staging()
    lines = [json.dumps(_row(one), ensure_ascii=False) for one in found if one.persona]
    (staged / PERSONAS_FILE).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    (staged / RECORD_FILE).write_text(record.model_dump_json(indent=2) + "\n", encoding="utf-8")
    (staged / SETTINGS_FILE).write_bytes((output.work / "recipe.toml").read_bytes())
    (output.work / LEDGER_FILE).rename(staged / LEDGER_FILE)
    output.publish(staged)


def _row(one: Synthesized) -> Mapping[str, Any]:
    """A line of the file: a persona, what it is from and by which call, and the demonstrations."""
    return {
        "id": one.id,
        "persona": one.persona,
        "from": one.source,
        "kept": one.kept,
        "predicted": one.predicted,
        "accuracy": one.accuracy,
        "validated": one.validated,
        "tried": one.tried,
        "call": one.call,
        "demonstrations": [
            {"prompt": list(pair.prompt), "chosen": pair.chosen, "rejected": pair.rejected}
            for pair in one.demonstrations
        ],
    }
