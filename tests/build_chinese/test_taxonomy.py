"""Taxonomies: what is read, what is refused, and what a judge is told by them."""

import tomllib
from pathlib import Path

import build_chinese
import pytest
from build_chinese.source import JUDGE_PROMPTS, read_taxonomy
from pluralbench_release.errors import SourceError
from pluralbench_runs import UserError, digest
from pluralbench_schemas import CATEGORIES

SAMPLE = Path(build_chinese.__file__).parent / "sample" / "taxonomy.toml"
TEXT = """
[[category]]
name = "数学"
english = "Mathematics"
description = "One right answer."
criteria = "logic"
sub = [{ name = "代数", english = "Algebra" }, { name = "几何" }]

[[category]]
name = "书信"
criteria = "称呼和落款是否得体。"
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "taxonomy.toml"
    path.write_text(text, encoding="utf-8")
    return path


def refused(folder: Path, text: str) -> str:
    with pytest.raises(SourceError) as caught:
        read_taxonomy(written(folder, text))
    assert isinstance(caught.value, UserError)
    return str(caught.value).replace(f"{folder}/", "")


def test_the_sample_has_criteria_for_each_of_its_categories() -> None:
    taxonomy = read_taxonomy(SAMPLE)
    assert len(taxonomy.categories) == 8 == len(tomllib.loads(SAMPLE.read_text("utf-8"))["category"])
    for name, category in taxonomy.categories.items():
        assert category.criteria in JUDGE_PROMPTS["criteria"]
        assert taxonomy.criteria(name) == JUDGE_PROMPTS["criteria"][category.criteria]
        assert category.english == CATEGORIES[name], "figures call it the same"
        names = [sub.name for sub in category.sub]
        assert len(set(names)) == len(names) > 0
    assert {category.criteria for category in taxonomy.categories.values()} == set(JUDGE_PROMPTS["criteria"])


def test_changed_words_for_the_judge_need_another_version() -> None:
    words = digest([*(JUDGE_PROMPTS[name] for name in ("system", "replies", "user", "criteria"))])
    assert (JUDGE_PROMPTS["version"], words[:16]) == ("1", "ba2c819742fd66ad")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('[[category]]\nname = "甲"', "The taxonomy taxonomy.toml: the key `category.0.criteria` is missing."),
        (
            TEXT + '[[category]]\nname = "数学"\ncriteria = "logic"',
            "taxonomy.toml has two categories of one name; remove or rename one.",
        ),
        (
            TEXT + "descripton = 2",
            "The taxonomy taxonomy.toml: unknown key `category.1.descripton`; did you mean `description`?",
        ),
    ],
)
def test_a_taxonomy_of_another_shape_says_why(tmp_path: Path, text: str, sentence: str) -> None:
    assert refused(tmp_path, text) == sentence
