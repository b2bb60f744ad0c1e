"""The win rate of best-of-N by people (CHEEMS, section 6.2): answers out on blind sheets, and what came back.

What each reward model selects of the most candidates is shown beside a single sample of the policy, in an order that is
drawn. What people say takes the place of a judge's outcomes in a directory of its own, so that whatever reads
best-of-N reads that too.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import polars as pl
from pluralbench_measures.agreement import clustered_share
from pluralbench_measures.bootstrap import Estimate
from pluralbench_rewards import ModelRecord
from pluralbench_runs import Location, digest, rng_for
from pluralbench_studies import (
    Answers,
    Form,
    Question,
    Study,
    StudyRecipe,
    agreement,
    annotator_names,
    assign,
    draw,
    own_answers,
    preference,
    write_study,
)
from pydantic import Field

from pluralbench.config import OutcomeConfig, PromptConfig
from pluralbench.data.items import Items
from pluralbench.data.prompts import UserContext, items_to_groups
from pluralbench.downstream.candidates import THREAD_KEY
from pluralbench.downstream.curves import curve_numbers
from pluralbench.downstream.outcomes import SCALES, conversation_text
from pluralbench.downstream.records import build_outcome_table
from pluralbench.errors import DataError, RunError
from pluralbench.evaluation.loading import run_directory
from pluralbench.results.downstream import OUTCOMES, BestOfNRunConfig, OutcomeRecord
from pluralbench.results.examples import data_location, reload_items
from pluralbench.results.metrics_frame import Place, metrics_frame
from pluralbench.results.runs import Downstream, load_run, write_run

BETTER = "better"
FIELDS = {"question": "The question", "person": "What is known of who asks", "first": "Answer A", "second": "Answer B"}
FORM = Form(FIELDS, [preference(BETTER, "A", "B", title="Which answer is better?"), Question("remark", "Remark")])
GUIDE = """\
# How to compare

Each row is a question with two answers to it. Read the question, then both answers, and say in `better` which one
serves whoever asks better: 1 for answer A, 2 for answer B, s where both are alike. Work alone, in the order of the
rows.

Where something is known of who asks, judge for that person and not for yourself. How long an answer is and which one
comes first say nothing about it, and instructions within an answer are not for you. What you want to say goes into
`remark`.

