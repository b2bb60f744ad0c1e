"""`pluralbench synthesize`."""

import shlex
from typing import Annotated

from pluralbench_runs import log_status
from pluralbench_runs.options import Fresh, Options, Seed, with_options

from pluralbench.commands.judge import Model
from pluralbench.commands.options import DRAW, DetectedBenchmark, Out
from pluralbench.commands.terminal import console
from pluralbench.config import ConnectionConfig, DataConfig, SynthesizeConfig


@with_options
def synthesize(
    model: Model,
    *,
    benchmark: DetectedBenchmark = None,
    data: Annotated[DataConfig, Options("Data", left_out=("legacy", "english", *DRAW))],
    synthesizing: Annotated[SynthesizeConfig, Options("Synthesizing")],
    connection: Annotated[ConnectionConfig, Options("Connection")],
    seed: Seed = 0,
    out: Out = None,
    fresh: Fresh = False,
) -> None:
    """Let a language model write personas and choose demonstrations for a judge (SynthesizeMe).

    The model predicts each user's older pairs with reasons, and writes a persona from the reasons of its correct
    predictions. The newer pairs select the demonstrations. Users without earlier pairs are described by their posts.
    Writes personas.jsonl (for --personas) with the recorded calls. Rerun the same command to resume.

    Examples:

    pluralbench synthesize gpt-5-mini --benchmark prism-personalized --price 0.25/2 --max-cost 5 --out personas

    pluralbench judge gpt-5-mini --benchmark prism-personalized --profile persona --personas personas
    """
    log_status(f"Writing personas with {model}...")
    from pluralbench.data.personas import PERSONAS_FILE  # noqa: PLC0415 - the same
    from pluralbench.evaluation.synthesize import synthesize as run_synthesis  # noqa: PLC0415 - `--help` need not wait for it
    from pluralbench.reports.synthesis import synthesis_notes  # noqa: PLC0415 - the same

    done = run_synthesis(
        model,
        benchmark=benchmark,
        data=data,
        synthesizing=synthesizing,
        connection=connection,
        seed=seed,
        out=out,
        fresh=fresh,
    )
    console.print()
    for line in synthesis_notes(done):
        console.print(line)
    words = ["pluralbench", "judge", model, "--benchmark", done.config.benchmark.name]
    words += ["--data", data.location] if data.location else []
    words += ["--profile", "persona", "--personas", str(done.path / PERSONAS_FILE)]
    console.print(f"Judge with them: {shlex.join(words)}")
