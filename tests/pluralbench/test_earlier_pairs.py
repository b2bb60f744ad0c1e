"""Pairs that a person decided before: which rows they are, what a model is given of them, and what is refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pluralbench import DataConfig, PromptConfig, find_benchmark
from pluralbench.contract import Group
from pluralbench.errors import DataError
from pluralbench.evaluation.loading import LoadedBenchmark, load_benchmark
from pluralbench.results import Run
from verbs import load_items
from written_tables import write

Rows = list[dict[str, Any]]
ROLES = ("train", "val", "test", "train", "test")


def message(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}


def arena(users: tuple[str, ...] = ("ana", "bo"), roles: tuple[str, ...] = ROLES) -> Rows:
    """Rows as Chatbot Arena is published: messages as answers, and each user's rows in the order of time."""
    return [
        {
            "user_id": user,
            "split": role,
            "context": [message("user", f"Question {place} of {user}?")],
            "chosen": message("assistant", f"Good {place}."),
            "rejected": message("assistant", f"Bad {place}."),
            "chosen_score": 1.0,
        }
        for place, role in enumerate(roles)
        for user in users
    ]


def loaded(data: Path, benchmark: str = "arena-personalized", profile: str = "none", **options: Any) -> LoadedBenchmark:
    return load_benchmark(
        benchmark, DataConfig(location=str(data), **options), PromptConfig.model_validate({"profile": profile})
    )


def asked(group: Group) -> str:
    return group.prompt[-1]["content"]


def before(group: Group) -> list[str]:
    assert group.person is not None
    return [pair.prompt[-1]["content"] for pair in group.person.earlier]


def test_rows_of_some_values_are_told_and_the_others_scored(tmp_path: Path) -> None:
    groups = loaded(write(tmp_path / "a.jsonl", arena())).groups()
    assert [asked(group) for group in groups] == [
        f"Question {place} of {user}?" for place in (2, 4) for user in ("ana", "bo")
    ]
    for group in groups:
        assert group.person is not None
        assert group.person.id in {"ana", "bo"}
        assert before(group) == [f"Question {place} of {group.person.id}?" for place in (0, 1, 3)]
        assert [(pair.chosen, pair.rejected) for pair in group.person.earlier][1] == ("Good 1.", "Bad 1.")
        assert group.responses in (["Good 2.", "Bad 2."], ["Good 4.", "Bad 4."])


def test_all_splits_of_a_directory_are_one_table(tmp_path: Path) -> None:
    rows = arena()
    for split, part in {"validation": rows[:4], "test": rows[4:], "train": arena(("cy",))}.items():
        write(tmp_path / "data" / f"{split}-00000-of-00001.parquet", part)
    groups = loaded(tmp_path).groups()
    assert [group.person and group.person.id for group in groups] == ["cy", "cy", "ana", "bo", "ana", "bo"]
    assert [len(before(group)) for group in groups] == [3] * 6


def test_without_a_column_they_are_the_rows_before(tmp_path: Path) -> None:
    rows = [row | {"prompt": row["context"], "id": str(place)} for place, row in enumerate(arena())]
    groups = loaded(write(tmp_path / "t.jsonl", rows), "personalized-training").groups()
    assert [len(before(group)) for group in groups] == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    for group in groups:
        assert group.person is not None
        assert asked(group) not in before(group)
        assert all(text.endswith(f"of {group.person.id}?") for text in before(group))


def test_what_was_asked_before_is_the_profile_the_latest_first(tmp_path: Path) -> None:
    rows = arena(("ana",))
    rows[1]["context"] = [message("user", "Hi"), message("assistant", "Yes?"), message("user", "Question 0 of ana?")]
    group = loaded(write(tmp_path / "a.jsonl", rows), profile="raw").groups()[0]
    assert [block.splitlines()[-1] for block in group.context] == ["Question 3 of ana?", "Question 0 of ana?"]
    assert "Good" not in str(group.context)


def test_a_user_without_earlier_pairs_is_told_nothing_of_and_counted(score: Callable[..., Run], tmp_path: Path) -> None:
    data = write(tmp_path / "a.jsonl", arena() + arena(("new",), ("test",)))
    *_, group = loaded(data, profile="raw").groups()
    assert (group.context, group.person and group.person.earlier) == ((), ())
    run = score("arena-personalized", data, profile="raw")
    assert run.config.data.history is not None
    assert run.config.data.history.model_dump() == {"rows": 6, "items_without": 1}
    assert run.config.data.rows == {"a": 5}
    assert run.config.data.ignored_columns == ("chosen_score",)
    assert run.config.data.clusters is not None
    assert run.config.data.clusters.clusters == 3


def test_limit_counts_what_is_scored_and_keeps_every_earlier_pair(tmp_path: Path) -> None:
    groups = loaded(write(tmp_path / "a.jsonl", arena()), limit=1).groups()
    assert [(asked(group), len(before(group))) for group in groups] == [("Question 2 of ana?", 3)]


def test_an_empty_earlier_answer_is_held_to_the_same_rule(tmp_path: Path) -> None:
    rows = [row | {"id": f"r{place}"} for place, row in enumerate(arena(("ana",)))]
    rows[0]["rejected"] = message("assistant", " ")
    data = write(tmp_path / "a.jsonl", rows)
    assert [len(before(group)) for group in loaded(data).groups()] == [3, 3], "published data is taken as it is"
    assert [len(before(group)) for group in loaded(data, on_empty="drop").groups()] == [2, 2]
    with pytest.raises(DataError, match=r"has 1 item with an empty prompt or response \(ids r0\)"):
        loaded(data, on_empty="error")


def test_the_digest_is_of_earlier_pairs_too(pairs: Callable[..., Rows], tmp_path: Path) -> None:
    rows = arena()
    first = loaded(write(tmp_path / "a.jsonl", rows)).items.digest
    rows[0]["chosen"] = message("assistant", "Another.")
    assert loaded(write(tmp_path / "b" / "a.jsonl", rows)).items.digest != first
    plain = write(tmp_path / "p.jsonl", pairs(3))
    assert load_items(find_benchmark("pairs"), plain).source["history"] is None


@pytest.mark.parametrize(
    ("without", "said"),
    [
        (
            "split",
            ", which marks users' earlier pairs; it has user_id, context, chosen, rejected, chosen_score: add it, or",
        ),
        ("user_id", r"name the right one with `columns=\[\"cluster=COLUMN\"\]`"),
        ("chosen", r"name the right one with `columns=\[\"chosen=COLUMN\"\]`"),
    ],
)
def test_a_column_that_is_missing_is_named(tmp_path: Path, without: str, said: str) -> None:
    rows = [{name: value for name, value in row.items() if name != without} for row in arena()]
    with pytest.raises(DataError, match=said):
        loaded(write(tmp_path / "a.jsonl", rows))


def test_prompts_are_sampled_from_with_what_is_known_of_their_people(tmp_path: Path) -> None:
    rows = [row | {"prompt": row["context"]} for row in arena()]
    data = DataConfig(location=str(write(tmp_path / "t.jsonl", rows)))
    for benchmark, counts in (
        ("arena-personalized", [3] * 4),
        ("personalized-training", [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]),
    ):
        groups = load_benchmark(benchmark, data, None, prompts_only=True).groups()
        assert [len(before(group)) for group in groups] == counts
        assert not any(group.responses for group in groups)
