"""Training and reading personalized reward models: what is written, resumed, kept, and refused."""

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from killing import stopped_at
from personal_corpora import BACKBONE, TEST, TRAIN, only, small
from pluralbench_local import LocalError, Trained
from pluralbench_local.personal import training
from pluralbench_local.personal.corpus import shuffle_profiles, vector_statistics
from pluralbench_local.personal.options import DEFAULTS, METHODS, Method, PersonalConfig
from pluralbench_local.personal.scoring import accuracy, read_personal, rewards_of
from pluralbench_local.personal.training import order_of, train_personal
from pluralbench_local.training_job import read_log
from pluralbench_runs import RecipeError, check_recipe, file_digest


def trained(out: Path, method: Method = "bt", corpus: Any = None, **given: Any) -> "Trained":
    call: dict[str, Any] = {
        name: given.pop(name) for name in ("held_out", "backbone", "fresh", "origin") if name in given
    }
    return train_personal(corpus or TRAIN, out, **({"options": small(method, **given), "backbone": BACKBONE} | call))


@pytest.fixture(scope="module")
def bt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a model with a profile, not to be changed."""
    return trained(tmp_path_factory.mktemp("bt") / "model").folder


def said(call: Callable[[], object]) -> str:
    with pytest.raises(LocalError) as raised:
        call()
    return str(raised.value)


# What is written


@pytest.mark.parametrize("method", METHODS)
def test_the_folder_holds_the_model_and_how_it_was_made(method: Method, tmp_path: Path) -> None:
    made = trained(tmp_path / "model", method, held_out=TEST, origin={"release": "a" * 64})
    record = json.loads((made.folder / "personal.json").read_text(encoding="utf-8"))
    assert record == made.record
    assert record["method"] == method
    assert record["options"]["epochs"] == 2
    assert record["options"]["weight_decay"] == DEFAULTS[method].weight_decay
    assert record["backbone"] == BACKBONE.model_dump(mode="json", exclude_none=True)
    assert record["origin"] == {"release": "a" * 64}
    assert record["data"]["pairs"] == record["data"]["items"] == 24
    assert record["data"]["persons"] == 6
    assert record["data"]["earlier_pairs"] == 6 * (1 + 2 + 3)
    assert record["weights"] == {"model.safetensors": file_digest(made.folder / "model.safetensors")}
    lines = read_log(made.folder)
    assert [line["epoch"] for line in lines] == [1, 2]
    best = max(line["held_out_accuracy"] for line in lines)
    assert record["held_out_accuracy"] == best
    assert record["epoch"] == next(line["epoch"] for line in lines if line["held_out_accuracy"] == best)
    saved = read_personal(made.folder)
    assert saved.options == small(method).filled()
    assert accuracy(TEST, rewards_of(saved, TEST)) == best


@pytest.mark.parametrize("method", ["vpl", "pal"])  # which draws, and which has rates of its own
def test_interrupted_training_ends_in_the_same_weights(method: Method, tmp_path: Path) -> None:
    whole = trained(tmp_path / "whole", method, held_out=TEST, epochs=3)
    with stopped_at(3, training, "_epoch"):
        trained(tmp_path / "model", method, held_out=TEST, epochs=3)
    again = trained(tmp_path / "model", method, held_out=TEST, epochs=3)
    assert again.record["weights"] == whole.record["weights"]
    assert again.record["held_out_accuracy"] == whole.record["held_out_accuracy"]
    assert len(read_log(again.folder)) == 3


def test_the_seed_decides_the_weights(tmp_path: Path) -> None:
    torch.manual_seed(1)
    one = trained(tmp_path / "one", "vpl")
    torch.manual_seed(2)
    assert trained(tmp_path / "two", "vpl").record["weights"] == one.record["weights"]
    assert trained(tmp_path / "three", "vpl", seed=1).record["weights"] != one.record["weights"]


def test_a_step_has_pairs_of_many_persons() -> None:
    pairs = TRAIN.pairs()
    order = order_of(pairs, TRAIN.persons, 0, 1)
    assert sorted(order) == pairs
    assert order != order_of(pairs, TRAIN.persons, 0, 2)
    for part in range(4):  # four pairs each, so that each fourth has one of each
        assert len({TRAIN.persons[item] for item, _, _ in order[part * 6 : part * 6 + 6]}) == 6


# What is read


def test_items_have_as_many_rewards_as_responses_and_several_ranks_are_pairs(tmp_path: Path) -> None:
    [a, b, *_] = TRAIN.query
    several = replace(
        only(TRAIN, [0, 5, 9]),
        responses=[[a, b, 30], [31], [32, 33]],
        rank=[[2, 1, 2], [1], [2, 1]],
        ids=["a", "b", "c"],
    )
    assert several.pairs() == [(0, 1, 0), (0, 1, 2), (2, 1, 0)]
    saved = read_personal(trained(tmp_path / "model", corpus=several).folder)
    rewarded = rewards_of(saved, several)
    assert [len(own) for own in rewarded] == [3, 1, 2]
    alone = rewards_of(saved, only(several, [2]))
    assert alone[0] == pytest.approx(rewarded[2], abs=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_without_a_profile_the_person_changes_nothing(method: Method, tmp_path: Path) -> None:
    saved = read_personal(trained(tmp_path / "model", method, profile=False).folder)
    nobody = replace(TEST, about=[None] * 12, persona=[None] * 12, earlier=[()] * 12)
    assert rewards_of(saved, nobody) == rewards_of(saved, shuffle_profiles(TEST)) == rewards_of(saved, TEST)


def test_vectors_of_any_size_and_with_constant_numbers_train(tmp_path: Path) -> None:
    scaled = TRAIN.vectors * torch.tensor([1e4, 1, 1e-3, 1, 1, 1, 1, 0]) + 5
    saved = read_personal(trained(tmp_path / "model", corpus=replace(TRAIN, vectors=scaled)).folder)
    assert torch.isfinite(torch.tensor(rewards_of(saved, replace(TRAIN, vectors=scaled)))).all()
    mean, deviation = vector_statistics(replace(TRAIN, vectors=scaled))
    assert (mean[:, -1].tolist(), deviation[:, -1].tolist()) == ([5.0, 5.0], [1.0, 1.0])


def test_responses_are_standardised_alike_whatever_is_told(tmp_path: Path) -> None:
    answers, told = vector_statistics(TRAIN)[0], vector_statistics(replace(TRAIN, about=[None] * len(TRAIN.ids)))[0]
    assert torch.equal(answers[0], told[0])
    read = [*TRAIN.query, *(row for several in TRAIN.responses for row in several)]
    assert torch.allclose(answers[0], TRAIN.vectors[read].mean(dim=0), atol=1e-6)
    saved = {
        (profile, persona): read_personal(
            trained(tmp_path / f"{profile}-{persona}", profile=profile, persona=persona).folder
        )
        for profile, persona in ((False, False), (True, False), (True, True))
    }
    first, *others = ((one.mean[0].tolist(), one.deviation[0].tolist()) for one in saved.values())
    assert all(one == first for one in others)


# What is refused

FIRST = TRAIN.ids[0]
NOT_FINITE = TRAIN.vectors.index_fill(0, torch.tensor(TRAIN.query[3]), float("nan"))
REFUSED: list[tuple[dict[str, Any], str]] = [
    (
        {"corpus": replace(TRAIN, rank=[[1, 1]] * 24)},
        "None of the 24 items has two responses of different rank, so there is no pair.",
    ),
    (
        {"corpus": replace(TRAIN, responses=[[row, row] for row, _ in TRAIN.responses])},
        "In each of the 24 pairs of the items both responses have the same vector, so there is nothing to learn; "
        "check that the backbone reads the responses.",
    ),
    (
        {"corpus": replace(TRAIN, vectors=NOT_FINITE)},
        f"1 of the {len(TRAIN.vectors)} vectors of the items are not finite; embed the texts again with "
        '`dtype="float32"`.',
    ),
    (
        {"corpus": replace(TRAIN, about=[*TRAIN.about[:-1], None])},
        f"The bt model reads the user's context, and 1 of 24 items have none, such as {TRAIN.ids[-1]}; add it, "
        "or use a model without a profile.",
    ),
    (
        {"corpus": replace(TRAIN, persona=[None] * 24), "persona": True},
        "The bt model reads the user's persona, and 24 of 24 items have none, such as 1-0; add it, or use a model "
        "without a profile.",
    ),
    (
        {"corpus": replace(TRAIN, ids=[FIRST, FIRST, *TRAIN.ids[2:]])},
        f"Two items have the id {FIRST}; give each an id of its own.",
    ),
    (
        {"held_out": only(TRAIN, [5])},
        "User 1-1 has both training items and held-out items, so the held-out accuracy is not that of new users; "
        "split the items by user.",
    ),
]


@pytest.mark.parametrize("case", range(7))
def test_what_nothing_can_be_learned_from_is_refused(case: int, tmp_path: Path) -> None:
    given, sentence = REFUSED[case]
    assert said(lambda: trained(tmp_path / "model", **given)) == sentence
    assert not any(tmp_path.iterdir())


def test_vectors_of_another_backbone_are_refused(bt: Path) -> None:
    saved = read_personal(bt)
    narrow = replace(TEST, vectors=TEST.vectors[:, :5])
    assert said(lambda: rewards_of(saved, narrow)) == (
        "The vectors of the items have the width 5, and those of simulated 8; embed the texts with simulated."
    )


@pytest.mark.parametrize(
    ("break_it", "sentence"),
    [
        (
            lambda folder: (folder / "personal.json").unlink(),
            "has no personalized reward model: there is no personal",
        ),
        (
            lambda folder: (folder / "model.safetensors").unlink(),
            "there is no model.safetensors; give the folder of one",
        ),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"no"), "cannot be read ("),
        (
            lambda folder: _changed(folder, format=9),
            "has the format 9, and this version reads 2; train the model again.",
        ),
        (lambda folder: _changed(folder, options={"method": "magic"}), "cannot be read ("),
    ],
)
def test_what_cannot_be_read_is_said(
    break_it: Callable[[Path], object], sentence: str, bt: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(bt, tmp_path / "model")
    break_it(folder)
    assert sentence in said(lambda: read_personal(folder))


def _changed(folder: Path, **values: object) -> None:
    record = json.loads((folder / "personal.json").read_text(encoding="utf-8")) | values
    (folder / "personal.json").write_text(json.dumps(record), encoding="utf-8")


# The options


def test_what_is_not_given_is_the_methods_own() -> None:
    for method in METHODS:
        assert PersonalConfig(method=method).chosen == DEFAULTS[method]
        filled = PersonalConfig(method=method, epochs=7).filled()
        assert (filled.epochs, filled.hidden_size) == (7, DEFAULTS[method].hidden_size)
    assert PersonalConfig(method="gpo").max_history == 10
    assert PersonalConfig(method="gpo", profile=False).max_history == PersonalConfig(method="bt").max_history == 0
    assert PersonalConfig(persona=True).context_sources == ("about", "persona")
    assert PersonalConfig(method="synthesizeme").context_sources == ("about",)
    assert PersonalConfig(method="synthesizeme", profile=False).context_sources == ()


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (
            {"method": "bpt"},
            "`method` must be one of bt, gpo, vpl, pal, synthesizeme; it is `bpt` (did you mean `bt`?).",
        ),
        ({"persona": True, "profile": False}, "`persona=True` needs `profile=True`."),
        (
            {"method": "gpo", "hidden_size": 30},
            "gpo has 4 attention heads, so `hidden_size=...` must be a multiple of 4.",
        ),
    ],
)
def test_options_that_contradict_each_other_are_refused(values: dict[str, object], sentence: str) -> None:
    with pytest.raises(RecipeError, match=re.escape(sentence)):
        check_recipe(PersonalConfig, values, "options")


def test_who_has_one_item_has_no_earlier_pairs_and_counts(tmp_path: Path) -> None:
    singles = only(TRAIN, [0, 4, 8])
    assert [len(earlier) for earlier in singles.earlier] == [0, 0, 0]
    for method in METHODS:
        assert trained(tmp_path / method, method, corpus=singles).record["data"]["earlier_pairs"] == 0
