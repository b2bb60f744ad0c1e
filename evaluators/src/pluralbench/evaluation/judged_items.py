"""The items of a benchmark as a language model judges them: pairwise, pointwise or listwise."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import polars as pl
from pluralbench_calls.verdicts import parse_with_all_rules
from pluralbench_measures.rankings import pairs_of
from pluralbench_rewards.contract import Group, Scored
from pluralbench_rewards.judge import Comparison, Judge, scores_of
from pluralbench_rewards.prompts import JudgePrompt
from pluralbench_runs import rng_for

from pluralbench.config import JudgeConfig
from pluralbench.data.column_types import schema_of
from pluralbench.data.decisions import BASE, JUDGED, SOFT, decide, lists_pairs, score_items
from pluralbench.data.layouts import records_responses
from pluralbench.data.prompts import judge_context, language_context, rubric_text
from pluralbench.data.votes import SIDES, verdict
from pluralbench.errors import EvaluationError
from pluralbench.evaluation.loading import LoadedBenchmark
from pluralbench.evaluation.soft_verdicts import decide_by_probability, record_probabilities
from pluralbench.evaluation.verdicts import record_replies

BEST_AND_OTHERS = 2  # ranks of an item that a pick of the best response can rank


class JudgeVerdicts(NamedTuple):
    """A judge's verdicts on all items.

    Attributes:
        frame: The rows of `items.parquet`.
        reasons: Why verdicts are invalid, one entry each.
        readings: Number of replies that each parsing rule can read; empty with a prompt of its own.
    """

    frame: pl.DataFrame
    reasons: list[str]
    readings: dict[str, int]


class JudgeContexts(NamedTuple):
    """Text that a judge sees next to each question.

    Attributes:
        person: User context of each item, "" for none.
        language: Sentence about the languages of question and answer of each item, "" for none.
        variables: Further variables of the judge's own prompt; empty without one.
    """

    person: list[str]
    language: list[str]
    variables: list[dict[str, str]]

    @classmethod
    def for_items(cls, loaded: LoadedBenchmark, judging: JudgeConfig) -> "JudgeContexts":
        """Build the contexts of all items.

        Raises:
            DataError: If an item lacks the user context or the rubric aspects that the configuration asks for.
        """
        items = list(loaded.frame.iter_rows(named=True))
        answers = judging.answer_language
        # A prompt of its own shows the rubric aspects as its rubric.
        oracle = judging.oracle if judging.prompt is None else None
        return cls(
            [judge_context(item, loaded.context, oracle=oracle) for item in items],
            [language_context(loaded.benchmark, item["config"], item["subset"] or "", answers) for item in items],
            [_variables(item, loaded, judging) for item in items],
        )

    def at(self, places: Sequence[int]) -> "JudgeContexts":
        """Return the contexts of some items."""
        return JudgeContexts(
            [self.person[place] for place in places],
            [self.language[place] for place in places],
            [self.variables[place] for place in places],
        )


def _variables(item: Mapping[str, Any], loaded: LoadedBenchmark, judging: JudgeConfig) -> dict[str, str]:
    """Return the further variables of a judge's own prompt for an item."""
    prompt = judging.prompt
    if prompt is None:
        return {}
    values = {}
    if judging.oracle is not None:
        values["rubric"] = rubric_text(item, judging.oracle)
    if "history" in prompt.variables:
        values["history"] = prompt.history(loaded.context.history.before(item))
    return values


class ScoredResponses(NamedTuple):
    """A judge's replies on the responses of an item, as scores.

    Attributes:
        scores: Rating of each response, or 1 for the picked one and 0 for the others; NaN if a reply is invalid.
        calls: Keys of the calls behind each score.
        positions: Position of each response in the list that the judge saw, from 1; None for ratings.
        reasons: Why replies are invalid.
    """

    scores: list[float]
    calls: list[list[str]]
    positions: list[int | None]
    reasons: list[str]


