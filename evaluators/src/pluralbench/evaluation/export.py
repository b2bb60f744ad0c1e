"""`export`: write the pairs of a benchmark or a training release in the format of another library's trainer."""

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

from pluralbench_release.manifest import json_text
from pluralbench_runs import Seed, output_directory, recipe_values, write_text
from pluralbench_runs.options import Flag
from pluralbench_tables import write_jsonl
from pydantic import Field

from pluralbench.arguments import Out, Undrawn
from pluralbench.config import Profile, PromptConfig
from pluralbench.errors import DataError
from pluralbench.evaluation.loading import LoadedBenchmark, load_benchmark
from pluralbench.evaluation.train import count_unusual_pairs, held_out_clusters, item_clusters, items_to_rankings
from pluralbench.evaluation.trainers import TEST, TRAIN, TRAINERS, Example, Row, Trainer, TrainerName
from pluralbench.results.record import BenchmarkRecord, DataRecord, PromptRecord, RunConfig

if TYPE_CHECKING:
    from pluralbench_local import Ranking

RECORD = "export.json"
DEFAULT_SHARE = 0.1
NO_PAIR = "no pair of a better and a worse response"


class ExportConfig(RunConfig):
    """Settings of an export; the rows follow from them."""

    verb = "export"
    trainer: TrainerName
    benchmark: BenchmarkRecord
    data: DataRecord
    prompt: PromptRecord
    test_data: DataRecord | None = None
    held_out: float | None = None
    seed: Seed


class Exported(NamedTuple):
    """What `export` wrote.

    Attributes:
        left_out: Number of items by the reason for which they are in no row.
        pairs: Numbers of pairs by kind: of identical responses, which are left out, and repeated ones.
    """

    folder: Path
    rows: dict[str, int]
    left_out: dict[str, int]
    pairs: dict[str, int]
    command: str


def export(
    out: Out,
    *,
    trainer: Annotated[TrainerName, Flag("--for")],
    benchmark: str | None = None,
    data: Undrawn = None,
    prompt: Profile | PromptConfig | None = None,
    held_out: Annotated[float | None, Field(gt=0, lt=1)] = None,
    test_split: str | None = None,
    seed: Seed = 0,
    fresh: bool = False,
) -> Exported:
    """Write the pairs of a benchmark or a training release in the format of another library's trainer.

    Writes the tables `train` and `test`, which share no user (no prompt if the data has no users), the trainer's own
    files, and export.json with the settings. Prompts have the user context that `score` with the same `prompt` shows.

    Args:
        out: Directory of the tables.
        trainer: Library that trains on them.
        benchmark: Name, such as personalized-training, chinese or pairs (`pluralbench list` shows all), or a TOML file.
            Default: the benchmark in the manifest of `data`, else personalized.
        data: Location of the dataset, or a `DataConfig`, which also selects configs, columns and a limit. Default: the
            benchmark's dataset on the Hub.
        prompt: User context in the prompt, such as "raw", or a `PromptConfig`. Default: none.
        held_out: Fraction of the users (or prompts) that becomes the test set, drawn by the seed. Default: 0.1, or none
            with `test_split`.
        test_split: Split of the data that becomes the test set. Default: none; users are drawn.
        seed: Seed of the draw.
        fresh: Start over, and replace existing output.

    Returns:
        The directory, the numbers of rows and of items left out, and the command of the trainer.

    Raises:
        UserError: If an argument, the data or the directory cannot be used. The message names the fix.

    Examples:
        pluralbench export --for trl --data dist/personalized-training --profile raw --out for-trl
        pluralbench export --for axolotl --benchmark multilingual --held-out 0.2 --out for-axolotl
    """
    if held_out is not None and test_split is not None:
        raise DataError("`held_out` and `test_split` exclude each other; pass one of them.")
    share = DEFAULT_SHARE if held_out is None and test_split is None else held_out
    loaded = load_benchmark(benchmark, data, prompt, for_training=True, with_draw=False)
    other = None
    if test_split is not None:
        changed = loaded.data.model_copy(update={"split": test_split})
        other = load_benchmark(benchmark, changed, loaded.prompt, for_training=True)
        _check_users(loaded, other, test_split)
    config = ExportConfig(
        trainer=trainer,
        **loaded.records(),
        test_data=None if other is None else other.data_record(),
        held_out=share,
        seed=seed,
    )
    made = TRAINERS[trainer]
    pairs: Counter[str] = Counter()
    parts: dict[str, list[Example]] = {TRAIN: [], TEST: []}
    for split, one in zip(parts, [loaded, *([other] if other else [])], strict=False):
        rankings = items_to_rankings(one)
        parts[split] = list(_examples(rankings, item_clusters(one)))
        pairs.update(count_unusual_pairs(one, rankings))
    if share is not None:
        test_clusters = held_out_clusters(item_clusters(loaded), share, seed)
        parts = {
            split: [example for example in parts[TRAIN] if (example.cluster in test_clusters) is (split == TEST)]
            for split in parts
        }
    rows = {split: [row for example in examples for row in made.rows(example)] for split, examples in parts.items()}
    left_out = _left_out(made, [example for examples in parts.values() for example in examples])
    for split, found in rows.items():
        if not found:
            reasons = " and ".join(f"{count:,} items have {reason}" for reason, count in left_out.items())
            raise DataError(f"No row is left for {split}{': ' if reasons else ''}{reasons}; choose other data.")
    numbers = {split: len(found) for split, found in rows.items()}
    command = made.command.format(out=shlex.quote(str(out)), batch=_batch_size(numbers[TRAIN]))
    result = Exported(Path(out), numbers, left_out, dict(pairs), command)
    with output_directory(result.folder, config, recipe_file=RECORD, fresh=fresh) as output:
        if fresh or not (output.target / RECORD).exists():
            staged = output.staging()
            _write(staged, made, rows)
            record = {
                "config": recipe_values(config),
                "rows": result.rows,
                "left_out": left_out,
                "pairs": result.pairs,
                "command": command,
            }
            write_text(staged / RECORD, json_text(record))
            output.publish(staged)
    return result


