"""The dataset card of a release."""

from typing import Any

from pluralbench_release import Card, Section, markdown_table
from pluralbench_runs import plural

from build_chinese.figures import figures_tables
from build_chinese.lengths import FIGURE, LENGTHS
from build_chinese.recipe import SAMPLE, ChineseRecipe

COLUMNS = {
    "id": "prompt id",
    "input": "the prompt",
    "sys_prompt": "the system prompt, if there is one",
    "responses": "the responses, each with its `id`, text, and the model that wrote it",
    "annotations": (
        "`[first, second, mark]` in the order shown: `1` the first is better, `2` the second, `s` equal. For a judge "
        "model: the pairs that were kept, better response first. Train on these, since `rank` and `order` also "
        "contain the pairs that were dropped for their length"
    ),
    "rank": "rank of each response, 1 is best; equal responses share a rank, and ranks have no gaps",
    "order": (
        "`[better, worse]`: the pairs that the annotations order, directly or transitively; two responses of "
        "different rank without a pair here were never compared, not even transitively"
    ),
    "category": "main and sub-category",
    "judgements": "number of annotations behind the ranks",
    "conflicts": "number of annotations that the ranks contradict",
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
            "Chinese prompts with ranked responses: benchmarks that people annotated, and a preference set to train "
            "reward models on."
        ),
        languages=["zh"],
        tasks=["text-generation", "text-ranking"],
        tags=["reward-model", "chinese", "preference", "pluralbench"],
        columns=COLUMNS,
        sections=sections,
    ).of(
        # Files do not tell whether they are the published ones of CHEEMS; the recipe's title does.
        {"sample" if table.location == SAMPLE else "own" for table in tables if table is not None},
        "Ranked responses to Chinese prompts",
    )


def _built(recipe: ChineseRecipe, figures: dict[str, Any]) -> str:
    paragraphs = [
        "The annotations of a prompt form a graph. Responses on a cycle are merged, and the layers of the resulting "
        "graph are the ranks. An annotation is in conflict if it prefers one of two responses that share a rank; the "
        "ranks never reverse an annotation."
    ]
    if recipe.unlabeled is not None and recipe.judge is not None:
        filtering = "Every vote that prefers one response was kept, and cycles were resolved."
        if _distant(recipe) and recipe.reward is not None:
            margin = f" by more than {recipe.reward.margin:g}" if recipe.reward.margin else ""
            filtering = (
                f"A vote was kept if a reward model, {recipe.reward.display_name} trained on the annotated prompts "
                f"outside the benchmarks, prefers the same response{margin}."
            )
        balanced = (
            " Pairs were then dropped at random until the better response was the longer one as often as the shorter "
            "one."
            if recipe.preference.length
            else ""
        )
        paragraphs.append(
            f"In `preference`, `{recipe.judge.model}` voted on every pair of responses of a prompt, in random order, "
            f"by criteria of the prompt's category (prompt version {figures['preference']['prompt_version']}). "
            f"{filtering}{balanced}"
        )
        cut = figures["preference"]["responses_cut_for_the_reward_model"]
        if cut:
            paragraphs.append(
                f"{plural(cut, 'response')} did not fit into the reward model with the whole prompt, so "
                "the beginning of the prompt was cut off."
            )
    recorded = ["Every vote"] * (recipe.unlabeled is not None) + ["every reward"] * _distant(recipe)
    calls = f"{' and '.join(recorded)} is recorded in `provenance/ledger.parquet`. " if recorded else ""
    paragraphs.append(
        "`published/` has the same rows as JSONL in the fields that CHEEMS published, with `rank` as an object. "
        f"{calls}Dropped prompts are in `provenance/dropped.parquet`, and the full recipe is in "
        "`provenance/recipe.toml`."
    )
    return "\n\n".join(paragraphs)


def _limits(recipe: ChineseRecipe) -> str:
    limits = [
        "- Responses of the same rank were on one cycle, or no annotation distinguishes them. The ranks also order "
        "responses that were never compared; `order` does not.",
        "- *first wins* is 50 % without position bias if the order was drawn, as `build-chinese tasks` and the judge's "
        "votes draw it. Where the order is that of a file, such as best first, it measures the file.",
    ]
    if recipe.unlabeled is not None:
        agree = "a judge model and a reward model agree on" if _distant(recipe) else "a judge model prefers"
        limits.append(f"- What {agree} is not what people prefer; {'shared ' * _distant(recipe)}errors remain.")
    if recipe.annotated is not None and recipe.annotated.location == SAMPLE:
        limits.append(
            "- This is the sample: texts, annotators and votes are invented, annotators saw responses in the order of "
            "the file"
            + (", and the reward model knows almost no Chinese" if _distant(recipe) else "")
            + ". It shows that the pipeline works. Do not use it to evaluate or train a reward model."
        )
    return "\n".join(limits)


def _distant(recipe: ChineseRecipe) -> bool:
    return recipe.unlabeled is not None and recipe.preference.distant
