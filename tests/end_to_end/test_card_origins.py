"""A card has the paper's title and BibTeX where the data are the paper's own, and nowhere else."""

import json
from functools import partial
from typing import Any

import build_chinese.card as chinese
import build_multilingual.card as multilingual
import build_persona_judge.card as persona_judge
import build_personalized.card as personalized
import pytest
from build_chinese.recipe import ChineseRecipe
from build_multilingual.recipe import MultilingualRecipe
from build_persona_judge.recipe import PersonaJudgeRecipe
from build_personalized.recipe import PersonalizedRecipe
from pluralbench_release import read_card
from pluralbench_release.manifest import STATISTICS
from samples import sample

LLM = {"provider": "hand-written", "model": "hand-written"}
CARDS: dict[str, tuple[Any, Any]] = {
    "build-personalized": (PersonalizedRecipe, personalized.card),
    "build-multilingual": (MultilingualRecipe, partial(multilingual.card, numbered=False)),
    "build-chinese": (ChineseRecipe, chinese.card),
    "build-persona-judge": (PersonaJudgeRecipe, persona_judge.card),
}
CONFIGS = "Art_and_Entertainment, Lifestyle_and_Personal_Development, Society_and_Culture"


def asked(*locations: str) -> dict[str, Any]:
    return {"source": {"locations": list(locations)}, "llm": LLM}


def translated(source: str, *rated: str) -> dict[str, Any]:
    tables = [{"location": place} for place in rated]
    values = {"languages": ["deu_Latn"], "source": {"location": source}, "translator": {"name": "google"}}
    return values | {"translation": {"rated": tables}}


def people(**locations: str) -> dict[str, Any]:
    return {name: {"location": place} for name, place in locations.items()}


@pytest.mark.parametrize(
    ("builder", "values", "title"),
    [
        ("build-personalized", asked("lamp-qa"), "Personalized RewardBench"),
        ("build-personalized", asked("lamp-qa:alireza7/LaMP-QA@0123"), "Personalized RewardBench"),
        ("build-personalized", asked("lamp-qa:my/folder"), f"Personalized pairs of {CONFIGS}"),
        ("build-personalized", asked("sample"), "Personalized RewardBench (sample)"),
        ("build-personalized", asked("lamp-qa", "sample"), f"Personalized pairs of {CONFIGS}"),
        ("build-multilingual", translated("allenai/reward-bench@0123", "a/maple-train.jsonl"), "M-RewardBench"),
        ("build-multilingual", translated("sample", "sample"), "M-RewardBench (sample)"),
        ("build-multilingual", translated("allenai/reward-bench", "sample"), "Preference pairs in several languages"),
        ("build-multilingual", translated("pairs.jsonl"), "Preference pairs in several languages"),
        ("build-multilingual", {"translation": {"rated": [{"location": "wmt.jsonl"}]}}, "Pairs of translations"),
        ("build-chinese", {"annotated": {"location": "sample"}}, "CheemsBench and CheemsPreference (sample)"),
        ("build-chinese", {"annotated": {"location": "own.jsonl"}}, "Ranked responses to Chinese prompts"),
        ("build-persona-judge", people(prism="HannahRoseKirk/prism-alignment", opinion_qa="resp"), "Persona judge"),
        ("build-persona-judge", {"prism": {"location": "mine", "name": "Mine"}}, "Choices by people of prism"),
        ("build-persona-judge", people(prism="sample"), "Persona judge (sample)"),
        ("build-persona-judge", people(prism="sample", opinion_qa="resp"), "Choices by people of prism, opinion_qa"),
        ("build-persona-judge", {"people_csv": [{"location": "a", "task": "tea"}]}, "Choices by people of tea"),
    ],
)
def test_a_card_has_the_papers_title_and_entry_for_its_data_alone(
    builder: str, values: dict[str, Any], title: str
) -> None:
    recipe, card = CARDS[builder]
    figures = json.loads((sample(builder).release / STATISTICS).read_text(encoding="utf-8"))
    made = card(recipe.model_validate(values), figures)
    is_paper = title in {"Personalized RewardBench", "M-RewardBench", "Persona judge"}
    assert (made.pretty_name, bool(made.papers)) == (title, is_paper)
    assert made.citation.startswith("Cite the sources above and PluralBench") is not is_paper
    assert ("The method is that of" in made.citation) is is_paper


@pytest.mark.parametrize(
    ("words", "creators"),
    [
        (("build-personalized",), ["expert-generated"]),
        (("build-personalized", "training"), ["expert-generated"]),
        (("build-multilingual",), ["found"]),
        (("build-chinese",), ["machine-generated", "other"]),
        (("build-persona-judge",), ["expert-generated"]),
    ],
)
def test_a_card_says_who_decided_and_what_it_was_made_from(words: tuple[str, ...], creators: list[str]) -> None:
    card = read_card(sample(*words).release)
    assert (card["annotations_creators"], card["source_datasets"]) == (creators, ["original"])
