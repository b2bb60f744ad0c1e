"""`best_of_n`: what the best of several candidates is worth, by each of some reward models."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from pluralbench_calls.chat import ConnectionConfig
from pluralbench_local import LocalModel
from pluralbench_rewards import ScoringConfig
from pluralbench_runs import ClusterConfig, Output, digest

from pluralbench.config import DataConfig, DownstreamPromptConfig, OutcomeConfig, PromptConfig, SamplingConfig
from pluralbench.downstream.candidates import SYSTEM, resolve_policy, user_turns
from pluralbench.downstream.curves import curve_numbers
from pluralbench.downstream.outcomes import aspect_titles, outcome_judge
from pluralbench.downstream.records import outcome_record, rewarded_record, rollout_outcome_table, sampling_record
from pluralbench.downstream.rollout import (
    Rollout,
    RolloutSetup,
    default_model_name,
    model_record,
    reused_ledger,
    rollout,
)
from pluralbench.errors import EvaluationError
from pluralbench.evaluation.folders import file_name, run_folder
from pluralbench.evaluation.loading import load_benchmark, run_directory
from pluralbench.evaluation.models import DUPLICATE_NAME, Scorable
from pluralbench.results.downstream import BestOfNRunConfig, DownstreamResult
from pluralbench.results.metrics_frame import metrics_frame
from pluralbench.results.runs import LEDGER_FILE, Run, load_run, write_run


def best_of_n(
    policy: str | Path | LocalModel,
    rewards: Mapping[str, Scorable] | Sequence[Scorable],
    *,
    benchmark: str = "personalized",
    data: str | Path | DataConfig | None = None,
    prompt: PromptConfig | None = None,
    sampling: SamplingConfig | None = None,
    scoring: ScoringConfig | None = None,
    outcome: OutcomeConfig | None = None,
    policy_connection: ConnectionConfig | None = None,
    judge_connection: ConnectionConfig | None = None,
    cluster: ClusterConfig | None = None,
    seed: int = 0,
    reuse: Path | None = None,
    out: str | Path | None = None,
    fresh: bool = False,
) -> Run[BestOfNRunConfig, DownstreamResult]:
    """Sample candidates from a policy, let reward models select among them, and judge what they select.

    Personalized RewardBench, section 5.1; CHEEMS, section 6.2.

    policy: see `resolve_policy`. rewards: what `pluralbench.score` takes, by a name of one's own or in a row.
    benchmark, data: the prompts; responses that come with them are not used. prompt: what policy and reward models are
    told of the person. sampling, outcome: see there. scoring: how models in this process score. policy_connection,
    judge_connection: how the two are reached. cluster: where reward models run, if not in this process.
    seed: of the candidates, where the policy takes seeds.
    reuse: a ledger or a finished directory whose calls are not made again.

    Candidates are sampled once and recorded, each is scored by each reward model as one of a group and judged at most
    once. An interrupted run goes on with the same call. Raises a `UserError` for every mistake of the caller.
    """
    prompt, sampling, outcome = (
        prompt or DownstreamPromptConfig(),
        sampling or SamplingConfig(),
        outcome or OutcomeConfig(),
    )
    loaded = load_benchmark(benchmark, data, prompt, prompts_only=True)
    groups = loaded.groups()
    scorables = named_models(rewards)
    asked = resolve_policy(policy, sampling, policy_connection)
    judge = outcome_judge(outcome, judge_connection)
    aspects = aspect_titles(loaded.items.frame) if judge is not None and outcome.measure == "rubric" else {}
    scoring = scoring or ScoringConfig()
    known = {name: model_record(model, scoring) for name, model in scorables.items()}
    config = BestOfNRunConfig(
        policy=asked.chat,
        rewards=known,
        **loaded.records(),
        sampling=sampling,
        scoring=scoring,
        outcome=outcome,
        judge=judge.chat if judge else None,
        prompts_digest=judge.prompts_digest if judge else None,
        system_digest=digest(SYSTEM),
        seed=seed,
    )
    choices = [*([policy] if isinstance(policy, LocalModel) else []), sampling, scoring, outcome]
    name = f"{loaded.name}-{file_name(Path(asked.record.name).name)}-best-of-{sampling.n}"
    target = Path(out or run_folder(name, config, loaded.data, prompt, *choices, seed=seed, exclude=("n", "judge")))
    with run_directory(target, config, fresh=fresh) as output:
        if output is not None:
            with reused_ledger(output.work, reuse) as ledger:
                setup = RolloutSetup(asked, scorables, scoring, sampling, judge, ledger, output.work, seed, cluster)
                found = rollout(setup, loaded.items.frame, groups, aspects)
                turns = max(len(user_turns(group)) for group in groups)
                result = DownstreamResult(
                    policy=asked.record,
                    rewards={name: rewarded_record(found, name, given) for name, given in found.rewarded.items()},
                    sampling=sampling_record(setup, found.candidates, turns),
                    outcome=outcome_record(setup, found.outcomes),
                )
                ledger.export(output.work / LEDGER_FILE, ledger.used)
            _write(output, config, result, found)
    return load_run(target, BestOfNRunConfig)


def named_models(rewards: Mapping[str, Scorable] | Sequence[Scorable]) -> dict[str, Scorable]:
    """Reward models by name: those given, or the last part of a path. Raises `EvaluationError` for a name twice."""
    if isinstance(rewards, Mapping):
        return dict(rewards)
    named: dict[str, Scorable] = {}
    for model in rewards:
        name = default_model_name(model)
        if name in named:
            raise EvaluationError(DUPLICATE_NAME.format(name=name))
        named[name] = model
    return named


def _write(output: Output, config: BestOfNRunConfig, result: DownstreamResult, found: Rollout) -> None:
    by_config = config.benchmark.description.overall != "items"
    curves = rollout_outcome_table(found, config.sampling.n, result.sampling.turns)
    frames = {"candidates": found.candidates, "rewards": found.rewards, "selected": found.selected}
    judged = {} if found.outcomes is None else {"outcomes": found.outcomes}
    metrics = metrics_frame(curve_numbers(curves, config.sampling.sizes, by_config=by_config))
    write_run(output, config, result, metrics, frames | judged)
