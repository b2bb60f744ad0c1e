"""`score`: a reward model on a benchmark, into a run directory."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import polars as pl
from pluralbench_runs import Output, Recipe, Table, digest, output_directory

from pluralbench.data.benchmarks import Benchmark, OnEmpty, find_benchmark
from pluralbench.metrics.calibration import measure_calibration
from pluralbench.results.decisions import BASE, decide
from pluralbench.errors import EvaluationError
from pluralbench.data.items import Items, load_items
from pluralbench.metrics.languages import measure_languages
from pluralbench.metrics.accuracy import measure
from pluralbench.data.prompts import Profile, plans_for, prompts_of, wordings_digest
from pluralbench.results.runs import RUN_FILE, SETTINGS_FILE, Run, model_digest, provenance, publish, read_run

if TYPE_CHECKING:  # importing torch takes seconds, which `--help` and a mistake in the data need not wait for
    from pluralbench_local import Classifier, Dtype, Implicit, Mode, Overflow, Scored

JOURNAL = "scores.jsonl"


class Batching(Table):
    """How much at a time: it may change between the parts of a run."""

    token_budget: int | None = None


class DataSettings(Table):
    """What is scored. digest: of its content. benchmark_digest: of the benchmark's description."""

    benchmark: str
    benchmark_digest: str
    location: str
    revision: str | None = None
    digest: str
    configs: tuple[str, ...] = ()
    limit: int | None = None
    on_empty: str = "error"
    profile: Profile = "none"
    profile_size: int = 10
    plans_digest: str | None = None


class ScoreSettings(Recipe):
    """All that a run's numbers depend on; a run goes on only under the same."""

    operational: ClassVar[frozenset[str]] = frozenset({"batching"})

    verb: Literal["score"] = "score"
    model: str
    model_digest: str | None = None
    revision: str | None = None
    kind: Literal["classifier", "implicit"]
    reference: str | None = None
    reference_digest: str | None = None
    label: str | None = None
    chat_template_digest: str | None = None
    trust_remote_code: bool
    device: str
    dtype: str
    mode: Literal["exact", "fast"]
    max_length: int | None = None
    on_overflow: Literal["error", "drop", "truncate-left", "truncate-prompt"]
    seed: int
    data: DataSettings
    batching: Batching = Batching()


