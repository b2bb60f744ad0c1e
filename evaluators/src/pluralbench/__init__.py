"""Score reward models on benchmarks in which the better response depends on who is asking.

Evaluate: `score`, `judge`, `judge_personas` and `merge` write a run directory. Read: `load_run`, `compare`,
`report_frame` (results of runs) and `verdict_rows` (verdicts with certainty). Train: `train` a reward model,
`personalize` reward models with and without a profile, `train_planner`; `plan` and `synthesize` write plans and
personas. Policies: `best_of_n`, `optimize`, `correlate` and `study` measure what a reward model does to a policy, and
whether a benchmark predicts it. Share: `check_submission` checks a run (`Finding`), `write_site` writes a leaderboard.

A verb takes frozen configurations: `DataConfig`, `PromptConfig`, `ScoringConfig`, `JudgeConfig`, `ConnectionConfig`,
`PersonaDataConfig`, `PersonaJudgeConfig`, `SynthesizeConfig`, `PlanConfig`, `TrainingConfig`, `PlannerConfig`,
`PersonalizeConfig`, `PersonalConfig`, `SamplingConfig`, `DownstreamPromptConfig`, `OutcomeConfig`, `OptimizeConfig`,
`RuntimeConfig` and `ClusterConfig`. A model in this process is a `LocalModel`.

Its names are those of `__init__.pyi`, each imported when it is first used, so that `--help` waits for none of them and
judging imports no torch.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
