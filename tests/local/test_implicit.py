"""Implicit rewards are the log-probabilities that the model's own forward pass gives to the response."""

from collections.abc import Callable
from pathlib import Path

import pytest
from case_marks import heavy
from pluralbench_local import LocalRewardModel, score
from pluralbench_rewards import Group, Mode
from reward_models import (
    Folders,
    conversation_ids,
    differences,
    implicit_alone,
    load_implicit,
    load_plainly,
    log_probability_alone,
    make_groups,
    make_tokenizer,
    opening_ids,
    same_beginning,
    undecided,
    user,
    work_of,
)
from transformers import AutoModelForCausalLM

CLOSE = 2e-3  # sums of up to two hundred log-probabilities of some -6 each
MODES: list[Mode] = ["fast", "exact"]


@pytest.mark.parametrize("architecture", ["llama", *heavy("gemma2", "mistral", "cohere", "granite", "gpt2")])
def test_a_language_model_gives_the_log_probability_of_the_response(
    language_models: Folders, architecture: str
) -> None:
    folder, groups = language_models(architecture), make_groups(2, longest=60)
    model, alone = load_implicit(folder), implicit_alone(folder, groups)
    for mode in MODES:
        scored = score(model, groups, mode=mode)
        assert work_of(scored).strategy == mode
        assert max(differences(scored.scores, alone)) < CLOSE
        assert undecided(scored.scores, alone) == 0
        assert model.tolerance(groups, scored) < CLOSE


def test_exact_scores_are_those_of_one_conversation_at_a_time_to_the_bit(language_models: Folders) -> None:
    groups = make_groups(2, longest=20)
    model, alone = load_implicit(language_models()), implicit_alone(language_models(), groups)
    for budget in (None, 1):
        assert score(model, groups, mode="exact", token_budget=budget).scores == alone


@pytest.mark.parametrize("mode", MODES)
def test_a_reference_is_subtracted(language_models: Folders, implicit: "LocalRewardModel", mode: Mode) -> None:
    groups = make_groups(3)
    alone = implicit_alone(language_models(), groups, reference=language_models(seed=1))
    scored = score(implicit, groups, mode=mode)
    assert max(differences(scored.scores, alone)) < CLOSE
    assert undecided(scored.scores, alone) == 0
    assert max(abs(value) for values in alone for value in values) > 1


def test_where_one_of_the_two_cannot_be_packed_both_are_padded(language_models: Folders) -> None:
    folder, reference, groups = language_models(), language_models("bloom"), make_groups(3)
    scored = score(load_implicit(folder, reference), groups)
    assert work_of(scored).strategy == "padded"
    assert max(differences(scored.scores, implicit_alone(folder, groups, reference=reference))) < CLOSE


@pytest.mark.parametrize(
    ("architecture", "setting"),
    [
        ("gemma2", {"final_logit_softcapping": 2.0}),
        ("cohere", {"logit_scale": 2.0}),
        ("granite", {"logits_scaling": 0.5}),
    ],
)
def test_what_a_family_does_to_its_logits_is_done(
    language_models: Folders, architecture: str, setting: dict[str, float]
) -> None:
    folder, groups = language_models(architecture, **setting), make_groups(1)
    scores = score(load_implicit(folder), groups).scores
    assert max(differences(scores, implicit_alone(folder, groups))) < CLOSE
    assert max(differences(scores, score(load_implicit(language_models(architecture)), groups).scores)) > 1


@pytest.mark.heavy
def test_falcon_h1_multiplies_its_logits(language_models: Folders) -> None:
    folder, groups = language_models("falcon-h1"), make_groups(1, number=2, longest=10)
    assert max(differences(score(load_implicit(folder), groups).scores, implicit_alone(folder, groups))) < CLOSE


def test_more_read_states_than_fit_into_one_block_of_the_vocabulary(language_models: Folders) -> None:
    groups = [Group("q", user("hi"), ["baking bread " * 60, "drumming " * 110, "baking bread " * 61])]
    scores = score(load_implicit(language_models()), groups).scores
    assert max(differences(scores, implicit_alone(language_models(), groups))) < CLOSE


def test_where_the_template_opens_otherwise_than_it_closes_the_response_begins_where_they_part(
    language_models: Folders, written: Callable[[str], Path]
) -> None:
    template = (
        "{{ bos_token }}{% for m in messages %}<|{{ m['role'] }}|>\n{{ m['content'] }}{{ eos_token }}\n{% endfor %}"
        "{% if add_generation_prompt %}<|assistant|>\n<think>\n\n</think>\n{% endif %}"
    )
    folder, group = language_models(), Group("q", user("a quiet hobby"), ["origami", "<think>\n\n</think>\norigami"])
    model = load_implicit(folder, chat_template=written(template))
    plain, tokenizer = load_plainly(AutoModelForCausalLM, folder), make_tokenizer(template=template)
    opening = opening_ids(tokenizer, group)
    expected = []
    for response in group.responses:
        ids = conversation_ids(tokenizer, group, response)
        expected.append(log_probability_alone(plain, ids, same_beginning(opening, ids)))
    assert score(model, [group]).scores[0] == pytest.approx(expected, abs=CLOSE)