def _batch_size(rows: int) -> int:
    """A number of rows in a step: the largest power of 2 that leaves some steps, and at most 128."""
    return 1 << min(max(rows // 2, 1).bit_length() - 1, 7)


def _examples(rankings: Sequence["Ranking"], clusters: Sequence[str]) -> Iterator[Example]:
    for ranking, cluster in zip(rankings, clusters, strict=True):
        best_first = sorted((ranking.rank[better], better, worse) for better, worse in ranking.pairs_to_learn())
        texts = [(ranking.responses[better], ranking.responses[worse]) for _, better, worse in best_first]
        yield Example(ranking.id, cluster, list(ranking.prompt), texts)


def _check_users(loaded: LoadedBenchmark, other: LoadedBenchmark, split: str) -> None:
    """Raise `DataError` if a user of the test set (a prompt, without users) is in the training set."""
    column = loaded.items.source["clusters"].column
    kind, names = ("prompts", _prompts) if column is None else (f"values of the column `{column}`", item_clusters)
    shared = sorted({*names(loaded)} & {*names(other)})
    if shared:
        raise DataError(
            f"{len(shared):,} {kind} of the split {split!r} are also in the training split, such as "
            f"{shared[0][:60]!r}; leave out `test_split`, and a share of them is held out."
        )


def _prompts(loaded: LoadedBenchmark) -> list[str]:
    return [prompt[-1]["content"] for prompt in loaded.items.frame["prompt"].to_list()]


def _left_out(trainer: Trainer, examples: Sequence[Example]) -> dict[str, int]:
    without = Counter(trainer.limits if example.pairs else NO_PAIR for example in examples if not trainer.rows(example))
    return dict(sorted(without.items()))


def _write(folder: Path, trainer: Trainer, rows: Mapping[str, list[Row]]) -> None:
    for split, of_split in rows.items():
        path = folder / f"{split}{trainer.suffix}"
        if trainer.suffix == ".parquet":
            import pyarrow as pa
            from pyarrow.parquet import write_table

            write_table(pa.Table.from_pylist(of_split), path)
        else:
            write_jsonl(of_split, path)
    for name, values in trainer.files.items():
        write_text(folder / name, values if isinstance(values, str) else json_text(values))
