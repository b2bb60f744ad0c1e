"""The prompts of the judge: their wording has a version, and every category of the sample has its criteria."""

from build_chinese import judge_prompts, source
from pluralbench_runs import digest


def test_changed_words_need_another_version() -> None:
    words = digest([judge_prompts.SYSTEM, judge_prompts.REPLIES, judge_prompts.USER, judge_prompts.CRITERIA])
    assert (judge_prompts.PROMPT_VERSION, words[:16]) == ("1", "ba2c819742fd66ad")


def test_every_category_of_the_sample_has_criteria_of_ours() -> None:
    taxonomy = source.taxonomy_of("sample")
    assert len(taxonomy.categories) == 8
    for name, category in taxonomy.categories.items():
        assert taxonomy.criteria(name) == judge_prompts.CRITERIA[category.criteria]
