"""Texts and tables of a build's dataset card and terminal output."""

from collections.abc import Sequence
from typing import Any

import polars as pl
from pluralbench_release import Card, Section, markdown_table, text_table
from pluralbench_release.audit import wins_text
from pluralbench_runs import plural, public_location

from build_personalized.audit import SHORT
from build_personalized.recipe import PersonalizedRecipe
from build_personalized.sources.lamp_qa import is_original

COLUMNS = {
    "id": "identifier of the question, unique in its config",
    "question": "the person's question; besides the answer, the only input of a reward model",
    "category": "topic of the question",
    "narrative": "the person's explanation of the question; never show it to a reward model under test",
    "rubric_aspects": "what the person expects, with evidence from the narrative; never show them either",
    "profile": "the person's earlier posts, most relevant first",
    "chosen": "an answer that covers the aspects",
    "rejected": "an equally good answer that leaves the aspects out",
    "generator": "the model that wrote both answers, as its server names it",
    "prompt_version": "version of the prompts",
    "chosen_call": "key of the recorded call behind `chosen`",
    "rejected_call": "key of the recorded call behind `rejected`",
}

STATISTICS = "Statistics: means ± standard deviations, lengths in words"
STATISTIC_NAMES = {
    "rubric_aspects": "rubric aspects",
    "question_words": "length of question",
    "narrative_words": "length of narrative",
    "profile_posts": "posts in a profile",
    "chosen_words": "length of chosen",
    "rejected_words": "length of rejected",
}

CITATION = """\
The method is that of *Personalized RewardBench*; the original takes its questions from LaMP-QA (Salemi and Zamani,
2025). Cite both, with the version above and the content digests."""
PAPER = """\
@misc{ma2026personalized,
  title = {Personalized {RewardBench}: Evaluating Reward Models with Human Aligned Personalization},
  author = {Ma, Qiyao and Gao, Dechen and Cai, Rui and Zhao, Boqi and Zhou, Hanchu and Zhang, Junshan and Zhao, Zhe},
  year = {2026},
  eprint = {2604.07343},
  archivePrefix = {arXiv},
}"""


def generator_note(recipe: PersonalizedRecipe) -> str:
    """Return a note on the answers' generator and on how far the answers can be used."""
    match recipe.llm.provider:
        case "hand-written":
            return (
                "The answers are hand-written examples of good pairs, for trying the tools; "
                "24 invented people are too few to rank reward models."
            )
        case "local":
            return (
                f"The answers were written by {recipe.llm.model}, a model of 135 million parameters. They show that "
                "the pipeline works. So small a model rarely follows an instruction: chosen and rejected answers "
                "differ by chance as much as by rubric. Do not evaluate reward models on them."
            )
    return f"The answers were written by {recipe.llm.model} at {recipe.llm.provider}."


def figures_tables(figures: dict[str, Any]) -> dict[str, pl.DataFrame]:
    """Return the audit's figures as small tables, by title."""
    length, overlap = figures["length"], figures["overlap"]
    near, posts = figures["near_duplicates"], figures["profile_posts"]
    rows = [
        ("words, mean (chosen / rejected)", f"{length['chosen_mean']:.1f} / {length['rejected_mean']:.1f}"),
        ("words, chosen minus rejected, mean", f"{length['mean_gap']:+.1f}"),
        (f"answers of fewer than {SHORT} words", f"{figures['short']} of {2 * figures['pairs']}"),
        ("answers over the word limit", str(figures["over_limit"])),
        ("accuracy of choosing the longer answer (in characters)", wins_text(figures["longer"])),
        (
            "aspect words repeated, mean (chosen / rejected)",
            f"{overlap['chosen_mean']:.1%} / {overlap['rejected_mean']:.1%}",
        ),
        ("accuracy of choosing the answer with more of them", wins_text(figures["more_overlap"])),
        ("near-duplicate questions / chosen answers", f"{near['questions']} / {near['chosen']}"),
        ("pairs whose two answers are near-duplicates", str(near["sides"])),
        ("posts in a profile (min / median / max)", f"{posts['min']} / {posts['median']:g} / {posts['max']}"),
        ("aspects per question, mean", f"{figures['aspects_per_question']:.1f}"),
    ]
    tables = {"Audit": text_table(["figure", "value"], rows)}
    tables[STATISTICS] = statistics_table(figures["by_config"])
    if figures["drops"]:
        tables["Left out"] = drops_table(figures["drops"])
    return tables


