"""What the card and the terminal say about a build of personalized preferences."""

from typing import Any

import polars as pl
from pluralbench_release import Card, Section, counted, markdown_table, text_table
from pluralbench_release.audit import wins_text

from build_personalized.card import drops_table
from build_personalized.training.recipe import NOBODY, WRITTEN, TrainingRecipe

COLUMNS = {
    "id": "identifier of the pair, unique in its config",
    "user_id": "who preferred `chosen`; a user is in one split only, and a user's rows stand in their order in time",
    "prompt": "the conversation up to the answer, messages with `role` and `content`",
    "chosen": "the answer that this user preferred",
    "rejected": "another answer to the same prompt",
    "profile": "the user's other questions, the most recent first; never the question of the row",
    "persona": "what a model makes of all questions of the user, without having seen an answer",
    "source_id": "the conversation or question in the source",
    "original_split": "the split that the source has the row in",
    "chosen_source": "which answer of the source `chosen` is, where answers have ids",
    "rejected_source": "which one `rejected` is",
    "persona_call": "key of the recorded call behind `persona`",
}
CITATION = """\
The way of building is that of *Personalized RewardBench* (arXiv 2604.07343, appendix B), of whose data this is no
part. Cite the sources below, with the version above and the content digests."""
LIMITS = """\
- A preference is one person's word on one pair. Often the chosen answer is simply the better one, as where an asker
  accepted it, and then it tells little of the person.
- `persona` is made of all questions of a user, those of the rows included; it never saw an answer. Of a conversation
  only the first question is in a profile or a persona: what is said later answers the response that was chosen.
- Several rows may share a prompt or a conversation (`source_id`). Who shows a model the pairs that a user decided
  earlier has to leave out those of the same `source_id`, which would show the answer.
- Users are kept apart by the builder. `pluralbench-release verify` looks at one table at a time and would not notice a
  user in two; `rebuild` shows that they are divided as the recipe says."""


def persona_note(recipe: TrainingRecipe) -> str:
    """Who wrote the personas, and what they are good for."""
    match recipe.persona.provider:
        case "none":
            return "There are no personas: `persona` is null."
        case "hand-written":
            return "The personas are hand-written, like the pairs: they show what is meant, and train nothing useful."
        case "local":
            return (
                f"The personas were written by {recipe.persona.model}, a model of 135 million parameters. They show "
                "that the pipeline works; so small a model repeats questions rather than sum them up."
            )
    return f"The personas were written by {recipe.persona.model} at {recipe.persona.provider}."


def figures_tables(figures: dict[str, Any]) -> dict[str, pl.DataFrame]:
    """The figures of `audit` as small tables with a title each."""
    length, near, posts = figures["length"], figures["near_duplicates"], figures["profile_posts"]
    rows = [
        ("users", f"{figures['users']:,}"),
        ("pairs a user (least / median / most)", _spread(figures["pairs_a_user"])),
        ("posts in a profile (least / median / most)", _spread(posts)),
        ("users with a persona", f"{figures['personas']:,}"),
        ("words, mean (chosen / rejected)", f"{length['chosen_mean']:.1f} / {length['rejected_mean']:.1f}"),
        ("words, chosen minus rejected, mean", f"{length['mean_gap']:+.1f}"),
        ("a scorer that takes the longer answer (in characters) is right", wins_text(figures["longer"])),
        ("near-duplicates of different users (prompts / chosen)", f"{near['prompts']} / {near['chosen']}"),
        ("prompts outside train that nearly equal one in it", str(figures["across_splits"])),
        ("pairs whose two answers are near-duplicates", str(near["sides"])),
        ("pairs whose prompt the same user has before", str(figures["asked_again"])),
    ]
    if "overlap" in figures:
        overlap = figures["overlap"]
        repeated = f"{overlap['chosen_mean']:.1%} / {overlap['rejected_mean']:.1%}"
        rows += [
            ("words of the persona repeated, mean (chosen / rejected)", repeated),
            ("a scorer that takes the answer with more of them is right", wins_text(figures["more_overlap"])),
        ]
    tables = {
        "Audit": text_table(["figure", "value"], rows),
        "Splits": _splits_table(figures),
        "Questions of benchmarks that were left out": _contamination_table(figures["contamination"]),
    }
    return tables | ({"Left out": drops_table(figures["drops"])} if figures["drops"] else {})


def card(recipe: TrainingRecipe, figures: dict[str, Any]) -> Card:
    """The card of a release."""
    audit = "\n\n".join(f"### {title}\n\n{markdown_table(table)}" for title, table in figures_tables(figures).items())
    against = figures["contamination"]["against"]
    compared = ", ".join(f"`{entry['location']}` ({counted(entry['questions'], 'question')})" for entry in against)
    shown = ", ".join(f"{name} {share:g}" for name, share in recipe.splits.shares.items())
    divided = "as the source has them" if recipe.splits.own else f"by the seed ({shown})"
    built = (
        f"{counted(figures['source_pairs'], 'pair')} of the sources gave {counted(figures['pairs'], 'pair')} of "
        f"{counted(figures['users'], 'user')}. Users, not rows, are divided among the splits, {divided}. "
        f"{persona_note(recipe)} "
        + (f"Each is of at most {recipe.persona.word_limit} words. " if recipe.persona.provider != NOBODY else "")
        + (f"No question of {compared} is in it. " if against else "It was compared with no benchmark. ")
        + "The whole recipe is in `provenance/recipe.toml`."
    )
    sample = recipe.persona.provider == WRITTEN
    return Card(
        pretty_name="Personalized preferences",
        summary=(
            "Pairs of answers with the user who preferred one of them, to train personalized reward models: the user "
            "is known by their other questions."
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
        citation=CITATION,
    )


def _splits_table(figures: dict[str, Any]) -> pl.DataFrame:
    names = ("config", "split", "users", "pairs")
    return text_table(names, [[entry[name] for name in names] for entry in figures["by_split"]])


def _contamination_table(found: dict[str, Any]) -> pl.DataFrame:
    rows = [(kind, pairs, found["posts"][kind]) for kind, pairs in found["pairs"].items()]
    return text_table(["the same as, or near", "pairs", "posts of users"], rows)


def _spread(found: dict[str, Any]) -> str:
    return f"{found['min']} / {found['median']:g} / {found['max']}"
