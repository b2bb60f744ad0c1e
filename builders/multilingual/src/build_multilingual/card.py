"""What the card says about a build."""

from pathlib import PurePath
from typing import Any

from pluralbench_release import Card, Section, counted, markdown_table
from pluralbench_runs import public_location
from pluralbench_schemas import ENGLISH, LANGUAGES, language_of

from build_multilingual.figures import figures_tables
from build_multilingual.recipe import MultilingualRecipe
from build_multilingual.source import REWARD_BENCH

COLUMNS = {
    "id": "of the English source and the same in every language (in `translation`: the number of the row)",
    "language": "FLORES-200 code of the texts",
    "prompt": "what is asked",
    "chosen": "the better answer (in `translation`: the better translation)",
    "rejected": "the worse one",
    "chosen_model": "who wrote the better answer, as the source says",
    "rejected_model": "who wrote the worse one",
    "source": "subset of the source (in `translation`: the sentence that was translated)",
    "category": "section of the benchmark",
    "translator": "the model that translated, as it named itself",
    "prompt_calls": "keys of the recorded calls behind `prompt`",
    "chosen_calls": "the same for `chosen`",
    "rejected_calls": "the same for `rejected`",
}
PAIR_COLUMNS = {
    "subset": "`translation-SOURCE-TARGET-LEVEL`",
    "template": "number of the prompt template",
    "chosen_system": "the system of the better translation",
    "rejected_system": "that of the worse one",
    "chosen_score": "its score, as rated",
    "rejected_score": "that of the worse one",
}
MAPLE = "maple-train.jsonl"  # the paper's rated translations, as their repository calls them
CITATION = """\
The method is that of *M-RewardBench* (Gureja et al., 2024), whose English source is RewardBench (Lambert et al., 2024).
Cite both, the version above and the content digests."""
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
    """The card of a release. numbered: whether `id` is the number of the source's row."""
    translated = bool(recipe.languages)
    rated = bool(recipe.translation.rated)
    columns = (COLUMNS if translated or recipe.english else {}) | (PAIR_COLUMNS if rated else {})
    if not (translated or recipe.english):
        columns = {name: COLUMNS[name] for name in ("id", "prompt", "chosen", "rejected", "source")} | columns
    sections = [Section(title="How it was built", body=_built(recipe, figures, numbered=numbered))]
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
        "*M-RewardBench* (arXiv 2410.15522)",
    )


def _origin(location: str) -> str:
    place = location.partition("@")[0]
    return "paper" if place == REWARD_BENCH or PurePath(place).name == MAPLE else place


def _languages(recipe: MultilingualRecipe, figures: dict[str, Any]) -> list[str]:
    codes = [*recipe.languages, *[ENGLISH] * recipe.english]
    found = {LANGUAGES[code].langid for code in codes}
    for row in figures.get("translation", []):
        found |= {
            language.langid for part in row["subset"].split("-")[1:3] if (language := language_of(part)) is not None
        }
    return sorted(found)


def _built(recipe: MultilingualRecipe, figures: dict[str, Any], *, numbered: bool) -> str:
    said = []
    if recipe.languages and recipe.source is not None and recipe.translator is not None:
        model = f" ({public_location(recipe.translator.model)})" if recipe.translator.model else ""
        kept = "in all" if recipe.filter.drop == "everywhere" else "in that language"
        only = ", ".join(f"`{pattern}`" for pattern in recipe.source.prompt_only)
        said.append(
            f"Into {counted(len(recipe.languages), 'language')}, `{recipe.translator.name}`{model} translated "
            f"{counted(figures['source_rows'], 'English pair')}. Of the subsets {only}, whose answers are code, only "
            "the prompt is. Code, LaTeX, URLs, placeholders and numbers go through as they are. A text that came back "
            "empty, unchanged, in another language, far too short or too long, or without something that had to "
            "survive, and answers that became the same, were asked for once more, in smaller pieces; what failed again "
            f"was set aside. A row that is set aside in one language, or that a person dropped, is dropped {kept}."
        )
        if numbered:
            said.append("The source's ids are no whole numbers, so `id` is the number of the row there.")
    if recipe.english:
        said.append(f"`{ENGLISH}` is the English source itself, of the rows that were kept.")
    if recipe.translation.rated:
        said.append(
            "In `translation` an easy pair is the best against the worst of all translations of a sentence that people "
            "rated, and a hard pair two of the others that are close to each other; prompts are made from 31 templates "
            "of our own."
        )
    said.append(
        "Every call is recorded in `provenance/ledger.parquet`, what was set aside and dropped in "
        "`provenance/set_aside.parquet` and `provenance/dropped.parquet`, the whole recipe in `provenance/recipe.toml`."
    )
    return "\n\n".join(said)


def _limits(recipe: MultilingualRecipe, figures: dict[str, Any]) -> str:
    said = []
    if recipe.languages:
        said.append(
            "- The translations are a machine's; that they pass the checks does not mean that they are good, nor that "
            "what is better in English is better in them."
        )
    if recipe.translator is not None and recipe.translator.name == "apertium" and recipe.languages:
        said.append(
            "- Apertium translates by rules, often word by word: these rows show that the pipeline works, and no "
            "reward model should be judged by them."
        )
    if recipe.translation.rated:
        said.append("- What is the better translation is as the source's raters saw it; close scores are noisy.")
    if any(entry["score"] == "hter" for entry in figures.get("rated", [])):
        said.append(
            "- Where the ratings are post-edits, the better translation is always a person's edit of the worse one, so "
            "what tells edits from a machine's text (length, hyphens, names in brackets) is a cue."
        )
    return "\n".join(said)
