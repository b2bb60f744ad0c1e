"""Measure how many prompt tokens of a judge's calls a server takes from its prefix cache.

    uv run --group test python benchmarks/prefix_cache.py http://127.0.0.1:8000/v1 MODEL

Generates prompts in four shapes: pairs without a profile, pairs of users with five questions each, a right response
against three wrong ones, and rubrics of 16 candidates per question. All but the rubrics are judged in both orders. Each
shape is sent twice, in the order of the data and with its questions in random order, and starts with words of its own,
so that no run takes anything from another one. vLLM reports cached tokens with `--enable-prompt-tokens-details`, SGLang
with `--enable-cache-report`.
"""

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Annotated

import typer
from machine import describe_machine
from pluralbench_calls import ChatModel, ConnectionConfig, Ledger
from pluralbench_rewards import Comparison, RubricCase, score_aspects
from pluralbench_rewards.judge import Judge
from pluralbench_runs import run

README = Path(__file__).parent / "README.md"
WORDS = [word for word in README.read_text("utf-8").split() if word.isalpha()]

app = typer.Typer(add_completion=False, rich_markup_mode=None)

Questions = list[list[Comparison]]


@app.command(help=__doc__)
def command(
    base_url: Annotated[str, typer.Argument(help="OpenAI-compatible endpoint.")],
    model: Annotated[str, typer.Argument(help="Name of the model at the endpoint.")],
    concurrency: Annotated[int, typer.Option(min=1, help="Concurrent requests.")] = 8,
    seed: Annotated[int, typer.Option(help="Seed of the texts and the order.")] = 1,
) -> None:
    """Send all shapes, and print a line for each."""
    connection = ConnectionConfig(base_url=base_url, concurrency=concurrency)
    chat = ChatModel(provider="endpoint", model=model, temperature=0.0, max_tokens=1, structured_output=False)
    print("shape, order: calls, prompt tokens, share from the cache, seconds")
    for shape in ("pairs", "users", "best of 4", "rubrics"):
        for order in ("data", "random"):
            rng = Random(seed)
            mark = f"{time.time_ns()} "
            questions = _questions(shape, mark, rng)
            if order == "random":
                rng.shuffle(questions)
            with tempfile.TemporaryDirectory() as folder, Ledger(Path(folder) / "ledger.sqlite") as ledger:
                judge, start = Judge(chat, connection, ledger, attempts=1, reply="brief"), time.monotonic()
                _send(judge, [one for question in questions for one in question], as_rubrics=shape == "rubrics")
                (prompt, _), cached = ledger.usage(), ledger.cached_tokens()
                took = time.monotonic() - start
                print(f"{shape}, {order}: {len(ledger):,}, {prompt:,}, {cached / prompt:.1%}, {took:.1f}", flush=True)
    print(describe_machine(("pluralbench-calls", "openai"), ()))


def _questions(shape: str, mark: str, rng: Random) -> Questions:
    """Generate the calls of each question, with about as many tokens as real ones."""

    def text(words: int) -> str:
        return " ".join(rng.choices(WORDS, k=words))

    if shape == "pairs":
        return [_both_orders(mark + text(60), [text(150), text(150)]) for _ in range(120)]
    if shape == "best of 4":
        return [_both_orders(mark + text(60), [text(150) for _ in range(4)]) for _ in range(40)]
    if shape == "rubrics":
        return [
            [Comparison("", [], mark + question, text(150)) for _ in range(16)] for question in map(text, [60] * 12)
        ]
    profiles = [mark + text(1_000) for _ in range(24)]
    return [_both_orders(text(30), [text(150), text(150)], profile) for profile in profiles for _ in range(5)]


def _both_orders(question: str, responses: Sequence[str], profile: str = "") -> list[Comparison]:
    """Compare the first response with each of the others, in both orders."""
    prompt = [{"role": "user", "content": question}]
    first, *others = responses
    pairs = [pair for other in others for pair in ((first, other), (other, first))]
    return [Comparison("", prompt, *pair, profile) for pair in pairs]


def _send(judge: Judge, comparisons: Sequence[Comparison], *, as_rubrics: bool) -> None:
    if not as_rubrics:
        judge.compare(comparisons)
        return
    aspects = [" ".join(WORDS[start : start + 8]) for start in range(0, 48, 8)]
    score_aspects(judge, [RubricCase("", one.first, one.second, aspects) for one in comparisons])


if __name__ == "__main__":
    run(app, "pluralbench")
