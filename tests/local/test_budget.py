"""Batches keep to a budget of tokens, which shrinks when memory runs out; the scores stay what they are."""

import re
import weakref
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import torch
from case_marks import heavy
from pluralbench_local import LocalError, LocalRewardModel, score
from pluralbench_rewards import Group, Mode
from reward_models import Folders, differences, load_classifier, make_groups, user, work_of

CPU = (
    "[enforce fail at alloc_cpu.cpp:124] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate "
    "1073741824 bytes. Error code 12 (Cannot allocate memory)"
)

FAULTS = [
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
    RuntimeError(CPU),
    MemoryError(),
]


CLOSE = 1e-4


def stderr(capsys: pytest.CaptureFixture[str]) -> str:
    return " ".join(capsys.readouterr().err.split())


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[int]]:
    """`memory(module, 100, fault)`: a module that raises `fault` above 100 tokens; the tokens of each batch it took."""

    def limit(module: "torch.nn.Module", most: int, fault: BaseException) -> list[int]:
        forward, taken = module.forward, list[int]()

        def limited(*args: Any, **options: Any) -> Any:
            tokens = options["input_ids"].numel()
            if tokens > most:
                raise fault
            taken.append(tokens)
            return forward(*args, **options)

        monkeypatch.setattr(module, "forward", limited)
        return taken

    return limit


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("name", "mode"),
    [("llama", "fast"), ("bert", "fast"), *heavy(("implicit", "fast"), ("llama", "exact"), ("implicit", "exact"))],
)
def test_a_small_budget_gives_the_same_scores(request: pytest.FixtureRequest, name: str, mode: Mode) -> None:
    model, groups = request.getfixturevalue(name), make_groups(1)
    whole = score(model, groups, mode=mode)
    for budget in (1, 300):
        parts = score(model, groups, mode=mode, token_budget=budget)
        assert max(differences(whole.scores, parts.scores)) < (2e-3 if name == "implicit" else CLOSE)
        assert work_of(parts).batches > work_of(whole).batches
        assert work_of(parts).token_budget == budget
        assert work_of(parts).unique_tokens == work_of(whole).unique_tokens


@pytest.mark.parametrize(("name", "mode"), [("llama", "fast"), ("llama", "exact"), ("bert", "fast")])
def test_no_batch_is_larger_than_the_budget_but_for_one_conversation(
    request: pytest.FixtureRequest, memory: Callable[..., list[int]], name: str, mode: Mode
) -> None:
    model, groups = request.getfixturevalue(name), make_groups(1)
    network = model.network
    taken = memory(network.model if network.head is None else network.body, 10**9, MemoryError())
    scored = score(model, groups, mode=mode, token_budget=150)
    longest = max(count for counts in scored.tokens for count in counts)
    assert max(taken) <= max(150, longest)
    assert (len(taken), sum(taken)) == (work_of(scored).batches, work_of(scored).computed_tokens)


def test_groups_whose_scores_are_known_are_not_computed_again(llama: "LocalRewardModel") -> None:
    groups, reported = make_groups(2), list[int]()
    whole = score(llama, groups, token_budget=60)
    known = {0: [7.5], 3: whole.scores[3]}
    scored = score(llama, groups, cached=known, on_scored=reported.extend, token_budget=60)
    assert scored.scores[0] == [7.5]
    assert scored.scores[1:] == whole.scores[1:]
    assert sorted(reported) == [place for place in range(len(groups)) if place not in known]
    assert work_of(scored).computed_tokens < work_of(whole).computed_tokens


