"""Texts of a build's dataset card."""

from pathlib import PurePath
from typing import Any

from pluralbench_release import Card, Section, markdown_table
from pluralbench_runs import plural, public_location
from pluralbench_schemas import ENGLISH, LANGUAGES, language_of

from build_multilingual.figures import figures_tables
from build_multilingual.recipe import MultilingualRecipe
from build_multilingual.source import REWARD_BENCH

COLUMNS = {
    "id": "id in the English source, the same in every language (in `translation`: the number of the row)",
    "language": "FLORES-200 code of the texts",
    "prompt": "the prompt",
    "chosen": "the better answer (in `translation`: the better translation)",
    "rejected": "the worse answer",
    "chosen_model": "the author of the better answer, as in the source",
    "rejected_model": "the author of the worse answer, as in the source",
    "source": "subset of the source (in `translation`: the sentence that was translated)",
    "category": "section of the benchmark",
    "translator": "the model that translated, as its server names it",
    "prompt_calls": "keys of the recorded calls behind `prompt`",
    "chosen_calls": "keys of the recorded calls behind `chosen`",
    "rejected_calls": "keys of the recorded calls behind `rejected`",
}
PAIR_COLUMNS = {
    "subset": "`translation-SOURCE-TARGET-LEVEL`",
    "template": "number of the prompt template",
    "chosen_system": "the system of the better translation",
    "rejected_system": "the system of the worse translation",
    "chosen_score": "the rating of the better translation",
    "rejected_score": "the rating of the worse translation",
}
MAPLE = "maple-train.jsonl"  # the paper's rated translations, as named in their repository
CITATION = """\
The method is that of *M-RewardBench* (Gureja et al., 2024), whose English source is RewardBench (Lambert et al., 2024).
Cite both, with the version above and the content digests."""
PAPER = """\
@misc{gureja2024mrewardbench,
  title = {{M-RewardBench}: Evaluating Reward Models in Multilingual Settings},
  author = {Gureja, Srishti and Miranda, Lester James V. and Islam, Shayekh Bin and Maheshwary, Rishabh and
    Sharma, Drishti and Winata, Gusti and Lambert, Nathan and Ruder, Sebastian and Hooker, Sara and Fadaee, Marzieh},
  year = {2024},
  eprint = {2410.15522},
  archivePrefix = {arXiv},
}"""


def card(recipe: MultilingualRecipe, figures: dict[str, Any], *, numbered: bool) -> Card:
    """Return the dataset card of a release.

    Args:
        recipe: Recipe of the build.
        figures: Figures of the build.
        numbered: Whether `id` is the number of the source's row.
    """
    translated = bool(recipe.languages)
    rated = bool(recipe.translation.rated)
    columns = (COLUMNS if translated or recipe.english else {}) | (PAIR_COLUMNS if rated else {})
    if not (translated or recipe.english):
        columns = {name: COLUMNS[name] for name in ("id", "prompt", "chosen", "rejected", "source")} | columns
    sections = [Section(title="How it was built", body=_how_built(recipe, figures, numbered=numbered))]
    for title, table in figures_tables(figures).items():
        sections.append(Section(title=title, body=markdown_table(table)))
    sections.append(Section(title="Known limits", body=_limits(recipe, figures)))
    return Card(
        pretty_name="M-RewardBench",
        summary=(
            "Pairs of a better and a worse answer for reward models: the same pairs in several languages, and pairs of "
            "a better and a worse translation."
        ),
        languages=_languages(recipe, figures),
        tasks=["text-generation", "text-ranking", *["translation"] * rated],
        tags=["reward-model", "multilingual", "preference", "pluralbench"],
        columns=columns,
        sections=sections,
        citation=CITATION,
        papers=(PAPER,),
    ).of(
        {_origin(table.location) for table in (recipe.source, *recipe.translation.rated) if table is not None},
        "Preference pairs in several languages" if translated or recipe.english else "Pairs of translations",
    )


def _origin(location: str) -> str:
    place = location.partition("@")[0]
    return "paper" if place == REWARD_BENCH or PurePath(place).name == MAPLE else place


def _languages(recipe: MultilingualRecipe, figures: dict[str, Any]) -> list[str]:
    codes = [*recipe.languages, *[ENGLISH] * recipe.english]
    languages = {LANGUAGES[code].langid for code in codes}
    for row in figures.get("translation", []):
        languages |= {
            language.langid for part in row["subset"].split("-")[1:3] if (language := language_of(part)) is not None
        }
    return sorted(languages)


def _how_built(recipe: MultilingualRecipe, figures: dict[str, Any], *, numbered: bool) -> str:
    paragraphs = []
    if recipe.languages and recipe.source is not None and recipe.translator is not None:
        model = f" ({public_location(recipe.translator.model)})" if recipe.translator.model else ""
        scope = "from all languages" if recipe.filter.drop == "everywhere" else "from that language"
        only = ", ".join(f"`{pattern}`" for pattern in recipe.source.prompt_only)
        paragraphs.append(
            f"`{recipe.translator.name}`{model} translated {plural(figures['source_rows'], 'English pair')} into "
            f"{plural(len(recipe.languages), 'language')}. In the subsets {only}, whose answers are code, only the "
            "prompt is translated. Code, LaTeX, URLs, placeholders and numbers stay unchanged. A translation fails if "
            "it is empty, unchanged, in another language, far too short or too long, lacks a part that has to stay, or "
            "makes both answers equal. Failed texts were translated once more, in smaller pieces; those that failed "
            "again were set aside. A row that is set aside in one language, or dropped by a person, is removed "
            f"{scope}."
        )
        if numbered:
            paragraphs.append("The source's ids are not whole numbers, so `id` is the number of the row there.")
    if recipe.english:
        paragraphs.append(f"`{ENGLISH}` is the English source itself, without the removed rows.")
    if recipe.translation.rated:
        paragraphs.append(
            "In `translation` an easy pair is the best and the worst of all rated translations of a sentence, and a "
            "hard pair two of the others that are close to each other; prompts use our own 31 templates."
        )
    paragraphs.append(
        "Every call is recorded in `provenance/ledger.parquet`, texts that were set aside and dropped rows in "
        "`provenance/set_aside.parquet` and `provenance/dropped.parquet`, the complete recipe in "
        "`provenance/recipe.toml`."
    )
    return "\n\n".join(paragraphs)


def _limits(recipe: MultilingualRecipe, figures: dict[str, Any]) -> str:
    limits = []
    if recipe.languages:
        limits.append(
            "- The translations are by a machine. Passing the checks does not mean that they are good, or that the "
            "better answer in English is still the better one."
        )
    if recipe.translator is not None and recipe.translator.name == "apertium" and recipe.languages:
        limits.append(
            "- Apertium translates by rules, often word by word: these rows show that the pipeline works. Do not "
            "evaluate reward models on them."
        )
    if recipe.translation.rated:
        limits.append("- The source's raters decide which translation is better; close scores are noisy.")
    if any(entry["score"] == "hter" for entry in figures.get("rated", [])):
        limits.append(
            "- In ratings by post-editing, the better translation is always a person's edit of the worse one, so "
            "features of edits (length, hyphens, names in brackets) are cues."
        )
    return "\n".join(limits)