def score(
    model: str,
    *,
    benchmark: str = "personalized",
    data: str | None = None,
    configs: Sequence[str] | None = None,
    split: str | None = None,
    columns: Sequence[str] = (),
    limit: int | None = None,
    on_empty: OnEmpty | None = None,
    legacy: bool = False,
    english: str | None = None,
    kind: Literal["classifier", "implicit"] = "classifier",
    reference: str | None = None,
    label: str | None = None,
    revision: str | None = None,
    trust_remote_code: bool = False,
    chat_template: Path | None = None,
    profile: Profile = "none",
    profile_size: int = 10,
    plans: Path | None = None,
    device: str = "auto",
    dtype: "Dtype" = "auto",
    mode: "Mode" = "fast",
    max_length: int | None = None,
    on_overflow: "Overflow" = "error",
    token_budget: int | None = None,
    seed: int = 0,
    out: Path | None = None,
    fresh: bool = False,
) -> Run:
    """Score a reward model on a benchmark; returns the run, which lies in `out`.

    model: a folder or ORG/NAME. benchmark, data, configs, split, columns, limit, on_empty, legacy, english: see
    `load_items` and `find_benchmark`. kind, reference, label, revision, trust_remote_code, device, dtype: see
    `pluralbench_local.load`. chat_template: a file. mode, max_length, on_overflow, token_budget: see
    `pluralbench_local.score`. profile: what the prompt says about the person, of at most `profile_size` posts, or
    by the `plans` file. seed: of the bootstrap. fresh: start over.

    A run that was interrupted goes on where it was. Raises a `UserError` for every mistake of the caller.
    """
    described = find_benchmark(benchmark, columns, legacy=legacy)
    items = load_items(described, data, configs=configs, split=split, limit=limit, on_empty=on_empty, english=english)
    described = described.fitted(items.frame["subset"])
    inferred = plans_for(profile, plans)
    prompts = prompts_of(items.frame, profile, profile_size, inferred)
    template = _template(chat_template)
    settings = ScoreSettings(
        model=model,
        model_digest=model_digest(model),
        revision=revision,
        kind=kind,
        reference=reference,
        reference_digest=None if reference is None else model_digest(reference),
        label=label,
        chat_template_digest=None if template is None else digest(template),
        trust_remote_code=trust_remote_code,
        device=device,
        dtype=dtype,
        mode=mode,
        max_length=max_length,
        on_overflow=on_overflow,
        seed=seed,
        data=data_settings(benchmark, described, items, configs, limit, profile, profile_size, inferred),
        batching=Batching(token_budget=token_budget),
    )
    target = out or Path("runs") / f"{benchmark_name(benchmark)}-{Path(model).name}"
    with output_directory(target, settings, recipe_file=SETTINGS_FILE, fresh=fresh) as output:
        if (target / RUN_FILE).exists() and not fresh:
            return read_run(target)
        from pluralbench_local import load_local  # noqa: PLC0415 - see above

        loaded = load_local(
            model,
            kind,
            reference=reference,
            label=label,
            device=device,
            dtype=dtype,
            revision=revision,
            trust_remote_code=trust_remote_code,
            chat_template=template,
        )
        scored, resumed, tolerance = _scored(loaded, items, prompts, settings, output)
        decisions = decide(items.frame, scored.scores, scored.cut)
        frame = result_frame(described, items.frame, scored, decisions)
        metrics = {"items": items.frame.height} | measure(described, decisions, seed=seed)
        metrics |= measure_languages(described, decisions, seed=seed)
        metrics |= measure_calibration(described, decisions, seed=seed)
        run = provenance() | {
            "verb": "score",
            "model": _model_record(loaded, settings),
            "benchmark": benchmark_record(benchmark, described),
            "data": items.source | {"configs": list(configs or []), "limit": limit},
            "prompt": {
                "profile": profile,
                "profile_size": profile_size,
                "plans_digest": settings.data.plans_digest,
                "wordings_digest": wordings_digest(),
                "chat_template_digest": digest(str(loaded.template.tokenizer.chat_template)),
            },
            "scoring": _scoring_record(scored, settings, decisions, tolerance, resumed),
            "seed": seed,
        }
        publish(output, frame, metrics, run)
    return read_run(target)


def benchmark_name(benchmark: str) -> str:
    """A benchmark's name as part of a file name."""
    return Path(benchmark).stem


def benchmark_record(name: str, benchmark: Benchmark) -> dict[str, Any]:
    """A benchmark as a run records it."""
    return {"name": benchmark_name(name), "title": benchmark.title, "description": benchmark.model_dump(mode="json")}


def data_settings(
    name: str,
    benchmark: Benchmark,
    items: Items,
    configs: Sequence[str] | None,
    limit: int | None,
    profile: Profile,
    profile_size: int,
    plans: Mapping[str, str],
) -> DataSettings:
    """What binds a run to its data."""
    return DataSettings(
        benchmark=benchmark_name(name),
        benchmark_digest=digest(benchmark.model_dump(mode="json")),
        location=items.location,
        revision=items.revision,
        digest=items.digest,
        configs=tuple(configs or ()),
        limit=limit,
        on_empty=items.on_empty,
        profile=profile,
        profile_size=profile_size,
        plans_digest=digest(dict(plans)) if plans else None,
    )


def result_frame(benchmark: Benchmark, items: pl.DataFrame, scored: "Scored", decisions: pl.DataFrame) -> pl.DataFrame:
    """`items.parquet`: a row a pair with its decision, or for rankings a row a response."""
    rows = []
    for place, item in enumerate(items.iter_rows(named=True)):
        row = {name: item[name] for name in BASE}
        scores: list[float | None] = [*scored.scores[place]] or [None] * len(item["responses"])
        tokens = scored.tokens[place] if scored.tokens else [None] * len(scores)
        outcome = "dropped" if not scored.scores[place] else None
        cut = scored.cut[place]
        length = {"truncated": cut > 0, "tokens_cut": cut, "reason": scored.dropped.get(place)}
        if benchmark.is_ranking:
            for name, rank, value, size in zip(item["response_ids"], item["rank"], scores, tokens, strict=True):
                valid = "scored" if value is not None and math.isfinite(value) else "invalid"
                rows.append(
                    row
                    | {"response": name, "rank": rank, "score": value, "tokens": size}
                    | length
                    | {"outcome": outcome or valid}
                )
        else:
            chosen, rejected = scores
            rows.append(
                row
                | {
                    "score_chosen": chosen,
                    "score_rejected": rejected,
                    "tokens_chosen": tokens[0],
                    "tokens_rejected": tokens[1],
                }
                | length
            )
    frame = pl.DataFrame(rows, infer_schema_length=None)
    if benchmark.is_ranking:
        return frame
    return frame.with_columns(decisions["outcome"], decisions["margin"])


