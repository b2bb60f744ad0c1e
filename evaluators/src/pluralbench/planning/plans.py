"""`plan`: let a planner infer, for each item, what the user expects of a response."""

import json
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import polars as pl
from pluralbench_calls import InvalidAnswer, Ledger, ask, chat_request, strip_thinking, working_ledger
from pluralbench_calls.chat import ConnectionConfig
from pluralbench_local import LocalModel
from pluralbench_policies.planner_options import PLANNER_FILE, planner_prompts_digest, read_plan
from pluralbench_rewards import model_digest
from pluralbench_runs import Output, Seed
from pluralbench_runs.options import Options
from pluralbench_tables import parse_json, read_text

from pluralbench.arguments import PlannerItems, ProfileSize
from pluralbench.config import AspectMatchingConfig, PlanConfig, as_data_config
from pluralbench.data.column_types import schema_of
from pluralbench.data.rules import rule_of
from pluralbench.downstream.candidates import Policy, answer_fields, find_policy
from pluralbench.errors import DataError, EvaluationError
from pluralbench.evaluation.folders import file_name, run_folder
from pluralbench.evaluation.loading import LoadedBenchmark, run_directory
from pluralbench.evaluation.models import PLANNER
from pluralbench.evaluation.work import cost_of_calls, stopwatch
from pluralbench.metrics.frame import metrics_frame
from pluralbench.metrics.plans import EMBEDDINGS, WORDS, AspectMatches, aspect_numbers
from pluralbench.planning.aspects import (
    Pair,
    embedding_similarity,
    match_aspects,
    word_similarity,
)
from pluralbench.planning.prompts import item_fingerprints, load_planner_items, planner_prompts
from pluralbench.results.plans import PLANS_FILE, PlanResult, PlanRunConfig
from pluralbench.results.run_files import LEDGER_FILE, write_run
from pluralbench.results.runs import Plans, load_run

PLANNED = schema_of("config", "id", "cluster", "text", "aspects", "outcome", "reason", "tokens", "call")
"""Plans, a row for each item. `text` is the planner's reply; if it is null, `outcome` and `reason` say why. `aspects`
is the list in the text, empty if there is none. `call` is the key of the recorded call."""


