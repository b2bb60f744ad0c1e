"""Score or judge a random sample of items again, which is the only check that the scores are the model's own.

A run with exchanged scores, or with labels in place of scores, passes all other checks.
"""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl
from pluralbench_calls import ConnectionConfig, Ledger, chat_backend
from pluralbench_calls.chat import LOCAL
from pluralbench_local.served.config import described
from pluralbench_rewards import MeasuresTolerance, ModelRecord
from pluralbench_rewards.served.serving import ServingConfig
from pluralbench_runs import UserError

from pluralbench.config import LocalModel
from pluralbench.data.texts import first_ids
from pluralbench.errors import RunError
from pluralbench.evaluation.judge import judge_chat_model
from pluralbench.evaluation.models import Scorable, resolve_model
from pluralbench.leaderboard.findings import Finding, error_finding, warning_finding
from pluralbench.leaderboard.reproduction import RunData, check_prompts, judge_from_ledger, recorded_scores, row_key
from pluralbench.leaderboard.unusual import coin_probability
from pluralbench.results.evaluations import JudgeRunConfig, PersonaJudgeRunConfig, ScoreRunConfig
from pluralbench.results.runs import Run

EPSILON = {"float32": 2**-23, "float16": 2**-10, "bfloat16": 2**-7}
"""Machine epsilon of the precision in which scores were computed; other scores have 64 bits."""

RARE = 0.01
"""Significance level at which a drop of a judge's accuracy refutes its recorded replies."""

SAME_VERDICTS = 0.75
"""Minimum share of equal verdicts to verify a judge whose replies are sampled."""


@dataclass(frozen=True)
class Rescoring:
    """Settings for scoring items of a run again.

    Attributes:
        items: Number of items to draw.
        seed: Seed of the draw. The author of the run must not know it in advance.
        model: Model to load. Default: the name or directory that the run records.
        serving: Inference servers that hold the model. Default: none.
        connection: Endpoint of a judge. The endpoint that the run records is never called, since its author chose it.
        trust_remote_code: Run code that comes with the model.
    """

    items: int
    seed: int
    model: Scorable | None = None
    serving: ServingConfig = field(default_factory=ServingConfig)
    connection: ConnectionConfig | None = None
    trust_remote_code: bool = False

    def places(self, total: int) -> list[int]:
        """Draw positions of items out of `total`, ascending."""
        return sorted(random.Random(self.seed).sample(range(total), min(self.items, total)))  # noqa: S311 - not a secret


def check_rescored(run: Run, source: RunData, rescoring: Rescoring) -> tuple[list[Finding], str]:
    """Score or judge drawn items again and compare with the run.

    Returns:
        Findings, and a phrase that says how many items were scored again; empty if that does not verify the run.
    """
    places = rescoring.places(source.items.height)
    try:
        return (_rescore if isinstance(run.config, ScoreRunConfig) else _rejudge)(run, source, rescoring, places)
    except UserError as error:
        return [warning_finding("rescored", f"It was not scored again. {error}")], ""


def model_of(run: Run, config: ScoreRunConfig, rescoring: Rescoring | None = None) -> Scorable:
    """Return the model that a run names, to load it here. Raises a `UserError` if that is impossible."""
    override = None if rescoring is None else rescoring.model
    if override is not None and not isinstance(override, str | Path):
        return override
    configured, recorded = config.model, run.result.model
    if recorded.kind not in {"classifier", "implicit", "personal"}:
        raise RunError(f"{run.path} is of {recorded.name}, of the kind {recorded.kind}, which cannot be loaded here.")
    model = LocalModel.model_validate(
        {
            "name": recorded.name if override is None else str(override),
            "kind": "implicit" if recorded.kind == "implicit" else "classifier",
            "reference": configured.reference,
            "label": configured.label,
            "revision": recorded.commit if override is None else None,
            "dtype": configured.dtype or "auto",
            "trust_remote_code": rescoring is not None and rescoring.trust_remote_code,
        }
    )
    return model if rescoring is None else described(model, rescoring.serving)


def check_lengths(run: Run, source: RunData) -> list[Finding]:
    """Check truncated and dropped items against the model's tokenizer.

    Raises:
        UserError: Items were truncated or dropped, and the tokenizer or the prompts are not available.
    """
    scored, config, items = run.scored, run.config, run.items
    if scored is None or not (items["truncated"].any() or items["reason"].is_not_null().any()):
        return []
    assert isinstance(config, ScoreRunConfig)  # noqa: S101 - it has scores
    if (scored.work or scored.served) and config.scoring.on_overflow == "error":
        return [
            error_finding(
                "items",
                "Items are truncated or dropped, but the run's settings allow neither (`on_overflow` is error).",
            )
        ]
    groups = check_prompts(config, source).groups()
    model = model_of(run, config)
    if not isinstance(model, LocalModel) or scored.work is None or model.personal() is not None:
        raise RunError("Overlong items can only be checked for a model in this process.")
    from pluralbench_local.conversations import tokenize  # noqa: PLC0415 - needs torch, for few runs
    from pluralbench_local.loading import template_of  # noqa: PLC0415 - the same

    check_same_model(run, model.record())
    template, limit = template_of(model, config.scoring)
    again = tokenize(groups, template, limit, config.scoring.on_overflow)
    recorded = recorded_scores(run, source.items)
    wrong = [
        item
        for place, (item, conversation) in enumerate(zip(source.items["id"], again, strict=True))
        if (conversation.cut, conversation.dropped) != (recorded.tokens_cut[place], recorded.dropped.get(place, ""))
    ]
    if not wrong:
        return []
    return [
        error_finding(
            "items",
            f"{len(wrong):,} items are truncated or dropped differently from what the model's tokenizer requires (ids "
            f"{first_ids(wrong)}).",
        )
    ]


