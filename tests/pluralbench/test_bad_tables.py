"""Tables that are not of a benchmark's shape: one sentence that names the place, and nothing half-read."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pluralbench import find_benchmark
from pluralbench.errors import BenchmarkError, DataError
from pluralbench.reports.runs import run_header
from pluralbench.results import Run
from pluralbench_runs import UserError
from verbs import load_items
from written_tables import write

Rows = list[dict[str, Any]]
RANKING: dict[str, Any] = {"id": "r1", "prompt": "?", "responses": ["a", "b"], "rank": [1, 2]}


def refused(path: Path | str, *parts: str, benchmark: str = "pairs", **options: Any) -> str:
    columns = options.pop("columns", ())
    with pytest.raises(UserError) as caught:
        load_items(find_benchmark(benchmark, columns), str(path), **options)
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith(".")
    for part in parts:
        assert part in message, message
    return message


def test_ids_that_come_twice_are_named(pairs: Callable[..., Rows], tmp_path: Path) -> None:
    rows = pairs(9)
    rows[3]["id"], rows[5]["id"] = "q0", "q1"
    refused(write(tmp_path / "p.jsonl", rows), "p.jsonl has 2 ids more than once (q0, q1)", '`columns=["id=#"]`')
    clashing = [row | {"id": ident} for row, ident in zip(rows, (1, "1"), strict=False)]
    refused(write(tmp_path / "q.jsonl", clashing), "has 1 id more than once (1)")


def test_the_same_id_in_two_configs_is_no_clash(pairs: Callable[..., Rows], tmp_path: Path) -> None:
    for config in ("fr", "zh"):
        write(tmp_path / "d" / f"{config}.jsonl", pairs(3))
    assert load_items(find_benchmark("pairs"), str(tmp_path / "d")).frame.height == 6


@pytest.mark.parametrize("missing", ["prompt", "chosen", "rejected"])
def test_a_missing_column_is_named_beside_those_there_are(
    pairs: Callable[..., Rows], tmp_path: Path, missing: str
) -> None:
    rows = [{key: value for key, value in row.items() if key != missing} for row in pairs(2, extra="x")]
    left = ", ".join(rows[0])
    said = refused(
        write(tmp_path / "p.csv", rows), f"has no column `{missing}`; it has {left}", f'`columns=["{missing}=COLUMN"]`'
    )
    assert ("split it off if the responses are whole conversations" in said) == (missing == "prompt")


@pytest.mark.parametrize("what", ["prompt", "chosen", "id", "subset", "cluster", "system"])
def test_a_column_that_was_named_is_refused_when_it_is_not_there(
    pairs: Callable[..., Rows], tmp_path: Path, what: str
) -> None:
    path = write(tmp_path / "p.jsonl", pairs(2))
    refused(path, "has no column `nope`; it has id, prompt, chosen, rejected", columns=[f"{what}=nope"])


@pytest.mark.parametrize("change", ["prompt", "prompts=x", "=x", "prompt=", "x"])
def test_a_change_of_columns_that_is_none_is_named(change: str) -> None:
    with pytest.raises(BenchmarkError) as caught:
        find_benchmark("pairs", [change])
    assert f"`columns=[{change!r}]` does not have the form FIELD=COLUMN with FIELD one of id, prompt" in str(
        caught.value
    )


def test_a_table_without_rows_has_no_items(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("id,prompt,chosen,rejected\n", encoding="utf-8")
    refused(tmp_path / "p.csv", "has no items")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"rank": None}, "it has no ranks"),
        ({"rank": [1]}, "2 responses have 1 ranks"),
        ({"rank": {"0": 1}}, "the responses 1 have no rank"),
        ({"rank": [{"id": 0, "rank": 1}] * 2}, "two ranks share an id"),
        ({"rank": {"0": 1, "1": 2, "2": 2}}, "it ranks 2 and has no such response"),
        ({"rank": [1, None]}, "the ranks [1, None] are not whole numbers"),
        ({"rank": "first"}, "`rank` is a text and not a list: 'first'"),
        ({"responses": None}, "it has no responses"),
        ({"responses": [{"id": "a", "content": "x"}, {"id": "a", "content": "y"}]}, "two responses share an id"),
        ({"responses": [{"id": "a"}, {"id": "b"}]}, "an object in `responses` has no `content`; it has id"),
        ({"responses": "a, b"}, "`responses` is a text and not a list: 'a, b'"),
        ({"id": None}, "row 1 has no id"),
        ({"prompt": 7}, "7 in `prompt` is not text"),
        ({"prompt": [{"role": None, "content": "x"}]}, "the role None of a message in `prompt` is none of"),
        ({"prompt": [{"content": "no role"}]}, "an object in `prompt` has no `role`; it has content"),
    ],
)
def test_a_row_of_another_shape_is_named_by_its_id(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    path = write(tmp_path / "r.jsonl", [RANKING | change])
    refused(path, str(path), said, benchmark="rankings")


@pytest.mark.parametrize(("name", "said"), [("chosen", "`chosen` is an empty list"), ("prompt", "the prompt has no")])
def test_of_rows_with_messages_the_one_without_any_is_named(
    pairs: Callable[..., Rows], tmp_path: Path, name: str, said: str
) -> None:
    role = "user" if name == "prompt" else "assistant"
    rows = [row | {name: [{"role": role, "content": "x"}]} for row in pairs(2)] + [pairs(3)[2] | {name: []}]
    refused(write(tmp_path / "p.jsonl", rows), f"at id q2: {said}")


@pytest.mark.parametrize("value", [[{"id": "1", "text": ["x"]}], 7])
def test_a_profile_that_is_none_is_refused(people: Callable[..., Rows], tmp_path: Path, value: object) -> None:
    rows = [row | {"profile": value} for row in people(2)]
    refused(write(tmp_path / "p.jsonl", rows), "p0-0", benchmark="personalized")


def test_empty_texts_are_named_left_out_or_kept(pairs: Callable[..., Rows], tmp_path: Path) -> None:
    rows = pairs(10)
    rows[2]["chosen"], rows[4]["rejected"], rows[7]["prompt"] = "", " \n", ""
    path = write(tmp_path / "p.jsonl", rows)
    refused(
        path,
        "has 3 items with an empty prompt or response (ids q2, q4, q7)",
        'choose `on_empty="drop"` or `on_empty="keep"`',
    )
    dropped = load_items(find_benchmark("pairs"), str(path), on_empty="drop")
    assert dropped.source["empty"] == ["q2", "q4", "q7"]
    assert dropped.frame["id"].to_list() == ["q0", "q1", "q3", "q5", "q6", "q8", "q9"]
    kept = load_items(find_benchmark("pairs"), str(path), on_empty="keep")
    assert (kept.frame.height, kept.source["empty"]) == (10, dropped.source["empty"])
    assert (kept.source["on_empty"], dropped.source["on_empty"]) == ("keep", "drop")
    with pytest.raises(DataError, match="has no items"):
        load_items(find_benchmark("pairs"), str(write(tmp_path / "e.jsonl", rows[2:3])), on_empty="drop")


LABELLED: dict[str, Any] = {"id": "v1", "prompt": "?", "a": "x", "b": "y"}
PAIR = ["first=a", "second=b"]


@pytest.mark.parametrize(
    ("labels", "meanings", "message"),
    [
        (
            ["A>B", "1", "B>A", "A>B"],
            (),
            "has unknown labels ('A>B' in `label` at id v0, 'B>A' in `label` at id v2); expected: 1 (the first "
            "response is better) or 2 (the second is). Define them, such as "
            '`labels=["first=A>B", "second=B>A", "tie=A=B"]`, or name a `scale`.',
        ),
        ([1.0000211, 1.0, 1.7], (), "(1.0000211 in `label` at id v0, 1.7 in `label` at id v2)"),
        (
            [1, 0, 4],
            ("scale=-3,3", "tie=x"),
            "(4 in `label` at id v2); expected: numbers from -3 (the first response",
        ),
        (
            ["a", "c"],
            ("first=a", "second=b", "tie=t,u"),
            "a (the first response is better) or b (the second is) or t, u",
        ),
        ([*"abcdefg"], (), "'e' in `label` at id v4, …)"),
        ([1, None, 2], (), "has 1 pair without a label in `label` (ids v1); label or remove them."),
    ],
)
def test_labels_of_no_meaning_are_named(tmp_path: Path, labels: list[Any], meanings: Any, message: str) -> None:
    rows = [LABELLED | {"id": f"v{place}", "label": label} for place, label in enumerate(labels)]
    path = write(tmp_path / "v.jsonl", rows)
    with pytest.raises(DataError) as caught:
        load_items(find_benchmark("pairs", [*PAIR, "labels=label"], meanings), str(path), limit=1)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("benchmark", "columns", "given"),
    [
        ("pairs", PAIR, "`first` and `second`"),
        ("pairs", ["rank=label"], "`rank`"),
        ("pandalm", ["chosen=a"], "`first` and `second` and `labels` and `chosen`"),
        ("rankings", PAIR, "`responses` and `rank` and `first` and `second`"),
    ],
)
def test_columns_that_do_not_say_which_response_is_better(
    tmp_path: Path, benchmark: str, columns: list[str], given: str
) -> None:
    said = refused(write(tmp_path / "v.jsonl", [LABELLED | {"label": 1}]), benchmark=benchmark, columns=columns)
    assert said == (
        f"{tmp_path / 'v.jsonl'}: {given} do not determine the better response; name the columns `responses` and "
        "`rank`, or `first` and `second` and `labels`, or `chosen` and `rejected`, or `responses` and `right`."
    )


@pytest.mark.parametrize(
    ("columns", "both"),
    [
        (["prompt=chosen"], "`chosen` is used as `prompt` and `chosen`"),
        (["prompt=prompt,rejected"], "`rejected` is used as `prompt` and `rejected`"),
        (["rejected=chosen"], "`chosen` is used as `chosen` and `rejected`"),
        (["first=prompt", "second=chosen", "labels=id"], "`prompt` is used as `prompt` and `first`"),
    ],
)
def test_a_column_that_is_two_things_is_refused(
    pairs: Callable[..., Rows], tmp_path: Path, columns: list[str], both: str
) -> None:
    refused(write(tmp_path / "p.jsonl", pairs(2)), f"p.jsonl: the column {both}; name another column", columns=columns)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"chosen": ["one", "two"]},
            "at id q1: `chosen` is a list of 2 texts ('one', 'two') instead of one response; set "
            "`multiple_responses = true` in the benchmark's file if each is a response, or join them.",
        ),
        (
            {"chosen": [{"role": "assistant", "content": "x"}, {"role": "user", "content": "y"}]},
            "at id q1: the last message in `chosen` has the role user, so it is not a response.",
        ),
        ({"chosen": 7}, "at id q1: 7 in `chosen` is not text."),
    ],
)
def test_a_response_that_is_no_text_is_refused(
    pairs: Callable[..., Rows], tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    refused(write(tmp_path / "p.jsonl", [pairs(2)[1] | change]), message)


def test_a_list_is_not_joined_with_another_column(pairs: Callable[..., Rows], tmp_path: Path) -> None:
    joined = write(tmp_path / "j.jsonl", [pairs(2)[1] | {"prompt": ["x" * 50, "y"], "more": "z"}])
    refused(joined, "at id q1: ", " in `prompt` is not text", columns=["prompt=prompt,more"])


def test_several_responses_are_lists(pairs: Callable[..., Rows], tmp_path: Path) -> None:
    (tmp_path / "b.toml").write_text('title = "B"\nmultiple_responses = true\n', encoding="utf-8")
    said = "`chosen` is a text and not a list: "
    refused(write(tmp_path / "p.jsonl", pairs(1)), f"at id q0: {said}", benchmark=str(tmp_path / "b.toml"))
    several = [pairs(1)[0] | {"chosen": [], "rejected": ["x"]}]
    refused(write(tmp_path / "q.jsonl", several), "`chosen` is empty", benchmark=str(tmp_path / "b.toml"))


def prompts_with(
    pairs: Callable[..., Rows], tmp_path: Path, inside: Callable[[dict[str, Any]], str], number: int
) -> tuple[Path, Rows]:
    """Twenty-four pairs, in the first ones of which the prompt is what `inside` makes of the pair."""
    rows = pairs(24)
    for place, row in enumerate(rows):
        row |= {
            side: f"{row[side]}, for which there are {place} reasons and no fewer" for side in ("chosen", "rejected")
        }
        row["prompt"] = inside(row) if place < number else row["prompt"]
    return write(tmp_path / "p.jsonl", rows), rows


def test_prompts_that_give_the_answer_away_are_refused(pairs: Callable[..., Rows], tmp_path: Path) -> None:
    path, _ = prompts_with(pairs, tmp_path, lambda row: f"Human: why?\n\nAssistant: {row['chosen']}\n", 13)
    refused(
        path,
        "p.jsonl: 13 of 24 prompts contain the better response (ids q0, q1, q2, q3, q4, …); end prompts before the "
        "response.",
    )


@pytest.mark.parametrize(
    ("inside", "number", "answered"),
    [
        (lambda row: f"Mend: {row['chosen']}", 12, 12),
        (lambda row: row["chosen"], 1, 1),
        (lambda row: f"Mend: {row['rejected']}", 24, 0),
        (lambda row: f"Which? A: {row['chosen']} B: {row['rejected']}", 24, 0),
        (lambda row: f"Say {row['chosen'][:20]}", 24, 0),
    ],
)
def test_prompts_that_quote_are_read_and_counted(
    pairs: Callable[..., Rows], tmp_path: Path, inside: Callable[[dict[str, Any]], str], number: int, answered: int
) -> None:
    path, rows = prompts_with(pairs, tmp_path, inside, number)
    items = load_items(find_benchmark("pairs"), str(path))
    assert items.source["answered"] == [row["id"] for row in rows[:answered]]
    assert items.frame.height == 24


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_a_run_names_texts_of_missing_values(
    pairs: Callable[..., Rows], score: Callable[..., Run], tmp_path: Path, suffix: str
) -> None:
    rows = pairs(6)
    rows[1]["rejected"], rows[2]["chosen"], rows[3]["prompt"], rows[4]["chosen"] = (
        "nan",
        " None\n",
        "<NA>",
        "None of it",
    )
    run = score("pairs", write(tmp_path / f"p{suffix}", rows))
    assert run.config.data.missing == ("q1", "q2", "q3")
    said = "3 items have a prompt or response such as nan or None, which may be a missing value (ids q1, q2, q3)."
    assert said in run_header(run)


def test_a_run_names_the_prompts_that_contain_the_better_response(
    pairs: Callable[..., Rows], score: Callable[..., Run], tmp_path: Path
) -> None:
    path, _ = prompts_with(pairs, tmp_path, lambda row: f"Mend: {row['chosen']}", 2)
    run = score("pairs", path)
    assert run.config.data.answered == ("q0", "q1")
    assert "2 prompts contain the full text of the better response (ids q0, q1)." in run_header(run)
