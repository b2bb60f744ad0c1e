"""The items of a benchmark as a language model judges them: pairwise, pointwise or listwise."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple, TypeVar

import polars as pl
from pluralbench_calls import ParsedReply
from pluralbench_calls.verdicts import Verdict, parse_with_all_rules
from pluralbench_measures.rankings import pairs_of
from pluralbench_rewards import Question
from pluralbench_rewards.judge import Judge, scores_of
from pluralbench_rewards.prompts import JudgePrompt
from pluralbench_runs import rng_for

from pluralbench.config import JudgeConfig, RubricFile
from pluralbench.data.column_types import BASE, schema_of
from pluralbench.data.credits import credit_of
from pluralbench.data.decisions import JUDGED, SOFT, decide, lists_pairs, score_items
from pluralbench.data.layouts import records_responses
from pluralbench.data.prompts import judge_context, language_context, rubric_text
from pluralbench.data.votes import CHOICES, INVALID, REPLIES_COMPARED, REPLIES_SCORED, SIDES, Votes, verdict
from pluralbench.errors import EvaluationError
from pluralbench.evaluation.loading import LoadedBenchmark
from pluralbench.evaluation.soft_verdicts import decide_by_probability, mean_probability, record_probabilities
from pluralbench.evaluation.verdicts import record_replies

Value = TypeVar("Value")
BEST_AND_OTHERS = 2  # ranks of an item that a pick of the best response can rank


class JudgeVerdicts(NamedTuple):
    """A judge's verdicts on all items.

    Attributes:
        readings: Number of replies that each parsing rule can read; empty with a prompt of its own.
        replies: The rows of `replies.parquet`; None if there is one reply to each question.
        left_out: Fields of the result about items that are not judged.
    """

    frame: pl.DataFrame
    reasons: list[str]
    readings: dict[str, int]
    replies: pl.DataFrame | None = None
    left_out: Mapping[str, Any] = {}

    @property
    def frames(self) -> dict[str, pl.DataFrame]:
        """The frames of the run by name."""
        return {"items": self.frame} | ({} if self.replies is None else {"replies": self.replies})


def questions_of(loaded: LoadedBenchmark, judging: JudgeConfig) -> list[Question]:
    """Return what a judge sees of each item: its prompt, all responses in the data's order, and the contexts.

    Raises:
        DataError: If an item lacks the user context or the rubric aspects that the configuration asks for.
    """
    # A prompt of its own shows the rubric aspects as its rubric.
    oracle = judging.oracle if judging.prompt is None else None
    return [
        Question(
            item["id"],
            item["prompt"],
            item["responses"],
            judge_context(item, loaded.context, oracle=oracle),
            language_context(loaded.benchmark, item["config"], item["subset"] or "", judging.answer_language),
            _variables(item, loaded, judging),
        )
        for item in loaded.frame.iter_rows(named=True)
    ]


def _variables(item: Mapping[str, Any], loaded: LoadedBenchmark, judging: JudgeConfig) -> dict[str, str]:
    prompt = judging.prompt
    if prompt is None:
        return {}
    values = {}
    if judging.oracle is not None:
        values["rubric"] = rubric_text(item, judging.oracle)
    elif isinstance(judging.rubric, RubricFile):
        values["rubric"] = judging.rubric.text
    elif item["rubric"] and judging.rubric_model is None and judging.rubric == "data":
        values["rubric"] = item["rubric"]
    if item["reference"]:
        values["reference"] = item["reference"]
    if "history" in prompt.variables:
        values["history"] = prompt.history(loaded.context.history.before(item))
    return values


class ScoredResponses(NamedTuple):
    """Replies on the responses of an item, as scores.

    Attributes:
        replies: Those on each response, by judge and sample: ratings, or 1 for the picked response and 0 for others.
        positions: Position of each response in the list that the judges saw, from 1; None for ratings.
    """

    replies: list[list[ParsedReply[float]]]
    positions: list[int | None]

    @property
    def reasons(self) -> list[str]:
        """Why questions have no valid reply; a list is one question."""
        questions = self.replies if self.positions[0] is None else self.replies[:1]
        return [own.reason for own in map(join_replies, questions) if own.reason]


def check_protocol(loaded: LoadedBenchmark, judging: JudgeConfig) -> None:
    """Raise `EvaluationError` if the items do not fit the protocol, or the vote that probabilities would replace."""
    where, prompt = loaded.items.location, judging.prompt
    if prompt is not None:
        _check_prompt(prompt, loaded, judging)
    if judging.protocol == "pairwise" and not any(pairs_of(rank) for rank in loaded.items.frame["rank"]):
        raise EvaluationError(f"{where} has only tied responses, so there is nothing to judge; choose other items.")
    subsets = loaded.items.frame["subset"].unique()
    scored = next((subset for subset in subsets if credit_of(loaded.benchmark, subset).of_scores), None)
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
    if prompt is not None and prompt.verdict.scale is not None:
        return  # scores of both responses decide a pair, too
    if not records_responses(loaded.benchmark):
        raise EvaluationError(f'{where} has pairs, which `protocol="listwise"` does not judge; use "pairwise".')
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
    """Raise `EvaluationError` if the prompt would leave out the user context or the rubric that the run chooses."""
    profile, shown = loaded.prompt.profile, prompt.variables
    if profile != "none" and "person" not in shown:
        raise EvaluationError(
            f'The prompt {prompt.name} does not show the user context of `profile="{profile}"`; leave it out, or use '
            "{person} in the prompt."
        )
    of_data = judging.rubric == "data" and not loaded.items.frame["rubric"].null_count()
    has_rubrics = judging.oracle is not None or isinstance(judging.rubric, RubricFile) or of_data
    if prompt.rubric is not None and judging.rubric_model is None and not has_rubrics:
        raise EvaluationError(
            f"The prompt {prompt.name} needs a rubric; name the model that writes it with `rubric_model=...`, or show "
            'the data\'s with `oracle=...` or `columns=["rubric=COLUMN"]`, or a file\'s with `rubric="FILE"`.'
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
        fits &= not credit_of(loaded.benchmark, subset).of_scores
        subsets[config, subset] = subsets.get((config, subset), True) and fits
    return {subset for subset, fits in subsets.items() if fits}


def judge_items(
    judges: Sequence[Judge], loaded: LoadedBenchmark, items: Sequence[Question], judging: JudgeConfig, seed: int
) -> JudgeVerdicts:
    """Judge the items of `loaded.frame`, which `questions_of` shows; calls in the judges' ledger are not repeated."""
    several = len(judges) * judging.samples > 1
    judged = (_compare_items if judging.protocol == "pairwise" else _score_items)(judges, loaded, items, judging, seed)
    if not several or judged.replies is None or judged.replies.is_empty():
        return judged if several else judged._replace(replies=None)
    votes = Votes(judged.frame, judged.replies, judging.vote, loaded.benchmark.vote)
    return judged._replace(frame=votes.of([*range(len(judges))], [*range(judging.samples)]).items)


