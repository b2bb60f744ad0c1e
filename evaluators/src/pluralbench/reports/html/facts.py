"""Provenance of a run: its models, data, prompts, software and command."""

from pathlib import Path
from typing import Any

from pluralbench.reports.costs import cost_summary
from pluralbench.results.evaluations import EvaluationRunConfig
from pluralbench.results.runs import Run

FACTS = {
    "Directory": "path",
    "Model": "result.model.name",
    "Kind": "result.model.kind",
    "Parameters": "result.model.parameters",
    "Model commit": "result.model.commit",
    "Model digest": "result.model.digest",
    "Provider": "result.model.provider",
    "Device": "result.model.device",
    "Type of numbers": "result.model.dtype",
    "Mode": "config.scoring.mode",
    "Policy": "result.policy.name",
    "Planner": "result.planner.name",
    "Backbone": "config.backbone.name",
    "Judge": "result.outcome.judge.name",
    "Data": "config.data.location",
    "Revision": "config.data.revision",
    "Data digest": "config.data.digest",
    "License": "config.data.license",
    "Split": "config.data.split",
    "Limit per config": "config.data.limit",
    "Drawn items": "config.data.items",
    "Drawn by seed": "config.data.items_seed",
    "Profile": "config.prompt.profile",
    "Prompts": "config.prompts_version",
    "Prompts digest": "config.prompts_digest",
    "Wordings digest": "config.prompt.wordings_digest",
    "Seed": "config.seed",
    "Finished": "provenance.finished",
    "Python": "provenance.python",
    "Platform": "provenance.platform",
    "Commit": "provenance.git.commit",
}
"""Attributes of runs of any kind, by their titles."""
JUDGE = ("reply_format", "orders", "criterion", "temperature", "attempts", "setting", "variables")


def facts_of(run: Run[Any, Any]) -> list[tuple[str, str]]:
    """Return names and values that say how a run was made."""
    facts: dict[str, Any] = {name: _value(run, path) for name, path in FACTS.items()}
    facts["Reward models"] = ", ".join(getattr(run.result, "rewards", ()))
    if isinstance(run.config, EvaluationRunConfig):
        facts |= {name.replace("_", " ").capitalize(): run.config.judge_setting(name) for name in JUDGE}
        facts["Cost"] = cost_summary([run])
    made = run.provenance
    facts["Command"] = " ".join((Path(made.command[0]).name, *made.command[1:])) if made.command else ""
    facts["Software"] = ", ".join(f"{name} {version}" for name, version in made.packages.items())
    # The data of several benchmarks is a dictionary, which has methods of these names.
    return [
        (name, str(value)) for name, value in facts.items() if value and isinstance(value, str | int | float | Path)
    ]


def _value(value: Any, path: str) -> Any:
    for name in path.split("."):
        value = getattr(value, name, None)
    return value