def statistics_table(by_config: Sequence[dict[str, Any]]) -> pl.DataFrame:
    """Return the paper's table 4 for this release: one column per config, means with standard deviations."""
    columns = {"": ["questions (users)", *STATISTIC_NAMES.values()]}
    for entry in by_config:
        # Narrow tables can break names only at spaces.
        columns[entry["config"].replace("_", " ")] = [
            f"{entry['questions']:,}",
            *(_mean(entry[name]) for name in STATISTIC_NAMES),
        ]
    return pl.DataFrame(columns)


def _mean(measured: dict[str, Any]) -> str:
    return f"{measured['mean']:.2f}" + ("" if measured["sd"] is None else f" ± {measured['sd']:.2f}")


def drops_table(drops: Sequence[dict[str, Any]]) -> pl.DataFrame:
    """Return a table of the dropped rows, from `audit.drop_counts`."""
    names = ("config", "step", "reason", "count")
    return text_table(names, [[drop[name] for name in names] for drop in drops])


def card(recipe: PersonalizedRecipe, figures: dict[str, Any]) -> Card:
    """Return the dataset card of a release."""
    configs = ", ".join(entry["config"] for entry in figures["by_config"])
    tables = figures_tables(figures)
    statistics = markdown_table(tables.pop(STATISTICS))
    audit = "\n\n".join(f"### {title}\n\n{markdown_table(table)}" for title, table in tables.items())
    built = (
        f"{plural(figures['questions'], 'question')} gave {plural(figures['pairs'], 'pair')}. Posts are ranked by "
        f"`{public_location(recipe.retriever)}`; the first {recipe.profile_size} go into a prompt. "
        f"Both prompts contain the question, these posts and the "
        f"aspects, and differ only in whether to cover the aspects or leave them out; answers have at most "
        f"{recipe.word_limit} words. {generator_note(recipe)} Every call is recorded in `provenance/ledger.parquet`, "
        "the complete recipe in `provenance/recipe.toml`."
    )
    limits = (
        "- `narrative` and `rubric_aspects` define why `chosen` is better: a model that sees them is not being "
        "tested.\n"
        "- Evidence is "
        + (
            "quoted from the narrative, which is checked"
            if recipe.source.evidence == "verbatim"
            else "not checked to be a quotation"
        )
        + ".\n- `chosen` is better by construction; no person judged each pair.\n"
        "- A scorer that recognizes the aspects in the text of an answer can be right for the wrong reason: see the "
        "audit."
    )
    return Card(
        pretty_name="Personalized RewardBench",
        summary=(
            "Pairs of answers for reward models: both are good answers to the question, and only one meets the "
            "expectations of the person, whose earlier posts are given."
        ),
        languages=[recipe.source.language],
        tasks=["text-generation", "text-ranking"],
        tags=["reward-model", "personalization", "preference", "pluralbench"],
        columns=COLUMNS,
        sections=[
            Section(title="How it was built", body=built),
            Section(title=STATISTICS, body=statistics),
            Section(title="Audit", body=audit.removeprefix("### Audit\n\n")),
            Section(title="Known limits", body=limits),
        ],
        citation=CITATION,
        papers=(PAPER,),
    ).of(
        {_origin(location) for location in recipe.source.locations},
        f"Personalized pairs of {configs}",
    )


def _origin(location: str) -> str:
    kind, _, place = location.partition(":")
    return "paper" if kind == "lamp-qa" and is_original(place) else kind
