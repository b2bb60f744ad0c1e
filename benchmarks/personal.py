"""Measure the speed of personalized reward models: embedding, compared with a loop over strings, and training.

    uv run --group evaluator python benchmarks/personal.py

Embedding: a language model with random weights (43 million, 512 wide) embeds prompts, two responses to each, and posts
of a user. Each strategy has its own process, and each round runs every strategy once, in random order. Training: a
smaller model, also 512 wide, embeds pairs of generated users, and each method is trained once. Prints the machine and
two tables.
"""

import tempfile
import time
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from pluralbench_local import LocalModel, embed, load_backbone
from pluralbench_local.personal.options import METHODS, PersonalConfig
from pluralbench_local.personal.training import train_personal
from pluralbench_rewards import EarlierPair, Group, Person
from pluralbench_runs import rng_for, run
from scoring.models import make_backbone, make_models
from scoring.process import Worker
from scoring.protocol import Answer, Conversations, Dtype, Settings, write_workloads
from scoring.report import Row, machine, rows
from scoring.workloads import Shape, Writer, groups
from translating.process import note

OURS, LOOP, PADDED = "embeddings:ours", "embeddings:loop", "embeddings:padded"
TITLES = {OURS: "ours", LOOP: "one string at a time", PADDED: "batches of 8 strings, padded"}
TEXTS = "corpus"
ITEMS = Shape("items", 16, 2, (160, 0.75), (120, 0.6))
ABOUT = Shape("persons", 16, 0, (150, 0.6), (1, 0.1))
USERS_ITEMS, EARLIER, POSTS, LAYERS = 50, 10, 5, 2
TARGET_SECONDS = 300  # of embedding and training

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(help=__doc__)
def command(
    rounds: Annotated[int, typer.Option(min=1, help="Number of rounds.")] = 5,
    size: Annotated[float, typer.Option(min=0, help="Factor on the number of embedded texts.")] = 1.0,
    pairs: Annotated[int, typer.Option(min=0, help="Number of training pairs; 0 skips training.")] = 10_000,
    threads: Annotated[int, typer.Option(min=1, help="Threads of each embedding process.")] = 1,
    training_threads: Annotated[int, typer.Option(min=1, help="Threads of embedding and training the pairs.")] = 2,
    dtype: Annotated[Dtype, typer.Option(help="Precision of the models.")] = "bfloat16",
    seed: Annotated[int, typer.Option(help="Seed of models, texts and order.")] = 1,
) -> None:
    """Generate models and texts, run the rounds, train, print the tables."""
    writer = Writer(seed)
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as processes:
        folder = Path(scratch)
        note("generating models and texts")
        make_models(folder, writer=writer, seed=seed)
        texts = groups(ITEMS, size=size, writer=writer, seed=seed) + groups(ABOUT, size=size, writer=writer, seed=seed)
        write_workloads({TEXTS: texts}, folder)
        workers = {
            strategy: processes.enter_context(Worker(Settings(strategy, scratch, "cpu", dtype, threads)))
            for strategy in TITLES
        }
        answers = _rounds(workers, rounds, seed)
        versions = workers[OURS].versions
    for line in machine({"all": versions}, threads=threads, dtype=dtype, device="cpu"):
        print(line)
    print(f"\n### Embedding {len(texts)} items and texts of users\n\n{_table(answers)}\n")
    if pairs:
        torch.set_num_threads(training_threads)
        print(f"### {pairs:,} pairs, {training_threads} threads\n\n{_trained(pairs, dtype, writer, seed)}")


def main() -> None:
    """Run the command and print errors in one sentence."""
    run(app, "pluralbench")


def _rounds(workers: dict[str, Worker], rounds: int, seed: int) -> dict[str, list[Answer]]:
    """Answers by strategy, a round after the other; the first round warms up and is not kept."""
    answers: dict[str, list[Answer]] = defaultdict(list)
    for number in range(rounds + 1):
        for strategy in rng_for(seed, "order", number).sample(list(TITLES), len(TITLES)):
            answer = workers[strategy].run(TEXTS)
            note(f"round {number} of {rounds}, {strategy}: {answer.cpu:.2f} CPU s, {answer.wall:.2f} s")
            if number:
                answers[strategy].append(answer)
    return {strategy: answers[strategy] for strategy in TITLES}


def _table(answers: dict[str, list[Answer]]) -> str:
    unique = answers[OURS][0].computed_tokens
    made: list[Row] = rows(answers, TITLES, unique=unique, against=[LOOP], truth=LOOP, clock="cpu")
    lines = [
        "| strategy | tokens relative to ours | CPU s | times faster than the loop | largest difference |",
        "|---|---:|---:|---:|---:|",
    ]
    for row in made:
        seconds, least, most = row.cpu
        lines.append(
            f"| {row.strategy} | {row.computed_over_unique:.2f} | {seconds:.2f} ({least:.2f}-{most:.2f}) "
            f"| {row.times_faster[TITLES[LOOP]]:.2f} | {row.largest_difference:.2g} |"
        )
    return "\n".join(lines)


def _trained(pairs: int, dtype: Dtype, writer: Writer, seed: int) -> str:
    """Embed pairs of generated users, train every method on them, and return a table of seconds."""
    seconds: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as scratch:
        make_backbone(Path(scratch) / "backbone", layers=LAYERS, writer=writer, seed=seed)
        items = _users(pairs, writer, seed)
        backbone = load_backbone(LocalModel(name=str(Path(scratch) / "backbone"), dtype=dtype, device="cpu"))
        started = time.perf_counter()
        corpus = embed(items, [[1, 2]] * len(items), backbone, posts=POSTS)
        seconds["embedding"] = time.perf_counter() - started
        tokens = 0 if corpus.work is None else corpus.work.computed_tokens
        note(f"embedding: {seconds['embedding']:.1f} s, {tokens:,} tokens, {len(corpus.vectors):,} texts")
        for method in METHODS:
            started = time.perf_counter()
            options = PersonalConfig(method=method, seed=seed)
            train_personal(corpus, Path(scratch) / method, options=options, backbone=backbone.record)
            seconds[method] = time.perf_counter() - started
            note(f"{method}: {seconds[method]:.1f} s")
    lines = [
        "| part | seconds |",
        "|---|---:|",
        *(f"| {name} | {duration:.1f} |" for name, duration in seconds.items()),
    ]
    lines.append(f"| all (target: {TARGET_SECONDS}) | {sum(seconds.values()):.1f} |")
    return "\n".join([*lines, "", f"{len(corpus.vectors):,} texts of {tokens:,} tokens, {corpus.width} wide."])


def _users(pairs: int, writer: Writer, seed: int) -> list[Group]:
    """Pairs of users with 50 each: short prompts and responses, posts, and the ten earlier pairs."""
    shape = Shape("pairs", pairs, 2, (30, 0.5), (40, 0.5))
    made: list[Conversations] = groups(shape, size=1, writer=writer, seed=seed)
    prompts: list[Any] = [[{"role": "user", "content": item.prompt}] for item in made]
    items = []
    for number, item in enumerate(made):
        first = number - number % USERS_ITEMS
        others = [place for place in range(first, min(first + USERS_ITEMS, pairs)) if place != number]
        before = range(max(first, number - EARLIER), number)
        person = Person(
            str(first),
            persona=[made[first].responses[0]],
            earlier=[EarlierPair(prompts[place], *made[place].responses) for place in before],
        )
        context = [made[place].prompt for place in others[:POSTS]]
        items.append(Group(str(number), prompts[number], item.responses, person, context))
    return items


if __name__ == "__main__":
    main()
