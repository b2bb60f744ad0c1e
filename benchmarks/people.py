"""Score two models on votes of simulated people, of whom those of one country want something else.

    uv run --group evaluator python benchmarks/people.py --out people

Draws people and their votes on pairs of answers, whose true shares of votes are known, scores a model that knows them
for most people and one with noise, and draws the agreement with each group of people. Writes `groups_simulated.png`,
the votes and the runs; prints the gap between the best and the worst served group of each model.
"""

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from pluralbench import score
from pluralbench.contract import Group
from pluralbench.reports.figures.files import write
from pluralbench.reports.figures.report import figures_of
from pluralbench.results.numbers import with_interval
from pluralbench_runs import run

SEED = 1
PAIRS, VOTES = 300, 8  # votes of different people on each pair
COUNTRIES = ("Ghana",) * 40 + ("Peru",) * 40 + ("Chad",) * 10
AGES = ("18-34", "35+")  # in turn, and no vote depends on them
SPREAD = 1.5  # standard deviation of what the first answer of a pair is worth more than the second, in logits
PERU = -3.0  # added to it for people from Peru
NOISE = 1.5  # standard deviation of the noise of the model "noisy"
BENCHMARK = """
title = "Simulated people"

[columns]
id = "question"
prompt = ["question"]
first = "first"
second = "second"

[labels]
first = ["first"]
second = ["second"]

[annotations]
vote = "vote"
annotator = "person"
attributes = { country = "country", age = "age" }
"""


def draw() -> list[dict[str, str]]:
    """Draw pairs and votes; a row for each vote. An answer's text ends with its worth to most people."""
    generator = np.random.default_rng(SEED)
    rows = []
    for pair, worth in enumerate(generator.normal(0, SPREAD, PAIRS).tolist()):
        for person in generator.choice(len(COUNTRIES), VOTES, replace=False).tolist():
            country = COUNTRIES[person]
            logit = worth + PERU * (country == "Peru")
            first = generator.random() < 1 / (1 + np.exp(-logit))
            rows.append(
                {
                    "question": f"Question {pair}",
                    "first": f"Answer worth {worth}",
                    "second": "Answer worth 0",
                    "vote": "first" if first else "second",
                    "person": f"{person}",
                    "country": country,
                    "age": AGES[person % len(AGES)],
                }
            )
    return rows


def truth(groups: Sequence[Group]) -> list[list[float]]:
    """Score answers by their worth to most people."""
    return [[float(text.split()[-1]) for text in group.responses] for group in groups]


def noisy(groups: Sequence[Group]) -> list[list[float]]:
    """Score answers by their worth to most people, with noise."""
    noise = [random.Random(f"{SEED} {group.messages}").gauss(0, NOISE) for group in groups]
    return [[one + plus * (one != 0) for one in scores] for scores, plus in zip(truth(groups), noise, strict=True)]


app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(help=__doc__)
def command(
    out: Annotated[Path, typer.Option(help="Directory for the figure, the votes and the runs.")] = Path("people"),
) -> None:
    """Draw, score and print."""
    out.mkdir(parents=True, exist_ok=True)
    benchmark, data = out / "simulated.toml", out / "votes.jsonl"
    benchmark.write_text(BENCHMARK, "utf-8")
    data.write_text("".join(json.dumps(row) + "\n" for row in draw()), "utf-8")
    runs = [
        score(model, benchmark=str(benchmark), data=data, out=out / model.__name__, fresh=True)
        for model in (truth, noisy)
    ]
    write({"groups_simulated": figures_of(runs)["groups_simulated"]}, out)
    for scored in runs:
        for attribute in ("country", "age"):
            gap = with_interval(scored.estimate("group_gap", attribute=attribute))
            print(f"{scored.name}, by {attribute}: best less worst {gap}")


def main() -> None:
    """Run the command and print errors in one sentence."""
    run(app, "pluralbench")


if __name__ == "__main__":
    main()
