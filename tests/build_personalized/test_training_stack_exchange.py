"""What an asker accepted, against another answer to the same question."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from build_personalized.training.recipe import TrainingSource
from build_personalized.training.sources import Preferences, load
from dumps import dump, post
from pluralbench_release.errors import SourceError


def answer(number: int, question: int, user: str | None = "9", **changes: Any) -> str:
    text = {"Body": f"<p>answer {number}</p>", "Title": None, "Tags": None}
    return post(number, user, PostTypeId=2, ParentId=question, **text | changes)


def read(folder: Path, posts: Sequence[str], seed: int = 42) -> Preferences:
    source = TrainingSource(locations=[f"stack-exchange:{dump(folder, posts)}"])
    return load(source, seed, folder)


def drops(result: Preferences) -> list[tuple[str, str]]:
    return sorted(result.drops.select("id", "reason").rows())


def test_a_pair_is_the_accepted_answer_and_another_one(tmp_path: Path) -> None:
    posts = [post(1, AcceptedAnswerId=4), answer(3, 1), answer(4, 1), post(5), post(6, "2")]
    result = read(tmp_path, posts)
    assert result.pairs.to_dicts() == [
        {
            "config": "beer",
            "id": "beer-1",
            "user_id": "beer-user-1",
            "prompt": [{"role": "user", "content": "title 1\nbody 1"}],
            "chosen": "answer 4",
            "rejected": "answer 3",
            "source_id": "beer-1",
            "chosen_source": "beer-4",
            "rejected_source": "beer-3",
            "original_split": None,
        }
    ]
    assert [post["id"] for post in result.posts["post"]] == ["beer-1", "beer-5", "beer-6"]
    assert drops(result) == [("beer-5", "no accepted answer"), ("beer-6", "no accepted answer")]
    [source] = result.sources
    assert (source.license, source.rows) == ("cc-by-sa-3.0", 1)
    assert "cc-by-sa-3.0 5." in source.attribution


@pytest.mark.parametrize(
    ("answers", "left_out"),
    [
        ([answer(3, 1, "1"), answer(4, 1)], [("beer-1", "no other answer"), ("beer-3", "answer by the asker")]),
        (
            [answer(3, 1), answer(4, 1, "1")],
            [("beer-1", "the accepted answer is the asker's own"), ("beer-4", "answer by the asker")],
        ),
        ([answer(3, 1)], [("beer-1", "the accepted answer is not there")]),
        (
            [answer(3, 1), answer(4, 1, Body="<p> </p>")],
            [("beer-1", "the accepted answer is not there"), ("beer-4", "answer with an empty body")],
        ),
        ([answer(3, 1, Body="<b>answer  4</b>"), answer(4, 1)], [("beer-1", "no other answer")]),
        ([answer(3, 2), answer(4, 1)], [("beer-1", "no other answer")]),
    ],
)
def test_what_cannot_be_preferred_is_left_out_and_counted(
    tmp_path: Path, answers: list[str], left_out: list[tuple[str, str]]
) -> None:
    whole = [post(10, AcceptedAnswerId=11), answer(11, 10), answer(12, 10)]
    result = read(tmp_path, [post(1, AcceptedAnswerId=4), *answers, *whole])
    assert result.pairs["id"].to_list() == ["beer-10"]
    assert drops(result) == left_out


def test_the_seed_draws_the_other_answer_and_deleted_users_may_have_written_it(tmp_path: Path) -> None:
    posts = [post(1, AcceptedAnswerId=2), *(answer(number, 1, None) for number in range(2, 12))]
    drawn = {read(tmp_path, posts, seed).pairs["rejected"][0] for seed in range(8)}
    assert len(drawn) > 2
    assert "answer 2" not in drawn


def test_a_dump_without_pairs_and_an_answer_without_a_number_are_named(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no question has an accepted answer and another one"):
        read(tmp_path, [post(1), answer(2, 1)])
    with pytest.raises(SourceError, match=r"has an answer without a number \(Id 'x'\)"):
        read(tmp_path, [post(1), answer(2, 1, Id="x")])


def test_a_question_whose_text_was_posted_before_is_no_pair(tmp_path: Path) -> None:
    both = [answer(3, 1), answer(4, 1), answer(6, 5), answer(7, 5)]
    again = post(5, "2", Body="<p>body 1</p>", AcceptedAnswerId=6)
    result = read(tmp_path, [post(1, AcceptedAnswerId=4), again, *both])
    assert drops(result) == [("beer-5", "text posted before")]
