"""The dataset card of a release."""

from typing import Any

from pluralbench_release import Card, Section, markdown_table
from pluralbench_runs import plural, public_location

from build_persona_judge.figures import figures_tables
from build_persona_judge.recipe import SAMPLE, TASKS, PersonaJudgeRecipe

COLUMNS = {
    "id": "item id, unique in its config",
    "task": "the config",
    "kind": (
        "the question: `preference`, which response the person prefers; `opinion`, which answer they give; "
        "`authorship`, which text they wrote"
    ),
    "user": "id of the person in the source; items of one person are not independent",
    "persona": (
        "the variables of the persona: name, value (null if unknown), value as a number (null if it is not one), "
        "sentence, and sets: `key` and `least` are those of the paper's ablation, `key-code` and `least-code` those of "
        "its authors' code"
    ),
    "context": "the topic of both options; may be empty",
    "option_a": "one option",
    "option_b": "the other option",
    "truth": "`A`, `B`, or `tie`; drop the ties for a judge that cannot answer with one",
    "origin_a": "origin of `option_a`; do not show it to a judge",
    "origin_b": "origin of `option_b`; do not show it to a judge",
    "gap": "difference of the source's scores, which decides a tie",
    "rank_calls": "key of the recorded ranking that selected the other person",
}
CITATION = """\
The method is that of *Can LLM be a Personalized Judge?* (Dong, Hu and Collier, 2024). Cite it, the sources, the version
above and the content digests."""
PAPER = """\
@misc{dong2024personalized,
  title = {Can {LLM} be a Personalized Judge?},
  author = {Dong, Yijiang River and Hu, Tiancheng and Collier, Nigel},
  year = {2024},
  eprint = {2406.11657},
  archivePrefix = {arXiv},
}"""


def card(recipe: PersonaJudgeRecipe, figures: dict[str, Any]) -> Card:
    """The card of a release."""
    sections = [Section(title="How it was built", body=_built(recipe))]
    for title, table in figures_tables(figures).items():
        sections.append(Section(title=title, body=markdown_table(table)))
    sections.append(Section(title="Known limits", body=_limits(recipe)))
    return Card(
        pretty_name="Persona judge",
        summary=(
            "One of two options belongs to a person: what they preferred, answered or wrote. From some variables of "
            "the person, a judge predicts which one, and how sure it is."
        ),
        languages=["en"],
        tasks=["text-classification", "text-ranking"],
        tags=["llm-as-a-judge", "personalization", "persona", "pluralbench"],
        columns=COLUMNS,
        sections=sections,
        citation=CITATION,
        papers=(PAPER,),
    ).of(
        {
            SAMPLE if table.location == SAMPLE else "paper" if name in TASKS and table.name is None else "own"
            for name, table in recipe.sources
        },
        f"Choices by people of {', '.join(name for name, _ in recipe.sources)}",
    )


def _built(recipe: PersonaJudgeRecipe) -> str:
    paragraphs = ["The order of the options is random. Dropped rows are in `provenance/dropped.parquet`."]
    if recipe.prism is not None:
        families = ", ".join(f"`{name}`" for name in recipe.prism.exclude_families) or "none"
        paragraphs.append(
            "**prism**: from the responses at the start of a conversation, the one that the person scored highest and "
            f"a random other one; a tie if the scores differ by {recipe.prism.tie_gap:g} or less. Responses of model "
            f"families that may judge ({families}) are dropped, so that no judge rates its own; so are refusals."
        )
    if recipe.opinion_qa is not None:
        paragraphs.append(
            "**opinion_qa**: one random question with two options per wave, and "
            f"{plural(recipe.opinion_qa.respondents, 'random respondent')} who chose one of the two."
        )
    if recipe.empathic_conversations is not None:
        table = recipe.empathic_conversations
        paragraphs.append(
            "**empathic_conversations**: two people's essays on one article, up to "
            f"{plural(table.pairs_per_article, 'pair')} per article, and the persona of a random one of the two; a "
            f"tie if their empathy or their distress differs by less than {table.tie_gap:g}, at most "
            f"{table.tie_share:.0%} of the items."
        )
    if recipe.personal_reddit is not None:
        paragraphs.append(
            "**personal_reddit**: a person's answer to a question, and an answer to another question by the person "
            f"with the most similar persona, by `{public_location(recipe.retriever)}`; the rankings are recorded in "
            "`provenance/ledger.parquet`."
        )
    paragraphs += [
        f"**{table.task}**: choices between two options, from `{public_location(table.location)}`."
        for table in recipe.people_csv
    ]
    return "\n\n".join(paragraphs)


def _limits(recipe: PersonaJudgeRecipe) -> str:
    limits = [
        "- A persona is a few variables. They often do not determine the person's option; then the right verdict is an "
        "unsure one. Evaluate certainty as well as accuracy.",
        "- A judge can be right without using the persona: see the accuracy of the longer option, of the option that "
        "repeats more of the persona, and of the most common answer.",
    ]
    if recipe.empathic_conversations is not None:
        limits.append("- In a tie of `empathic_conversations`, one of the essays still is the person's.")
    if any(table.location == SAMPLE for _, table in recipe.sources):
        limits.append(
            "- This is the sample: people, texts, scores and answers are invented. It shows that the pipeline works. "
            "Do not use it to evaluate a judge."
        )
    return "\n".join(limits)
