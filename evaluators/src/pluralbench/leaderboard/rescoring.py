"""Scores and verdicts of some drawn items asked for again: the one thing that shows whose they are.

A run whose scores were exchanged, or are the labels themselves, agrees with its data in everything else.
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
from pluralbench_rewards import ModelRecord
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
"""What one unit of the last place is, by the precision that scores were computed in; other scores are 64 bits wide."""

RARE = 0.01
"""How rare a judge's fall in accuracy has to be before its recorded replies are not taken for its own."""

SAME_VERDICTS = 0.75
"""The least share of verdicts that come out as recorded, below which a judge that draws its replies is not verified."""


@dataclass(frozen=True)
class Rescoring:
    """How some items of a run are scored again.

    items: how many. seed: by which they are drawn; whoever made the run must not know it before. model: in place of the
    folder or name that the run records, where that is elsewhere now. serving: servers that hold it. connection: the
    endpoint of a judge; that of the run is never asked, since its author chose it. trust_remote_code: run code that
    comes with the model.
    """

    items: int
    seed: int
    model: Scorable | None = None
    serving: ServingConfig = field(default_factory=ServingConfig)
    connection: ConnectionConfig | None = None
    trust_remote_code: bool = False

    def places(self, of: int) -> list[int]:
        """The places of the items that are drawn, ascending."""
        return sorted(random.Random(self.seed).sample(range(of), min(self.items, of)))  # noqa: S311 - no secret


def check_rescored(run: Run, source: RunData, how: Rescoring) -> tuple[list[Finding], str]:
    """Whether drawn items get the scores or verdicts that the run has; and in a few words what was done, "" where it
    does not verify the run."""
    places = how.places(source.items.height)
    try:
        return (_scored if isinstance(run.config, ScoreRunConfig) else _judged)(run, source, how, places)
    except UserError as error:
        return [warning_finding("rescored", f"It was not scored again. {error}")], ""


def model_of(run: Run, config: ScoreRunConfig, how: Rescoring | None = None) -> Scorable:
    """The model that a run names, described to be loaded here. Raises a `UserError` where it cannot be."""
    given = None if how is None else how.model
    if given is not None and not isinstance(given, str | Path):
        return given
    asked, made = config.model, run.result.model
    if made.kind not in {"classifier", "implicit", "personal"}:
        raise RunError(f"{run.path} was made by {made.name}, of the kind {made.kind}, which cannot be loaded here.")
    model = LocalModel.model_validate(
        {
            "name": made.name if given is None else str(given),
            "kind": "implicit" if made.kind == "implicit" else "classifier",
            "reference": asked.reference,
            "label": asked.label,
            "revision": made.commit if given is None else None,
            "dtype": asked.dtype or "auto",
            "trust_remote_code": how is not None and how.trust_remote_code,
        }
    )
    return model if how is None else described(model, how.serving)


def check_lengths(run: Run, source: RunData) -> list[Finding]:
    """Whether what was dropped or cut for its length is what the model's tokenizer finds too long.

    Raises a `UserError` where something was, and the tokenizer or the prompts are not to be had.
    """
    scored, config, items = run.scored, run.config, run.items
    if scored is None or not (items["truncated"].any() or items["reason"].is_not_null().any()):
        return []
    assert isinstance(config, ScoreRunConfig)  # noqa: S101 - it scored
    if (scored.work or scored.served) and config.scoring.on_overflow == "error":
        return [
            error_finding(
                "items", "Items are cut or dropped, and the run's settings allow neither (`on_overflow` error)."
            )
        ]
    groups = check_prompts(config, source).groups()
    model = model_of(run, config)
    if not isinstance(model, LocalModel) or scored.work is None or model.personal() is not None:
        raise RunError("Only for a model in this process is it known here what is too long.")
    from pluralbench_local.conversations import tokenize  # noqa: PLC0415 - needs torch, for few runs
    from pluralbench_local.loading import template_of  # noqa: PLC0415 - the same

    check_same(run, model.record())
    template, limit = template_of(model, config.scoring)
    again = tokenize(groups, template, limit, config.scoring.on_overflow)
    kept = recorded_scores(run, source.items)
    wrong = [
        item
        for place, (item, one) in enumerate(zip(source.items["id"], again, strict=True))
        if (one.cut, one.dropped) != (kept.cut[place], kept.dropped.get(place, ""))
    ]
    if not wrong:
        return []
    return [
        error_finding(
            "items",
            f"What is cut or dropped is not what the model's tokenizer finds too long in {len(wrong):,} items (ids "
            f"{first_ids(wrong)}).",
        )
    ]


