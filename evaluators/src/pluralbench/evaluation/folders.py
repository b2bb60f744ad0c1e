"""Where a run lies when nobody says where: a folder of its own for all that gives other numbers."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pluralbench_runs import FrozenModel, Recipe, content_values, digest, matches_recipe

from pluralbench.data.samples import SAMPLE
from pluralbench.data.shards import Shard
from pluralbench.results.runs import RUN_FILE

RUNS = Path("runs")
LONGEST = 80  # characters that choices add to a name
FEW = 2  # names of configs that are spelled out
# What is too long for a name, or changes no number by itself; the digest tells apart what differs only there.
UNSAID = {
    "location",
    "columns",
    "labels",
    "english",
    "plans",
    "personas",
    "reference",
    "chat_template",
    "name",
    "device",
    "token_budget",
}
UNSAID |= {"trust_remote_code", "seed"}
SAID = {
    "oracle": "oracle-{}",
    "profile_size": "{}-posts",
    "orders": "{}-order",
    "verdicts": "{}-verdicts",
    "criterion": "criterion-{}",
    "answer_language": "answers-{}",
    "on_empty": "empty-{}",
    "on_overflow": "overflow-{}",
    "split": "split-{}",
}


def run_folder(
    name: str,
    config: Recipe,
    *choices: FrozenModel,
    seed: int = 0,
    exclude: tuple[str, ...] = (),
    shard: Shard | None = None,
) -> Path:
    """The folder of a run under `runs/`, such as `personalized-my-model-limit20-raw`.

    name: what it begins with. choices: descriptions, of which the values that are not their defaults are added, but for
    the fields in `said`, which the name has already. shard: what the name ends with. Where the folder is taken by a run
    of other settings (another model of that name, other data), a digest of the settings is added.
    """
    words = [word for choice in choices for word in _words(choice, exclude)] + ([f"seed{seed}"] if seed else [])
    while words and len("-".join(words)) > LONGEST:
        words.pop()
    plain, end = RUNS / file_name("-".join([name, *words])), "" if shard is None else shard.suffix
    own = plain.with_name(f"{plain.name}-{digest(content_values(config))[:6]}{end}")
    plain = plain.with_name(plain.name + end)
    if matches_recipe(own, config, recipe_file=RUN_FILE):
        return own
    return own if matches_recipe(plain, config, recipe_file=RUN_FILE) is False else plain


def file_name(name: str) -> str:
    """A name as part of a file name: letters, digits and few marks."""
    return "".join(letter if letter.isalnum() or letter in "-_.@" else "-" for letter in name).strip("-")


def _words(choice: FrozenModel, exclude: tuple[str, ...]) -> Iterator[str]:
    for field, info in type(choice).model_fields.items():
        value = getattr(choice, field)
        if field == "location" and value == SAMPLE:
            yield SAMPLE  # few rows that come with the package, which are no benchmark
        if field not in UNSAID and field not in exclude and value != info.default:
            yield _word(field, value)


def _word(field: str, value: Any) -> str:
    plain = field.replace("_", "-")
    if isinstance(value, bool) or value is None:
        return plain if value else f"no-{plain}"
    if isinstance(value, tuple):
        return "-".join(map(str, value)) if len(value) <= FEW else f"{len(value)}-{field}"
    said = f"{value:g}" if isinstance(value, float) else str(value)
    own = "{}" if isinstance(value, str) else plain + "{}"
    return SAID.get(field, own).format(said)