def _template(path: Path | None) -> str | None:
    if path is None:
        return None
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise EvaluationError(f"The chat template {path} cannot be read: {error}.") from None


def _scored(
    model: "Classifier | Implicit",
    items: Items,
    prompts: Sequence[Sequence[dict[str, str]]],
    settings: ScoreSettings,
    output: Output,
) -> tuple["Scored", int, float]:
    """Scores of all items, how many of them an earlier part of the run had left, and the measured tolerance."""
    from pluralbench_local import tolerance  # noqa: PLC0415 - see above
    from pluralbench_rewards import Group  # noqa: PLC0415 - see above
    from pluralbench_local import score as score_groups  # noqa: PLC0415

    groups = [
        Group(name if len(set(items.frame["config"])) == 1 else f"{config}/{name}", prompt, responses)
        for (config, name, responses), prompt in zip(
            items.frame.select("config", "id", "responses").iter_rows(), prompts, strict=True
        )
    ]
    journal = output.work / JOURNAL
    known = _read_journal(journal)
    try:
        with journal.open("a", encoding="utf-8") as file:

            def record(place: int, scores: list[float]) -> None:
                file.write(json.dumps([place, scores]) + "\n")
                file.flush()

            scored = score_groups(
                model,
                groups,
                mode=settings.mode,
                max_length=settings.max_length,
                on_overflow=settings.on_overflow,
                token_budget=settings.batching.token_budget,
                known=known,
                on_scored=record,
            )
    finally:
        if not journal.stat().st_size:
            journal.unlink()  # nothing was scored, so nothing may bind the next run
    return scored, len(known), tolerance(model, groups, scored, settings.on_overflow)


def _read_journal(journal: Path) -> dict[int, list[float]]:
    """What an interrupted run had scored. A line that the interruption cut short is as if it were not there."""
    known: dict[int, list[float]] = {}
    if journal.exists():
        text = journal.read_text(encoding="utf-8")
        complete = text[: text.rfind("\n") + 1]
        known = dict(json.loads(line) for line in complete.splitlines())
        journal.write_text(complete, encoding="utf-8")
    return known


def _model_record(model: "Classifier | Implicit", settings: ScoreSettings) -> dict[str, Any]:
    network = model.networks[0]
    return {
        "name": settings.model,
        "kind": settings.kind,
        "commit": getattr(network.model.config, "_commit_hash", None),
        "digest": settings.model_digest,
        "reference": settings.reference,
        "reference_digest": settings.reference_digest,
        "label": settings.label,
        "architecture": type(network.model).__name__,
        "parameters": sum(weights.numel() for weights in network.model.parameters()),
        "device": str(network.device),
        "dtype": str(network.dtype).removeprefix("torch."),
        "trust_remote_code": settings.trust_remote_code,
    }


def _scoring_record(
    scored: "Scored", settings: ScoreSettings, decisions: pl.DataFrame, tolerance: float, resumed: int
) -> dict[str, Any]:
    assert scored.work is not None  # noqa: S101 - a model in this process says what it did
    near = decisions.filter(pl.col("margin").abs() <= tolerance).height
    return {
        "mode": settings.mode,
        "on_overflow": settings.on_overflow,
        "tolerance": tolerance,
        "decisions_within_tolerance": near,
        "items_truncated": sum(cut > 0 for cut in scored.cut),
        "items_dropped": len(scored.dropped),
        "items_from_an_earlier_part": resumed,
        **asdict(scored.work),
    }
