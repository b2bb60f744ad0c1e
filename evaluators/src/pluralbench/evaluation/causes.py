"""Why the scores of a run differ from others: score a few items again in the ways in which programs differ."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import polars as pl
from pluralbench_local import LocalModel
from pluralbench_rewards import Group
from pluralbench_runs import UserError

from pluralbench.config import RecheckConfig
from pluralbench.evaluation.models import find_model
from pluralbench.evaluation.reloading import RunInputs, check_prompts, check_same_model, reload_data, reload_model
from pluralbench.results.evaluations import ScoreRunConfig
from pluralbench.results.runs import Run

if TYPE_CHECKING:
    from pluralbench_local import LocalRewardModel

ITEMS = 8
LENGTHS = (512, 2048)  # maximum lengths of reward-bench's first version, and of its second, RM-Bench and RMB
DTYPES = ("float32", "float16", "bfloat16")
EXPLAINED = 0.1
"""Share of the mean difference that may remain under the variant that explains the scores."""
Scores = list[list[float]]


@dataclass(frozen=True)
class Variant:
    """The scores of one way to read the items.

    Attributes:
        name: What is changed, such as "two BOS tokens".
        moved: Largest absolute change of the model's own scores.
    """

    name: str
    mean: float
    largest: float
    moved: float


@dataclass(frozen=True)
class Diagnosis:
    """Items that were scored again in several ways.

    Attributes:
        ids: The items, those with the largest differences first.
        before: The scores by the run's own settings; `moved` is from those that the run records.
        variants: The other ways, the closest first.
        unchanged: Names of ways that change no score of these items.
        untried: Names of ways that this device cannot compute.
        cause: The way that explains the differences; None if none does.
        rounding: Dtype whose rounding alone moves these scores at least half as far as the published ones differ; None
            if none does, or if there is a cause.
    """

    ids: tuple[str, ...]
    before: Variant
    variants: tuple[Variant, ...]
    unchanged: tuple[str, ...]
    untried: tuple[str, ...]
    cause: str | None
    rounding: str | None


def find_cause(run: Run, both: pl.DataFrame, recheck: RecheckConfig) -> tuple[Diagnosis | None, str]:
    """Score the items with the largest differences again, and name the way that is closest to the published scores."""
    if run.scored is None:
        return None, "the run is of a judge"
    if max(_gaps(both)) <= (run.scored.tolerance or 0.0):
        return None, "the scores agree within the tolerance of the run"
    local = Path(recheck.model or run.result.model.name).is_dir()
    number = recheck.items if recheck.items is not None else ITEMS if local else 0
    if number == 0:
        chosen = recheck.items is not None
        return None, "no items were to be scored again" if chosen else "its model is not a directory on this machine"
    try:
        return _diagnose(run, both, recheck, number), ""
    except UserError as error:
        return None, str(error).rstrip(".")


def _diagnose(run: Run[Any, Any], both: pl.DataFrame, recheck: RecheckConfig, number: int) -> Diagnosis:
    chosen = _most_different(both, number)
    loaded = check_prompts(run.config, reload_data(run, RunInputs(recheck.data)))
    places = {key: place for place, key in enumerate(loaded.frame.select("config", "id").iter_rows())}
    keys = [*chosen.select("config", "id").iter_rows()]
    missing = [item for config_name, item in keys if (config_name, item) not in places]
    if missing:
        raise UserError(f"the data has no item {missing[0]}")
    rows = [places[key] for key in keys]
    groups = loaded.groups()
    names = loaded.frame["response_ids"].to_list()
    recorded, published = (
        [[of[name] for name in names[row]] for row, of in zip(rows, _by_name(chosen, column), strict=True)]
        for column in ("scores", "scores_second")
    )
    model = reload_model(run, recheck.model, trust_remote_code=recheck.trust_remote_code)
    check_same_model(run, model.record())
    items = [groups[row] for row in rows]
    before, scored, untried = _try_variants(run, model, run.config, items, recorded)
    return _judge(tuple(chosen["key"]), before, scored, untried, recorded, published)


def _most_different(both: pl.DataFrame, number: int) -> pl.DataFrame:
    gaps = _gaps(both)
    order = sorted(range(both.height), key=lambda place: -gaps[place])
    return both[[place for place in order[:number] if gaps[place] >= 0]]


def _gaps(both: pl.DataFrame) -> list[float]:
    """Return the largest difference of the scores of each item; -1 if it has no two scores."""
    scores = both.select("scores", "scores_second").iter_rows()
    return [max(_differences(ours or (), theirs or ()), default=-1.0) for ours, theirs in scores]


def _differences(first: Sequence[float | None], second: Sequence[float | None]) -> list[float]:
    pairs = [(a, b) for a, b in zip(first, second, strict=False) if a is not None and b is not None]
    return [abs(a - b) for a, b in pairs if math.isfinite(a) and math.isfinite(b)]


def _by_name(items: pl.DataFrame, column: str) -> list[dict[str, float]]:
    return [dict(zip(names, values, strict=True)) for names, values in items.select("response_ids", column).iter_rows()]


def _try_variants(
    run: Run, model: LocalModel, config: ScoreRunConfig, groups: Sequence[Group], recorded: Scores
) -> tuple[Scores, dict[str, Scores], tuple[str, ...]]:
    """Score as in the run, and with one change each.

    Returns:
        The scores as in the run, those of each change, and the changes that this device cannot compute.
    """
    from pluralbench_local.other_readings import quick
    from pluralbench_local.scoring import LocalRewardModel

    def load(dtype: str | None = None) -> Any:
        source = model if dtype is None else model.model_copy(update={"dtype": dtype})
        opened: Any = find_model(source, config.scoring).load()
        return quick(opened, config.scoring)

    own = load()
    if not isinstance(own, LocalRewardModel):
        raise UserError("it is a personalized reward model or compares two responses, so it has no variants")
    replaced = config.model.chat_template_digest is not None  # by a file, which the run does not contain
    if not replaced:
        check_same_model(run, own.record())
    plain = own.score(groups).scores
    scored = {"the model's own chat template": plain} if replaced else {}
    scored |= {name: changed.score(groups).scores for name, changed in _variants(own)}
    dtype, untried = own.record().dtype, []
    del own
    for other in DTYPES:
        if other != dtype:
            name = f"{other} in place of {dtype}"
            try:
                scored[name] = load(other).score(groups).scores
            except RuntimeError:  # of torch: not every operator has every dtype on every device
                untried.append(name)
    return recorded if replaced else plain, scored, tuple(untried)


def _judge(
    ids: tuple[str, ...],
    base: Scores,
    scored: Mapping[str, Scores],
    untried: tuple[str, ...],
    recorded: Scores,
    published: Scores,
) -> Diagnosis:
    """Name the change that explains the published scores."""
    before = _measure("as in the run", base, recorded, published)
    variants = [_measure(name, scores, base, published) for name, scores in scored.items()]
    unchanged = tuple(variant.name for variant in variants if variant.moved == 0)
    variants = sorted((variant for variant in variants if variant.moved > 0), key=lambda variant: variant.mean)
    best = variants[0] if variants else before
    cause = best.name if best.mean <= EXPLAINED * before.mean and before.mean > 0 else None
    rounding = next(
        (
            variant.name.partition(" ")[0]
            for variant in variants
            if cause is None and variant.name.startswith(DTYPES) and 2 * variant.moved >= before.largest
        ),
        None,
    )
    return Diagnosis(ids, before, tuple(variants), unchanged, untried, cause, rounding)


def _variants(model: "LocalRewardModel") -> "Iterator[tuple[str, LocalRewardModel]]":
    """Yield the model with one change each, and the change in words."""
    from pluralbench_local.other_readings import (
        longest,
        uncut,
        with_bos,
        with_cut,
        with_other_token,
        with_today,
        without_template,
    )

    if model.template.tokenizer.bos_token_id is not None:
        yield "no BOS token", with_bos(model, 0)
        yield "one BOS token", with_bos(model, 1)
        yield "two BOS tokens", with_bos(model, 2)
    if model.template.tokenizer.chat_template and model.template.steps is None:
        yield "no chat template", without_template(model)
    today = with_today(model)
    if today is not None:
        yield "today's date in the chat template", today
    other = with_other_token(model)
    if other is not None:
        yield other
    limit = longest(model)
    if limit is not None:
        yield "the model's maximum length", uncut(model)
    if model.template.whole_response or model.template.steps is not None:
        return  # its response would be cut off from the prompt that it is compared with, or lose steps
    for length in LENGTHS:
        if limit is None or length < limit:
            yield f"at most {length:,} tokens, the first cut", with_cut(model, length, "left")
            yield f"at most {length:,} tokens, the last cut", with_cut(model, length, "right")


def _measure(name: str, scores: Scores, base: Scores, published: Scores) -> Variant:
    apart, moved = (
        [gap for own, its in zip(scores, other, strict=True) for gap in _differences(own, its)] or [math.inf]
        for other in (published, base)
    )
    return Variant(name, fmean(apart), max(apart), max(moved))
