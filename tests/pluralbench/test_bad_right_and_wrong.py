"""Tables of right and wrong responses that are refused, each with a sentence that names what is wrong."""

from pathlib import Path
from typing import Any

import pytest
from pluralbench.errors import DataError
from pluralbench.evaluation.loading import load_benchmark
from verbs import by_length, score
from written_tables import write

Rows = list[dict[str, Any]]
SOLUTIONS: Rows = [
    {"problem": f"p{n}", "problem_id": n, "eval_solution": ["step", f"{k}"], "solution_type": kind}
    for n in range(2)
    for k, kind in enumerate(["chosen", "rejected", "rejected"])
]
PAIRS: Rows = [
    {
        "pair_uid": f"{n}",
        "category_path": "Helpfulness/Chat",
        "conversation_input": [{"role": "user", "content": f"p{n}"}],
        "chosen": {"answer": "a"},
        "reject": {"answer": "b"},
    }
    for n in range(2)
]
BEST: Rows = [
    {key: row[key] for key in ("category_path", "conversation_input")}
    | {"bon_uid": row["pair_uid"], "bon_best": {"answer": "a"}, "loser_list": [{"answer": "b"}, {"answer": "c"}]}
    for row in PAIRS
]
FOUR: Rows = [{"id": f"{n}", "prompt": f"p{n}", "subset": "Math", "chosen": ["a"], "rejected": ["b"]} for n in range(2)]
TIES: Rows = [FOUR[0] | {"id": name, "subset": "Ties"} for name in ("tied:1", "ref:1", "tied:2")]
STYLES: Rows = [
    {"id": n, "prompt": f"p{n}", "domain": "chat", "chosen": ["a", "b", "c"], "rejected": ["d", "e", "f"]}
    for n in range(2)
]
LETTERS: Rows = [
    {"pair_id": f"{n}", "source": "livecodebench", "question": f"q{n}", "response_A": "a", "response_B": "b"}
    | {"label": "A>B"}
    for n in range(2)
]
NUMBERED: Rows = [
    {"question_id": f"{n}", "prompt": f"p{n}", "scores": [True, False], "sampled_conflict_pairs": [[0, 1]]}
    | {"response_1": "a", "response_2": "b"}
    for n in range(2)
]


def first(rows: Rows, **changed: Any) -> Rows:
    """Change the first row."""
    return [rows[0] | changed, *rows[1:]]


def every(rows: Rows, *without: str, **changed: Any) -> Rows:
    """Leave out columns, and change every row."""
    return [{key: value for key, value in (row | changed).items() if key not in without} for row in rows]


CASES: list[tuple[str, Rows, str]] = [
    ("judgebench", every(LETTERS, "label"), "has no column `label`; it has pair_id, source, "),
    ("rmb-pairs", every(PAIRS, "reject"), "has no column `reject`, which `reject.answer` needs; it has pair_uid, "),
    ("rmb-pairs", every(PAIRS, reject={"text": "b"}), ": `reject`, row 1 has no key 'answer'; it has text."),
    ("rmb-pairs", every(PAIRS, reject="b"), ": `reject`, row 1 is a text and not an object: 'b'."),
    ("rmb-best-of-n", first(BEST, loser_list=[]), "at id 0: `loser_list.answer` is empty; each item needs a right "),
    ("reward-bench-2", every(FOUR, chosen="a", rejected="b"), "not a list: 'a'."),
    ("judgebench", every(LETTERS, response_A=["a", "b"]), "at id 0: `response_A` is a list of 2 texts ('a', 'b') "),
    ("reward-bench-2", every(FOUR, chosen=[1]), "at id 0: 1 in `chosen` is not "),
    ("ppe-gpqa", every(NUMBERED, "response_1", "response_2"), "`response_1`, which `response_*` needs; it has "),
    ("ppe-gpqa", every(NUMBERED, "response_2", response_3="c"), "has response_1, response_3 and no `response_2`; "),
    ("ppe-gpqa", every(NUMBERED, "response_1", response_3="c"), "has response_2, response_3 and no `response_1`; "),
    ("ppe-gpqa", every(NUMBERED, response_2=["b"]), ": `response_2` does not have texts, but `response_*` needs one "),
    ("ppe-gpqa", first(NUMBERED, scores=[True, False, True]), "has 2 responses and `scores` has 3 labels."),
    ("ppe-gpqa", first(NUMBERED, sampled_conflict_pairs=[[0, 1, 1]]), "at id 0: [0, 1, 1] in `sampled_conflict"),
    ("ppe-gpqa", first(NUMBERED, sampled_conflict_pairs=[[0, 2]]), "the pair [0, 2] in `sampled_conflict_pairs` is o"),
    ("ppe-gpqa", every(NUMBERED, sampled_conflict_pairs="x"), "_conflict_pairs` is a text and not a list: 'x'."),
    ("ppe-gpqa", first(NUMBERED, sampled_conflict_pairs=[[1, 1]]), "is not one of a right and a wrong response."),
    ("rewardmath", first(SOLUTIONS, solution_type="best"), "('best'); expected: chosen (right) or rejected (wrong). "),
    ("rewardmath", first(SOLUTIONS, solution_type=None), "has unknown labels in `solution_type` (None); "),
    ("rewardmath", first(SOLUTIONS, solution_type="rejected"), "has 1 item without a right response (ids 0); add one"),
    ("ppe-gpqa", first(NUMBERED, scores=[True] * 2, sampled_conflict_pairs=[]), "without a wrong response (ids 0); "),
    ("judgebench", first(LETTERS, label="A>>B"), "('A>>B' in `label` at id 0); expected"),
    ("reward-bench-2", first(TIES, id="x"), ": the ids x of Ties are neither ref:"),
    ("rewardmath", first(SOLUTIONS, problem_id=None), ": row 1 has no `problem_id`, which says which responses "),
    ("rewardmath", first(SOLUTIONS, problem="other"), ": rows with the `problem_id` 0 have different prompts in "),
    ("reward-bench-2", TIES, "has 1 prompt of Ties without a twin (ids tied:2); add the twins, which count together "),
    ("rm-bench", first(STYLES, chosen=["a", "b"]), "has 1 item with more right than wrong responses or fewer (ids "),
]


@pytest.mark.parametrize(("benchmark", "rows", "text"), CASES)
def test_a_table_is_refused_in_one_sentence(benchmark: str, rows: Rows, text: str, tmp_path: Path) -> None:
    data = write(tmp_path / "d.jsonl", rows)
    with pytest.raises(DataError) as error:
        load_benchmark(benchmark, str(data), None)
    assert text in str(error.value)
    assert str(error.value).startswith(f"{data}"), "the file is named first"


def test_numbered_columns_may_begin_with_0(tmp_path: Path) -> None:
    rows = every(NUMBERED, "response_2", response_0="right")
    run = score(by_length, benchmark="ppe-gpqa", data=write(tmp_path / "d.jsonl", rows), out=tmp_path / "run")
    assert run.headline.value == 1.0
