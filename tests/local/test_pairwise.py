"""Models that only compare two responses are read as published, in both orders, and what cannot be read is refused."""

from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
import torch
from case_marks import heavy
from hypothesis import given
from hypothesis import strategies as st
from pairwise_models import general_preference, pair_preference, pairrm_logits, save_general_preference, save_pairrm
from pluralbench_local import LocalError, LocalModel, ServedModel, load, load_pairwise
from pluralbench_local.general_preference import preferences
from pluralbench_rewards import Group, PairwiseRewardModel, RewardModel, ScoringConfig
from pluralbench_rewards.served.engine import ServerError, ServingConfig
from reward_models import TEMPLATE, change_config, make_groups, make_tokenizer, save_language_model, user
from safetensors.torch import load_file, save_file

TURNS = [*user("hi"), {"role": "assistant", "content": "Hello."}, *user("origami or tea?")]
GROUPS = [*make_groups(2, number=4, longest=12)[1:4], Group("turns", TURNS, ["tea", "origami with tea", "tea"])]
SIGMOID = torch.nn.Sigmoid()


def orders(group: Group) -> list[tuple[int, int]]:
    """All pairs of a group's responses in both orders."""
    return list(permutations(range(len(group.responses)), 2))


def loaded(folder: str, **fields: Any) -> PairwiseRewardModel:
    model = load_pairwise(folder, device="cpu", **fields)
    assert isinstance(model, PairwiseRewardModel)
    assert not isinstance(model, RewardModel)
    return model


def compare(model: PairwiseRewardModel, groups: list[Group]) -> list[list[float]]:
    return model.compare(groups, [orders(group) for group in groups]).scores


def flat(lists: list[list[float]]) -> list[float]:
    return [value for own in lists for value in own]


def published_source(group: Group) -> tuple[str, list[str]]:
    """Prompt and responses as PairRM reads them: of several turns, earlier answers stand before both responses."""
    if len(group.prompt) == 1:
        return group.prompt[0]["content"], list(group.responses)
    source = (
        "Write each <Response i> of the assistant in this conversation."
        "USER: hi\nAssistant: <Response 1>\nUSER: origami or tea?\nAssistant: <Response 2>"
    )
    return source, [f"<Response 1>: Hello.\n<Response 2>: {text}" for text in group.responses]


@pytest.mark.parametrize(("dtype", "close"), [("float32", 1e-5), *heavy(("bfloat16", 0.03))])
def test_pairrm_is_read_as_published(tmp_path: Path, dtype: str, close: float) -> None:
    """reward-bench `pairrm.py`: `tokenize_pair`, `tokenize_conv_pair` and `DebertaV2PairRM.forward`."""
    folder = save_pairrm(tmp_path / "model", dtype=dtype)
    expected = []
    for group in GROUPS:
        source, texts = published_source(group)
        inputs = [(source, texts[one], texts[other]) for one, other in orders(group)]
        expected.append(
            [float(SIGMOID(torch.tensor(logit).double())) for logit in pairrm_logits(folder, inputs, dtype)]
        )
    model = loaded(folder)
    together = compare(model, GROUPS)
    assert max(abs(a - b) for a, b in zip(flat(together), flat(expected), strict=True)) < close
    alone = [compare(model, [group])[0] for group in GROUPS]
    assert max(abs(a - b) for a, b in zip(flat(together), flat(alone), strict=True)) < close
    assert len(set(flat(together))) > 20
    assert model.record().kind == "pairwise"
    with pytest.raises(LocalError, match="load_pairwise"):
        load(folder, device="cpu")