def plan(
    planner: str | Path | LocalModel,
    *,
    benchmark: str = "personalized",
    data: PlannerItems = None,
    profile_size: ProfileSize = 10,
    sampling: Annotated[PlanConfig | None, Options("Planner")] = None,
    matching: Annotated[AspectMatchingConfig | None, Options("True aspects")] = None,
    connection: ConnectionConfig | None = None,
    seed: Seed = 0,
    out: str | Path | None = None,
    fresh: bool = False,
) -> Plans:
    """Let a planner infer what each user expects of an answer, and measure how many true aspects it finds.

    Writes a directory with plans.jsonl for `score` and `judge` (--profile plan --plans). A plan that is not a list is
    kept as text, as the paper does for all plans (Personalized RewardBench, section 4.3). Calls are recorded; repeat it
    with the same arguments to resume.

    Args:
        planner: Directory or ORG/NAME on the Hub to run here, a model of the endpoint, if there is one, or `local`
            (embedded). In Python also a `LocalModel`.
        benchmark: Name, such as personalized, multilingual, chinese, reward-bench-2 or pairs (`pluralbench list` shows
            all), or a TOML file.
        data: Location of the items, or a `DataConfig`. Default: the benchmark's data on the Hub. Questions and
            profiles are read, and the true rubric aspects only to evaluate the plans.
        profile_size: Maximum posts per user.
        sampling: Sampling of the plans. Default: `PlanConfig()`.
        matching: When an aspect of a plan matches a true aspect. Default: `AspectMatchingConfig()`.
        connection: Endpoint of the planner. Default: none.
        seed: Random seed, sent to models that take one.
        out: Run directory. Default: a name under runs/ that lists the planner and the other settings.
        fresh: Start over, and replace existing output.

    Returns:
        The plans, as `load_run` reads them.

    Raises:
        UserError: An argument or the data is not valid.

    Examples:
        pluralbench plan ./planner --data dist/personalized-rewardbench
        pluralbench plan gpt-5-mini --base-url https://api.openai.com/v1 --price 0.25/2 --max-cost 2 --out plans
        pluralbench score ./my-model --data dist/personalized-rewardbench --profile plan --plans plans
    """
    sampling, matching, connection = (
        sampling or PlanConfig(),
        matching or AspectMatchingConfig(),
        connection or ConnectionConfig(),
    )
    loaded = load_planner_items(benchmark, as_data_config(data), profile_size)
    _check_ids(loaded.items.frame)
    checked = _check_training_items(planner, loaded)
    policy = find_policy(planner, sampling, connection, PLANNER)
    config = PlanRunConfig(
        planner=policy.chat,
        benchmark=loaded.benchmark_record(),
        data=loaded.data_record(),
        profile_size=profile_size,
        sampling=sampling,
        matching=matching,
        encoder=None if matching.encoder is None else model_digest(matching.encoder),
        prompts_digest=planner_prompts_digest(),
        seed=seed,
        connection=connection,
    )
    choices = (planner if isinstance(planner, LocalModel) else None, sampling, matching)
    name = f"{loaded.name}-{file_name(Path(policy.record.name).name)}-plans"
    target = Path(out or run_folder(name, config, loaded.data, *choices, seed=seed, exclude=("encoder",)))
    with run_directory(target, config, fresh=fresh) as output:
        if output is not None:
            with stopwatch(output.work) as seconds, working_ledger(output.work / "ledger.sqlite") as ledger:
                plans = _write_plans(loaded, policy, ledger, seed)
                usage, cached_tokens = ledger.usage(), ledger.cached_tokens()
                matches = _match_true_aspects(loaded.items.frame, plans, matching, ledger)
                ledger.export(output.work / LEDGER_FILE, ledger.used)
                result = PlanResult(
                    planner=policy.record.model_copy(update={"kind": "planner"}),
                    checked=checked,
                    **_counts(plans),
                    calls=plans.height,
                    prompt_tokens=usage[0],
                    completion_tokens=usage[1],
                    cached_tokens=cached_tokens,
                    cost=cost_of_calls(seconds(), connection, *usage),
                )
            _save(output, config, result, plans, matches)
    return load_run(target, PlanRunConfig)


def _check_ids(items: pl.DataFrame) -> None:
    duplicates = items.group_by("id", maintain_order=True).agg("config").filter(pl.col("config").list.len() > 1)
    if duplicates.height:
        item, configs = duplicates.row(0)
        raise DataError(
            f"The id {item} is in the configs {' and '.join(configs[:2])}, and plans are stored by id; plan one config "
            "at a time with `configs=...`."
        )


def _check_training_items(planner: str | Path | LocalModel, loaded: LoadedBenchmark) -> bool:
    """Whether the planner's folder records its training items. Raises `DataError` if one of them is to be planned."""
    name = planner.name if isinstance(planner, LocalModel) else str(planner)
    path = Path(name) / PLANNER_FILE
    if not path.is_file():
        return False
    record = parse_json(read_text(path, DataError), str(path), DataError)
    match record:
        case {"origin": {"learned": [*fingerprints]}}:
            learned = {str(fingerprint) for fingerprint in fingerprints}
        case _:
            return False
    ids, fingerprints_by_item = loaded.items.frame["id"], item_fingerprints(loaded)
    seen = [item for item, own in zip(ids, fingerprints_by_item, strict=True) if own & learned]
    if seen:
        raise DataError(
            f"The planner {name} was trained on the aspects of {len(seen):,} of the {len(ids):,} items (such as "
            f"{seen[0]}); let it plan others, or train it on others (by default it trains on other users)."
        )
    return True