@pytest.mark.parametrize("fault", range(3), ids=["cuda", "cpu", "python"])
@pytest.mark.parametrize("mode", ["fast", "exact"])
def test_when_memory_runs_out_the_budget_is_halved_and_all_is_scored(
    llama: "LocalRewardModel",
    memory: Callable[..., list[int]],
    fault: int,
    mode: Mode,
    capsys: pytest.CaptureFixture[str],
) -> None:
    groups, reported = make_groups(1), list[int]()
    whole = score(llama, groups, mode=mode)
    most = max(count for counts in whole.tokens for count in counts)
    taken = memory(llama.network.body, most, FAULTS[fault])
    scored = score(llama, groups, mode=mode, on_scored=reported.extend)
    assert max(differences(scored.scores, whole.scores)) < CLOSE
    assert sorted(reported) == list(range(len(groups)))
    assert 0 < work_of(scored).token_budget <= most
    assert work_of(scored).batches == len(taken) > 1
    assert work_of(scored).computed_tokens == sum(taken)
    assert work_of(whole).out_of_memory == 0
    lines = re.findall(
        r"A batch of [\d,]+ tokens ran out of memory; continuing with ([\d,]+) a batch\.", stderr(capsys)
    )
    assert work_of(scored).out_of_memory == len(lines) > 0
    assert int(lines[-1].replace(",", "")) == work_of(scored).token_budget


def test_the_tensors_of_a_failed_batch_are_freed_before_the_next(
    llama: "LocalRewardModel", monkeypatch: pytest.MonkeyPatch
) -> None:
    groups, forward = make_groups(1), llama.network.body.forward
    tensors, alive = list[weakref.ref[torch.Tensor]](), list[bool]()

    def failing(*args: Any, **options: Any) -> Any:
        if not tensors:
            states = torch.zeros(8)
            tensors.append(weakref.ref(states))
            raise torch.OutOfMemoryError("CUDA out of memory.")  # a new one: an old one holds old frames
        return forward(*args, **options)

    monkeypatch.setattr(llama.network.body, "forward", failing)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: alive.append(tensors[0]() is not None))
    score(llama, groups)
    assert alive == [False]


@pytest.mark.parametrize("name", ["bert", "implicit"])
def test_a_padded_batch_and_one_of_a_reference_are_halved_too(
    request: pytest.FixtureRequest, memory: Callable[..., list[int]], name: str
) -> None:
    model, groups = request.getfixturevalue(name), make_groups(1)
    whole = score(model, groups)
    memory(model.networks[-1].body, max(count for counts in whole.tokens for count in counts), FAULTS[0])
    assert max(differences(score(model, groups).scores, whole.scores)) < 2e-3


@pytest.mark.parametrize("name", ["llama", "bert"])
def test_a_conversation_that_does_not_fit_is_named(
    request: pytest.FixtureRequest, memory: Callable[..., list[int]], name: str
) -> None:
    model = request.getfixturevalue(name)
    groups = [Group("short", user("hi"), ["origami"]), Group("long", user("drumming " * 80), ["a", "b", "a"])]
    tokens = max(score(model, groups).tokens[1])
    network, reported = model.network, list[int]()
    memory(network.model if network.head is None else network.body, tokens - 1, FAULTS[0])
    with pytest.raises(LocalError) as failed:
        score(model, groups, on_scored=reported.extend)
    assert str(failed.value) == (
        f"A conversation of {tokens} tokens (id long) does not fit into memory; lower `max_length=...` and set "
        "`on_overflow=...`, or choose a smaller `dtype=...`."
    )
    assert len(reported) == len(set(reported))


def test_what_is_no_lack_of_memory_is_raised_as_it_is(
    llama: "LocalRewardModel", memory: Callable[..., list[int]]
) -> None:
    memory(llama.network.body, 0, RuntimeError("mat1 and mat2 shapes cannot be multiplied"))
    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied"):
        score(llama, make_groups(0))


def test_each_group_is_reported_once_with_its_scores_in_order(llama: "LocalRewardModel") -> None:
    groups, reported = make_groups(2), list[tuple[int, list[float]]]()
    scored = score(llama, groups, token_budget=70, on_scored=lambda part: reported.extend(part.items()))
    assert Counter(place for place, _ in reported) == Counter(range(len(groups)))
    assert [values for _, values in sorted(reported)] == scored.scores


def test_after_a_failure_the_next_scoring_is_right(
    classifiers: Folders,
    llama: "LocalRewardModel",
    memory: Callable[..., list[int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    groups = make_groups(0)
    model = load_classifier(classifiers())
    memory(model.network.body, 10, MemoryError())
    with pytest.raises(LocalError):
        score(model, groups)
    monkeypatch.undo()
    assert score(model, groups).scores == score(llama, groups).scores
