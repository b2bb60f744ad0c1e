"""Default run directories: one name for each set of options that changes the numbers."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pluralbench_runs import FrozenModel, Recipe, content_values, digest, matches_recipe

from pluralbench.data.clusters import Shard
from pluralbench.data.samples import SAMPLE
from pluralbench.results.run_files import RUN_FILE

RUNS = Path("runs")
MAX_LENGTH = 80  # characters that options add to a name
MAX_DATA_NAME = 30  # characters of the data's name
MAX_CONFIGS = 2  # more configs are counted instead of named
# Fields that are too long for a name or change no number by themselves; a digest distinguishes runs that differ here.
UNNAMED_FIELDS = {
    "location",
    "columns",
    "labels",
    "english",
    "plans",
    "personas",
    "base",
    "reference",
    "chat_template",
    "name",
    "device",
    "token_budget",
}
UNNAMED_FIELDS |= {"trust_remote_code", "seed", "extra", "rubric_base_url"}
WORD_FORMATS = {
    "oracle": "oracle-{}",
    "prompt": "prompt-{}",
    "rubric": "rubric-{}",
    "rubric_model": "rubric-by-{}",
    "profile_size": "{}-posts",
    "orders": "{}-order",
    "samples": "{}-samples",
    "vote": "{}-vote",
    "verdicts": "{}-verdicts",
    "criterion": "criterion-{}",
    "answer_language": "answers-{}",
    "on_empty": "empty-{}",
    "on_overflow": "overflow-{}",
    "on_missing_context": "missing-context-{}",
    "split": "split-{}",
}


def run_folder(
    name: str,
    config: Recipe,
    *options: FrozenModel | None,
    seed: int = 0,
    exclude: tuple[str, ...] = (),
    shard: Shard | None = None,
    recipe_file: str = RUN_FILE,
) -> Path:
    """Return the default directory of a run, such as `runs/personalized-my-model-limit20-raw`.

    If another run (a different model of that name, other data) has the directory, the name of its data and a digest of
    `config` are added.

    Args:
        name: Start of the name.
        config: The run's configuration.
        options: Configurations; the name lists their values that are not the default.
        seed: Seed of the run; the name lists it if it is not 0.
        exclude: Fields that the name does not list, because `name` contains them.
        shard: Shard at the end of the name. Default: none.
        recipe_file: File with the configuration in the directory.
    """
    given = [option for option in options if option is not None]
    words = [word for option in given for word in _words(option, exclude)] + ([f"seed{seed}"] if seed else [])
    while words and len("-".join(words)) > MAX_LENGTH:
        words.pop()
    plain, end = RUNS / file_name("-".join([name, *words])), "" if shard is None else shard.suffix
    own_words = [plain.name, *_data_name(given), digest(content_values(config))[:6]]
    own = plain.with_name("-".join(own_words) + end)
    plain = plain.with_name(plain.name + end)
    if matches_recipe(own, config, recipe_file=recipe_file):
        return own
    return own if matches_recipe(plain, config, recipe_file=recipe_file) is False else plain


def _data_name(options: Sequence[FrozenModel]) -> Iterator[str]:
    """The name of the file or repository that the data of a run is in."""
    for location in (getattr(option, "location", None) for option in options):
        if location not in {None, SAMPLE}:
            yield file_name(Path(location).stem)[:MAX_DATA_NAME]


def file_name(name: str) -> str:
    """Return a name with only letters, digits and `-_.@`, for use in a file name."""
    return "".join(letter if letter.isalnum() or letter in "-_.@" else "-" for letter in name).strip("-")


def _words(option: FrozenModel, exclude: tuple[str, ...]) -> Iterator[str]:
    for field, info in type(option).model_fields.items():
        value = getattr(option, field)
        if field == "location" and value == SAMPLE:
            yield SAMPLE  # the bundled rows are not the benchmark
        if field not in UNNAMED_FIELDS and field not in exclude and value != info.default:
            yield _word(field, value)


def _word(field: str, value: Any) -> str:
    plain = field.replace("_", "-")
    if isinstance(value, bool) or value is None:
        return plain if value else f"no-{plain}"
    if isinstance(value, tuple):
        return "-".join(map(str, value)) if len(value) <= MAX_CONFIGS else f"{len(value)}-{field}"
    text = f"{value:g}" if isinstance(value, float) else str(value)
    default = "{}" if isinstance(value, str) else plain + "{}"
    return WORD_FORMATS.get(field, default).format(text)
