"""Score reward models on benchmarks in which the better response depends on who is asking.

- Evaluate: `score`, `judge`, `judge_personas` and `merge` write a run directory, `suite` one for each benchmark of a
  row of results.
- Read: `load_run` reads a run, `load_results` the numbers of all runs in a directory; `compare` tests two runs, `plot`
  draws them, and `html` writes their page.
- Train: `train` and `personalize` train reward models, `train_planner` a planner; `plan` and `synthesize` write plans
  and personas.
- Policies: `best_of_n` and `optimize` measure the effect of a reward model on a policy; `correlate` and `study` measure
  whether a benchmark predicts it. `as_reward_function` and `serve` reward policies in other trainers.
- Share: `check_submission` checks a run, `write_site` writes a leaderboard.

Submodules: `pluralbench.config` has all configurations, `pluralbench.results` the results of runs, `pluralbench.data`
benchmarks and items, `pluralbench.contract` the types for implementing a reward model, and `pluralbench.errors` the
subclasses of `UserError`.

Names are imported on first use, as `__init__.pyi` lists them: `--help` stays fast, and judging imports no torch.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