def check_protocol(loaded: LoadedBenchmark, judging: JudgeConfig) -> None:
    """Check that the items fit the protocol.

    Raises:
        EvaluationError: The protocol is pairwise, and all responses of every item are tied or a subset counts by the
            rule `ties`, which needs scores; or it is listwise, and no subset has one best response per item. Or
            probabilities are to decide, and the benchmark has its own vote.
    """
    where, prompt = loaded.items.location, judging.prompt
    if prompt is not None:
        _check_prompt(prompt, loaded, judging)
    if judging.protocol == "pairwise" and not any(pairs_of(rank) for rank in loaded.items.frame["rank"]):
        raise EvaluationError(f"{where} has only tied responses, so there is nothing to judge; choose other items.")
    subsets = loaded.items.frame["subset"].unique()
    scored = next((subset for subset in subsets if loaded.benchmark.credit_of(subset) == "ties"), None)
    if judging.protocol == "pairwise" and scored is not None:
        raise EvaluationError(
            f'The subset {scored} of {where} counts by scores, which `protocol="pairwise"` does not give; use '
            '"listwise" or "pointwise".'
        )
    if judging.tie_margin is not None and loaded.benchmark.vote != "unanimous":
        raise EvaluationError(
            f"{where} counts the verdicts of both orders by the benchmark's own vote, which `tie_margin=...` would "
            "replace; leave it out."
        )
    if judging.protocol != "listwise":
        return
    if not records_responses(loaded.benchmark):
        raise EvaluationError(f'{where} has pairs, which `protocol="listwise"` does not judge; use "pairwise".')
    if prompt is not None and prompt.verdict.scale is not None:
        return
    fitting = listwise_subsets(loaded)
    others = {*loaded.items.frame.select("config", "subset").iter_rows()} - fitting
    if prompt is not None and others:
        config, subset = min(others, key=str)
        raise EvaluationError(
            f"The prompt {prompt.name} picks one response, but not every item of {subset or config} has one best "
            "response; choose a prompt with a scale, or other items."
        )
    if not fitting:
        raise EvaluationError(
            f'`protocol="listwise"` picks one response, but no subset of {where} has one best response per item; use '
            '"pointwise" or "pairwise".'
        )


def _check_prompt(prompt: JudgePrompt, loaded: LoadedBenchmark, judging: JudgeConfig) -> None:
    """Check that a prompt shows the user context and the rubric that the run chooses.

    Raises:
        EvaluationError: The prompt would leave out one of them.
    """
    profile, shown = loaded.prompt.profile, prompt.variables
    if profile != "none" and "person" not in shown:
        raise EvaluationError(
            f'The prompt {prompt.name} does not show the user context of `profile="{profile}"`; leave it out, or use '
            "{person} in the prompt."
        )
    if judging.oracle is not None and "rubric" not in shown:
        raise EvaluationError(
            f"The prompt {prompt.name} does not show the rubric aspects of `oracle=...`; leave it out, or use "
            "{rubric} in the prompt."
        )


def listwise_subsets(loaded: LoadedBenchmark) -> set[tuple[str, str | None]]:
    """Return the configs and subsets of which each item has one best response, and all others share a rank.

    A pick cannot rank other items, so `protocol="listwise"` rates their responses, and those of their whole subset.
    """
    subsets: dict[tuple[str, str | None], bool] = {}
    for config, subset, ranks in loaded.items.frame.select("config", "subset", "rank").iter_rows():
        fits = ranks.count(min(ranks)) == 1 and len(set(ranks)) == BEST_AND_OTHERS
        fits &= loaded.benchmark.credit_of(subset) != "ties"  # needs the distances of scores
        subsets[config, subset] = subsets.get((config, subset), True) and fits
    return {subset for subset, fits in subsets.items() if fits}


def judge_items(
    the_judge: Judge, loaded: LoadedBenchmark, contexts: JudgeContexts, judging: JudgeConfig, seed: int
) -> JudgeVerdicts:
    """Judge the items of `loaded.frame`; calls that the judge's ledger contains are not repeated."""
    if judging.protocol == "pairwise":
        return _compare_items(the_judge, loaded, contexts, judging, seed)
    listwise = judging.protocol == "listwise"
    items, subsets = loaded.frame, listwise_subsets(loaded) if listwise else set()
    ranks_all = listwise and judging.prompt is not None and judging.prompt.verdict.scale is not None
    places: dict[bool, list[int]] = {True: [], False: []}
    for place, subset in enumerate(items.select("config", "subset").iter_rows()):
        places[ranks_all or subset in subsets].append(place)
    picked = _pick(the_judge, items[places[True]], contexts.at(places[True]), seed)
    rated = _rate(the_judge, items[places[False]], contexts.at(places[False]))
    by_place = dict(zip([*places[True], *places[False]], [*picked, *rated], strict=True))
    responses = [by_place[place] for place in range(items.height)]
    scored = Scored([one.scores for one in responses], tokens_cut=[0] * items.height)
    frame = score_items(loaded.benchmark, items, scored, decide(items, scored.scores, scored.tokens_cut))
    columns: dict[str, list[Any]]
    if "response" in frame.columns:
        columns = {"calls": [keys for one in responses for keys in one.calls]}
        if listwise:
            columns = {"position": [position for one in responses for position in one.positions]} | columns
    else:
        sides = enumerate(("chosen", "rejected"))
        columns = {f"calls_{side}": [one.calls[place] for one in responses] for place, side in sides}
    reasons = [reason for one in responses for reason in one.reasons]
    return JudgeVerdicts(frame.hstack(pl.DataFrame(columns, schema=schema_of(*columns))), reasons, {})


