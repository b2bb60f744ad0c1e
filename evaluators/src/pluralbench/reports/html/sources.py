"""Where a table's numbers come from: models, data, prompts, software and commands of its runs."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from markupsafe import Markup

from pluralbench.reports.costs import cost_summary
from pluralbench.reports.html.components import details, facts, join, paragraph
from pluralbench.results.evaluations import ScoreRunConfig
from pluralbench.results.record import DataRecord, ProvenanceRecord
from pluralbench.results.runs import Run

Facts = Iterable[tuple[str, str]]
DIGITS = 16  # of a digest


def sources(runs: Sequence[Run], names: Sequence[str]) -> Markup:
    """What the runs have in common, and of each what it has alone. names: what they are called in the table."""
    return told_once([(name, run.path, facts_of(run)) for name, run in zip(names, runs, strict=True)])


def told_once(rows: Sequence[tuple[str, Path, Facts]]) -> Markup:
    """Facts that all rows share, then those of each row. rows: what each is called, its folder and its facts.

    A fact without a value is left out.
    """
    known = [{name: value for name, value in own if value} for _, _, own in rows]
    shared = dict(set.intersection(*(set(own.items()) for own in known))) if len(rows) > 1 else {}
    order = list(dict.fromkeys(name for own in known for name in own))
    parts = [facts((name, shared[name]) for name in order if name in shared)] if shared else []
    for (called, folder, _), own in zip(rows, known, strict=True):
        rest = [("Run", str(folder)), *((name, own[name]) for name in order if name in own and name not in shared)]
        parts += [paragraph(called), facts(rest)]
    return details("Where these numbers come from", join(parts), kind="sources")


def facts_of(run: Run) -> Facts:
    """What is to know of how a run was made, as names and values."""
    model, config = run.result.model, run.config
    yield "Model", f"{model.name} ({model.kind})"
    yield "Commit of the model", model.commit or ""
    yield "Digest of the model", (model.digest or "")[:DIGITS]
    yield "Provider", model.provider or ""
    yield "Device", ", ".join(filter(None, (model.device, model.dtype)))
    yield "Mode", config.scoring.mode if isinstance(config, ScoreRunConfig) and run.scored and run.scored.work else ""
    if run.judged is not None:
        asked = {
            name: config.judge_setting(name)
            for name in ("reply_format", "orders", "criterion", "temperature", "attempts")
        }
        yield "Judge asked by", ", ".join(f"{name} {value}" for name, value in asked.items() if value is not None)
    yield from data_facts(run.config.data)
    yield "Profile", config.prompt.profile or ""
    yield "Setting", config.judge_setting("setting") or ""
    yield "Variables", config.judge_setting("variables") or ""
    yield "Prompts", getattr(config, "prompts_version", "")
    wordings = getattr(config, "prompts_digest", "") or config.prompt.wordings_digest or ""
    yield "Digest of the prompts", wordings[:DIGITS]
    yield "Seed", str(getattr(config, "seed", ""))
    yield "Took", cost_summary([run])
    yield from software_facts(run.provenance)


def data_facts(data: DataRecord) -> Iterator[tuple[str, str]]:
    """Which data, by commit and content."""
    yield "Data", data.location if data.revision is None else f"{data.location}@{data.revision}"
    yield "Digest of the data", data.digest[:DIGITS]
    yield "License", data.license or ""
    yield "Split", data.split or ""
    yield "Limit per config", "" if data.limit is None else f"{data.limit:,}"


def software_facts(made: ProvenanceRecord) -> Iterator[tuple[str, str]]:
    """When, by which command, with which software."""
    yield "Finished", made.finished
    yield "Command", " ".join((Path(made.command[0]).name, *made.command[1:])) if made.command else ""
    yield "Software", ", ".join(f"{name} {version}" for name, version in made.packages.items())
    yield "Python", f"{made.python} on {made.platform}"
    if made.git is not None:
        yield "Commit", f"{made.git.commit}{' with changes' if made.git.changed else ''}"