@pytest.mark.parametrize(
    ("dtype", "scale", "mode", "close"),
    [
        ("float32", "scaled", "fast", 1e-4),
        *heavy(
            ("float32", "plain", "exact", 1e-4),
            ("float32", "normalized", "fast", 1e-4),
            ("bfloat16", "scaled", "exact", 0.05),
        ),
    ],
)
def test_a_general_preference_model_is_read_as_published(
    tmp_path: Path, dtype: str, scale: str, mode: str, close: float
) -> None:
    """general-preference-model `rw_model_general_preference.py` (three versions) and `rewardbench_utils.py`."""
    folder = save_general_preference(tmp_path / "model", dtype=dtype)
    model = loaded(folder, label=scale, scoring=ScoringConfig.model_validate({"mode": mode}))
    together = compare(model, GROUPS)
    for group, ours in zip(GROUPS, together, strict=True):
        for (one, other), value in zip(orders(group), ours, strict=True):
            expected = SIGMOID(torch.tensor(general_preference(folder, group, one, other, scale, dtype)).double())
            assert value == pytest.approx(float(expected), abs=close)
            back = ours[orders(group).index((other, one))]
            assert value + back == pytest.approx(1, abs=1e-15)
    alone = [compare(model, [group])[0] for group in GROUPS]
    assert max(abs(a - b) for a, b in zip(flat(together), flat(alone), strict=True)) < close


def test_a_general_preference_model_without_a_prompt_head(tmp_path: Path) -> None:
    folder = save_general_preference(tmp_path / "model", size=2, with_prompt=False)
    [group] = GROUPS[2:3]
    [ours] = compare(loaded(folder), [group])
    expected = [general_preference(folder, group, one, other, "plain") for one, other in orders(group)]
    assert ours == pytest.approx([float(SIGMOID(torch.tensor(value).double())) for value in expected], abs=1e-4)


@pytest.mark.parametrize(
    ("dtype", "mode", "close"),
    [("float32", "fast", 1e-4), *heavy(("float32", "exact", 1e-4), ("bfloat16", "fast", 0.05))],
)
def test_a_pair_preference_model_is_read_as_published(tmp_path: Path, dtype: str, mode: str, close: float) -> None:
    """RLHFlow `eval_reward_bench_pm.py` and reward-bench `slicpairpm.py`, with the answer opened."""
    folder = save_language_model(tmp_path / "model", architecture="gemma2")
    scoring = ScoringConfig.model_validate({"mode": mode})
    model = loaded(folder, kind="pairwise", dtype=dtype, scoring=scoring)
    together = compare(model, GROUPS)
    alone = [compare(model, [group])[0] for group in GROUPS]
    for group, ours, again in zip(GROUPS, together, alone, strict=True):
        expected = [pair_preference(folder, group, one, other, dtype) for one, other in orders(group)]
        assert ours == pytest.approx(expected, abs=close)
        assert again == pytest.approx(ours, abs=close)
    assert len(set(flat(together))) > 15
    assert model.record().kind == "pairwise"


NO_OPENING = TEMPLATE.partition("{% if add_generation_prompt %}")[0]
ALWAYS = TEMPLATE.replace("{% if add_generation_prompt %}", "{% if messages[-1]['role'] == 'user' %}")


@pytest.mark.parametrize(
    ("template", "said"),
    [(NO_OPENING, "opens no answer"), (TEMPLATE.replace("<|assistant|>\n", "<|assistant|>\n<thought>"), "opens no")],
)
def test_a_template_that_opens_no_answer_is_refused(tmp_path: Path, template: str, said: str) -> None:
    folder = save_language_model(tmp_path / "model", tokenizer=make_tokenizer(template=template))
    with pytest.raises(LocalError, match=said):
        load_pairwise(folder, kind="pairwise", device="cpu")


def test_a_template_that_always_opens_an_answer_is_read(tmp_path: Path) -> None:
    groups = GROUPS[2:3]
    models = [
        loaded(save_language_model(tmp_path / name, tokenizer=make_tokenizer(template=template)), kind="pairwise")
        for name, template in (("usual", TEMPLATE), ("always", ALWAYS))
    ]
    assert compare(models[0], groups) == compare(models[1], groups)


def test_options_that_a_pairwise_model_does_not_have_are_refused(tmp_path: Path) -> None:
    folder = save_language_model(tmp_path / "model")
    with pytest.raises(LocalError, match="has no label"):
        load_pairwise(folder, kind="pairwise", label="mean", device="cpu")
    with pytest.raises(LocalError, match="load it with `load`"):
        load_pairwise(folder, kind="implicit", device="cpu")
    serving = ServingConfig(server=("http://localhost:9",))
    with pytest.raises(ServerError, match="leave out `server="):
        ServedModel(model=LocalModel(name=folder, kind="pairwise"), serving=serving).check_location()


