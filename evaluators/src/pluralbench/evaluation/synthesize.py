"""`synthesize`: personas and demonstrations by SynthesizeMe, into a directory with the recorded calls."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pluralbench_calls.chat import ConnectionConfig
from pluralbench_rewards import Person
from pluralbench_rewards.judge import Judge
from pluralbench_rewards.judge import prompts_digest as judge_digest
from pluralbench_rewards.synthesize_me import Synthesized, prompts_digest
from pluralbench_rewards.synthesize_me import synthesize as synthesize_people
from pluralbench_runs import Output

from pluralbench.config import DataConfig, SynthesizeConfig
from pluralbench.data.personas import PERSONAS_FILE
from pluralbench.data.prompts import UserContext
from pluralbench.errors import DataError
from pluralbench.evaluation.folders import run_folder
from pluralbench.evaluation.judge import judge_chat_model
from pluralbench.evaluation.loading import LoadedBenchmark, load_benchmark, run_directory
from pluralbench.evaluation.timing import stopwatch
from pluralbench.evaluation.verdicts import export_calls, judge_result
from pluralbench.results.metrics_frame import metrics_frame
from pluralbench.results.plans import SynthesizeResult, SynthesizeRunConfig
from pluralbench.results.runs import Synthesis, load_run, write_run


def synthesize(
    model: str,
    *,
    benchmark: str | None = None,
    data: str | Path | DataConfig | None = None,
    synthesizing: SynthesizeConfig | None = None,
    connection: ConnectionConfig | None = None,
    seed: int = 0,
    out: str | Path | None = None,
    fresh: bool = False,
) -> Synthesis:
    """Find a persona and demonstrations for everybody whose items a benchmark has; returns what lies in `out`.

    model, connection: as of `judge`. benchmark, data: as of `score`. synthesizing: how; see `SynthesisConfig`. seed:
    of every draw.

    A persona is of a person where the same is known of them at all of their items, else of each item, so that nothing
    decided later tells of an item. Every call is recorded; an interrupted synthesis goes on where it was.

    Raises `DataError` where the data has neither earlier pairs nor posts of anybody.
    """
    given = synthesizing or SynthesizeConfig()
    synthesizing = given.for_model(model)
    loaded = load_benchmark(benchmark, data, None)
    people = list(iter_people(loaded))
    if not any(person.earlier or person.profile for person in people):
        raise DataError(
            f"{loaded.items.location} has neither earlier pairs nor posts of anybody, so there is nothing to write a "
            "persona from; take a benchmark that has (see `pluralbench list`), or name a column of posts with "
            "--column profile=COLUMN."
        )
    chat, connection = judge_chat_model(model, synthesizing, connection)
    config = SynthesizeRunConfig(
        model=chat,
        prompts_digest=prompts_digest(),
        judge_digest=judge_digest(),
        benchmark=loaded.benchmark_record(),
        data=loaded.data_record(),
        synthesizing=synthesizing,
        seed=seed,
        connection=connection,
    )
    name = f"{loaded.name}-{Path(chat.model).name}-synthesize"
    target = Path(out or run_folder(name, config, loaded.data, given, seed=seed))
    the_judge = Judge(
        chat,
        connection,
        target.with_name(target.name + ".work") / "ledger.sqlite",
        attempts=synthesizing.attempts,
        reply=synthesizing.chosen_format,
        seed=seed,
    )
    with run_directory(target, config, fresh=fresh) as output:
        if output is not None:
            with stopwatch(output.work) as seconds:
                found = synthesize_people(people, the_judge, synthesizing)
                _write(output, config, the_judge, found, seconds())
    return load_run(target, SynthesizeRunConfig)


def iter_people(loaded: LoadedBenchmark) -> Iterator[Person]:
    """Everybody whose items these are, in their order, with all that is known of them before their items.

    Their id is that of the person, or of the item where less or more is known at another of their items.
    """
    told = UserContext(history=loaded.items.history)
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
    output: Output, config: SynthesizeRunConfig, the_judge: Judge, found: Sequence[Synthesized], seconds: float
) -> None:
    rates = [one.accuracy for one in found if one.accuracy is not None]
    result = SynthesizeResult(
        **judge_result(config, export_calls(the_judge, output), seconds),
        people=len(found),
        from_choices=sum(one.source == "choices" for one in found),
        from_posts=sum(one.source == "posts" for one in found),
        without_persona={one.id: one.reason for one in found if not one.persona},
        predicted=sum(one.predicted for one in found),
        correct=sum(one.kept for one in found),
        demonstrations=sum(len(one.demonstrations) for one in found),
        accuracy=sum(rates) / len(rates) if rates else None,
    )
    lines = [json.dumps(_row(one), ensure_ascii=False) for one in found if one.persona]
    write_run(output, config, result, metrics_frame(()), {}, texts={PERSONAS_FILE: "\n".join(lines)})


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
