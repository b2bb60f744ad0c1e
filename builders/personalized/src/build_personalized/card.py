"""What the card and the terminal say about a build."""

from collections.abc import Sequence
from typing import Any

import polars as pl
from pluralbench_release import Card, Section, counted, markdown_table, text_table
from pluralbench_release.audit import wins_text
from pluralbench_runs import public_location

from build_personalized.audit import SHORT
from build_personalized.recipe import PersonalizedRecipe

COLUMNS = {
    "id": "identifier of the question, unique in its config",
    "question": "what the person asks; the only input of a reward model beside the answer",
    "category": "topic of the question",
    "narrative": "how the person explained the question; never to be shown to a reward model under test",
    "rubric_aspects": "what the person expects, with the evidence in the narrative; never to be shown either",
    "profile": "the person's earlier posts, the most relevant first",
    "chosen": "an answer that keeps to the aspects",
    "rejected": "an equally good answer that keeps the aspects out",
    "generator": "the model that wrote both answers, as it named itself",
    "prompt_version": "version of the prompts",
    "chosen_call": "key of the recorded call behind `chosen`",
    "rejected_call": "key of the recorded call behind `rejected`",
}

STATISTICS = "Statistics: means ± standard deviations, lengths in words"
MEASURED = {
    "rubric_aspects": "rubric aspects",
    "question_words": "length of question",
    "narrative_words": "length of narrative",
    "profile_posts": "posts in a profile",
    "chosen_words": "length of chosen",
    "rejected_words": "length of rejected",
}

CITATION = """\
The method is that of *Personalized RewardBench*; the questions of the original come from LaMP-QA (Salemi and Zamani,
2025). Cite both, the version above and the content digests."""
PAPER = """\
@misc{ma2026personalized,
  title = {Personalized {RewardBench}: Evaluating Reward Models with Human Aligned Personalization},
  author = {Ma, Qiyao and Gao, Dechen and Cai, Rui and Zhao, Boqi and Zhou, Hanchu and Zhang, Junshan and Zhao, Zhe},
  year = {2026},
  eprint = {2604.07343},
  archivePrefix = {arXiv},
}"""


def generator_note(recipe: PersonalizedRecipe) -> str:
    """Who wrote the answers, and what such answers are good for."""
    match recipe.llm.provider:
        case "hand-written":
            return (
                "The answers are hand-written, to show what a good pair is and to try the tools on; "
                "24 invented people are too few to rank reward models with."
            )
        case "local":
            return (
                f"The answers were written by {recipe.llm.model}, a model of 135 million parameters. They show that "
                "the pipeline works; so small a model rarely keeps to an instruction, so chosen and rejected answers "
                "differ by chance as much as by rubric: no reward model should be judged by them."
            )
    return f"The answers were written by {recipe.llm.model} at {recipe.llm.provider}."


def figures_tables(figures: dict[str, Any]) -> dict[str, pl.DataFrame]:
    """The audit's figures as small tables with a title each."""
    length, overlap = figures["length"], figures["overlap"]
    near, posts = figures["near_duplicates"], figures["profile_posts"]
    rows = [
        ("words, mean (chosen / rejected)", f"{length['chosen_mean']:.1f} / {length['rejected_mean']:.1f}"),
        ("words, chosen minus rejected, mean", f"{length['mean_gap']:+.1f}"),
        (f"answers of fewer than {SHORT} words", f"{figures['short']} of {2 * figures['pairs']}"),
        ("answers over the word limit", str(figures["over_limit"])),
        ("a scorer that takes the longer answer (in characters) is right", wins_text(figures["longer"])),
        (
            "aspect words repeated, mean (chosen / rejected)",
            f"{overlap['chosen_mean']:.1%} / {overlap['rejected_mean']:.1%}",
        ),
        ("a scorer that takes the answer with more of them is right", wins_text(figures["more_overlap"])),
        ("near-duplicate questions / chosen answers", f"{near['questions']} / {near['chosen']}"),
        ("pairs whose two answers are near-duplicates", str(near["sides"])),
        ("posts in a profile (least / median / most)", f"{posts['min']} / {posts['median']:g} / {posts['max']}"),
        ("aspects a question, mean", f"{figures['aspects_per_question']:.1f}"),
    ]
    tables = {"Audit": text_table(["figure", "value"], rows)}
    tables[STATISTICS] = statistics_table(figures["by_config"])
    if figures["drops"]:
        tables["Left out"] = drops_table(figures["drops"])
    return tables


def statistics_table(by_config: Sequence[dict[str, Any]]) -> pl.DataFrame:
    """The paper's table 4 of this release: a column for each config, means with their standard deviations."""
    columns = {"": ["questions (users)", *MEASURED.values()]}
    for entry in by_config:
        # A narrow table breaks a name at its blanks.
        columns[entry["config"].replace("_", " ")] = [
            f"{entry['questions']:,}",
            *(_mean(entry[name]) for name in MEASURED),
        ]
    return pl.DataFrame(columns)


def _mean(measured: dict[str, Any]) -> str:
    return f"{measured['mean']:.2f}" + ("" if measured["sd"] is None else f" ± {measured['sd']:.2f}")


def drops_table(drops: Sequence[dict[str, Any]]) -> pl.DataFrame:
    """What was left out, as a small table. drops: of `audit.drop_counts`."""
    names = ("config", "step", "reason", "count")
    return text_table(names, [[drop[name] for name in names] for drop in drops])


def card(recipe: PersonalizedRecipe, figures: dict[str, Any]) -> Card:
    """The card of a release."""
    kinds = {location.partition(":")[0] for location in recipe.source.locations}
    configs = ", ".join(entry["config"] for entry in figures["by_config"])
    tables = figures_tables(figures)
    statistics = markdown_table(tables.pop(STATISTICS))
    audit = "\n\n".join(f"### {title}\n\n{markdown_table(table)}" for title, table in tables.items())
    built = (
        f"{counted(figures['questions'], 'question')} gave {counted(figures['pairs'], 'pair')}. Posts are ranked by "
        f"`{public_location(recipe.retriever)}`; the first {recipe.profile_size} go into a prompt. "
        f"Both prompts hold the question, these posts and the "
        f"aspects, and differ only in whether the aspects are to be covered or kept out; answers have at most "
        f"{recipe.word_limit} words. {generator_note(recipe)} Every call is recorded in `provenance/ledger.parquet`, "
        "the whole recipe in `provenance/recipe.toml`."
    )
    limits = (
        "- `narrative` and `rubric_aspects` are the standard by which `chosen` is better: a model that sees them is "
        "not being tested.\n"
        "- Evidence is "
        + (
            "quoted from the narrative, which is checked"
            if recipe.source.evidence == "verbatim"
            else "not checked to be quoted"
        )
        + ".\n- Whether `chosen` is better is so by construction, not by a person's judgement of each pair.\n"
        "- Who takes the aspects from the text of an answer can be right for the wrong reason: see the audit."
    )
    return Card(
        pretty_name="Personalized RewardBench",
        summary=(
            "Pairs of answers for reward models: both are good answers to the question, and only one keeps to what "
            "this person, known by their posts, expects."
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
        {"paper" if kind == "lamp-qa" else kind for kind in kinds},
        f"Personalized pairs of {configs}",
        "*Personalized RewardBench* (arXiv 2604.07343)",
    )
