"""Policy optimisation by verl, on several GPUs and machines: its files, its check of them, and its start."""

from pathlib import Path

from pluralbench_local import LocalModel
from pluralbench_policies.description import OptimizeOptions
from pluralbench_policies.verl import VerlOptions, run_verl, verl_files
from pluralbench_rewards import Scoring
from pluralbench_runs import Cluster

from pluralbench.descriptions import Data, DownstreamPrompt, Prompt
from pluralbench.downstream.optimization import tasks_of
from pluralbench.evaluation.settings import load_benchmark


def optimize_by_verl(
    policy: LocalModel,
    reward: LocalModel,
    out: Path,
    *,
    benchmark: str = "personalized",
    data: str | Path | Data | None = None,
    prompt: Prompt | None = None,
    options: OptimizeOptions | None = None,
    scoring: Scoring | None = None,
    verl: VerlOptions | None = None,
    cluster: Cluster | None = None,
) -> Path:
    """Write what verl reads into `out`, let verl check it, and start verl on it; the folder.

    data: the prompts to optimise on. cluster: where verl runs.

    What verl leaves is judged afterwards by `best_of_n`, once its checkpoint is merged into an ordinary model
    (`python -m verl.model_merger merge`). Raises a `UserError`, also where verl is not installed; then the files are
    there all the same.
    """
    loaded = load_benchmark(benchmark, data, prompt or DownstreamPrompt(), sampled=True)
    tasks = tasks_of(loaded)
    folder = verl_files(policy, reward, tasks, out, options=options, verl=verl, scoring=scoring, cluster=cluster)
    run_verl(folder)
    return folder
