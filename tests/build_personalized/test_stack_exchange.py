"""People from a Stack Exchange dump: who becomes a row, what is left out, under which name and license."""

from pathlib import Path
from typing import Any

import pytest
from build_personalized.recipe import SourceTable
from build_personalized.sources import LoadedQuestions, load
from dumps import dump, post
from pluralbench_release.errors import SourceError


def people(*paths: Path, **settings: Any) -> LoadedQuestions:
    locations = [f"stack-exchange:{path}" for path in paths]
    return load(SourceTable(locations=locations, **({"min_questions": 2} | settings)), paths[0].parent)


def drops(loaded: LoadedQuestions) -> list[tuple[str, str]]:
    return [(row["id"], row["reason"]) for row in loaded.drops.iter_rows(named=True)]


def profile_ids(loaded: LoadedQuestions) -> list[str]:
    return [item["id"] for item in loaded.questions["profile"][0]]


def test_newest_question_is_the_row_and_earlier_ones_are_the_profile(tmp_path: Path) -> None:
    posts = [
        post(2, CreationDate="2016-03-01T00:00:00.000"),  # the newest is not the one of the highest number
        post(3),
        post(4, PostTypeId=2, Title=None, Tags=None, ParentId=2, Body="an answer"),
        post(5, CreationDate="2016-01-01T00:00:00.000", Title=" 啤酒 ", Body="<p>שלום &amp; 🍺</p>", Tags="<c++>"),
        post(6, PostTypeId=5, Body="a tag's wiki"),
    ]
    loaded = people(dump(tmp_path, posts))
    assert loaded.drops.is_empty()
    assert loaded.questions.to_dicts() == [
        {
            "config": "beer",
            "id": "beer-2",
            "question": "title 2",
            "category": "first",
            "narrative": "body 2",
            "rubric_aspects": [],
            "profile": [
                {"id": "beer-3", "category": "first", "text": "title 3\nbody 3"},
                {"id": "beer-5", "category": "c++", "text": "啤酒\nשלום & 🍺"},
            ],
        }
    ]


def test_users_with_enough_questions_in_the_order_of_their_newest(tmp_path: Path) -> None:
    posts = [post(1, "late"), post(2, "early"), post(3, "early"), post(4, "once"), post(5, "late"), post(6, "late")]
    path = dump(tmp_path, posts)
    loaded = people(path)
    assert loaded.questions["id"].to_list() == ["beer-3", "beer-6"]
    assert drops(loaded) == [("beer-user-once", "user with fewer than 2 questions")]
    assert len(drops(people(path, min_questions=3))) == 2
    assert people(path, min_questions=3).questions["id"].to_list() == ["beer-6"]
    assert people(path, limit=1).questions["id"].to_list() == ["beer-3"]
    assert profile_ids(people(path, min_questions=3)) == ["beer-5", "beer-1"]
    assert profile_ids(people(path, min_questions=3, max_posts=1)) == ["beer-5"]


@pytest.mark.parametrize("body", [None, "", " \n", "<p></p>", "<p><img src='x'> </p>", "<p>&nbsp;</p>"])
def test_posts_without_text_are_left_out_and_counted(tmp_path: Path, body: str | None) -> None:
    loaded = people(dump(tmp_path, [post(1), post(2, Body=body), post(3)]))
    assert drops(loaded) == [("beer-2", "empty body")]
    assert profile_ids(loaded) == ["beer-1"]


@pytest.mark.parametrize("user", ["1", "2"])
def test_a_repeated_text_stays_where_it_was_posted_first(tmp_path: Path, user: str) -> None:
    posts = [
        post(7, user, Body="<div>same\n TEXT</div>", Title="other"),
        post(6, Body="<p>Same  text</p>"),
        post(1),
        post(8),
    ]
    loaded = people(dump(tmp_path, posts))
    assert drops(loaded) == [("beer-7", "text posted before")]
    assert profile_ids(loaded) == ["beer-6", "beer-1"]