def check_same_model(run: Run, loaded: ModelRecord) -> None:
    """Raise `RunError` if the loaded model is not the one that the run records."""
    for name in ("digest", "commit", "architecture", "parameters", "chat_template_digest"):
        ours, theirs = getattr(run.result.model, name), getattr(loaded, name)
        if ours is not None and theirs is not None and ours != theirs:
            ours, theirs = (f"{value:,}" if isinstance(value, int) else value[:12] for value in (ours, theirs))
            raise RunError(
                f"{loaded.name} is not the model that {run.path} records: its {name.replace('_', ' ')} is "
                f"{theirs}, not {ours}."
            )


def _rescore(run: Run, source: RunData, rescoring: Rescoring, places: Sequence[int]) -> tuple[list[Finding], str]:
    config = run.config
    assert isinstance(config, ScoreRunConfig)  # noqa: S101 - checked by the caller
    loaded = check_prompts(config, source)
    record, open_model = resolve_model(model_of(run, config, rescoring), config.scoring)
    check_same_model(run, record)
    groups = loaded.groups()
    model = open_model()
    check_same_model(run, model.record())
    drawn = [groups[place] for place in places]
    again = model.score(drawn)
    measured = again.tolerance
    if measured is None and isinstance(model, MeasuresTolerance):
        measured = model.tolerance(drawn, again)  # `score` leaves it out for few items
    before = recorded_scores(run, loaded.frame)
    sizes = [score for scores in again.scores for score in scores if math.isfinite(score)] or [0.0]
    typical = math.sqrt(sum(score * score for score in sizes) / len(sizes))
    least = max(measured or 0.0, 4 * EPSILON.get(run.result.model.dtype or "", 2**-52) * typical)
    recorded = (run.scored.tolerance if run.scored else None) or 0.0
    # The recorded tolerance is bounded: a large one could hide anything. That of servers is measured on few items.
    tolerance = 4 * least if again.served is not None else max(least, min(recorded, 4 * least))
    other = [
        (loaded.frame["id"][place], before.scores[place], scores)
        for place, scores in zip(places, again.scores, strict=True)
        if not _close(before.scores[place], scores, tolerance)
    ]
    if other:
        name, recorded_values, current_values = other[0]
        ids = [item for item, _, _ in other]
        return [
            error_finding(
                "rescored",
                f"{len(other):,} of {len(places):,} items that were scored again (seed {rescoring.seed}) have other "
                f"scores (ids {first_ids(ids)}): {name} had {_listed(recorded_values)}, now {_listed(current_values)}.",
            )
        ], ""
    return [], f"{len(places):,} of {loaded.frame.height:,} items were scored again (seed {rescoring.seed})"


def _close(recorded: Sequence[float], current: Sequence[float], tolerance: float) -> bool:
    return len(recorded) == len(current) and all(
        abs(a - b) <= tolerance if math.isfinite(a) and math.isfinite(b) else math.isfinite(a) == math.isfinite(b)
        for a, b in zip(recorded, current, strict=True)
    )


def _listed(scores: Sequence[float]) -> str:
    return ", ".join(f"{score:.6g}" for score in scores) or "none"


def _rejudge(run: Run, source: RunData, rescoring: Rescoring, places: Sequence[int]) -> tuple[list[Finding], str]:
    config = run.config
    assert isinstance(config, JudgeRunConfig | PersonaJudgeRunConfig)  # noqa: S101 - checked by the caller
    if rescoring.connection is None and config.model.provider != LOCAL:
        raise RunError(
            f"The judge {config.model.model} needs an endpoint that you trust, since the author of the run chose the "
            "recorded one; give `base_url=...`."
        )
    _, connection = judge_chat_model(
        config.model.model if config.model.provider != LOCAL else LOCAL, config.judging, rescoring.connection
    )
    with TemporaryDirectory() as folder, Ledger(Path(folder) / "ledger.sqlite") as ledger:
        backend = chat_backend(config.model, connection)
        again = judge_from_ledger(run, source, ledger, backend, places=places, connection=connection).frame
    key = row_key(again)
    columns = next([name, "outcome"] for name in ("verdict", "margin", "score") if name in again.columns)
    both = again.select(*key, *columns).join(
        run.items.select(pl.col(name).cast(again.schema[name]) for name in (*key, *columns)),
        on=key,
        how="inner",
        nulls_equal=True,
        suffix="_recorded",
    )
    rows: list[dict[str, Any]] = both.to_dicts()
    same = sum(row[columns[0]] == row[f"{columns[0]}_recorded"] for row in rows)
    fell = sum(row["outcome_recorded"] == "win" != row["outcome"] for row in rows)
    rose = sum(row["outcome"] == "win" != row["outcome_recorded"] for row in rows)
    rejudged = (
        f"{len(places):,} of {source.items.height:,} items were judged again (seed {rescoring.seed}), {same:,} of "
        f"{len(rows):,} verdicts are equal"
    )
    if coin_probability(rose, rose + fell) < RARE:
        return [error_finding("rescored", f"{rejudged}; {fell:,} were right only in the run, {rose:,} only now.")], ""
    if same < SAME_VERDICTS * len(rows):
        return [warning_finding("rescored", f"{rejudged}, too few to verify the run.")], ""
    return [], rejudged
