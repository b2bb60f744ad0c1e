"""Lines that a command prints about a new run, above its row of numbers."""

from pluralbench_runs import plural

from pluralbench.reports.notes import list_ids
from pluralbench.results.evaluations import ScoreRunConfig
from pluralbench.results.run_files import VERDICTS_FILE
from pluralbench.results.runs import Run


def run_header(run: Run) -> list[str]:
    """Describe a run's computation, its data and its files, a line each."""
    lines, data, scoring = [], run.config.data, run.scored
    if isinstance(run.config, ScoreRunConfig) and scoring and scoring.work and scoring.work.seconds:
        work = scoring.work
        ratio = work.computed_tokens / max(work.unique_tokens, 1)
        differ = (
            "how far scores of other modes differ was not measured, since the run is small and no decision is close"
            if scoring.tolerance is None
            else f"scores of other modes differ by at most {scoring.tolerance:.2g}"
        )
        lines.append(
            f"Mode {run.config.scoring.mode}: {work.computed_tokens:,} tokens computed, {ratio:.2f} per unique token, "
            f"in {work.seconds:.1f} s; {differ}."
        )
        if work.out_of_memory:
            lines.append(
                f"{work.out_of_memory:,} batches ran out of memory; the token budget ended at {work.token_budget:,}."
            )
    if data.ignored_columns:
        lines.append(f"Ignored columns: {', '.join(data.ignored_columns)}.")
    if data.empty:
        action = "dropped" if data.on_empty == "drop" else "kept"
        lines.append(
            f"{len(data.empty):,} items with an empty prompt or response were {action} "
            f"(ids {list_ids(data.empty, len(data.empty))})."
        )
    if data.answered:
        lines.append(
            f"{len(data.answered):,} prompts contain the full text of the better response "
            f"(ids {list_ids(data.answered, len(data.answered))})."
        )
    if data.shard is not None:
        number = run.items.select("config", "id").n_unique()
        total = data.shard.partition("/")[2]
        lines.append(
            f"Shard {data.shard} has {plural(number, 'item')} and no metrics; `pluralbench merge` merges all {total} "
            "shards."
        )
    if run.result.shards:
        lines.append(f"Merged from {plural(len(run.result.shards), 'shard')}.")
    verdicts = run.path / VERDICTS_FILE
    further = f", {VERDICTS_FILE} (see pluralbench judge-metrics {verdicts})" if verdicts.exists() else ""
    return [*lines, f"{run.path}: items.parquet, metrics.json, run.json{further}"]
