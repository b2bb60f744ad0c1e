"""What annotators see of a task, and the sheets they fill in.

Responses are called A, B and C, in the order shown. No file that is written here names a model, the id of a response or
the kind of a task, and the order of an annotator's tasks says nothing either.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import polars as pl
from pluralbench_runs import digest

from build_chinese.errors import TasksError

LETTERS = "ABC"
MOST = len(LETTERS)
PAIRS = list(combinations(range(MOST), 2))
MARK_WORDS = {"g": "{}更好", "b": "{}更好", "s": "不相上下"}
RUBRIC = {
    "0": "不可用：有害、答非所问、乱码、不是中文、中途断掉或为空",
    "1": "很差：几乎没有用处",
    "2": "较差：毛病明显，大半不能用",
    "3": "一般：基本满足要求，有小错",
    "4": "良好：没有硬伤，稍有不足",
    "5": "优秀：可以直接使用，并有亮点",
}
GUIDE = "guide.md"
# What a spreadsheet would take for a formula, and the mark that keeps it from doing so.
FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠", "\t", "\r", "\n", "'")


@dataclass(frozen=True)
class Shown:
    """A task as its annotator sees it. answers: the texts of the responses, in the order shown."""

    task: str
    annotator: str
    prompt: str
    answers: tuple[str, ...]


def pair_field(first: int, second: int) -> str:
    """What the mark on two responses is called in sheets and labels: A_B for the first and the second."""
    return f"{LETTERS[first]}_{LETTERS[second]}"


def score_field(place: int) -> str:
    """What the score of a response is called in sheets and labels."""
    return f"score_{LETTERS[place]}"


SHEET = (
    *("task", "annotator", "prompt", *LETTERS),
    *(pair_field(*pair) for pair in PAIRS),
    *("order", *map(score_field, range(MOST)), "remark"),
)


def shown(tasks: pl.DataFrame, prompts: pl.DataFrame) -> list[Shown]:
    """The tasks with their texts, by annotator; each one's in an order that no kind and no prompt can be told from.

    tasks: columns of `tasks.TASKS`. prompts: `id`, `input` and `responses` (structs of `id` and `content`).
    """
    texts = {
        row["id"]: (row["input"], {response["id"]: response["content"] for response in row["responses"]})
        for row in prompts.iter_rows(named=True)
    }
    found = []
    for task, prompt, annotator, responses in tasks.select("task", "prompt", "annotator", "responses").iter_rows():
        question, answers = texts[prompt]
        found.append(Shown(task, annotator, question, tuple(answers[response] for response in responses)))
    return sorted(found, key=lambda item: (item.annotator, digest([item.annotator, item.task])))


def by_annotator(items: Iterable[Shown]) -> dict[str, list[Shown]]:
    """The tasks of each annotator, in the order given."""
    found: dict[str, list[Shown]] = {}
    for item in items:
        found.setdefault(item.annotator, []).append(item)
    return found


def write_csv(folder: Path, tasks: pl.DataFrame, prompts: pl.DataFrame) -> list[Path]:
    """Write a sheet NAME.csv for each annotator and `guide.md`; returns the paths of the sheets.

    A row is a task. What is to be filled in: a mark (g, b or s) on each pair such as `A_B`, or an `order` such as
    A>C=B, or scores; and a `remark`. A text that a spreadsheet would take for a formula begins with an apostrophe.

    Raises `TasksError` for files that are there already.
    """
    people = by_annotator(shown(tasks, prompts))
    paths = new_files(folder, [f"{name}.csv" for name in people])
    for path, items in zip(paths, people.values(), strict=True):
        rows = [
            [guarded(text) for text in (item.task, item.annotator, item.prompt, *item.answers)]
            + [""] * (len(SHEET) - 3 - len(item.answers))
            for item in items
        ]
        # A spreadsheet takes the mark at the beginning to know that this is UTF-8.
        pl.DataFrame(rows, schema=list(SHEET), orient="row").write_csv(path, include_bom=True)
    return paths


def new_files(folder: Path, names: Sequence[str]) -> list[Path]:
    """The paths of files to be written to `folder`, which gets the guide. Raises `TasksError` for one that is there."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / name for name in names]
    for path in paths:
        if path.exists():
            raise TasksError(f"{path} is there already; choose another folder, so that no annotation is lost.")
    (folder / GUIDE).write_text(_guide(), encoding="utf-8")
    return paths


def guarded(text: str) -> str:
    """The text as a spreadsheet may have it: what looks like a formula gets an apostrophe."""
    return f"'{text}" if text.startswith(FORMULA) else text


def unguarded(row: Mapping[str, str | None]) -> dict[str, str]:
    """The cells of a row without what `guarded` added; an empty one is ""."""
    return {name: (text or "").removeprefix("'") for name, text in row.items()}


def _guide() -> str:
    rubric = "\n".join(f"- {score} {words}" for score, words in RUBRIC.items())
    return f"""# 标注说明

每一行（每一题）有一个提问和两三个回答，依次称为 A、B、C。请独立完成，不要与他人商量。

1. 先给每个回答打分（score_A、score_B、score_C）：看是否无害、真实、有帮助。
{rubric}
2. 再两两比较。A_B 一栏填 g（A 更好）、b（B 更好）或 s（不相上下），其余类推；分数相同的也要比较。
   也可以只在 order 一栏填完整的次序，例如 A>C=B。
3. 最后核对：次序应与打分一致，分数高的不应排在后面。
4. 回答的先后和长短都不代表好坏；回答里的指示一律不必理会。有话要说，写在 remark 一栏。

task、annotator 和正文各栏请勿改动；文件请保存为 UTF-8 编码的 CSV。
"""
