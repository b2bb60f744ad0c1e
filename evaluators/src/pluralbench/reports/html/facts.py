"""Provenance of a run: its models, data, prompts, software and command."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pluralbench.reports.costs import cost_summary
from pluralbench.results.evaluations import EvaluationRunConfig, ScoreRunConfig
from pluralbench.results.record import DataRecord
from pluralbench.results.runs import Run

DIGITS = 16  # of a digest
JUDGE = ("reply_format", "orders", "criterion", "temperature", "attempts", "setting", "variables")


def facts_of(run: Run[Any, Any]) -> list[tuple[str, str]]:
    """Return names and values that say how a run was made."""
    config, result, made = run.config, run.result, run.provenance
    facts = {"Directory": str(run.path)}
    if isinstance(config, EvaluationRunConfig):
        model = result.model
        facts |= {
            "Model": f"{model.name} ({model.kind})",
            "Parameters": "" if model.parameters is None else f"{model.parameters:,}",
            "Model commit": model.commit or "",
            "Model digest": (model.digest or "")[:DIGITS],
            "Provider": model.provider or "",
            "Device": ", ".join(filter(None, (model.device, model.dtype))),
            "Mode": config.scoring.mode
            if isinstance(config, ScoreRunConfig) and run.scored and run.scored.work
            else "",
            "Judge settings": _settings({name: config.judge_setting(name) for name in JUDGE}),
            "Profile": config.prompt.profile or "",
            "Prompts": getattr(config, "prompts_version", ""),
            "Prompts digest": (getattr(config, "prompts_digest", "") or config.prompt.wordings_digest or "")[:DIGITS],
            "Cost": cost_summary([run]),
        }
    else:
        named = {
            name: getattr(result, name, None) or getattr(config, name, None)
            for name in ("policy", "planner", "backbone")
        }
        facts |= {name.capitalize(): one.name for name, one in named.items() if one is not None}
        facts["Reward models"] = ", ".join(getattr(result, "rewards", ()))
        outcome = getattr(result, "outcome", None)
        facts["Judge"] = "" if outcome is None else outcome.judge.name
    data = config.data.items() if isinstance(config.data, dict) else [("", config.data)]
    for name, record in data:
        facts |= {f"{label} {name}".strip(): value for label, value in _data_facts(record)}
    facts |= {
        "Seed": str(getattr(config, "seed", "")),
        "Finished": made.finished,
        "Command": " ".join((Path(made.command[0]).name, *made.command[1:])) if made.command else "",
        "Software": ", ".join(f"{name} {version}" for name, version in made.packages.items()),
        "Python": f"{made.python} on {made.platform}",
        "Commit": "" if made.git is None else f"{made.git.commit}{' with changes' if made.git.changed else ''}",
    }
    return [(name, value) for name, value in facts.items() if value]


def _settings(values: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items() if value is not None)


def _data_facts(data: DataRecord) -> Iterable[tuple[str, str]]:
    return {
        "Data": data.location if data.revision is None else f"{data.location}@{data.revision}",
        "Data digest": data.digest[:DIGITS],
        "License": data.license or "",
        "Split": data.split or "",
        "Limit per config": "" if data.limit is None else f"{data.limit:,}",
        "Drawn items": "" if data.items is None else f"{data.items:,} by seed {data.items_seed}",
    }.items()
