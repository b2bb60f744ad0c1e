"""A project of one's own for the Chinese builder: prompts, answers whose quality can be read off, sheets and a judge.

The quality of an answer is how often it says 好, from 0 up, so annotators, a judge and a test can tell which is better.
"""

import csv
import json
import random
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from chat_server import Reply
from written_tables import write

Row = dict[str, Any]
write_rows = write

FIVE = ("an", "bo", "chen", "ding", "e")
TASKS: list[object] = ["tasks", "--prompts", "prompts.jsonl", "--responses", "responses.jsonl"]
TASKS += ["--taxonomy", "taxonomy.toml", *(word for name in FIVE for word in ("--annotator", name))]
"""The words that make tasks of what `write_prompts` wrote, where commands run."""
TAXONOMY = """\
[[category]]
name = "地理"
criteria = "knowledge"
sub = [{ name = "山川" }]

[[category]]
name = "改写"
criteria = "一看语句是否通顺自然，二看意思是否忠实于原文，三看篇幅是否合适。"
"""
CATEGORIES = (["地理", "山川"], ["改写"])


def read_rows(path: Path) -> list[Row]:
    """The rows of a JSONL file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def prompt(number: int, config: str = "preference") -> Row:
    """A prompt, without answers."""
    return {
        "id": f"n{number}",
        "input": f"第{number}问：请介绍一座山。",
        "category": CATEGORIES[number % 2],
        "config": config,
    }


def answers(number: int, count: int = 5) -> list[Row]:
    """The answers to it: each number of 好 from 0 on once, in a drawn order, some with more words than others."""
    draw = random.Random(number)
    qualities = draw.sample(range(count), count)
    return [
        {
            "id": f"n{number}-{'abcdefgh'[place]}",
            "content": f"这座山在第{number}县，风景{'好' * quality}，{'值得一看，' * draw.randrange(6)}欢迎你来。",
            "model": f"secret-{place}",
        }
        for place, quality in enumerate(qualities)
    ]


def quality(text: str) -> int:
    """How good an answer is."""
    return text.count("好")


def mark_of(first: str, second: str) -> str:
    """The mark on two texts: "1", "2" or "s"."""
    return "s" if quality(first) == quality(second) else "1" if quality(first) > quality(second) else "2"


def ranked_truly(row: Row) -> dict[str, int]:
    """The rank of each answer of a row by its quality."""
    levels = sorted({quality(answer["content"]) for answer in row["responses"]}, reverse=True)
    return {answer["id"]: levels.index(quality(answer["content"])) + 1 for answer in row["responses"]}


def annotated(number: int, config: str = "preference", count: int = 5) -> Row:
    """A prompt with a right annotation on each two of its answers."""
    given = answers(number, count)
    marks = [[a["id"], b["id"], mark_of(a["content"], b["content"])] for a, b in combinations(given, 2)]
    return prompt(number, config) | {"responses": given, "annotations": marks}


def unlabeled(number: int, count: int = 5) -> Row:
    """A prompt with answers and no annotation."""
    return {name: value for name, value in prompt(number).items() if name != "config"} | {
        "responses": answers(number, count)
    }


def write_taxonomy(folder: Path) -> Path:
    """The project's categories."""
    path = folder / "taxonomy.toml"
    path.write_text(TAXONOMY, encoding="utf-8")
    return path


def write_prompts(folder: Path, configs: Sequence[str]) -> None:
    """`prompts.jsonl` with a prompt of each config, `responses.jsonl` with five answers to each, and the categories."""
    write_rows(folder / "prompts.jsonl", [prompt(number, name) for number, name in enumerate(configs)])
    given = [row | {"prompt": f"n{number}"} for number in range(len(configs)) for row in answers(number)]
    write_rows(folder / "responses.jsonl", given)
    write_taxonomy(folder)


def sheet_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a sheet."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def write_sheet(path: Path, rows: Sequence[Mapping[str, str]]) -> Path:
    """Rows as a spreadsheet saves them."""
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, list(dict.fromkeys(name for row in rows for name in row)))
        writer.writeheader()
        writer.writerows(rows)
    return path


def fill(sheet: Path, to: Path, better: Callable[[str, str], str] = mark_of) -> Path:
    """A sheet with every pair marked."""
    letters, rows = {"1": "g", "2": "b", "s": "s"}, sheet_rows(sheet)
    for row in rows:
        for a, b in combinations("ABC", 2):
            if row[a] and row[b]:
                row[f"{a}_{b}"] = letters[better(row[a], row[b])]
    return write_sheet(to, rows)


def shown_to_judge(body: Mapping[str, Any]) -> tuple[str, str]:
    """The two answers in a request to the judge."""
    asked = body["messages"][-1]["content"]
    first, second = (asked.partition(f"【回答{letter}开始】\n")[2].partition("\n【回答")[0] for letter in "AB")
    return first, second


def judge(body: Mapping[str, Any], _: int) -> Reply:
    """A judge that is always right."""
    verdicts = {"1": "[[A]]", "2": "[[B]]", "s": "[[C]]"}
    return Reply(verdicts[mark_of(*shown_to_judge(body))])
