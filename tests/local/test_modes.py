"""However conversations are batched, they are scored as each would be alone."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import pytest
from case_marks import heavy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pluralbench_local import LocalRewardModel, score
from pluralbench_rewards import Group, Mode, RewardModel, Scored, ScoringConfig
from pluralbench_rewards.cluster import Scorer, WorkersModel
from reward_models import (
    Folders,
    classifier_alone,
    conversation_ids,
    differences,
    load_classifier,
    load_plainly,
    logits_alone,
    make_groups,
    undecided,
    user,
    work_of,
)
from transformers import AutoModelForSequenceClassification

Tree = str | list[tuple[str, Any]]
WORDS_OF_A_LEAF = st.text("ab ", min_size=1, max_size=20)
TREES = st.recursive(
    WORDS_OF_A_LEAF, lambda below: st.lists(st.tuples(WORDS_OF_A_LEAF, below), min_size=1, max_size=3), max_leaves=8
)
SIZES = st.sampled_from([1, 30, 60, 200])


def texts(tree: Tree) -> list[str]:
    """The ways from the root of a tree to its leaves."""
    return [tree] if isinstance(tree, str) else [text + rest for text, below in tree for rest in texts(below)]


PACKED = ["qwen3", "mistral", "mixtral", "gpt2"]  # beside a dense model and one with windows
CLOSE = 1e-4
MODES: list[Mode] = ["fast", "exact"]


@pytest.mark.parametrize(
    ("architecture", "seed"),
    [("llama", 1), *heavy(("gemma2", 1), ("gemma2", 0), *((name, 1) for name in PACKED))],
)
def test_in_single_precision_every_mode_decides_as_one_at_a_time(
    classifiers: Folders, architecture: str, seed: int
) -> None:
    folder = classifiers(architecture, seed=seed)
    model, groups = load_classifier(folder), make_groups(seed, longest=40 if seed else 150)
    alone = classifier_alone(folder, groups)
    for mode in MODES:
        scored = score(model, groups, mode=mode)
        assert (work_of(scored).strategy, work_of(scored).unpackable) == (mode, "")
        assert max(differences(scored.scores, alone)) < CLOSE
        assert undecided(scored.scores, alone) == 0
        measured = model.tolerance(groups, scored)
        assert measured < CLOSE
        assert max(differences(scored.scores, alone)) <= measured or architecture == "mistral"  # see below


@pytest.mark.parametrize("architecture", ["bert", *heavy("bloom", "gpt-oss", "longrope", "qwen3-next")])
def test_what_cannot_be_packed_is_padded_says_why_and_decides_alike(classifiers: Folders, architecture: str) -> None:
    folder = classifiers(architecture)
    model, groups = load_classifier(folder), make_groups(4)
    alone = classifier_alone(folder, groups)
    for mode in MODES:
        scored = score(model, groups, mode=mode)
        assert work_of(scored).strategy == "padded"
        assert work_of(scored).unpackable
        assert max(differences(scored.scores, alone)) < CLOSE
        assert undecided(scored.scores, alone) == 0
    assert model.tolerance(groups, scored) < CLOSE


def half_precision(folder: str, modes: Sequence[Mode], seed: int) -> list[tuple[float, float, float]]:
    """Of each mode the largest difference from one at a time, the largest margin decided otherwise, the tolerance."""
    model, groups = load_classifier(folder, dtype="bfloat16"), make_groups(seed, longest=60)
    alone = classifier_alone(folder, groups, "bfloat16")
    found = [score(model, groups, mode=mode) for mode in modes]
    return [
        (max(differences(one.scores, alone)), undecided(one.scores, alone), model.tolerance(groups, one))
        for one in found
    ]


@pytest.mark.parametrize(("architecture", "seed"), [("llama", 0), *heavy(("qwen3", 1), ("gemma2", 0), ("gpt2", 1))])
def test_in_bfloat16_only_margins_within_the_tolerance_are_decided_otherwise(
    classifiers: Folders, architecture: str, seed: int
) -> None:
    for largest, margin, measured in half_precision(classifiers(architecture, seed=seed), MODES, seed):
        assert largest <= 3 * measured  # a measurement of few conversations
        assert measured < 0.5
        assert margin <= measured


@pytest.mark.parametrize("architecture", ["mistral", "gemma2"])
def test_a_window_shorter_than_the_conversations_changes_the_scores(classifiers: Folders, architecture: str) -> None:
    groups = make_groups(1)
    narrow = score(load_classifier(classifiers(architecture)), groups).scores
    wide = score(load_classifier(classifiers(architecture, sliding_window=1024)), groups).scores
    assert max(differences(narrow, wide)) > 0.01  # or the tests above would not tell


def test_a_soft_cap_on_attention_is_kept(classifiers: Folders) -> None:
    folder, groups = classifiers("gemma2", attn_logit_softcapping=0.5), make_groups(1)
    scores = score(load_classifier(folder), groups).scores
    assert max(differences(scores, classifier_alone(folder, groups))) < CLOSE
    assert max(differences(scores, score(load_classifier(classifiers("gemma2")), groups).scores)) > 0.01


@pytest.mark.parametrize("name", ["llama", "bert"])
def test_responses_that_are_the_same_are_scored_once(request: pytest.FixtureRequest, name: str) -> None:
    model = request.getfixturevalue(name)
    once = score(model, [Group("q", user("hi"), ["origami", "drumming"])])
    twice = score(model, [Group("q", user("hi"), ["origami", "drumming", "origami", "drumming", "origami"])])
    first, second = once.scores[0]
    assert twice.scores == [[first, second, first, second, first]]
    assert work_of(twice).computed_tokens == work_of(once).computed_tokens
    assert work_of(twice).unique_tokens == work_of(once).unique_tokens
    assert work_of(twice).conversations == 5


def test_fast_computes_each_token_once_and_exact_each_conversation(llama: "LocalRewardModel") -> None:
    group = Group("q", user("a quiet hobby " * 20), ["origami", "drumming", "walking with an old dog"])
    fast, exact = (work_of(score(llama, [group], mode=mode)) for mode in ("fast", "exact"))
    conversations = [conversation_ids(llama.template.tokenizer, group, response) for response in group.responses]
    assert exact.computed_tokens == sum(map(len, conversations))
    assert fast.computed_tokens == fast.unique_tokens == exact.unique_tokens < exact.computed_tokens / 2


@pytest.mark.parametrize("architecture", ["llama", "gemma2"])
def test_what_several_questions_share_is_computed_once_whatever_the_batches(
    classifiers: Folders, architecture: str
) -> None:
    model = load_classifier(classifiers(architecture))

    @settings(max_examples=6)
    @given(TREES, SIZES)
    def same_scores(tree: Tree, budget: int) -> None:
        groups = [Group(str(number), user(text), ["origami", "drumming"]) for number, text in enumerate(texts(tree))]
        whole, parts = score(model, groups, mode="exact"), score(model, groups, token_budget=budget)
        assert max(differences(parts.scores, whole.scores), default=0) < CLOSE
        once = work_of(score(model, groups, token_budget=10**6)).computed_tokens
        if budget >= max(count for counts in parts.tokens for count in counts):
            assert work_of(parts).computed_tokens == once
        assert once <= work_of(parts).computed_tokens

    same_scores()


@pytest.mark.parametrize("name", ["llama", *heavy("bert", "implicit")])
def test_the_scores_of_one_run_are_those_of_a_resumed_one_of_shards_and_of_workers(
    request: pytest.FixtureRequest, name: str
) -> None:
    model = request.getfixturevalue(name)

    @settings(max_examples=8)
    @given(st.data(), TREES, st.sampled_from([1, 40, 90]), st.sampled_from(["fast", "exact"]), st.integers(1, 3))
    def same_bits(data: st.DataObject, tree: Tree, budget: int, mode: Mode, in_block: int) -> None:
        groups = [
            Group(str(number), user(text), ["origami", "drumming", "tea"], block=number // in_block)
            for number, text in enumerate(texts(tree))
        ]

        def scores(part: Sequence[Group], cached: Mapping[int, list[float]] | None = None) -> Scored:
            return score(model, part, cached=cached, mode=mode, token_budget=budget)

        whole = scores(groups)
        known = data.draw(st.sets(st.sampled_from(range(len(groups)))) if groups else st.just(set[int]()))
        resumed = scores(groups, {place: whole.scores[place] for place in known})
        assert resumed.scores == whole.scores
        assert work_of(resumed).computed_tokens <= work_of(whole).computed_tokens
        for of in (2, 3, 5):
            for number in range(of):
                places = [place for place, group in enumerate(groups) if group.block % of == number]
                assert scores([groups[place] for place in places]).scores == [whole.scores[place] for place in places]
        if len({group.block for group in groups}) > 1:
            local = replace(model, scoring=ScoringConfig(mode=mode, token_budget=budget))
            workers = WorkersModel(lambda: OneWorker(local), 2, model.record())
            assert workers.score(groups).scores == whole.scores

    same_bits()


class OneWorker:
    """Workers of a pool, one after the other in this process."""

    def __init__(self, model: RewardModel) -> None:
        self.scorer = Scorer(lambda: model)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        pass

    def results(self, method: str, parts: Sequence[tuple[Any, ...]]) -> Iterator[tuple[int, Any]]:
        yield from ((number, getattr(self.scorer, method)(*part)) for number, part in enumerate(parts))


def test_no_groups_give_no_scores(llama: "LocalRewardModel") -> None:
    scored = score(llama, [])
    assert (scored.scores, scored.dropped) == ([], {})
    assert llama.tolerance([], scored) == 0


TEXTS = st.text(st.characters(codec="utf-8"), max_size=60)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(TEXTS, st.lists(TEXTS, min_size=1, max_size=4)), min_size=1, max_size=3))
def test_whatever_the_texts_are_fast_scores_them_as_alone(
    classifiers: Folders, llama: "LocalRewardModel", texts: list[tuple[str, list[str]]]
) -> None:
    groups = [Group(str(number), user(prompt), responses) for number, (prompt, responses) in enumerate(texts)]
    plain = PLAIN.setdefault("model", load_plainly(AutoModelForSequenceClassification, classifiers()))
    tokenizer = llama.template.tokenizer
    alone = [
        [logits_alone(plain, conversation_ids(tokenizer, group, response))[0] for response in group.responses]
        for group in groups
    ]
    assert max(differences(score(llama, groups).scores, alone)) < CLOSE


PLAIN: dict[str, object] = {}


def test_scores_are_finite_numbers_that_spread(llama: "LocalRewardModel") -> None:
    scores = [value for values in score(llama, make_groups(0)).scores for value in values]
    assert max(scores) - min(scores) > 1