def check_same(run: Run, known: ModelRecord) -> None:
    """Raises `RunError` for another model than the run's. known: of the model here."""
    for name in ("digest", "commit", "architecture", "parameters", "chat_template_digest"):
        ours, theirs = getattr(run.result.model, name), getattr(known, name)
        if ours is not None and theirs is not None and ours != theirs:
            ours, theirs = (f"{value:,}" if isinstance(value, int) else value[:12] for value in (ours, theirs))
            raise RunError(
                f"{known.name} is not the model that {run.path} says made it: its {name.replace('_', ' ')} is "
                f"{theirs}, not {ours}."
            )


def _scored(run: Run, source: RunData, how: Rescoring, places: Sequence[int]) -> tuple[list[Finding], str]:
    config = run.config
    assert isinstance(config, ScoreRunConfig)  # noqa: S101 - the caller looked
    loaded = check_prompts(config, source)
    known, open_model = resolve_model(model_of(run, config, how), config.scoring)
    check_same(run, known)
    groups = loaded.groups()
    model = open_model()
    check_same(run, model.record())
    again = model.score([groups[place] for place in places])
    before = recorded_scores(run, loaded.frame)
    sizes = [score for scores in again.scores for score in scores if math.isfinite(score)] or [0.0]
    usual = math.sqrt(sum(score * score for score in sizes) / len(sizes))
    least = max(again.tolerance, 4 * EPSILON.get(run.result.model.dtype or "", 2**-52) * usual)
    recorded = run.scored.tolerance if run.scored else 0.0
    # A tolerance that a run records could hide anything; that of servers is measured on a few items.
    tolerance = 4 * least if again.served is not None else max(least, min(recorded, 4 * least))
    other = [
        (loaded.frame["id"][place], before.scores[place], scores)
        for place, scores in zip(places, again.scores, strict=True)
        if not _near(before.scores[place], scores, tolerance)
    ]
    if other:
        name, kept, made = other[0]
        ids = [one for one, _, _ in other]
        return [
            error_finding(
                "rescored",
                f"{len(other):,} of {len(places):,} items that were scored again (seed {how.seed}) have other scores "
                f"(ids {first_ids(ids)}): {name} has {_listed(kept)}, and now {_listed(made)}.",
            )
        ], ""
    return [], f"{len(places):,} of {loaded.frame.height:,} items were scored again (seed {how.seed})"


def _near(kept: Sequence[float], made: Sequence[float], tolerance: float) -> bool:
    return len(kept) == len(made) and all(
        abs(a - b) <= tolerance if math.isfinite(a) and math.isfinite(b) else math.isfinite(a) == math.isfinite(b)
        for a, b in zip(kept, made, strict=True)
    )


def _listed(scores: Sequence[float]) -> str:
    return ", ".join(f"{score:.6g}" for score in scores) or "none"


def _judged(run: Run, source: RunData, how: Rescoring, places: Sequence[int]) -> tuple[list[Finding], str]:
    config = run.config
    assert isinstance(config, JudgeRunConfig | PersonaJudgeRunConfig)  # noqa: S101 - the caller looked
    if how.connection is None and config.model.provider != LOCAL:
        raise RunError(
            f"The judge {config.model.model} is behind an endpoint; say which one is asked (`base_url`), since that "
            "of the run is its author's choice."
        )
    _, connection = judge_chat_model(
        config.model.model if config.model.provider != LOCAL else LOCAL, config.judging, how.connection
    )
    with TemporaryDirectory() as folder, Ledger(Path(folder) / "ledger.sqlite") as ledger:
        backend = chat_backend(config.model, connection)
        again = judge_from_ledger(run, source, ledger, backend, places=places, connection=connection)
    key = row_key(again)
    said = next([name, "outcome"] for name in ("verdict", "margin", "score") if name in again.columns)
    both = again.select(*key, *said).join(
        run.items.select(pl.col(name).cast(again.schema[name]) for name in (*key, *said)),
        on=key,
        how="inner",
        nulls_equal=True,
        suffix="_kept",
    )
    rows: list[dict[str, Any]] = both.to_dicts()
    same = sum(row[said[0]] == row[f"{said[0]}_kept"] for row in rows)
    fell = sum(row["outcome_kept"] == "win" != row["outcome"] for row in rows)
    rose = sum(row["outcome"] == "win" != row["outcome_kept"] for row in rows)
    told = (
        f"{len(places):,} of {source.items.height:,} items were judged again (seed {how.seed}), {same:,} of "
        f"{len(rows):,} verdicts alike"
    )
    if coin_probability(rose, rose + fell) < RARE:
        return [error_finding("rescored", f"{told}; {fell:,} were right in the run alone, and {rose:,} now alone.")], ""
    if same < SAME_VERDICTS * len(rows):
        return [warning_finding("rescored", f"{told}, which verifies nothing.")], ""
    return [], told
