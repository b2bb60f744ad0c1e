"""Policy optimisation by verl, on several GPUs and machines: its files, its check of them, and its start."""

from pathlib import Path

from pluralbench_local import LocalModel
from pluralbench_policies.config import OptimizeConfig
from pluralbench_policies.verl import VerlConfig, run_verl, verl_files
from pluralbench_rewards import ScoringConfig
from pluralbench_runs import ClusterConfig

from pluralbench.config import DataConfig, DownstreamPromptConfig, PromptConfig
from pluralbench.downstream.optimization import policy_tasks
from pluralbench.evaluation.loading import load_benchmark


def optimize_by_verl(
    policy: LocalModel,
    reward: LocalModel,
    out: Path,
    *,
    benchmark: str = "personalized",
    data: str | Path | DataConfig | None = None,
    prompt: PromptConfig | None = None,
    options: OptimizeConfig | None = None,
    scoring: ScoringConfig | None = None,
    verl: VerlConfig | None = None,
    cluster: ClusterConfig | None = None,
) -> Path:
    """Write what verl reads into `out`, let verl check it, and start verl on it; the folder.

    data: the prompts to optimise on. cluster: where verl runs.

    What verl leaves is judged afterwards by `best_of_n`, once its checkpoint is merged into an ordinary model
    (`python -m verl.model_merger merge`). Raises a `UserError`, also where verl is not installed; then the files are
    there all the same.
    """
    loaded = load_benchmark(benchmark, data, prompt or DownstreamPromptConfig(), prompts_only=True)
    tasks = policy_tasks(loaded)
    folder = verl_files(policy, reward, tasks, out, options=options, verl=verl, scoring=scoring, cluster=cluster)
    run_verl(folder)
    return folder
