"""Annotation sheets (CSV) and Label Studio files of tasks.

Responses are called A, B and C, in the order shown. The files name no model, no response id and no kind of task, and
the order of an annotator's tasks does not reveal them.
"""

from itertools import combinations
from pathlib import Path
from shutil import copyfile
from unicodedata import normalize

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
GUIDE = Path(__file__).with_name("guide.md")
SHEETS, LABEL_STUDIO, PAIRS = "sheets", "label_studio", "pairs"


def pair_field(first: int, second: int) -> str:
    """Name of the field for the mark on two responses, such as A_B for the first and the second."""
    return f"{LETTERS[first]}_{LETTERS[second]}"


def score_field(place: int) -> str:
    """Name of the field for the score of a response."""
    return f"score_{LETTERS[place]}"


def parse_order(text: str) -> list[list[str]]:
    """Parse an order such as A>C=B, which may be full-width, into names by level, best first; blank has none.

    Raises:
        ValueError: The text is not an order, or has a name twice.
    """
    # Chinese input methods type 》 for >.
    plain = normalize("NFKC", text).replace("》", ">").strip().upper()
    if not plain:
        return []
    levels = [[name.strip() for name in level.split("=")] for level in plain.split(">")]
    names = [name for level in levels for name in level]
    if not all(names):
        raise ValueError(f"{text!r} is not an order such as A>C=B")
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"the order {text!r} has {name} twice")
    return levels


def _parse_score(text: str) -> str:
    try:
        score = float(text)
    except ValueError:
        score = -1.0
    if not 0 <= score <= 5:
        raise ValueError(f"the score {text!r} is not a number from 0 to 5")
    return str(score)


def form_of(count: int, *more: Question) -> Form:
    """Make the form for a task: a mark on each pair (g, b or s), `more` questions, scores and a remark."""
    fields = {"prompt": "题目"} | {letter: f"回答 {letter}" for letter in LETTERS[:count]}
    marks = []
    for first, second in combinations(range(count), 2):
        a, b = LETTERS[first], LETTERS[second]
        words = {mark: text.format({"g": a, "b": b}.get(mark)) for mark, text in MARK_WORDS.items()}
        marks.append(Question(pair_field(first, second), f"{a} 与 {b} 哪个更好？", words))
    rubric = {number: f"{number} {words}" for number, words in RUBRIC.items()}
    scores = [Question(score_field(place), "", rubric, LETTERS[place], parse=_parse_score) for place in range(count)]
    questions = [*marks, *more, *scores, Question("remark", "备注", optional=True)]
    return Form(fields, questions, item="task", alternatives=True)


# A sheet also has a column for an order such as A>C=B.
SHEET = form_of(MOST, Question("order", parse=lambda text: ">".join("=".join(level) for level in parse_order(text))))


def with_texts(tasks: pl.DataFrame, prompts: pl.DataFrame) -> pl.DataFrame:
    """Join tasks with the texts that annotators see.

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


def write_forms(folder: Path, tasks: pl.DataFrame, prompts: pl.DataFrame) -> None:
    """Write `sheets` and `label_studio` (`pluralbench_studies`), with `guide.md`, to a folder.

    Tasks of two responses need another labeling configuration and go to `label_studio/pairs`, in files of the same
    names. Raises `StudyError` if a file exists."""
    items = with_texts(tasks, prompts)
    write_sheets(folder / SHEETS, items, SHEET)
    copyfile(GUIDE, folder / SHEETS / GUIDE.name)
    for count, place in ((3, folder / LABEL_STUDIO), (2, folder / LABEL_STUDIO / PAIRS)):
        selected = items.filter(pl.col("C").is_null() == (count == 2))
        if selected.height:
            write_label_studio(place, selected, form_of(count))
            copyfile(GUIDE, place / GUIDE.name)
