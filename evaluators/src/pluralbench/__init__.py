"""Score reward models on benchmarks in which better depends on who is asking.

`score`, `judge` and `judge_personas` make a run directory, `load_run` reads that of any verb, `compare` and
`report_frame` say what runs found, and `verdict_rows` what verdicts with certainty amount to. `check_submission` says
whether a run is what its data gives and what is unusual about it (`Finding`), and `write_site` makes the pages of a
leaderboard. `train` makes a reward model, and `personalize` personalized ones, with and without a profile. `synthesize`
writes personas and `plan` plans that models are told; `train_planner` makes a model that plans. `best_of_n`, `optimize`
and `study` find out what reward models do to a policy, and `correlate` says how well a benchmark's ranking of reward
models predicts it. What is scored and how is
said by descriptions: `LocalModel`, `Data`, `Prompt`, `Scoring`, `Judging`, `ChatConnection`, `PersonaData`,
`PersonaJudging`, `Synthesizing`, `Planning`, `TrainingOptions`, `PlannerOptions`, `Personalizing`, `PersonalOptions`,
`Sampling`, `DownstreamPrompt`, `Outcome`, `OptimizeOptions`, `Running`, `Cluster`. `merge` joins the shards of a run.

Its names are those of `__init__.pyi`, each imported when it is first used, so that `--help` waits for none of them and
judging imports no torch.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
