"""What every engine promises, once for the imitation servers and for the real ones.

A test gives a `Running`, a server that answers with a model that lies in a folder here; each function below is one
promise, to be called from a test of its own. The tests of the imitations are in tests/local/test_served.py.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from pluralbench_local import LocalError, LocalModel, ServedModel
from pluralbench_rewards import Group, Scored, ScoringConfig
from pluralbench_rewards.served.engine import ServerError, ServingConfig
from reward_models import classifier_alone, differences, implicit_alone, make_groups

if TYPE_CHECKING:
    from pluralbench_local.served.scoring import Served

GROUPS = make_groups(5, number=6, longest=25)
OTHERS = {"vllm": "sglang", "sglang": "vllm", "tei": "vllm", "llamacpp": "vllm"}


@dataclass(frozen=True)
class Running:
    """A server that answers. folder: of its model here. reference, reference_url: of an implicit reward.

    fields: further ones of the model.
    """

    url: str
    engine: str
    folder: str
    kind: str = "classifier"
    reference: str | None = None
    reference_url: str | None = None
    longest: int = 1024
    fields: Mapping[str, Any] = field(default_factory=dict)


def served(running: Running, scoring: ScoringConfig | None = None, /, **serving: Any) -> "Served":
    """The model behind a server, in float32."""
    from pluralbench_local.served.scoring import load

    model = LocalModel.model_validate(
        {
            "name": running.folder,
            "kind": running.kind,
            "reference": running.reference,
            "device": "cpu",
            **running.fields,
        }
    )
    given = {"server": (running.url,), "max_retries": 2} | serving
    if running.reference_url is not None:
        given["reference_server"] = (running.reference_url,)
    return load(ServedModel(model=model, serving=ServingConfig(**given)), scoring or ScoringConfig())


def scored(running: Running, groups: Sequence[Group] = tuple(GROUPS), /, **serving: Any) -> Scored:
    """The scores of some groups."""
    return served(running, **serving).score(groups)


@cache
def scores_alone(folder: str, kind: str = "classifier", reference: str | None = None) -> list[list[float]]:
    """What the model gives each conversation of `GROUPS` by itself."""
    return implicit_alone(folder, GROUPS, reference) if kind == "implicit" else classifier_alone(folder, GROUPS)


def scores_are_those_of_the_model_here(running: Running) -> None:
    """To 1e-4 in float32, whatever the sizes of requests, and the check says what it saw."""
    truth = scores_alone(running.folder, running.kind, running.reference)
    for sizes in ({}, {"batch_size": 3, "concurrency": 5}):
        found = scored(running, **sizes)
        assert max(differences(found.scores, truth)) < 1e-4
    assert found.served is not None
    [engine] = found.served.engines
    assert engine.startswith(f"{running.engine} ")
    assert (found.served.servers, found.served.servers_excluded) == (1, 0)
    check = found.served.check
    assert (check.against, check.items, check.decisions_changed) == ("weights", 4, 0)
    assert check.decisions > 0
    assert found.tolerance == check.largest_difference < 1e-4


def tokens_are_counted_as_in_process(running: Running) -> None:
    """A conversation's tokens and what is dropped are those of the model in this process."""
    here = served(running).template
    found = served(running, ScoringConfig(max_length=60, on_overflow="drop")).score(GROUPS)
    long = [place for place, row in enumerate(found.tokens) if max(row) > 60]
    assert 0 < len(long) < len(GROUPS)
    assert list(found.dropped) == long
    assert [bool(values) for values in found.scores] == [place not in long for place in range(len(GROUPS))]
    [ids] = here.encode([here.render([*GROUPS[1].messages, {"role": "assistant", "content": GROUPS[1].responses[0]}])])
    assert found.tokens[1][0] == len(ids)


def what_is_too_long_is_never_sent(running: Running) -> None:
    """The limit of the server holds where it is less than the model's."""
    long = Group("long", [{"role": "user", "content": "drumming " * 2 * running.longest}], ["origami", "x"])
    with pytest.raises(LocalError, match=r"1 of 2 prompts have conversations of more than .* \(ids long\)"):
        scored(running, [GROUPS[1], long])


def another_engine_is_refused(running: Running) -> None:
    """The right name is proposed."""
    with pytest.raises(ServerError) as refused:
        scored(running, engine=OTHERS[running.engine])
    assert f'not {OTHERS[running.engine]}: set `engine="{running.engine}"`, or leave it out.' in str(refused.value)


def a_name_that_it_does_not_hold_is_refused(running: Running) -> None:
    """The names that it holds are listed."""
    with pytest.raises(ServerError, match=r"has no model 'nobody'; it has .*: set one with `served_name=\.\.\.`"):
        scored(running, served_name="nobody")


def another_model_is_refused(running: Running, folder: str) -> None:
    """folder: of a model with the same tokenizer and other weights."""
    other = Running(running.url, running.engine, folder, running.kind, running.reference, running.reference_url)
    with pytest.raises(ServerError, match=r"Scores of .* differ from those of the local weights of .*"):
        scored(other)


def an_earlier_part_goes_on(running: Running) -> None:
    """What is known is not asked for again, and other scores than it has are refused."""
    whole = scored(running).scores
    known = dict(list(enumerate(whole))[:5])
    came: list[int] = []
    again = served(running).score(GROUPS, cached=known, on_scored=came.extend)
    assert max(differences(again.scores, whole)) < 1e-4
    assert sorted(came) == list(range(5, len(GROUPS)))
    moved = {place: [value + 0.11 for value in values] for place, values in known.items()}
    with pytest.raises(ServerError, match=r"other scores than in the earlier part of this run \(all by -0\.11\)"):
        served(running).score(GROUPS, cached=moved)


CLASSIFIERS = (
    scores_are_those_of_the_model_here,
    tokens_are_counted_as_in_process,
    what_is_too_long_is_never_sent,
    another_engine_is_refused,
    a_name_that_it_does_not_hold_is_refused,
    an_earlier_part_goes_on,
)
"""Promises that need a server and nothing else."""