def _score_items(
    judges: Sequence[Judge], loaded: LoadedBenchmark, items: Sequence[Question], judging: JudgeConfig, seed: int
) -> JudgeVerdicts:
    listwise = judging.protocol == "listwise"
    subsets = listwise_subsets(loaded) if listwise else set()
    ranks_all = listwise and judging.prompt is not None and judging.prompt.verdict.scale is not None
    places: dict[bool, list[int]] = {True: [], False: []}
    for place, subset in enumerate(loaded.frame.select("config", "subset").iter_rows()):
        places[ranks_all or subset in subsets].append(place)
    lists, others = ([items[place] for place in places[own]] for own in (True, False))
    picked = _pick(judges, loaded.frame["config"].gather(places[True]).to_list(), lists, judging.samples, seed)
    rated = _rate(judges, others, judging.samples)
    by_place = dict(zip([*places[True], *places[False]], [*picked, *rated], strict=True))
    responses = [by_place[place] for place in range(len(items))]
    joined = [[join_replies(own) for own in one.replies] for one in responses]
    scored = scores_of(joined)
    frame = score_items(loaded.benchmark, loaded.frame, scored, decide(loaded.frame, scored.scores, scored.tokens_cut))
    calls = [[list(own.calls) for own in one] for one in joined]
    columns: dict[str, list[Any]]
    if "response" in frame.columns:
        columns = {"calls": [keys for one in calls for keys in one]}
        if listwise:
            columns = {"position": [position for one in responses for position in one.positions]} | columns
    else:
        columns = {f"calls_{side}": [one[place] for one in calls] for place, side in enumerate(CHOICES)}
    frame = frame.hstack(pl.DataFrame(columns, schema=schema_of(*columns)))
    rows = [
        {"config": config, "id": name, "response": response, "score": reply.value} | origin
        for config, name, response_ids, one in zip(
            *(loaded.frame[column] for column in ("config", "id", "response_ids")), responses, strict=True
        )
        for response, own in zip(response_ids if "response" in frame.columns else CHOICES, one.replies, strict=True)
        for reply, origin in zip(own, _origins(judges, own), strict=True)
    ]
    reasons = [reason for one in responses for reason in one.reasons]
    return JudgeVerdicts(frame, reasons, {}, pl.DataFrame(rows, REPLIES_SCORED))


