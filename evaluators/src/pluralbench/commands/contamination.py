"""`pluralbench contamination`."""

from pathlib import Path
from typing import Annotated

import typer
from pluralbench_runs import log_status
from pluralbench_runs.options import Seed

from pluralbench.commands.options import parse_location_overrides
from pluralbench.commands.terminal import console, errors
from pluralbench.reports import Format


def contamination(
    dataset: Annotated[
        str,
        typer.Argument(
            metavar="DATASET", help="Directory, file or ORG/NAME on the Hub; or the name or TOML file of a benchmark."
        ),
    ],
    benchmark: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME|FILE.toml",
            help="Benchmark to look for; repeatable. Default: all that are published on the Hub.",
        ),
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]DIR|FILE|ORG/NAME",
            help="Location of a benchmark's data, such as pairs=pairs.jsonl or pairs=sample; repeatable.",
        ),
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            "--column",
            metavar="FIELD=COLUMN",
            help="Column of DATASET with prompts, responses or conversations, such as prompt=text; repeatable. "
            "Default: common names.",
        ),
    ] = None,
    split: Annotated[str, typer.Option(help="Split of DATASET; all: every split.")] = "all",
    ngram: Annotated[int, typer.Option(min=2, metavar="N", help="Number of words of a shared n-gram.")] = 13,
    examples: Annotated[int, typer.Option(min=0, help="Maximum number of examples per benchmark.")] = 2,
    form: Annotated[
        Format,
        typer.Option(
            "--format", help="Output format: table, markdown and latex for people, json and csv for programs."
        ),
    ] = "table",
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the contaminated items to this file (.jsonl or .parquet)."),
    ] = None,
    seed: Seed = 0,
) -> None:
    """Find prompts and responses of benchmarks in a training set, or in another benchmark.

    Texts are equal (same words), near-duplicates (MinHash, verified) or share n-grams of words. Pairs, conversations,
    instructions and the transcripts of HH-RLHF are read. `report --without` reads the file of --out.

    Examples:

    pluralbench contamination my-pairs.jsonl --benchmark reward-bench --out contaminated.jsonl

    pluralbench contamination ORG/NAME --split train      # all benchmarks on the Hub

    pluralbench contamination train.parquet --benchmark my-benchmark.toml --column conversation=dialog

    pluralbench contamination reward-bench --benchmark pairs --data pairs=my-pairs.jsonl

    pluralbench report runs --without contaminated.jsonl
    """
    log_status(f"Reading {dataset}...")
    from pluralbench.commands.console_output import print_report  # noqa: PLC0415 - `--help` need not wait for it
    from pluralbench.evaluation.contamination import check_item_file, write_contaminated  # noqa: PLC0415 - the same
    from pluralbench.evaluation.contamination import contamination as find_contamination  # noqa: PLC0415 - the same
    from pluralbench.reports.contamination import report_contamination  # noqa: PLC0415 - the same

    if out is not None:
        check_item_file(out)
    result = find_contamination(
        dataset,
        benchmark or (),
        data=parse_location_overrides(data),
        columns=columns or (),
        split=split,
        ngram=ngram,
        seed=seed,
    )
    print_report(report_contamination(result, examples=examples), form)
    if out is not None:
        write_contaminated(result, out)
        (console if form == "table" else errors).print(f"Wrote {out}")
