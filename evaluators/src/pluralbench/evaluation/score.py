"""`score`: a reward model on a benchmark, into a run directory."""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import polars as pl
from pluralbench_rewards import Group, ModelRecord, RewardModel, Scored, ScoringConfig
from pluralbench_runs import ClusterConfig, Output

from pluralbench.config import DataConfig, PromptConfig
from pluralbench.evaluation.folders import file_name, run_folder
from pluralbench.evaluation.journal import open_journal
from pluralbench.evaluation.loading import LoadedBenchmark, load_benchmark, run_directory
from pluralbench.evaluation.models import Scorable, as_local_model, model_config, resolve_model
from pluralbench.evaluation.timing import stopwatch
from pluralbench.results.decisions import decide, score_items
from pluralbench.results.evaluations import ScoreResult, ScoreRunConfig
from pluralbench.results.record import CostRecord
from pluralbench.results.runs import Run, load_run, write_run


def score(
    model: Scorable,
    *,
    benchmark: str | None = None,
    data: str | Path | DataConfig | None = None,
    prompt: PromptConfig | None = None,
    scoring: ScoringConfig | None = None,
    cluster: ClusterConfig | None = None,
    shard: str | None = None,
    out: str | Path | None = None,
    fresh: bool = False,
) -> Run[ScoreRunConfig, ScoreResult]:
    """Score a reward model on a benchmark; returns the run, which lies in `out`.

    model: a folder or ORG/NAME, a description such as `LocalModel`, a `RewardModel`, or a function that gives for each
    of some groups a list with a number for each response. benchmark: a name, or a TOML file that describes one;
    without it that of the release which the data is, else "personalized".
    data: where the items are, or `DataConfig` with further choices. prompt: what it says about the person. scoring: how
    a model in this process runs. cluster: where it runs, if not in this process. shard: score a share of the items,
    such as "2/8", which `merge` joins with the others. fresh: start over.

    A run that was interrupted goes on where it was. Raises a `UserError` for every mistake of the caller.
    """
    loaded = load_benchmark(benchmark, data, prompt, shard=shard)
    groups = loaded.groups()
    scoring, model = scoring or ScoringConfig(), model_config(model)
    known_of_it, open_model = resolve_model(model, scoring, cluster)
    config = ScoreRunConfig(
        **loaded.records(),
        model=known_of_it,
        scoring=scoring,
    )
    name = f"{loaded.name}-{file_name(Path(known_of_it.name).name) or known_of_it.kind}"
    here = [described] if (described := as_local_model(model)) is not None else []
    choices = [loaded.data, loaded.prompt, *here, scoring]
    target = Path(out or run_folder(name, config, *choices, shard=loaded.shard))
    with run_directory(target, config, fresh=fresh) as output:
        if output is not None:
            with stopwatch(output.work) as seconds:
                loaded_model, scored, resumed = _scored(output.work, groups, open_model, known_of_it)
                del groups  # whose texts are as large as the data
                _write(output, config, loaded, loaded_model, scored, resumed, CostRecord(seconds=seconds()))
    return load_run(target, ScoreRunConfig, part=True)


def _scored(
    work: Path, groups: Sequence[Group], open_model: Callable[[], RewardModel], known_of_it: ModelRecord
) -> tuple[ModelRecord, Scored, int]:
    """What scored, the scores, and how many of them an earlier part of the run gave."""
    if not groups:  # a share may be empty, which is worth no loading
        return known_of_it, Scored([]), 0
    model = open_model()
    with open_journal(work) as (known, record):
        resumed = len(known)
        scored = model.score(groups, known=known, on_scored=record)
    return model.record(), scored, resumed


def _write(
    output: Output,
    config: ScoreRunConfig,
    loaded: LoadedBenchmark,
    model: ModelRecord,
    scored: Scored,
    resumed: int,
    cost: CostRecord,
) -> None:
    decisions = decide(loaded.frame, scored.scores, scored.cut)
    tokenized = scored.work is not None or scored.served is not None
    result = ScoreResult(
        model=model,
        cost=cost,
        tolerance=scored.tolerance,
        decisions_within_tolerance=count_within_tolerance(decisions, scored.tolerance) if tokenized else 0,
        items_truncated=sum(cut > 0 for cut in scored.cut),
        items_dropped=len(scored.dropped),
        items_rendered_identically=scored.alike,
        items_resumed=resumed,
        invalid_reasons=dict(sorted(Counter(scored.reasons).items())),
        work=scored.work,
        served=scored.served,
    )
    items = score_items(loaded.benchmark, loaded.frame, scored, decisions)
    write_run(output, config, result, loaded.compute_metrics(decisions), {"items": items})


def count_within_tolerance(decisions: pl.DataFrame, tolerance: float) -> int:
    """How many decisions have a margin within the tolerance."""
    return decisions.filter(pl.col("margin").abs() <= tolerance).height