def _write_plans(loaded: LoadedBenchmark, planner: Policy, ledger: Ledger, seed: int) -> pl.DataFrame:
    """The plans of all items (columns of `PLANNED`). Raises `EvaluationError` if no plan has a text."""
    items = loaded.items.frame.select("config", "id", "cluster")
    requests = [
        chat_request(planner.chat, messages, seed=seed, label=f"the plan for {row['id']}", attempt=0)
        for row, messages in zip(items.iter_rows(named=True), planner_prompts(loaded), strict=True)
    ]
    answers = ask(requests, ledger, planner.backend, limits=planner.limits, label="plans")
    rows = [
        row | answer_fields(answer) | {"call": answer.key}
        for row, answer in zip(items.iter_rows(named=True), answers, strict=True)
    ]
    for row in rows:
        try:
            row["text"] = None if row["text"] is None else strip_thinking(row["text"])
        except InvalidAnswer as error:
            row |= {"text": None, "reason": str(error)}
        row["aspects"] = [] if row["text"] is None else read_plan(row["text"])
    plans = pl.DataFrame(rows, schema=PLANNED)
    if plans["text"].null_count() == plans.height:
        outcome, reason = plans.select("outcome", "reason").row(0)
        raise EvaluationError(
            f"The planner {planner.record.name} wrote no text for any item (first item: {outcome}, {reason}); check "
            "its chat template, `max_tokens=...` and `profile_size=...`."
        )
    return plans


def _match_true_aspects(
    items: pl.DataFrame, plans: pl.DataFrame, matching: AspectMatchingConfig, ledger: Ledger
) -> dict[str, list[AspectMatches]]:
    """Matches of planned and true aspects, by similarity; empty if an item has no true aspects."""
    if any(not aspects for aspects in items["aspects"].to_list()):
        return {}
    titles = ([aspect["aspect"] for aspect in aspects] for aspects in items["aspects"].to_list())
    pairs = [Pair(*row) for row in zip(items["id"], titles, plans["aspects"].to_list(), strict=True)]
    matches = {WORDS: match_aspects(pairs, word_similarity(pairs), matching.min_word_overlap)}
    if matching.encoder is not None:
        similarities = embedding_similarity(pairs, matching.encoder, ledger)
        matches[EMBEDDINGS] = match_aspects(pairs, similarities, matching.min_cosine)
    return matches


def _counts(plans: pl.DataFrame) -> dict[str, Any]:
    listed, missing = plans["aspects"].list.len() > 0, plans["text"].is_null()
    return {
        "items": plans.height,
        "listed": int(listed.sum()),
        "as_text": int((~listed & ~missing).sum()),
        "missing": int(missing.sum()),
        "cut": plans.filter(outcome="length").height,
        "reasons": dict(sorted(Counter(plans["reason"].drop_nulls().to_list()).items())),
    }


def _save(
    output: Output,
    config: PlanRunConfig,
    result: PlanResult,
    plans: pl.DataFrame,
    matches: dict[str, list[AspectMatches]],
) -> None:
    by_config = rule_of(config.benchmark.description).by_config
    numbers = aspect_numbers(plans, matches, by_config=by_config) if matches else []
    columns = [
        pl.Series(f"{name}_{kind}", [getattr(item, name) for item in values], pl.Float64)
        for kind, values in matches.items()
        for name in ("recall", "precision")
    ]
    items, texts = plans.with_columns(columns), {PLANS_FILE: _plan_lines(plans)}
    write_run(output, config, result, metrics_frame(numbers), {"items": items}, texts=texts)


def _plan_lines(plans: pl.DataFrame) -> str:
    written = plans.filter(pl.col("text").is_not_null()).select("config", "id", "aspects", "text")
    lines = [
        json.dumps({"id": item, "config": config, "aspects": aspects or text.strip()}, ensure_ascii=False)
        for config, item, aspects, text in written.iter_rows()
    ]
    return "\n".join([*lines, ""])
