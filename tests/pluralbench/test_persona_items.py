"""Which items of the persona judge are asked about, and what is said of data that is none."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from persona_tables import Row, item, persona, release, rows
from pluralbench.config import PersonaJudgeConfig
from pluralbench.data.persona_items import PersonaItems, load_personas, sample_items
from pluralbench.errors import DataError
from pluralbench_schemas import VARIABLE
from written_tables import write


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return release(tmp_path / "data", prism=rows("prism", 8, ties=4), opinion_qa=rows("opinion_qa", 6))


def drawn(
    personas: PersonaItems, setting: Any, variables: Any = "all", limit: int | None = None, **how: Any
) -> PersonaItems:
    return sample_items(personas, PersonaJudgeConfig(setting=setting, variables=variables, limit=limit), **how)


def refused(location: Path, setting: str = "standard", variables: str = "all", **options: Any) -> str:
    with pytest.raises(DataError) as caught:
        drawn(load_personas(str(location)), setting, variables, **options)
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith(".")
    return message


def test_items_keep_their_number_in_the_table_whatever_is_left_out(data: Path) -> None:
    personas = load_personas(str(data))
    assert personas.frame.group_by("task").len().sort("task").rows() == [("opinion_qa", 6), ("prism", 12)]
    items = drawn(personas, "tie", limit=3, seed=5).frame
    whole = {row["id"]: row["row"] for row in personas.frame.iter_rows(named=True)}
    assert [whole[name] for name in items["id"]] == items["row"].to_list()


def test_binary_settings_leave_ties_out_and_count_them(data: Path) -> None:
    personas = load_personas(str(data))
    for setting in ("standard", "certainty"):
        found = drawn(personas, setting)
        assert (found.ties, found.skipped, found.frame.height) == ({"prism": 4}, {}, 14)
        assert "tie" not in set(found.frame["truth"])


def test_the_tie_setting_has_all_items_of_tasks_that_have_ties(data: Path) -> None:
    found = drawn(load_personas(str(data)), "tie")
    assert (found.ties, found.skipped) == ({}, {"opinion_qa": "no ties"})
    assert found.frame["truth"].value_counts().sort("truth").rows() == [("A", 4), ("B", 4), ("tie", 4)]


def test_a_task_that_is_named_and_has_no_ties_is_an_error(data: Path) -> None:
    said = refused(data, setting="tie", configs=["prism", "opinion_qa"])
    assert 'the task opinion_qa has no ties, so `setting="tie"` with `variables="all"` has no items' in said
    assert said.endswith('choose `configs=["prism"]`, another setting or other variables.')
    alone = refused(data / "opinion_qa.jsonl", setting="tie")
    assert "has no ties" in alone
    assert "--config" not in alone


@pytest.mark.parametrize("setting", ["standard", "tie"])
def test_samples_are_exact_and_drawn_by_the_seed(data: Path, setting: Any) -> None:
    personas = load_personas(str(data))

    def ids(samples: int, seed: int = 0) -> list[str]:
        return drawn(personas, setting, limit=samples, seed=seed).frame["id"].to_list()

    tasks = 2 if setting == "standard" else 1
    assert len(ids(5)) == 5 * tasks
    assert ids(5) == ids(5)
    assert ids(5) != ids(5, seed=1)
    assert set(ids(3)) < set(ids(5)), "fewer are some of more"
    assert ids(5) == sorted(ids(5), key=personas.frame["id"].to_list().index), "in the order of the data"
    assert len(ids(1000)) == (14 if setting == "standard" else 12)


@given(st.permutations(range(8)), st.integers(1, 8), st.integers(0, 3))
def test_the_order_of_the_table_does_not_decide_who_is_drawn(order: list[int], samples: int, seed: int) -> None:
    def ids(frame: pl.DataFrame) -> set[str]:
        personas = PersonaItems(frame, "x", None, None, "", [])
        return set(drawn(personas, "standard", "none", samples, seed=seed).frame["id"])

    table = [item("prism", number) | {"config": "p", "row": number, "digest": ""} for number in range(8)]
    schema: dict[str, Any] = {"persona": pl.List(VARIABLE), "gap": pl.Float64}
    frame = pl.DataFrame(table, schema_overrides=schema)
    assert len(ids(frame)) == samples
    assert ids(frame) == ids(frame[order])


def test_parquet_and_json_are_the_same_items(data: Path, tmp_path: Path) -> None:
    loaded = load_personas(str(data))
    for name in ("prism", "opinion_qa"):
        table = pl.read_ndjson(data / f"{name}.jsonl", infer_schema_length=None)
        (tmp_path / "parquet").mkdir(exist_ok=True)
        table.write_parquet(tmp_path / "parquet" / f"{name}.parquet")
    again = load_personas(str(tmp_path / "parquet"))
    assert again.frame.equals(loaded.frame)
    assert again.digest == loaded.digest


def test_what_no_judge_is_shown_may_be_missing_and_more_is_ignored(tmp_path: Path) -> None:
    table = rows("prism", 2)
    for row in table:
        for name in ("origin_a", "origin_b", "gap", "rank_calls"):
            del row[name]
        row["note"] = "mine"
    assert load_personas(str(write(tmp_path / "p.jsonl", table))).ignored == ["note"]


def test_the_digest_is_of_what_is_shown_and_what_is_right(data: Path, tmp_path: Path) -> None:
    def digest(table: list[Row]) -> str:
        return load_personas(str(write(tmp_path / "p.jsonl", table))).digest

    table = rows("prism", 3)
    first = digest(table)
    for change in ({"truth": "B"}, {"context": "?"}, {"option_b": "?"}, {"persona": persona(age="1")}, {"user": "x"}):
        assert digest([table[0] | change, *table[1:]]) != first, change
    assert digest([table[0] | {"origin_a": "other"}, *table[1:]]) == first


Change = Callable[[list[Row]], object]
BAD: list[tuple[Change, str]] = [
    (lambda table: [row.pop("truth") for row in table], "has no column `truth`; it has id, task"),
    (lambda table: [row.pop("persona") for row in table], "has no column `persona`"),
    (lambda table: table[1].update(truth="C"), "row 2 (id 'prism-1'): column `truth`"),
    (lambda table: table[1].update(truth=None), "row 2 (id 'prism-1'): column `truth` must not be missing"),
    (lambda table: table[1].update(id="prism-0"), "column `id` must be unique"),
    (lambda table: table[1].update(kind="taste"), "column `kind`"),
    (lambda table: table[1].update(user=" "), "column `user` must have text"),
    (lambda table: table[1].update(option_b=table[1]["option_a"]), "must differ from `option_a`"),
    (lambda table: table[1].update(task="other"), "must be the same in all rows"),
    (lambda table: table[1].update(persona=None), "column `persona` must not be missing"),
    (lambda table: [row.update(persona="old") for row in table], "must be a list of objects with variable, value"),
    (lambda table: [row.update(persona=["old"]) for row in table], "must be a list of objects with variable, value"),
    (lambda table: [row.update(persona=[{"age": "1"}]) for row in table], "must be a list of objects with variable"),
    (lambda table: [entry.update(sets="key") for row in table for entry in row["persona"]], "a list of names"),
]


@pytest.mark.parametrize(("change", "part"), BAD)
def test_data_of_another_shape_is_named_with_its_row(tmp_path: Path, change: Change, part: str) -> None:
    table = rows("prism", 3)
    change(table)
    said = refused(write(tmp_path / "p.jsonl", table))
    assert part in said
    assert str(tmp_path / "p.jsonl") in said


def test_ids_and_users_may_be_numbers_and_personas_empty(tmp_path: Path) -> None:
    table = [row | {"id": number, "user": number, "persona": []} for number, row in enumerate(rows("prism", 3))]
    frame = load_personas(str(write(tmp_path / "p.jsonl", table))).frame
    assert frame.select("id", "user").rows() == [("0", "0"), ("1", "1"), ("2", "2")]


def test_two_tables_of_one_task_are_refused(tmp_path: Path) -> None:
    folder = release(tmp_path / "data", one=rows("prism", 2), two=rows("prism", 2))
    assert "one.jsonl both have the task prism; join them or rename one" in refused(folder)


def test_a_set_of_variables_is_asked_of_tasks_that_have_it(tmp_path: Path) -> None:
    bare = [item("opinion_qa", number, persona=persona(religion="x")) for number in range(2)]
    data = release(tmp_path / "data", prism=rows("prism", 2), opinion_qa=bare)
    found = drawn(load_personas(str(data)), "standard", "key")
    assert (found.skipped, set(found.frame["task"])) == ({"opinion_qa": "no variable of the set key"}, {"prism"})
    for location in (data, data / "opinion_qa.jsonl"):
        configs = ["prism", "opinion_qa"] if location == data else []
        assert "the task opinion_qa has no variable of the set key" in refused(
            location, variables="key", configs=configs
        )


def test_only_ties_are_nothing_for_a_binary_setting(tmp_path: Path) -> None:
    assert "the task prism has only ties" in refused(write(tmp_path / "p.jsonl", [item("prism", 1, "tie")]))
