"""What the card says about a build."""

from typing import Any

from pluralbench_release import Card, Section, counted, markdown_table
from pluralbench_runs import public_location

from build_persona_judge.figures import figures_tables
from build_persona_judge.recipe import SAMPLE, TASKS, PersonaJudgeRecipe

COLUMNS = {
    "id": "of the item, unique in its config",
    "task": "the config",
    "kind": (
        "what is asked: `preference`, which response the person prefers; `opinion`, which answer they give; "
        "`authorship`, which text they wrote"
    ),
    "user": "the person, as the source names them; items of one person are not independent",
    "persona": (
        "the variables of the persona: name, value (null where it is not known), the value as a number where it is "
        "one, a sentence that says it, and the sets it is in: `key` and `least` as the paper's ablation has them, "
        "`key-code` and `least-code` as its authors' code has them"
    ),
    "context": "what both options are about; may be empty",
    "option_a": "one option",
    "option_b": "the other option",
    "truth": "`A`, `B`, or `tie`; leave the ties out where a judge may not answer with one",
    "origin_a": "what `option_a` comes from; never to be shown to a judge",
    "origin_b": "what `option_b` comes from; never to be shown either",
    "gap": "the difference in the source's scores by which a tie is told",
    "rank_calls": "key of the recorded ranking that found the other person",
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
            "Of two options one belongs to a person: what they preferred, answered or wrote. A judge that is told some "
            "variables of the person says which, and how sure it is."
        ),
        languages=["en"],
        tasks=["text-classification", "text-ranking"],
        tags=["llm-as-a-judge", "personalization", "persona", "pluralbench"],
        columns=COLUMNS,
        sections=sections,
        citation=CITATION,
        papers=(PAPER,),
    ).of(
        {SAMPLE if table.location == SAMPLE else "paper" if name in TASKS else "own" for name, table in recipe.sources},
        f"Choices by people of {', '.join(name for name, _ in recipe.sources)}",
        "*Can LLM be a Personalized Judge?* (arXiv 2406.11657)",
    )


def _built(recipe: PersonaJudgeRecipe) -> str:
    said = ["Which option is A was drawn for each item. What is left out stands in `provenance/dropped.parquet`."]
    if recipe.prism is not None:
        families = ", ".join(f"`{name}`" for name in recipe.prism.exclude_families) or "none"
        said.append(
            "**prism**: of the responses at the start of a conversation, the one that the person scored highest and "
            f"another one, drawn; a tie where the scores differ by {recipe.prism.tie_gap:g} or less. Responses of "
            f"model families that may judge are left out ({families}), so that no judge meets its own; so are refusals."
        )
    if recipe.opinion_qa is not None:
        said.append(
            "**opinion_qa**: one question with two options a wave, drawn, and "
            f"{counted(recipe.opinion_qa.respondents, 'respondent')}, drawn among those who chose one of the two."
        )
    if recipe.empathic_conversations is not None:
        table = recipe.empathic_conversations
        said.append(
            "**empathic_conversations**: two people's essays on one article, "
            f"{counted(table.pairs_per_article, 'pair')} an article where there are as many, and the persona "
            "of one of the two, drawn; a tie where their empathy or "
            f"their distress differs by less than {table.tie_gap:g}, at most {table.tie_share:.0%} of the items."
        )
    if recipe.personal_reddit is not None:
        said.append(
            "**personal_reddit**: a person's answer to a question, and an answer to another question by the person "
            f"whose persona is most like theirs, by `{public_location(recipe.retriever)}`; each ranking is recorded in "
            "`provenance/ledger.parquet`."
        )
    said += [
        f"**{table.task}**: choices between two options, from `{public_location(table.location)}`."
        for table in recipe.people_csv
    ]
    return "\n\n".join(said)


def _limits(recipe: PersonaJudgeRecipe) -> str:
    said = [
        "- A persona is a few variables. Often they do not tell which option is the person's, and then the right "
        "verdict is an unsure one: judge by certainty as well as by agreement.",
        "- The options differ in more than whose they are: see which is longer, which names more of the persona, and "
        "how far the usual answer goes. Who is right for such a reason knows nothing of the person.",
    ]
    if recipe.empathic_conversations is not None:
        said.append("- Of a tie in `empathic_conversations` one of the essays still is the person's.")
    if any(table.location == SAMPLE for _, table in recipe.sources):
        said.append(
            "- This is the sample: people, texts, scores and answers are invented. It shows that the pipeline works; "
            "no judge should be judged by it."
        )
    return "\n".join(said)
