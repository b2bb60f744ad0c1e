"""What the card says about a build."""

from typing import Any

from pluralbench_release import Card, Section, counted, markdown_table

from build_chinese.figures import figures_tables
from build_chinese.lengths import FIGURE, LENGTHS
from build_chinese.recipe import SAMPLE, ChineseRecipe

COLUMNS = {
    "id": "of the prompt",
    "input": "the prompt",
    "sys_prompt": "the system prompt, where there is one",
    "responses": "the responses, each with the `id` that the other columns name, its text, and the model that wrote it",
    "annotations": (
        "`[first, second, mark]` as they were shown: `1` the first is better, `2` the second, `s` equal; of a judge "
        "model, the pairs that were kept, the better one first: what to train on, since `rank` and `order` also hold "
        "the pairs that went for their length"
    ),
    "rank": "of each response, 1 is best; equal responses share a rank, and the next rank is one more",
    "order": (
        "`[better, worse]`: what the annotations order, directly or by way of others; two responses of different rank "
        "that are missing here were compared neither directly nor by way of others"
    ),
    "category": "main and sub-category",
    "judgements": "how many annotations the ranks come from",
    "conflicts": "how many of them the ranks do not keep",
    "annotated_by": "`people`, or the judge model",
    "vote_calls": "keys of the recorded votes",
    "reward_calls": "keys of the recorded rewards",
}


def card(recipe: ChineseRecipe, figures: dict[str, Any]) -> Card:
    """The card of a release."""
    sections = [Section(title="How it was built", body=_built(recipe, figures))]
    for title, table in figures_tables(figures).items():
        drawn = f"![{title}]({FIGURE})\n\n" if title == LENGTHS else ""
        sections.append(Section(title=title, body=drawn + markdown_table(table)))
    sections.append(Section(title="Known limits", body=_limits(recipe)))
    tables = (recipe.annotated, recipe.unlabeled)
    return Card(
        pretty_name="CheemsBench and CheemsPreference",
        summary=(
            "Chinese prompts whose responses are ranked: benchmarks that people annotated, and a set of preferences to "
            "train reward models on."
        ),
        languages=["zh"],
        tasks=["text-generation", "text-ranking"],
        tags=["reward-model", "chinese", "preference", "pluralbench"],
        columns=COLUMNS,
        sections=sections,
        citation="",
    ).of(
        # Files do not say whether they are those that CHEEMS published; whoever knows gives the card a title.
        {"sample" if table.location == SAMPLE else "own" for table in tables if table is not None},
        "Ranked responses to Chinese prompts",
        "*CHEEMS* (arXiv 2502.17173)",
    )


def _built(recipe: ChineseRecipe, figures: dict[str, Any]) -> str:
    said = [
        "The annotations of a prompt make a graph. Responses on a cycle become one, and the layers of what is left are "
        "the ranks. An annotation is in conflict when it prefers one of two responses and the ranks have both equal; "
        "none can come out the other way round."
    ]
    if recipe.unlabeled is not None and recipe.judge is not None:
        kept = "Every vote that prefers one was kept, and cycles were resolved."
        if _distant(recipe) and recipe.reward is not None:
            margin = f" by more than {recipe.reward.margin:g}" if recipe.reward.margin else ""
            kept = (
                f"A vote was kept if a reward model, {recipe.reward.shown} trained on the prompts that people "
                f"annotated and that are in no benchmark, prefers the same response{margin}."
            )
        balanced = (
            " Pairs were then left out at random until the better response was the longer one as often as the shorter "
            "one."
            if recipe.preference.length
            else ""
        )
        said.append(
            f"In `preference`, `{recipe.judge.model}` voted on every two responses of a prompt, in an order that was "
            f"drawn, by criteria of the prompt's category (wording {figures['preference']['prompt_version']}). "
            f"{kept}{balanced}"
        )
        cut = figures["preference"]["responses_cut_for_the_reward_model"]
        if cut:
            said.append(f"Of {counted(cut, 'response')}, too long for the reward model, it saw a shortened prompt.")
    recorded = ["Every vote"] * (recipe.unlabeled is not None) + ["every reward"] * _distant(recipe)
    calls = f"{' and '.join(recorded)} is recorded in `provenance/ledger.parquet`, the" if recorded else "The"
    said.append(
        "The same rows are in `published/` as JSONL in the fields that CHEEMS published, `rank` being an object there. "
        f"{calls} prompts that were left out are in `provenance/dropped.parquet`, the whole recipe is in "
        "`provenance/recipe.toml`."
    )
    return "\n\n".join(said)


def _limits(recipe: ChineseRecipe) -> str:
    said = [
        "- Responses of the same rank were on one cycle, or nothing told them apart; the layers also order responses "
        "that nobody compared, which `order` does not."
    ]
    if recipe.unlabeled is not None:
        agree = "a judge model and a reward model agree on" if _distant(recipe) else "a judge model prefers"
        said.append(f"- What {agree} is not what people would say; {'common ' * _distant(recipe)}errors stay.")
    if recipe.annotated is not None and recipe.annotated.location == SAMPLE:
        said.append(
            "- This is the sample: texts, annotators and votes are invented"
            + (", and the reward model knows next to no Chinese" if _distant(recipe) else "")
            + ". It shows that the pipeline works; no reward model should be judged by it or trained on it."
        )
    return "\n".join(said)


def _distant(recipe: ChineseRecipe) -> bool:
    return recipe.unlabeled is not None and recipe.preference.distant