finite = st.floats(-100, 100)
VECTORS = st.integers(1, 3).flatmap(
    lambda size: st.lists(st.lists(finite, min_size=3 * size, max_size=3 * size), min_size=2, max_size=5)
)


@given(VECTORS)
def test_preferences_are_antisymmetric(vectors: list[list[float]]) -> None:
    """The order of a pair never decides: both orders are ties, or opposite to the bit before the last."""
    pairs = list(permutations(range(len(vectors)), 2))
    by_pair = dict(zip(pairs, preferences(vectors, pairs), strict=True))
    for one, other in pairs:
        assert (by_pair[one, other] > 0.5) == (by_pair[other, one] < 0.5)
        assert by_pair[one, other] + by_pair[other, one] == pytest.approx(1, abs=1e-15)


@given(st.floats(0, 6.28), st.floats(0.1, 10))
def test_three_responses_in_a_circle_are_a_cycle(turn: float, length: float) -> None:
    """No score of single responses gives these preferences: each beats the next."""
    angles = torch.arange(3).double() * (2 * torch.pi / 3) + turn
    vectors = [[length * float(angle.cos()), length * float(angle.sin()), 1.0] for angle in angles]
    assert all(value > 0.5 for value in preferences(vectors, [(0, 1), (1, 2), (2, 0)]))


def change_tensors(folder: str, **tensors: Any) -> None:
    path = Path(folder) / "model.safetensors"
    names = {name.replace("__", "."): value for name, value in tensors.items()}
    kept = {name: tensor for name, tensor in load_file(path).items() if name not in names}
    save_file(kept | {n: t for n, t in names.items() if t is not None}, path, metadata={"format": "pt"})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda folder: change_config(folder, cand2_prefix_id=7), "cand2_prefix_id"),
        (lambda folder: change_tensors(folder, head_layer__4__bias=None), "head_layer.4.bias"),
        (lambda folder: change_tensors(folder, head_layer__1__weight=torch.zeros(64, 64)), "hidden states of 64"),
    ],
)
def test_a_pairrm_whose_parts_do_not_fit_is_refused(tmp_path: Path, change: Any, said: str) -> None:
    folder = save_pairrm(tmp_path / "model")
    change(folder)
    with pytest.raises(LocalError, match=said):
        load_pairwise(folder, device="cpu")


def test_texts_that_pairrm_would_misread_are_refused(tmp_path: Path) -> None:
    model = loaded(save_pairrm(tmp_path / "model"), scoring=None)
    with pytest.raises(LocalError, match="mark the parts"):
        compare(model, [Group("marked", user("tea"), ["<|candidate1|>", "origami"])])
    with pytest.raises(LocalError, match="2,048 tokens"):
        compare(model, [Group("long", user("tea"), ["origami " * 1200, "tea " * 1200])])


def test_a_general_preference_model_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    folder = save_general_preference(tmp_path / "model")
    with pytest.raises(LocalError, match=r"its files do not say how; .*scaled: .*normalized: "):
        load_pairwise(folder, device="cpu")
    with pytest.raises(LocalError, match=r"'mean' is none of its labels; "):
        load_pairwise(folder, label="mean", device="cpu")
    with pytest.raises(LocalError, match=r"has no weights for score\.weight"):
        load_pairwise(folder, kind="classifier", device="cpu")
    change_tensors(folder, prompt_head__weight=torch.zeros(2, 64))
    with pytest.raises(LocalError, match="do not fit together"):
        load_pairwise(folder, label="scaled", device="cpu")
    change_tensors(folder, prompt_head__weight=torch.zeros(3, 32), value_head__weight=torch.zeros(6, 32))
    with pytest.raises(LocalError, match="hidden states of 64"):
        load_pairwise(folder, label="scaled", device="cpu")
    tokenizer = make_tokenizer()
    tokenizer.eos_token = None
    with pytest.raises(LocalError, match="eos"):
        load_pairwise(save_general_preference(tmp_path / "other", tokenizer=tokenizer), label="scaled", device="cpu")
