"""Texts and tables of the dataset card and terminal output for personalized preferences."""

from typing import Any

import polars as pl
from pluralbench_release import Card, Section, markdown_table, text_table
from pluralbench_release.audit import wins_text
from pluralbench_runs import plural

from build_personalized.card import drops_table
from build_personalized.training.recipe import HAND_WRITTEN, NO_MODEL, TrainingRecipe

COLUMNS = {
    "id": "identifier of the pair, unique in its config",
    "user_id": "the user who preferred `chosen`; a user is in one split only, and their rows are in order of time",
    "prompt": "the conversation up to the answer, messages with `role` and `content`",
    "chosen": "the answer that this user preferred",
    "rejected": "another answer to the same prompt",
    "profile": "the user's other questions, most recent first; never the question of the row",
    "persona": "a model's summary of all questions of the user, written without seeing an answer",
    "source_id": "id of the conversation or question in the source",
    "original_split": "the source's split of the row",
    "chosen_source": "id of `chosen` in the source, if answers have ids",
    "rejected_source": "id of `rejected` in the source, if answers have ids",
    "persona_call": "key of the recorded call behind `persona`",
}
LIMITS = """\
- A preference is one person's judgment of one pair. Often the chosen answer is simply the better one, such as an
  accepted answer; then it reveals little about the person.
- `persona` is written from all questions of a user, including those of the rows, and from no answer. A profile or
  persona has only the first question of a conversation: later turns reply to the response that was chosen.
- Several rows may share a prompt or a conversation (`source_id`). When you show a model a user's earlier pairs, leave
  out those with the same `source_id`, which would reveal the answer.
- The builder puts each user into one split. `pluralbench-release verify` checks one table at a time and would not
  notice a user in two; `rebuild` shows that the split follows the recipe."""


def persona_note(recipe: TrainingRecipe) -> str:
    """Return a note on the personas' generator and on how far the personas can be used."""
    match recipe.persona.provider:
        case "none":
            return "There are no personas: `persona` is null."
        case "hand-written":
            return "The personas are hand-written, like the pairs: they are examples, not useful training data."
        case "local":
            return (
                f"The personas were written by {recipe.persona.model}, a model of 135 million parameters. They show "
                "that the pipeline works; so small a model repeats questions instead of summarizing them."
            )
    return f"The personas were written by {recipe.persona.model} at {recipe.persona.provider}."


def figures_tables(figures: dict[str, Any]) -> dict[str, pl.DataFrame]:
    """Return the figures of `audit` as small tables, by title."""
    length, near, posts = figures["length"], figures["near_duplicates"], figures["profile_posts"]
    rows = [
        ("users", f"{figures['users']:,}"),
        ("pairs per user (min / median / max)", _spread_text(figures["pairs_a_user"])),
        ("posts in a profile (min / median / max)", _spread_text(posts)),
        ("users with a persona", f"{figures['personas']:,}"),
        ("words, mean (chosen / rejected)", f"{length['chosen_mean']:.1f} / {length['rejected_mean']:.1f}"),
        ("words, chosen minus rejected, mean", f"{length['mean_gap']:+.1f}"),
        ("accuracy of choosing the longer answer (in characters)", wins_text(figures["longer"])),
        ("near-duplicates of different users (prompts / chosen)", f"{near['prompts']} / {near['chosen']}"),
        ("prompts of other splits that are near-duplicates of one in train", str(figures["across_splits"])),
        ("pairs whose two answers are near-duplicates", str(near["sides"])),
        ("pairs whose prompt is in an earlier pair of the user", str(figures["asked_again"])),
    ]
    if "overlap" in figures:
        overlap = figures["overlap"]
        repeated = f"{overlap['chosen_mean']:.1%} / {overlap['rejected_mean']:.1%}"
        rows += [
            ("words of the persona repeated, mean (chosen / rejected)", repeated),
            ("accuracy of choosing the answer with more of them", wins_text(figures["more_overlap"])),
        ]
    tables = {
        "Audit": text_table(["figure", "value"], rows),
        "Splits": _splits_table(figures),
        "Removed because of benchmarks": _contamination_table(figures["contamination"]),
    }
    return tables | ({"Left out": drops_table(figures["drops"])} if figures["drops"] else {})


def card(recipe: TrainingRecipe, figures: dict[str, Any]) -> Card:
    """Return the dataset card of a release."""
    audit = "\n\n".join(f"### {title}\n\n{markdown_table(table)}" for title, table in figures_tables(figures).items())
    against = figures["contamination"]["against"]
    compared = ", ".join(f"`{entry['location']}` ({plural(entry['questions'], 'question')})" for entry in against)
    shown = ", ".join(f"{name} {share:g}" for name, share in recipe.splits.shares.items())
    division = "as in the source" if recipe.splits.own else f"by the seed ({shown})"
    built = (
        f"{plural(figures['source_pairs'], 'pair')} of the sources gave {plural(figures['pairs'], 'pair')} of "
        f"{plural(figures['users'], 'user')}. Users, not rows, are assigned to splits, {division}. "
        f"{persona_note(recipe)} "
        + (f"Each has at most {recipe.persona.word_limit} words. " if recipe.persona.provider != NO_MODEL else "")
        + (f"It contains no question of {compared}. " if against else "It was compared with no benchmark. ")
        + "The complete recipe is in `provenance/recipe.toml`."
    )
    sample = recipe.persona.provider == HAND_WRITTEN
    return Card(
        pretty_name="Personalized preferences",
        summary=(
            "Pairs of answers with the user who preferred one of them, to train personalized reward models. The user's "
            "other questions are given as a profile."
        )
        + (" These users are invented, and too few to learn from." if sample else ""),
        languages=[recipe.source.language],
        tasks=["text-ranking", "text-generation"],
        tags=["reward-model", "personalization", "preference", "pluralbench"],
        columns=COLUMNS,
        sections=[
            Section(title="How it was built", body=built),
            Section(title="Audit", body=audit.removeprefix("### Audit\n\n")),
            Section(title="Known limits", body=LIMITS),
        ],
    )


def _splits_table(figures: dict[str, Any]) -> pl.DataFrame:
    names = ("config", "split", "users", "pairs")
    return text_table(names, [[entry[name] for name in names] for entry in figures["by_split"]])


def _contamination_table(contamination: dict[str, Any]) -> pl.DataFrame:
    rows = [(kind, pairs, contamination["posts"][kind]) for kind, pairs in contamination["pairs"].items()]
    return text_table(["match", "pairs", "posts of users"], rows)


def _spread_text(spread: dict[str, Any]) -> str:
    return f"{spread['min']} / {spread['median']:g} / {spread['max']}"
