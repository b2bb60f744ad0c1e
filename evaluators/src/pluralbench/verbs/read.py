"""Verbs that compare benchmarks, data and scores."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pluralbench_runs import Seed
from pluralbench_runs.options import Flag
from pydantic import Field

if TYPE_CHECKING:
    from pluralbench.downstream.correlate import Correlation
    from pluralbench.downstream.score_series import ScoreSeries
    from pluralbench.evaluation.agree import Agreement
    from pluralbench.evaluation.causes import Recheck
    from pluralbench.evaluation.contamination import Contamination
    from pluralbench.results.runs import Run

FILES = "Published files"
Columns = Annotated[str | Sequence[str], Flag(metavar="A,B,C")]
Rows = Sequence[str]


def contamination(
    dataset: str | Path,
    benchmarks: Annotated[Sequence[str], Flag("--benchmark", "NAME|FILE.toml")] = (),
    *,
    data: Mapping[str, str] | None = None,
    columns: Annotated[Sequence[str], Flag("--column", "FIELD=COLUMN")] = (),
    split: str = "all",
    ngram: Annotated[int, Field(ge=2), Flag(metavar="N")] = 13,
    seed: Seed = 0,
) -> "Contamination":
    """Find prompts and responses of benchmarks in a training set, or in another benchmark.

    Prompts are compared with prompts, responses with responses: texts are equal (same words), near-duplicates (MinHash,
    verified) or share n-grams of words; see `pluralbench.data.overlap`. Pairs, conversations, instructions and the
    transcripts of HH-RLHF are read. `report --without` reads the file of --out.

    Args:
        dataset: Directory, file or ORG/NAME on the Hub; or the name or TOML file of a benchmark.
        benchmarks: Benchmark to look for; repeatable. Default: all that are published on the Hub or named in `data`;
            those that cannot be read are skipped.
        data: Location of the data of each benchmark, by its name; "" is for all others.
        columns: Column of the dataset with prompts, responses or conversations, such as prompt=text; repeatable.
            Default: common names.
        split: Split of the dataset; all: every split.
        ngram: Number of words of a shared n-gram.
        seed: Random seed, of MinHash.

    Returns:
        The contaminated items and what was compared.

    Raises:
        UserError: If an argument or the data cannot be used.

    Examples:
        pluralbench contamination my-pairs.jsonl --benchmark reward-bench --out contaminated.jsonl
        pluralbench contamination ORG/NAME --split train      # all benchmarks on the Hub
        pluralbench contamination train.parquet --benchmark my-benchmark.toml --column conversation=dialog
        pluralbench contamination reward-bench --benchmark pairs --data pairs=my-pairs.jsonl
        pluralbench report runs --without contaminated.jsonl
    """
    arguments = locals()
    from pluralbench.evaluation.contamination import contamination as find_contamination

    return find_contamination(**arguments)


def agree(
    run: "str | Path | Run",
    published: Annotated["str | Path | Run", Flag("--published", "FILE|RUN", FILES)],
    *,
    where: Annotated[Rows, Flag(metavar="COLUMN=VALUE", panel=FILES)] = (),
    where_run: Annotated[Rows, Flag(metavar="COLUMN=VALUE", panel=FILES)] = (),
    columns: Annotated[Rows, Flag("--score-column", "FIELD=COLUMN", FILES)] = (),
    recheck: "Recheck | None" = None,
) -> "Agreement":
    """Compare the scores of a run with published ones, item by item, and find out why they differ.

    The result has both accuracies, the correlation of scores and margins, the largest difference, and the decisions
    that differ. If the model is at hand, some items are scored again with other BOS tokens, without the chat template,
    with other maximum lengths and in other dtypes; what comes closest to the published scores is named.

    Args:
        run: A run directory, or a file of scores as `published`.
        published: Scores by item: files of reward-bench and JudgeBench, a table with id and scores, or another run.
        where: Rows of `published` to read, such as model=NAME; repeatable. Default: all.
        where_run: The same for `run`, if it is a file.
        columns: Name of a column of the files, such as id=uid or score=reward; repeatable.
        recheck: How items are scored again, to find the cause of the differences. Default: `Recheck()`, 8 items of a
            model in a directory of this machine.

    Returns:
        The agreement, with the likely cause of the differences if items could be scored again.

    Raises:
        UserError: A file has an unknown shape, no id is in both, or an argument does not apply.

    Examples:
        pluralbench agree runs/a --published scores.jsonl
        pluralbench agree runs/a --published scores.jsonl --where model=org/name --rescore 16
        pluralbench agree ours.csv --published theirs.json --format json > agreement.json
    """
    arguments = locals()
    from pluralbench.evaluation.agree import agree as run_agree

    return run_agree(**arguments)


def correlate(
    benchmark: "ScoreSeries | str | Path",
    downstream: "ScoreSeries | str | Path",
    *,
    columns: Columns = (),
    downstream_columns: Columns = (),
    baseline_columns: Columns = (),
    baselines: Annotated[
        Mapping[str, "ScoreSeries | str | Path"] | None, Flag("--baseline", "NAME=FILE", example="arena=arena.csv")
    ] = None,
    seed: Seed = 0,
) -> "Correlation":
    """Correlate a benchmark's scores of reward models with the downstream results of a policy, with intervals.

    A table is a CSV, JSON Lines or Parquet file with a column `model` and one or more columns of scores (higher is
    better). The score of a run is its overall number. Models are matched by exact name. If the two sides share no name,
    they are matched by the last part of their paths.

    Args:
        benchmark: Table with `model` and scores, a run, or a directory or glob pattern of runs. In Python also a
            `ScoreSeries`.
        downstream: The same for the downstream results of a policy; also a directory of `best-of-n`, or several of
            `optimize`.
        columns: Columns of the benchmark's table whose mean is the score. Default: the only numeric column.
        downstream_columns: Columns of the downstream table whose mean is the score.
        baseline_columns: Columns of the baselines' tables.
        baselines: Another benchmark to compare, by name; repeatable.
        seed: Random seed, of the resampled items, models and orders.

    Returns:
        Rank statistics with intervals, p-values and reliabilities, the baselines, and warnings.

    Raises:
        DataError: Fewer than two models are shared, or a table has no models or no scores.
        RunError: Runs cannot be read, or are of different benchmarks.

    Examples:
        pluralbench correlate benchmark.csv best_of_16.csv
        pluralbench correlate benchmark.csv ppo.csv --columns art,lifestyle,society      # mean of the three
        pluralbench correlate runs/personalized best_of_16.csv --baseline arena=arena.csv --plots figures
        pluralbench correlate benchmark.csv best_of_16.csv --html correlation.html
        pluralbench correlate benchmark.csv best_of_16.csv --json > correlation.json
    """
    arguments = locals()
    from pluralbench.downstream.correlate import correlate as correlate_scores

    return correlate_scores(**arguments)
