"""Human win rates of best-of-N (CHEEMS, section 6.2): blind sheets for annotators, and a run with their outcomes.

The answer that each reward model selects at the largest k is shown next to a single sample of the policy, in random
order. The annotators' answers replace a judge's outcomes in a run directory of its own, which every reader of best-of-N
runs accepts.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import polars as pl
from pluralbench_rewards import ModelRecord
from pluralbench_runs import Location, digest, rng_for
from pluralbench_runs.study_options import StudyRecipe
from pluralbench_studies import (
    Answers,
    Form,
    Question,
    Study,
    check_annotators,
    draw_rows,
    first_answers,
    item_ids,
    preference,
    write_study,
)
from pydantic import Field

from pluralbench.config import OutcomeConfig, PromptConfig
from pluralbench.data.items import Items
from pluralbench.data.prompts import UserContext, items_to_groups
from pluralbench.downstream.outcomes import SCALES, conversation_text
from pluralbench.errors import RunError
from pluralbench.evaluation.loading import run_directory
from pluralbench.results.downstream import OUTCOMES, PEOPLE, THREAD_KEY, BestOfNRunConfig, OutcomeRecord
from pluralbench.results.examples import reload_unchanged
from pluralbench.results.kinds import numbers_of_run
from pluralbench.results.run_files import write_run
from pluralbench.results.runs import Downstream, load_run

BETTER = "better"
FIELDS = {"question": "Question", "person": "About the person who asks", "first": "Answer A", "second": "Answer B"}
FORM = Form(
    FIELDS, [preference(BETTER, "A", "B", title="Which answer is better?"), Question("remark", "Remark", optional=True)]
)
GUIDE = Path(__file__).with_name("win_guide.md")
UNANSWERED = "not answered"
PAIR = ["config", "id", "sample"]
KEY = [*PAIR, "chosen"]


class WinRecipe(StudyRecipe):
    """Settings of a win-rate study.

    Attributes:
        run: Directory of the best-of-n run.
        digest: Digest of the compared answers.
        limit: Default: all prompts.
    """

    runtime_only: ClassVar[frozenset[str]] = StudyRecipe.runtime_only | {"run"}

    run: Location
    digest: str = ""
    limit: int | None = Field(None, ge=1, description="Maximum number of prompts per config, drawn at random.")


def export_sheets(
    run: Downstream, folder: Path, settings: WinRecipe, *, data: str | None = None, fresh: bool = False
) -> str:
    """Write the sheets of a win-rate study, and return what the folder has (see `pluralbench_studies.write_study`).

    `data` is the location of the prompts, if they have moved.

    Raises:
        RunError: The run is not of best-of-n, or there is nothing to compare.
        DataError: The prompts cannot be read or have changed.
        UserError: The study cannot be written; see `pluralbench_studies.write_study`.
    """
    check_annotators(settings.annotators)
    all_pairs = answer_pairs(run)
    settings = settings.model_copy(update={"digest": _digest(all_pairs)})
    drawn = all_pairs.join(_draw_prompts(all_pairs, settings), on=["config", "id"], how="semi", maintain_order="left")
    pairs = drawn.filter(pl.col("text") != pl.col("against"))
    if pairs.is_empty():
        raise RunError(f"{run.path}: every selected answer is the one to compare it with; sample more candidates.")
    pairs = item_ids(pairs, PAIR, settings.seed, settings.digest)
    draws = [rng_for(settings.seed, "order", *pair).random() for pair in pairs.select(PAIR).iter_rows()]
    first = pl.Series(draws, dtype=pl.Float64) < 0.5
    pairs = pairs.join(_user_context(run, pairs, data), on=["config", "id"], how="left", maintain_order="left")
    items = pairs.with_columns(
        first=pl.when(first).then("text").otherwise("against"),
        second=pl.when(first).then("against").otherwise("text"),
        chosen=pl.when(first).then(pl.lit("1")).otherwise(pl.lit("2")),
        group=pl.concat_str("config", "id", separator="/"),
    )
    fields = {name: title for name, title in FIELDS.items() if name != "person" or (items["person"] != "").any()}
    form = replace(FORM, fields=fields)
    return write_study(folder, settings, items, KEY, form, GUIDE, fresh=fresh)


def answer_pairs(run: Downstream) -> pl.DataFrame:
    """Return the distinct answers that reward models select at the largest k, each with the answer to compare it with.

    Returns:
        A frame with the columns `THREAD_KEY`, `sample`, `text` and `against`: the extra sample of a run with the
        measure `win`, otherwise the first candidate.

    Raises:
        RunError: The run is not of best-of-n, or its conversations have several turns.
    """
    if run.verb != "best-of-n" or not run.result.rewards:
        raise RunError(f"{run.path} has no answers selected by reward models; give a run of best-of-n.")
    if run.result.sampling.turns > 1:
        raise RunError(
            f"{run.path} has conversations of several turns; annotators compare answers to a single question."
        )
    texts = run.frame("candidates").drop_nulls("text").select(*THREAD_KEY, "sample", "text")
    n, last = run.config.sampling.n, run.result.sampling.sizes[-1]
    single = n if (texts["sample"] == n).any() else 0
    against = texts.filter(sample=single).select(*THREAD_KEY, against="text")
    chosen = run.frame("selected").filter(k=last).drop_nulls("sample").select(*THREAD_KEY, "sample").unique()
    return chosen.join(texts, on=[*THREAD_KEY, "sample"]).join(against, on=THREAD_KEY).sort(*THREAD_KEY, "sample")


def _digest(pairs: pl.DataFrame) -> str:
    return digest(pairs.rows())


def _draw_prompts(pairs: pl.DataFrame, settings: WinRecipe) -> pl.DataFrame:
    parts = pairs.select("config", "id").unique().partition_by("config", as_dict=True)
    return pl.concat(
        draw_rows(own, settings.limit, settings.seed, "compared", str(config)) for (config,), own in parts.items()
    )


def _user_context(run: Downstream, pairs: pl.DataFrame, data: str | None) -> pl.DataFrame:
    """Return question and user context of each prompt: `config`, `id`, `question`, `person`."""
    prompt_record = run.config.prompt
    if prompt_record.profile not in {None, "none", "raw"}:
        raise RunError(
            f"{run.path} does not contain the {prompt_record.profile}s that the policy read, so they cannot be shown."
        )
    items = reload_unchanged(run, data)
    assert isinstance(items, Items)  # noqa: S101 - only judge-personas has other items
    rows = items.frame.join(pairs.select("config", "id").unique(), on=["config", "id"], how="semi")
    prompt = PromptConfig.model_validate(
        {"profile": prompt_record.profile or "none", "profile_size": prompt_record.profile_size or 10}
    )
    groups = items_to_groups(rows, UserContext(prompt, {}, {}, items.history), several_configs=False)
    return rows.select("config", "id").with_columns(
        question=pl.Series([conversation_text(group) for group in groups], dtype=pl.String),
        person=pl.Series(["\n".join(group.context) for group in groups], dtype=pl.String),
    )


def write_ratings(run: Downstream, study: Study[WinRecipe], answers: Answers, out: Path) -> Downstream:
    """Write a best-of-n run to `out` whose outcomes are the annotators' answers, from that of the sheets.

    The outcome of a pair is the mean over its annotators: 1 if the selected answer is better, else -1. A selected
    answer equal to the single sample is not shown to annotators and counts -1.

    Raises:
        RunError: The sheets were made from other answers than those of `run`.
    """
    pairs = answer_pairs(run)
    if _digest(pairs) != study.settings.digest:
        raise RunError(
            f"The sheets in {study.folder} were not made from {run.path}; give the run that they were made from."
        )
    better = answers.answers.filter(question=BETTER).join(study.key, on="item")
    asked = pairs.join(_draw_prompts(pairs, study.settings), on=["config", "id"], how="semi")
    outcomes = _outcomes(asked, first_answers(better.drop("question", "item")))
    config, result, last = run.config, run.result, run.result.sampling.sizes[-1]
    frames = {
        "candidates": run.frame("candidates"),
        "rewards": run.frame("rewards"),
        "selected": run.frame("selected").filter(k=last),
        "outcomes": outcomes,
        "answers": better.select("item", "annotator", "answer", "config", "id", "sample", "chosen"),
    }
    if any(one.compares for one in result.rewards.values()):
        frames["comparisons"] = run.frame("comparisons")
    human_judge: dict[str, Any] = {
        "outcome": OutcomeConfig(measure="win"),
        "judge": None,
        "prompts_digest": None,
        "seed": study.settings.seed,
    }
    config = config.model_copy(update=human_judge)
    result = result.model_copy(
        update={
            "sampling": result.sampling.model_copy(update={"sizes": (last,)}),
            "outcome": _record(len(study.settings.annotators), outcomes),
        }
    )
    with run_directory(out, config, fresh=True) as output:
        assert output is not None  # noqa: S101 - it starts over
        write_run(output, config, result, numbers_of_run(config, result, frames), frames)
    return load_run(out, BestOfNRunConfig)


def _outcomes(pairs: pl.DataFrame, own: pl.DataFrame) -> pl.DataFrame:
    """Return the outcome of each of the `answer_pairs` (`OUTCOMES`), from answers with the columns of the key."""
    won = pl.when(pl.col("answer") == pl.col("chosen")).then(1.0).otherwise(-1.0)
    values = own.group_by("config", "id", pl.col("sample").cast(pl.Int64)).agg(value=won.mean())
    identical = pl.col("text") == pl.col("against")
    outcomes = pairs.join(values, on=PAIR, how="left", maintain_order="left")
    outcomes = outcomes.with_columns(
        value=pl.when(identical).then(-1.0).otherwise("value"), scores=pl.lit(None, dtype=OUTCOMES["scores"])
    )
    return outcomes.with_columns(reason=pl.when(pl.col("value").is_null()).then(pl.lit(UNANSWERED))).select(*OUTCOMES)


def _record(annotators: int, outcomes: pl.DataFrame) -> OutcomeRecord:
    missing = outcomes["value"].null_count()
    return OutcomeRecord(
        judge=ModelRecord(name=f"{annotators} people", kind=PEOPLE),
        scale=f"{SCALES['win']}, averaged over annotators",
        judged=outcomes.height,
        invalid=missing,
        invalid_reasons={UNANSWERED: missing} if missing else {},
    )
