"""What the command that made a run says of it before its row."""

from pluralbench.reports.notes import named
from pluralbench.results.evaluations import ScoreRunConfig
from pluralbench.results.runs import VERDICTS_FILE, Run


def run_header(run: Run) -> list[str]:
    """What the command that made a run says of it before its row: its work, its data, and its files."""
    said, data, scoring = [], run.config.data, run.scored
    if isinstance(run.config, ScoreRunConfig) and scoring and scoring.work and scoring.work.seconds:
        work = scoring.work
        saved = work.computed_tokens / max(work.unique_tokens, 1)
        said.append(
            f"Mode {run.config.scoring.mode}: {work.computed_tokens:,} tokens computed, {saved:.2f} for each unique "
            f"one, in {work.seconds:.1f} s; scores of other modes lie within {scoring.tolerance:.2g}."
        )
    if data.ignored_columns:
        said.append(f"Columns that are not read: {', '.join(data.ignored_columns)}.")
    if data.empty:
        kept = "dropped" if data.on_empty == "drop" else "kept"
        said.append(
            f"{len(data.empty):,} items with an empty prompt or response were {kept} "
            f"(ids {named(data.empty, len(data.empty))})."
        )
    if data.answered:
        said.append(
            f"{len(data.answered):,} prompts contain the better response whole "
            f"(ids {named(data.answered, len(data.answered))})."
        )
    if data.shard is not None:
        number = run.items.select("config", "id").n_unique()
        every = data.shard.partition("/")[2]
        said.append(
            f"Shard {data.shard} has {number:,} items and no metrics: `pluralbench merge` joins all {every} shards."
        )
    if run.result.shards:
        said.append(f"Joined from {len(run.result.shards):,} shards.")
    verdicts = run.path / VERDICTS_FILE
    further = f", {VERDICTS_FILE} (see pluralbench judge-metrics {verdicts})" if verdicts.exists() else ""
    return [*said, f"{run.path}: items.parquet, metrics.json, run.json{further}"]