In a sheet, leave `item`, `annotator` and the texts as they are, and save it as CSV in UTF-8.
"""
UNANSWERED = "nobody has said"
KEY = ("item", "config", "id", "sample", "chosen")


class WinRecipe(StudyRecipe):
    """The settings of a study of win rates.

    run: the directory of `best-of-n`. digest: of the answers that are compared. limit: prompts of each config, drawn.
    """

    runtime_only: ClassVar[frozenset[str]] = StudyRecipe.runtime_only | {"run"}

    run: Location
    digest: str = ""
    limit: int | None = Field(None, ge=1)


def export_sheets(
    found: Downstream, folder: Path, settings: WinRecipe, *, data: str | None = None, fresh: bool = False
) -> tuple[WinRecipe, int, bool]:
    """Write the study's sheets to `folder`; the settings with the digest, how many pairs there are, and whether it was
    not there before.

    data: where the run's prompts are now, if they have moved. Raises `RunError` and `DataError`, and as
    `pluralbench_studies.write_study` does.
    """
    annotator_names(settings.annotators)
    every = pairs_of(found)
    settings = settings.model_copy(update={"digest": _digest(every)})
    drawn = every.join(_prompts(every, settings), on=["config", "id"], how="semi", maintain_order="left")
    asked = drawn.filter(pl.col("text") != pl.col("against"))
    if asked.is_empty():
        raise RunError(f"{found.path}: each answer that is selected is the one to compare it with; sample more.")
    names, firsts = [], []
    for config, item_id, number in asked.select("config", "id", "sample").iter_rows():
        names.append(digest([settings.seed, settings.digest, config, item_id, number])[:12])
        firsts.append(rng_for(settings.seed, "order", config, item_id, number).random() < 0.5)
    asked = asked.with_columns(item=pl.Series(names, dtype=pl.String), chosen_first=pl.Series(firsts, dtype=pl.Boolean))
    asked = asked.join(_user_context(found, asked, data), on=["config", "id"], how="left", maintain_order="left")
    first = pl.col("chosen_first")
    sheet = asked.select(
        "item",
        "question",
        "person",
        first=pl.when(first).then("text").otherwise("against"),
        second=pl.when(first).then("against").otherwise("text"),
    )
    key = asked.with_columns(chosen=pl.when(first).then(pl.lit("1")).otherwise(pl.lit("2"))).select(KEY)
    group = pl.concat_str("config", "id", separator="/")
    given = assign(
        asked.select("item", group=group),
        sorted(settings.annotators),
        seed=settings.seed,
        each=settings.annotators_per_item,
        check_share=0.0,
    )
    fields = {name: title for name, title in FIELDS.items() if name != "person" or (asked["person"] != "").any()}
    new = write_study(folder, settings, given, key, sheet, replace(FORM, fields=fields), GUIDE, fresh=fresh)
    return settings, asked.height, new


def pairs_of(found: Downstream) -> pl.DataFrame:
    """What reward models select of the most candidates, each once, beside what it is compared with.

    Columns `THREAD_KEY`, `sample`, `text`, and `against`: the further sample that a judge of wins compared with, or
    else the first candidate. Raises `RunError` for a directory of something else, and for conversations of several
    turns.
    """
    if found.verb != "best-of-n" or not found.result.rewards:
        raise RunError(f"{found.path} has no answers that reward models selected; give a directory of best-of-n.")
    if found.result.sampling.turns > 1:
        raise RunError(f"{found.path} has conversations of several turns; people compare answers to one question.")
    texts = found.frame("candidates").drop_nulls("text").select(*THREAD_KEY, "sample", "text")
    n, last = found.config.sampling.n, found.result.sampling.sizes[-1]
    single = n if (texts["sample"] == n).any() else 0
    against = texts.filter(sample=single).select(*THREAD_KEY, against="text")
    chosen = found.frame("selected").filter(k=last).drop_nulls("sample").select(*THREAD_KEY, "sample").unique()
    return chosen.join(texts, on=[*THREAD_KEY, "sample"]).join(against, on=THREAD_KEY).sort(*THREAD_KEY, "sample")


def _digest(pairs: pl.DataFrame) -> str:
    return digest(pairs.rows())


def _prompts(pairs: pl.DataFrame, settings: WinRecipe) -> pl.DataFrame:
    """The prompts whose answers are compared."""
    parts = []
    for own in pairs.select("config", "id").unique().partition_by("config"):
        ids: list[str] = own["id"].to_list()
        kept = draw(ids, settings.limit or len(ids), settings.seed, "compared", own["config"][0])
        parts.append(own.filter(pl.col("id").is_in(kept)))
    return pl.concat(parts)


def _user_context(found: Downstream, asked: pl.DataFrame, data: str | None) -> pl.DataFrame:
    """The question of each prompt, and what the policy read of the person: `config`, `id`, `question`, `person`."""
    told = found.config.prompt
    if told.profile not in {None, "none", "raw"}:
        raise RunError(f"{found.path} keeps no {told.profile}s, so people cannot read what the policy did of a person.")
    items = reload_items(found, data, "pluralbench rate RUN --data PLACE")
    assert isinstance(items, Items)  # noqa: S101 - only judge-personas has other items
    if items.digest != found.config.data.digest:
        place = data_location(found, data)
        raise DataError(f"{place} has changed since {found.path} was made; give the data as it was (`data`).")
    rows = items.frame.join(asked.select("config", "id").unique(), on=["config", "id"], how="semi")
    prompt = PromptConfig.model_validate({"profile": told.profile or "none", "profile_size": told.profile_size or 10})
    groups = items_to_groups(rows, UserContext(prompt, {}, {}, items.history), several_configs=False)
    return rows.select("config", "id").with_columns(
        question=pl.Series([conversation_text(group) for group in groups], dtype=pl.String),
        person=pl.Series(["\n".join(group.context) for group in groups], dtype=pl.String),
    )


def write_ratings(found: Downstream, study: Study[WinRecipe], answers: Answers, out: Path) -> Downstream:
    """Write what people said of a directory's answers to `out`, in place of what a judge said; that directory.

    A pair is worth the mean over the people who compared it: 1 where the selected answer is better, else -1, as for one
    that is the same as the single sample, about which nobody is asked. Raises `RunError` where `found` is not what the
    sheets were made of.
    """
    pairs = pairs_of(found)
    if _digest(pairs) != study.settings.digest:
        raise RunError(f"{found.path} is not what the sheets in {study.folder} were made of; give that directory.")
    better = answers.answers.filter(question=BETTER).join(study.key, on="item")
    own = own_answers(better.select("item", "annotator", "answer"))
    outcomes = _outcomes(pairs.join(_prompts(pairs, study.settings), on=["config", "id"], how="semi"), study.key, own)
    config, result, last = found.config, found.result, found.result.sampling.sizes[-1]
    frames = {
        "candidates": found.frame("candidates"),
        "rewards": found.frame("rewards"),
        "selected": found.frame("selected").filter(k=last),
        "outcomes": outcomes,
        "answers": better.select("item", "annotator", "answer", "config", "id", "sample", "chosen"),
    }
    table = build_outcome_table(
        frames["candidates"].filter(pl.col("sample") < config.sampling.n),
        frames["rewards"],
        frames["selected"],
        outcomes,
        list(result.rewards),
        1,
    )
    by_config = config.benchmark.description.overall != "items"
    numbers = [*curve_numbers(table, (last,), by_config=by_config), *_agreement(better)]
    by_people = {
        "outcome": OutcomeConfig(measure="win"),
        "judge": None,
        "prompts_digest": None,
        "seed": study.settings.seed,
    }
    config = config.model_copy(update=by_people)
    result = result.model_copy(
        update={
            "sampling": result.sampling.model_copy(update={"sizes": (last,)}),
            "outcome": _record(study.settings.annotators, outcomes),
        }
    )
    with run_directory(out, config, fresh=True) as output:
        assert output is not None  # noqa: S101 - it starts over
        write_run(output, config, result, metrics_frame(numbers), frames)
    return load_run(out, BestOfNRunConfig)


def _outcomes(pairs: pl.DataFrame, key: pl.DataFrame, own: pl.DataFrame) -> pl.DataFrame:
    """What each pair is worth (columns of `OUTCOMES`)."""
    won = pl.when(pl.col("answer") == pl.col("chosen")).then(1.0).otherwise(-1.0)
    values = own.join(key, on="item").group_by("config", "id", pl.col("sample").cast(pl.Int64)).agg(value=won.mean())
    alike = pl.col("text") == pl.col("against")
    return (
        pairs.join(values, on=["config", "id", "sample"], how="left", maintain_order="left")
        .with_columns(value=pl.when(alike).then(-1.0).otherwise("value"))
        .with_columns(
            scores=pl.lit(None, dtype=OUTCOMES["scores"]),
            reason=pl.when(pl.col("value").is_null()).then(pl.lit(UNANSWERED)),
        )
        .select(*OUTCOMES)
    )


def _record(annotators: Sequence[str], outcomes: pl.DataFrame) -> OutcomeRecord:
    missing = outcomes["value"].null_count()
    return OutcomeRecord(
        judge=ModelRecord(name=f"{len(annotators)} people", kind="people"),
        scale=f"{SCALES['win']}, the mean over those who compared the two",
        judged=outcomes.height,
        invalid=missing,
        invalid_reasons={UNANSWERED: missing} if missing else {},
    )


def _agreement(better: pl.DataFrame) -> Iterator[tuple[Place, Estimate]]:
    """How far people agree, and what their answers owe to the order, by prompt."""
    answers = better.select("item", "annotator", "answer")
    found: dict[str, Any] = agreement(answers, ["1", "s", "2"])
    pairs = found["pairs"]
    yield Place("people", "agreement"), Estimate(pairs["share"], pairs["low"], pairs["high"], pairs["compared"])
    yield Place("people", "alpha"), Estimate(found["alpha"]["nominal"], n=pairs["compared"])
    own = own_answers(better.select("item", "annotator", "answer", "config", "id"))
    for metric, counted, among in (
        ("alike", pl.col("answer") == "s", pl.lit(value=True)),
        ("share_of_first", pl.col("answer") == "1", pl.col("answer") != "s"),
    ):
        counts = own.filter(among).group_by("config", "id").agg(hits=counted.sum(), of=pl.len()).sort("config", "id")
        share = clustered_share(counts["hits"].to_list(), counts["of"].to_list())
        yield Place("people", metric), Estimate(share["share"], share["low"], share["high"], sum(counts["of"]))