def _origins(judges: Sequence[Judge], replies: Sequence[ParsedReply[Any]]) -> list[dict[str, Any]]:
    """Return where replies to a question are from, as columns of `replies.parquet`."""
    return [
        {"judge": judges[judge].name, "sample": sample, "reason": reply.reason or None, "calls": list(reply.calls)}
        for (judge, sample), reply in zip(
            product(range(len(judges)), range(len(replies) // len(judges))), replies, strict=True
        )
    ]


def join_replies(replies: Sequence[ParsedReply[Value]]) -> ParsedReply[Value]:
    """Join the replies to a question: the first value, and the calls of all; the last reason if none has a value."""
    valid = next((reply for reply in replies if not reply.reason), replies[-1])
    return replace(valid, calls=tuple(key for reply in replies for key in reply.calls))


def _rate(judges: Sequence[Judge], questions: Sequence[Question], samples: int) -> list[ScoredResponses]:
    every = [judge.rate(questions, samples=samples) for judge in judges]
    return [
        ScoredResponses([list(own) for own in zip(*ratings, strict=True)], [None] * len(ratings[0]))
        for ratings in _by_question(every, samples)
    ]


def _pick(
    judges: Sequence[Judge], configs: Sequence[str], questions: Sequence[Question], samples: int, seed: int
) -> list[ScoredResponses]:
    """Let the judges pick one response of each item or score all in one reply, in an order drawn by the seed."""
    orders, shuffled = [], []
    for config, question in zip(configs, questions, strict=True):
        order = list(range(len(question.responses)))
        rng_for(seed, "positions", config, question.id).shuffle(order)
        orders.append(order)
        shuffled.append(replace(question, responses=[question.responses[place] for place in order]))
    every = [judge.score_lists(shuffled, samples=samples) for judge in judges]
    picked = []
    for order, picks in zip(orders, _by_question(every, samples), strict=True):
        positions = [number for _, number in sorted(zip(order, range(1, len(order) + 1), strict=True))]
        replies = [[_as_score(pick, position) for pick in picks] for position in positions]
        picked.append(ScoredResponses(replies, [*positions]))
    return picked


def _as_score(listed: ParsedReply[list[float]], position: int) -> ParsedReply[float]:
    score = None if listed.value is None else listed.value[position - 1]
    return ParsedReply(score, listed.answer, listed.reason, listed.calls)


def _by_question(every: Sequence[Sequence[Value]], samples: int) -> list[list[Value]]:
    """Return the replies to each question by judge and sample, from those of each judge by sample and question."""
    count = len(every[0]) // samples
    return [[own[sample * count + place] for own in every for sample in range(samples)] for place in range(count)]


def _compare_items(
    judges: Sequence[Judge], loaded: LoadedBenchmark, items: Sequence[Question], judging: JudgeConfig, seed: int
) -> JudgeVerdicts:
    """Compare each pair of differently ranked responses; a row has the first reply in each order."""
    rows: list[dict[str, Any]] = []
    questions: list[tuple[int, bool]] = []  # row, and whether the responses are swapped
    shown = []
    listed = lists_pairs(loaded.frame)
    for item, whole in zip(loaded.frame.iter_rows(named=True), items, strict=True):
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
                shown.append(replace(whole, id=f"{item['config']}/{item['id']}", responses=responses))
    every = [judge.compare(shown, samples=judging.samples) for judge in judges]
    by_question = _by_question(every, judging.samples)
    joined = [join_replies(own) for own in by_question]
    record_replies(rows, questions, joined, [reply.value for reply in joined], SIDES)
    if judging.logprobs:
        soft = [replace(one, soft=mean_probability(own, str)) for one, own in zip(joined, by_question, strict=True)]
        record_probabilities(rows, questions, soft, str)
    for row in rows:
        if row.get("outcome") != "equal":
            row["verdict"], row["outcome"] = verdict(row, loaded.benchmark.vote)
            if judging.tie_margin is not None:
                row.update(decide_by_probability(row, judging.tie_margin))
    frame = pl.DataFrame(rows, schema={**JUDGED, **SOFT} if judging.logprobs else JUDGED)
    replies = [
        {name: rows[place][name] for name in ("config", "id", "chosen", "rejected")}
        | {"first": CHOICES[swapped], "verdict": reply.value or INVALID, "margin": _margin(judges[0], reply)}
        | origin
        for (place, swapped), own in zip(questions, by_question, strict=True)
        for reply, origin in zip(own, _origins(judges, own), strict=True)
    ]
    counts: Counter[str] = Counter()
    for reply in (reply for judge, own in zip(judges, every, strict=True) if judge.prompt is None for reply in own):
        letters = parse_with_all_rules(reply.answer.text)
        counts.update({rule: int(letter is not None) for rule, letter in letters.items()})
    reasons = frame["reason"].drop_nulls().to_list()
    return JudgeVerdicts(frame, reasons, dict(counts), pl.DataFrame(replies, REPLIES_COMPARED))


def _margin(judge: Judge, reply: ParsedReply[Verdict]) -> float | None:
    """Return the score of what the judge saw first less that of the other; None without scores."""
    scores = judge.pair_scores(reply)
    return None if scores is None else scores[0] - scores[1]