def _groups(items: pl.DataFrame) -> list[Group]:
    rows = items.select("id", "prompt", "responses").iter_rows(named=True)
    return [Group(row["id"], row["prompt"], row["responses"]) for row in rows]


def _rate(the_judge: Judge, items: pl.DataFrame, contexts: JudgeContexts) -> list[ScoredResponses]:
    """Rate each response by itself."""
    ratings = the_judge.rate(_groups(items), *contexts)
    scores = scores_of(ratings).scores
    return [
        ScoredResponses(
            values,
            [list(rating.calls) for rating in group],
            [None] * len(group),
            [rating.reason for rating in group if rating.reason],
        )
        for values, group in zip(scores, ratings, strict=True)
    ]


def _pick(the_judge: Judge, items: pl.DataFrame, contexts: JudgeContexts, seed: int) -> list[ScoredResponses]:
    """Let the judge pick one response of each item or score all in one reply, in an order drawn by the seed."""
    orders, groups = [], []
    for config, group in zip(items["config"], _groups(items), strict=True):
        order = list(range(len(group.responses)))
        rng_for(seed, "positions", config, group.id).shuffle(order)
        orders.append(order)
        groups.append(replace(group, responses=[group.responses[place] for place in order]))
    picked = []
    for order, listed in zip(orders, the_judge.score_lists(groups, *contexts), strict=True):
        positions = {place: number for number, place in enumerate(order, 1)}
        own = [positions[place] for place in range(len(order))]
        scores = [math.nan if listed.value is None else listed.value[position - 1] for position in own]
        keys = [list(listed.calls)] * len(order)
        picked.append(ScoredResponses(scores, keys, [*own], [listed.reason] if listed.reason else []))
    return picked


def _compare_items(
    the_judge: Judge, loaded: LoadedBenchmark, contexts: JudgeContexts, judging: JudgeConfig, seed: int
) -> JudgeVerdicts:
    """Compare each pair of differently ranked responses; a row has the verdict of each order."""
    rows: list[dict[str, Any]] = []
    questions: list[tuple[int, bool]] = []  # row, and whether the responses are swapped
    comparisons = []
    listed = lists_pairs(loaded.frame)
    for item, person, language, variables in zip(loaded.frame.iter_rows(named=True), *contexts, strict=True):
        base = {name: item[name] for name in BASE} | {"truncated": False}
        pairs = [(better, worse) for better, worse in item["compared"] or ()] if listed else pairs_of(item["rank"])
        if not pairs:
            rows.append(base | {"outcome": "equal"})
        for better, worse in pairs:
            names = {"chosen": item["response_ids"][better], "rejected": item["response_ids"][worse]}
            rows.append(base | names | {"attempts": 0})
            draw = rng_for(seed, "order", item["config"], item["id"], *names.values()).random()
            for swapped in (False, True) if judging.orders == "both" else (draw >= 0.5,):
                first, second = (worse, better) if swapped else (better, worse)
                questions.append((len(rows) - 1, swapped))
                responses = item["responses"][first], item["responses"][second]
                name = f"{item['config']}/{item['id']}"
                comparisons.append(Comparison(name, item["prompt"], *responses, person, language, variables))
    replies = the_judge.compare(comparisons)
    record_replies(rows, questions, replies, [reply.value for reply in replies], SIDES)
    if judging.logprobs:
        record_probabilities(rows, questions, replies, str)
    for row in rows:
        if row.get("outcome") != "equal":
            row["verdict"], row["outcome"] = verdict(row, loaded.benchmark.vote)
            if judging.tie_margin is not None:
                row.update(decide_by_probability(row, judging.tie_margin))
    frame = pl.DataFrame(rows, schema={**JUDGED, **SOFT} if judging.logprobs else JUDGED)
    counts: Counter[str] = Counter()
    for reply in replies if the_judge.prompt is None else ():
        letters = parse_with_all_rules(reply.answer.text)
        counts.update({rule: int(letter is not None) for rule, letter in letters.items()})
    return JudgeVerdicts(frame, frame["reason"].drop_nulls().to_list(), dict(counts))
