"""`synthesize`: write personas and demonstrations with SynthesizeMe, in a directory with the recorded calls."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pluralbench_calls.chat import ConnectionConfig
from pluralbench_local import LocalModel
from pluralbench_rewards import Person
from pluralbench_rewards.judge import Judge
from pluralbench_rewards.judge_prompts import prompts_digest as judge_digest
from pluralbench_rewards.synthesize_me import Synthesized, prompts_digest
from pluralbench_rewards.synthesize_me import synthesize as synthesize_people
from pluralbench_runs import Output, Seed

from pluralbench.arguments import Undrawn
from pluralbench.config import SynthesizeConfig
from pluralbench.data.personas import PERSONAS_FILE
from pluralbench.data.prompts import UserContext
from pluralbench.errors import DataError
from pluralbench.evaluation.folders import run_folder
from pluralbench.evaluation.judge import judge_chat_model
from pluralbench.evaluation.loading import LoadedBenchmark, load_benchmark, run_directory
from pluralbench.evaluation.models import chat_file_name
from pluralbench.evaluation.verdicts import export_calls, judge_result
from pluralbench.evaluation.work import stopwatch
from pluralbench.metrics.frame import metrics_frame
from pluralbench.results.plans import SynthesizeResult, SynthesizeRunConfig
from pluralbench.results.run_files import write_run
from pluralbench.results.runs import Synthesis, load_run


def synthesize(
    model: str | LocalModel,
    *,
    benchmark: str | None = None,
    data: Undrawn = None,
    synthesizing: SynthesizeConfig | None = None,
    connection: ConnectionConfig | None = None,
    seed: Seed = 0,
    out: str | Path | None = None,
    fresh: bool = False,
) -> Synthesis:
    """Let a language model write personas and choose demonstrations for a judge (SynthesizeMe).

    The model predicts each user's older pairs with reasons, and writes a persona from the reasons of its correct
    predictions. The newer pairs select the demonstrations. Users without earlier pairs are described by their posts. A
    person gets one persona if the same is known of them at all of their items; otherwise each item gets its own, so
    that no persona uses later choices.

    Writes personas.jsonl (for --personas) with the recorded calls. Repeat it with the same arguments to resume.

    Args:
        model: Name of a model at the endpoint; a directory or ORG/NAME on the Hub, which runs here if there is no
            `--base-url`; or `local` (small embedded model). In Python also a `LocalModel`.
        benchmark: Name, such as personalized, multilingual, chinese, reward-bench-2 or pairs (`pluralbench list` shows
            all), or a TOML file. Default: the benchmark in the manifest of `data`, else personalized.
        data: Location of the dataset, or a `DataConfig`, which also selects configs, columns and a limit. Default: the
            benchmark's dataset on the Hub.
        synthesizing: Numbers of pairs, personas and demonstrations, sampling and reply format. Default:
            `SynthesizeConfig()`.
        connection: Endpoint, rate limits and maximum cost. Default: `ConnectionConfig()`, which is OpenAI's API.
        seed: Random seed, of draws such as the order of the responses.
        out: Run directory. Default: a name under runs/ that lists the benchmark, the model and the other settings.
        fresh: Start over, and replace existing output.

    Returns:
        The synthesis in `out`. Its `personas.jsonl` is what `PromptConfig(profile="persona", personas=...)` takes.

    Raises:
        DataError: If no person of the data has earlier pairs or posts.
        UserError: If another argument, the endpoint or the directory cannot be used. The message names the fix.

    Examples:
        pluralbench synthesize gpt-5-mini --benchmark prism-personalized --price 0.25/2 --max-cost 5 --out personas
        pluralbench judge gpt-5-mini --benchmark prism-personalized --profile persona --personas personas
    """
    options = synthesizing or SynthesizeConfig()
    synthesizing = options.for_model(model)
    loaded = load_benchmark(benchmark, data, None, with_draw=False)
    people = list(iter_people(loaded))
    if not any(person.earlier or person.profile for person in people):
        raise DataError(
            f"{loaded.items.location} has no earlier pairs and no posts to write personas from; name the column of "
            'posts with `columns=["profile=COLUMN"]`, or choose another benchmark.'
        )
    chat, connection, here = judge_chat_model(model, synthesizing, connection)
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
    name = f"{loaded.name}-{chat_file_name(chat)}-synthesize"
    target = Path(out or run_folder(name, config, loaded.data, options, seed=seed))
    with run_directory(target, config, fresh=fresh) as output:
        if output is not None:
            the_judge = Judge(
                chat,
                connection,
                output.work / "ledger.sqlite",
                attempts=synthesizing.attempts,
                reply=synthesizing.chosen_format,
                seed=seed,
                backend=None if here is None else here(),
            )
            with stopwatch(output.work) as seconds:
                personas = synthesize_people(people, the_judge, synthesizing)
                _write(output, config, the_judge, personas, seconds())
    return load_run(target, SynthesizeRunConfig)


def iter_people(loaded: LoadedBenchmark) -> Iterator[Person]:
    """Yield the people of a benchmark in the order of their items, with all that is known before the items.

    The id is the person's, or the item's if something else is known at another item of the person.
    """
    context = UserContext(history=loaded.items.history)
    columns = loaded.items.frame.select("config", "id", "person", "prompt", "profile", "earlier")
    items = list(columns.iter_rows(named=True))
    known: dict[str, list[Any]] = {}  # the different states of knowledge about each person
    for item in items:
        state = [context.history.before(item), item["profile"]]
        states = known.setdefault(item["person"], [state])
        states += [state] if state not in states else []
    seen = set()
    for item in items:
        name = item["person"] if len(known[item["person"]]) == 1 else item["id"]
        if name not in seen:
            seen.add(name)
            yield Person(id=name, profile=context.posts(item), earlier=context.history.before(item))


def _write(
    output: Output, config: SynthesizeRunConfig, the_judge: Judge, personas: Sequence[Synthesized], seconds: float
) -> None:
    rates = [one.accuracy for one in personas if one.accuracy is not None]
    result = SynthesizeResult(
        **judge_result(config, export_calls(the_judge, output), seconds),
        people=len(personas),
        from_choices=sum(one.source == "choices" for one in personas),
        from_posts=sum(one.source == "posts" for one in personas),
        without_persona={one.id: one.reason for one in personas if not one.persona},
        predicted=sum(one.predicted for one in personas),
        correct=sum(one.correct for one in personas),
        demonstrations=sum(len(one.demonstrations) for one in personas),
        accuracy=sum(rates) / len(rates) if rates else None,
    )
    lines = [json.dumps(_row(one), ensure_ascii=False) for one in personas if one.persona]
    write_run(output, config, result, metrics_frame(()), {}, texts={PERSONAS_FILE: "\n".join(lines)})


def _row(one: Synthesized) -> Mapping[str, Any]:
    return {
        "id": one.id,
        "persona": one.persona,
        "from": one.source,
        "kept": one.correct,
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
