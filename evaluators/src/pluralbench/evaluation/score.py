"""`score`: score a reward model on a benchmark and write a run directory."""

from pathlib import Path
from typing import TYPE_CHECKING

from pluralbench_rewards import ScoringConfig
from pluralbench_runs import ClusterConfig

from pluralbench.arguments import ShardText
from pluralbench.config import DataConfig, Profile, PromptConfig
from pluralbench.evaluation.models import Scorable, find_model

if TYPE_CHECKING:
    from pluralbench.results.evaluations import ScoreResult, ScoreRunConfig
    from pluralbench.results.runs import Run


def score(
    model: Scorable,
    *,
    benchmark: str | None = None,
    data: str | Path | DataConfig | None = None,
    prompt: Profile | PromptConfig | None = None,
    scoring: ScoringConfig | None = None,
    cluster: ClusterConfig | None = None,
    shard: ShardText = None,
    out: str | Path | None = None,
    fresh: bool = False,
) -> "Run[ScoreRunConfig, ScoreResult]":
    """Score a reward model on a benchmark.

    Writes a run directory with the scores of every item, the metrics and their provenance. Repeat it with the same
    arguments to resume. A finished run is only read.

    Args:
        model: Directory, ORG/NAME on the Hub, or `local` (small embedded model). In Python also a `LocalModel`, a
            `ServedModel`, a `RewardModel`, or a function that takes a list of `Group` and returns a list of scores, one
            per response, for each group.
        benchmark: Name, such as personalized, multilingual, chinese, reward-bench-2 or pairs (`pluralbench list` shows
            all), or a TOML file. Default: the benchmark in the manifest of `data`, else personalized.
        data: Location of the dataset, or a `DataConfig`, which also selects configs, columns and a limit, or draws
            items. Default: the benchmark's dataset on the Hub.
        prompt: User context in the prompt, such as "raw", or a `PromptConfig`. Default: none.
        scoring: How the model runs in this process: mode, maximum length, overflow, token budget. Default:
            `ScoringConfig()`; models that bring their own code take no other.
        cluster: Ray cluster that loads the model and scores. Default: this process.
        shard: Process only shard I of N (from 1); `pluralbench merge` joins the shards.
        out: Run directory. Default: a name under runs/ that lists the benchmark, the model and the other settings.
        fresh: Start over, and replace existing output.

    Returns:
        The run in `out`, as `load_run` reads it.

    Raises:
        UserError: If an argument, the data, the model or the directory cannot be used. The message names the fix.

    Examples:
        pluralbench score Skywork/Skywork-Reward-V2-Llama-3.2-1B --benchmark personalized
        pluralbench score local --data sample
        pluralbench score ./my-model --data dist/personalized-rewardbench --profile raw --out runs/mine
        pluralbench score ORG/NAME --server http://gpu1:8000,http://gpu2:8000 --dtype bfloat16
        pluralbench score ./policy --kind implicit --reference ./base --benchmark pairs --data pairs.jsonl
        pluralbench score ./my-model --benchmark personalized --shard 2/8 --out runs/mine-shard2of8
    """
    from pluralbench.evaluation.folders import run_folder
    from pluralbench.evaluation.loading import load_benchmark
    from pluralbench.evaluation.scores import model_file_name, write_scores
    from pluralbench.results.evaluations import ScoreRunConfig

    loaded = load_benchmark(benchmark, data, prompt, shard=shard, in_steps=True)
    scoring = scoring or ScoringConfig()
    found = find_model(model, scoring, cluster)
    config = ScoreRunConfig(**loaded.records(), model=found.record, scoring=scoring)
    name = f"{loaded.name}-{model_file_name(found.record)}"
    named_options = (loaded.data, loaded.prompt, found.local, scoring)
    target = Path(out or run_folder(name, config, *named_options, shard=loaded.shard))
    return write_scores(target, loaded, config, found.load, fresh=fresh)
