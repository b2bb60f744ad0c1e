"""Annotation sheets (CSV) and Label Studio files of tasks.

Responses are called A, B and C, in the order shown. The files name no model, no response id and no kind of task, and
the order of an annotator's tasks does not reveal them.
"""

from itertools import combinations
from pathlib import Path

import polars as pl
from pluralbench_studies import Form, Question, write_label_studio, write_sheets

LETTERS = "ABC"
MOST = len(LETTERS)
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
PAIRS = "pairs"


def pair_field(first: int, second: int) -> str:
    """Name of the field for the mark on two responses, such as A_B for the first and the second."""
    return f"{LETTERS[first]}_{LETTERS[second]}"


def score_field(place: int) -> str:
    """Name of the field for the score of a response."""
    return f"score_{LETTERS[place]}"


def form_of(count: int, *more: Question) -> Form:
    """Make the form for a task of `count` responses: a mark on each pair (g, b or s), scores and a remark.

    `more` questions stand before the scores.
    """
    fields = {"prompt": "题目"} | {letter: f"回答 {letter}" for letter in LETTERS[:count]}
    marks = []
    for first, second in combinations(range(count), 2):
        a, b = LETTERS[first], LETTERS[second]
        words = {mark: text.format({"g": a, "b": b}.get(mark)) for mark, text in MARK_WORDS.items()}
        marks.append(Question(pair_field(first, second), f"{a} 与 {b} 哪个更好？", words))
    rubric = {number: f"{number} {words}" for number, words in RUBRIC.items()}
    scores = [Question(score_field(place), "", rubric, LETTERS[place]) for place in range(count)]
    return Form(fields, [*marks, *more, *scores, Question("remark", "备注")], item="task")


# A sheet also has a column for an order such as A>C=B.
SHEET = form_of(MOST, Question("order"))


def with_texts(tasks: pl.DataFrame, prompts: pl.DataFrame) -> pl.DataFrame:
    """Join tasks with the texts that annotators see.

    Args:
        tasks: Columns of `tasks.TASKS`.
        prompts: `id`, `input` and `responses` (structs of `id` and `content`).

    Returns:
        `task`, `annotator`, `prompt`, `A`, `B` and `C`; `C` is null in a task of two responses.
    """
    texts = {
        row["id"]: (row["input"], {response["id"]: response["content"] for response in row["responses"]})
        for row in prompts.iter_rows(named=True)
    }
    rows = []
    for task, prompt, annotator, responses in tasks.select("task", "prompt", "annotator", "responses").iter_rows():
        question, answers = texts[prompt]
        rows.append((task, annotator, question, *(answers[response] for response in responses)))
    names = ["task", "annotator", *SHEET.fields]
    padded = [row + (None,) * (len(names) - len(row)) for row in rows]
    return pl.DataFrame(padded, schema=dict.fromkeys(names, pl.String), orient="row")


def write_csv(folder: Path, tasks: pl.DataFrame, prompts: pl.DataFrame) -> list[Path]:
    """Write a sheet NAME.csv for each annotator, and `guide.md`; return the paths of the sheets.

    Annotators fill in a mark (g, b or s) on each pair such as `A_B`, an `order` such as A>C=B, or scores, and may leave
    a `remark`. Raises `AssignmentError` if a file exists.
    """
    paths = write_sheets(folder, with_texts(tasks, prompts).with_columns(pl.col("C").fill_null("")), SHEET)
    (folder / GUIDE).write_text(_guide(), encoding="utf-8")
    return paths


def write_labels(folder: Path, tasks: pl.DataFrame, prompts: pl.DataFrame) -> list[Path]:
    """Write Label Studio files (`pluralbench_studies.write_label_studio`) and `guide.md`; return the former's paths.

    Tasks of two responses need another labeling configuration and go to the subfolder `pairs`, in files of the same
    names. Raises `AssignmentError` if a file exists.
    """
    items = with_texts(tasks, prompts)
    written = []
    for count, place in ((3, folder), (2, folder / PAIRS)):
        selected = items.filter(pl.col("C").is_null() == (count == 2))
        if selected.height:
            written += write_label_studio(place, selected, form_of(count))
            (place / GUIDE).write_text(_guide(), encoding="utf-8")
    return written


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