def test_a_text_repeated_in_another_dump_is_left_out_there(tmp_path: Path) -> None:
    beer = dump(tmp_path, [post(1), post(2)])
    coffee = dump(tmp_path, [post(3), post(4), post(5, Body="body 2")], "coffee.stackexchange.com/Posts.xml")
    for paths in ((beer, coffee), (coffee, beer)):
        loaded = people(*paths)
        assert drops(loaded) == [("coffee-5", "text posted before")]
        assert loaded.drops["config"].to_list() == ["coffee"]
        assert sorted(loaded.questions["id"]) == ["beer-2", "coffee-4"]
        assert loaded.questions["config"].to_list() == [path.parent.name.split(".")[0] for path in paths]
        assert [source.location for source in loaded.sources] == [
            f"stack-exchange:{path.parent.name}/{path.name}" for path in paths
        ]


@pytest.mark.parametrize(
    ("name", "site"),
    [
        ("beer.stackexchange.com/Posts.xml", "beer"),
        ("beer.stackexchange.Posts.xml", "beer"),
        ("coffee.meta.stackexchange.com/Posts.xml", "coffee.meta"),
    ],
)
def test_the_site_is_named_by_the_path(tmp_path: Path, name: str, site: str) -> None:
    loaded = people(dump(tmp_path, [post(1), post(2)], name))
    assert loaded.questions["config"].to_list() == [site]
    assert loaded.questions["id"].to_list() == [f"{site}-2"]


@pytest.mark.parametrize("folder", ["Downloads", "beer", "stackoverflow.com-Posts"])
def test_a_dump_in_a_folder_that_is_not_named_after_its_site_is_refused(tmp_path: Path, folder: str) -> None:
    with pytest.raises(SourceError, match=rf"its folder '{folder}' is not named after a site; rename it to the site's"):
        people(dump(tmp_path, [post(1), post(2)], f"{folder}/Posts.xml"))


@pytest.mark.parametrize(
    ("tags", "category"), [("<ale><hops>", "ale"), ("|ale|hops|", "ale"), ("<c#>", "c#"), ("", "beer"), (None, "beer")]
)
def test_the_category_is_the_first_tag(tmp_path: Path, tags: str | None, category: str) -> None:
    loaded = people(dump(tmp_path, [post(1), post(2, Tags=tags)]))
    assert loaded.questions["category"].to_list() == [category]


@pytest.mark.parametrize(
    ("dates", "stated", "license"),
    [
        (["2010-01-01", "2011-04-07"], [None, None], "cc-by-sa-2.5"),
        (["2018-05-02", "2016-01-01"], [None, None], "cc-by-sa-4.0"),
        (["2010-01-01", "2010-01-02"], ["CC BY-SA 4.0", "CC BY-SA 2.5"], "cc-by-sa-4.0"),
    ],
)
def test_the_license_is_the_newest_of_the_posts(
    tmp_path: Path, dates: list[str], stated: list[str | None], license: str
) -> None:
    posts = [
        post(number, CreationDate=f"{date}T00:00:00.000", ContentLicense=says)
        for number, (date, says) in enumerate(zip(dates, stated, strict=True), start=1)
    ]
    others = post(9, "2", CreationDate="2024-01-01T00:00:00.000")  # left out, so its license does not count
    (source,) = people(dump(tmp_path, [*posts, others])).sources
    assert source.license == license
    assert f"{license} " in source.attribution


def test_configs_can_be_renamed(tmp_path: Path) -> None:
    path = dump(tmp_path, [post(1), post(2), post(3, None)])
    loaded = people(path, config_names={"beer": "Beer_Wine_and_Spirits"})
    assert loaded.questions["config"].to_list() == loaded.drops["config"].to_list() == ["Beer_Wine_and_Spirits"]
    assert loaded.questions["id"].to_list() == ["beer-2"]


def test_a_question_without_title_is_its_first_line(tmp_path: Path) -> None:
    loaded = people(dump(tmp_path, [post(1), post(2, Title=None, Body="<p>Which ale?</p><p>I ask for a friend.</p>")]))
    assert loaded.questions["question"].to_list() == ["Which ale?"]


@pytest.mark.parametrize(("user", "reason"), [(None, "deleted user"), ("-1", "Community user")])
def test_posts_of_nobody_are_left_out_and_counted(tmp_path: Path, user: str | None, reason: str) -> None:
    posts = [post(1), post(2), post(3, user), post(4, user, OwnerDisplayName="user4")]
    loaded = people(dump(tmp_path, posts))
    assert loaded.questions["id"].to_list() == ["beer-2"]
    assert drops(loaded) == [("beer-3", reason), ("beer-4", reason)]
